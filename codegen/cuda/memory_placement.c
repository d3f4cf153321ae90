/* memory_placement.c — determines each buffer's readers and element types, the buffers in shared memory, and their
 * offsets (see memory_placement.h).
 *
 * Buffers that are live at different times share memory. The time unit is a step in shared memory and a stage in
 * scratch memory, because only a barrier guarantees that other blocks are done. */
#include "codegen/cuda/memory_placement.h"

#include "codegen/cuda/cuda_stages.h"

enum {
    PAD = 8,        /* padding elements after a row */
    ALIGNMENT = 16, /* of shared memory, as ldmatrix and 16-byte accesses require */
    SCRATCH_ALIGNMENT = 256,
    STATIC_BYTES = 64,          /* upper bound of item_memory (source/common.cuh) */
    MAX_SINGLE_BYTES = 16 << 10 /* limit for buffers of block 0 alone */
};

/* Shared memory of a block on every device: 64 KB on sm_75, 99 KB and more from sm_80 on (CUDA C++ Programming
 * Guide, "Technical Specifications per Compute Capability"). */
static size_t max_shared_bytes(cg_compute kernel_precision)
{
    return (kernel_precision == CG_FP16 ? 64 << 10 : 99 << 10) - STATIC_BYTES;
}

typedef struct live_range { /* live range of a buffer, in steps; last < first if it is unused */
    int first, last, first_stage, last_stage;
    bool all_local, all_tiled, all_single;
    int64_t width; /* greatest common divisor of all row strides */
} live_range;

struct cu_stride_visitor {
    const cu_stages *stages;
    cu_layout *layout;
    live_range *live_ranges;
};
typedef struct cu_stride_visitor planner;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void cu_visit_stride(cu_stride_visitor *p, int buffer, ir_dim stride)
{
    if (buffer >= 0 && ir_dim_is_number(stride) && stride.offset > 0)
        p->live_ranges[buffer].width = gcd(stride.offset, p->live_ranges[buffer].width);
}

/* The channels must be between the paddings. */
void cu_visit_heads(cu_stride_visitor *p, const pl_heads *h, int64_t dim)
{
    live_range *l = &p->live_ranges[h->buffer];
    cu_visit_stride(p, h->buffer, h->row_stride);
    bool together = ir_dim_is_multiple(h->offset, dim) && ir_dim_is_multiple(h->batch_stride, dim) &&
                    ir_dim_is_multiple(h->head_stride, dim) && ir_dim_is_multiple(h->row_stride, dim) &&
                    l->width % dim == 0;
    l->all_local = l->all_local && together;
}

static void find_live_ranges(planner *p)
{
    const cu_stages *stages = p->stages;
    for (int b = 0; b < stages->buffer_count; b++) {
        const ir_type *type = &stages->buffers[b].type;
        int64_t last_index =
            type->rank > 0 && ir_dim_is_number(type->dim[type->rank - 1]) ? type->dim[type->rank - 1].offset : 1;
        p->live_ranges[b] =
            (live_range){.last = -1, .all_local = true, .all_tiled = true, .all_single = true, .width = last_index};
    }
    for (int s = 0; s < stages->step_count; s++) {
        const cu_step *step = &stages->steps[s];
        const cu_step_kind *kind = step->kind;
        if (kind->visit_strides != NULL) kind->visit_strides(step->kernel, p);
        for (int k = 0; k < step->access_count; k++) {
            live_range *l = &p->live_ranges[step->accesses[k].buffer];
            if (l->last < 0) {
                l->first = s;
                l->first_stage = step->stage;
            }
            l->last = s;
            l->last_stage = step->stage;
            l->all_local = l->all_local && step->accesses[k].is_local;
            l->all_tiled = l->all_tiled && step->distribution == CU_TILED;
            l->all_single = l->all_single && step->distribution == CU_SINGLE;
        }
    }
}

static void find_forms(planner *p)
{
    const cu_stages *stages = p->stages;
    for (int b = 0; b < stages->buffer_count; b++) {
        cu_placement *placement = &p->layout->placements[b];
        const pl_buffer *buffer = &stages->buffers[b];
        bool is_made = buffer->kind == PL_SCRATCH || buffer->kind == PL_OUTPUT;
        unsigned reads = buffer->reads;
        if (p->layout->kernel_precision == CG_FP32 && reads != 0) reads = PL_READ_WHOLE;
        if (b >= stages->plan->buffer_count) reads = PL_READ_WHOLE; /* partial results */
        if (is_made && reads & PL_READ_WHOLE) placement->plain.kind = CU_SCRATCH;
        if (is_made && reads & PL_READ_HALF) placement->half = (cu_location){.kind = CU_SCRATCH, .is_half = true};
        if (buffer->kind == PL_INPUT) placement->plain.kind = CU_INPUT;
        if (buffer->kind == PL_WEIGHT) placement->plain.kind = CU_WEIGHTS;
        if (buffer->kind == PL_OUTPUT) placement->output.kind = CU_OUTPUT;
    }
}

/* Maximum element count, with each dimension at the maximising length. */
static int64_t max_elements(const planner *p, int buffer)
{
    const ir_type *type = &p->stages->buffers[buffer].type;
    int64_t count = 1;
    for (int d = 0; d < type->rank; d++) {
        bool is_number = ir_dim_is_number(type->dim[d]);
        count *= is_number ? type->dim[d].offset : ir_dim_most(type->dim[d], 1, p->stages->plan->max_length);
    }
    return count;
}

static size_t element_bytes(const planner *p, int buffer, const cu_location *location)
{
    return location->is_half ? 2 : mdot_dtype_size_bytes(p->stages->buffers[buffer].type.dtype);
}

static void size_shared(const planner *p, int buffer, cu_location *location)
{
    const pl_buffer *b = &p->stages->buffers[buffer];
    location->kind = CU_SHARED;
    location->unit = p->live_ranges[buffer].all_tiled ? pl_unit_elements(&b->type, 0) : 0;
    location->width = p->live_ranges[buffer].width;
    location->pitch = location->width;
    int64_t count = location->unit * p->stages->schedule->tile_units;
    if (location->unit == 0) count = max_elements(p, buffer);
    if (location->unit > 0 && location->width >= 2 * PAD && location->width % PAD == 0) location->pitch += PAD;
    count += count / location->width * (location->pitch - location->width);
    location->size_bytes = (size_t)count * element_bytes(p, buffer, location);
}

static void size_scratch(const planner *p, int buffer, cu_location *location)
{
    location->kind = CU_SCRATCH;
    location->width = location->pitch = 1;
    location->unit = 0;
    location->size_bytes = (size_t)max_elements(p, buffer) * element_bytes(p, buffer, location);
}

static bool may_be_shared(const planner *p, int buffer)
{
    const live_range *l = &p->live_ranges[buffer];
    if (l->last < 0 || l->first_stage != l->last_stage || !l->all_local) return false;
    if (l->all_single) return max_elements(p, buffer) * (int64_t)sizeof(int64_t) <= MAX_SINGLE_BYTES;
    return l->all_tiled && pl_unit_elements(&p->stages->buffers[buffer].type, 0) > 0;
}

typedef struct piece { /* a piece of memory, live from `first` to `last` */
    int first, last;
    size_t bytes, *offset;
} piece;

/* Assigns the lowest offset that avoids all pieces live at the same time. Empty pieces get offset 0 and conflict
 * with none. Returns the end of all pieces. */
static size_t assign(piece *pieces, int count, size_t alignment)
{
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        size_t index = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < i; j++) {
                const piece *other_item = &pieces[j];
                bool together = other_item->first <= pieces[i].last && pieces[i].first <= other_item->last;
                bool overlap =
                    *other_item->offset < index + pieces[i].bytes && index < *other_item->offset + other_item->bytes;
                if (!together || !overlap) continue;
                index = (*other_item->offset + other_item->bytes + alignment - 1) / alignment * alignment;
                moved = true;
            }
        }
        *pieces[i].offset = index;
        if (index + pieces[i].bytes > end) end = index + pieces[i].bytes;
    }
    return (end + alignment - 1) / alignment * alignment;
}

static int collect(planner *p, cu_memory_space kind, piece *pieces)
{
    int count = 0;
    for (int b = 0; b < p->stages->buffer_count; b++) {
        cu_placement *placement = &p->layout->placements[b];
        cu_location *locations[] = {&placement->plain, &placement->half};
        const live_range *l = &p->live_ranges[b];
        for (int k = 0; k < 2; k++) {
            if (locations[k]->kind != kind || l->last < 0) continue;
            int first = kind == CU_SHARED ? l->first : l->first_stage,
                end = kind == CU_SHARED ? l->last : l->last_stage;
            pieces[count++] = (piece){first, end, locations[k]->size_bytes, &locations[k]->offset_bytes};
        }
    }
    return count;
}

static void assign_shared(planner *p, piece *pieces)
{
    cu_layout *layout = p->layout;
    int count = collect(p, CU_SHARED, pieces);
    for (int s = 0; s < p->stages->step_count; s++) {
        const cu_step *step = &p->stages->steps[s];
        const cu_step_kind *kind = step->kind;
        size_t bytes = kind->work_bytes != NULL ? kind->work_bytes(step, layout) : 0;
        layout->work_bytes[s] = bytes;
        if (bytes > 0) pieces[count++] = (piece){s, s, bytes, &layout->work_offset[s]};
    }
    layout->shared_bytes = assign(pieces, count, ALIGNMENT);
}

/* The buffer that frees the most shared memory; -1 if all is free. */
static int largest_shared(const planner *p)
{
    int found = -1;
    size_t maximum = 0;
    for (int b = 0; b < p->stages->buffer_count; b++) {
        const cu_placement *placement = &p->layout->placements[b];
        size_t bytes = (placement->plain.kind == CU_SHARED ? placement->plain.size_bytes : 0) +
                       (placement->half.kind == CU_SHARED ? placement->half.size_bytes : 0);
        if (bytes <= maximum) continue;
        maximum = bytes;
        found = b;
    }
    return found;
}

static void assign_buffer(planner *p, int buffer, bool is_shared)
{
    cu_placement *placement = &p->layout->placements[buffer];
    cu_location *locations[] = {&placement->plain, &placement->half};
    for (int k = 0; k < 2; k++) {
        if (locations[k]->kind != CU_SCRATCH && locations[k]->kind != CU_SHARED) continue;
        if (is_shared)
            size_shared(p, buffer, locations[k]);
        else
            size_scratch(p, buffer, locations[k]);
    }
}

static mdot_status refuse_size(const planner *p, mdot_error *err)
{
    int worst = 0;
    for (int s = 1; s < p->stages->step_count; s++)
        if (p->layout->work_bytes[s] > p->layout->work_bytes[worst]) worst = s;
    const pl_kernel *kernel = p->stages->steps[worst].kernel;
    return mdot_fail(err, MDOT_UNSUPPORTED, "kernel %s (%s): needs %zu bytes of shared memory; a block has %zu",
                     kernel->name, kernel->origin, p->layout->work_bytes[worst],
                     max_shared_bytes(p->layout->kernel_precision));
}

static mdot_status assign_all(planner *p, piece *pieces, mdot_error *err)
{
    cu_layout *layout = p->layout;
    for (int b = 0; b < p->stages->buffer_count; b++) assign_buffer(p, b, may_be_shared(p, b));
    assign_shared(p, pieces);
    while (layout->shared_bytes > max_shared_bytes(layout->kernel_precision)) {
        int largest = largest_shared(p);
        if (largest < 0) return refuse_size(p, err);
        assign_buffer(p, largest, false);
        assign_shared(p, pieces);
    }
    layout->scratch_bytes = assign(pieces, collect(p, CU_SCRATCH, pieces), SCRATCH_ALIGNMENT);
    return MDOT_OK;
}

mdot_status cu_lay_out(const cu_stages *stages, cg_compute kernel_precision, ir_arena *arena, cu_layout *out_layout,
                       mdot_error *err)
{
    cu_layout layout = {.stages = stages, .kernel_precision = kernel_precision};
    planner p = {.stages = stages, .layout = &layout};
    layout.placements = IR_NEW_ARRAY(arena, cu_placement, stages->buffer_count + 1);
    layout.work_offset = IR_NEW_ARRAY(arena, size_t, stages->step_count + 1);
    layout.work_bytes = IR_NEW_ARRAY(arena, size_t, stages->step_count + 1);
    p.live_ranges = IR_NEW_ARRAY(arena, live_range, stages->buffer_count + 1);
    piece *pieces = IR_NEW_ARRAY(arena, piece, 2 * stages->buffer_count + stages->step_count + 1);
    if (layout.placements == NULL || layout.work_offset == NULL || layout.work_bytes == NULL || p.live_ranges == NULL ||
        pieces == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    find_live_ranges(&p);
    find_forms(&p);
    mdot_status status = assign_all(&p, pieces, err);
    if (status == MDOT_OK) *out_layout = layout;
    return status;
}
