/* cpu_sequential.c — kernels other than loop nests: running sums, the k best, scatters. They are scalar loops over
 * whole dense buffers, in order.
 *
 * Indices come from data. A negative one counts from the end, and one that is still out of range is clamped, so every
 * input keeps a kernel inside its own memory. These kernels need no working memory: a scatter works on the output after
 * it holds the data, and the k best are kept in order in the output itself. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/signatures.h"
#include "plan/kernel_kind.h"

typedef struct sequential {
    cg_emitter *e;
    const pl_plan *plan;
    const pl_sequential *k;
    const LLVMValueRef *buffers;
    bool is_split;
} sequential;

static const ir_type *type_of(const sequential *s, int buffer) { return &s->plan->buffers[buffer].type; }

/* Product of dimensions from … to - 1 at the run-time length. */
static LLVMValueRef product(const sequential *s, const ir_type *type, int source, int target)
{
    LLVMValueRef count = cg_int(s->e, 1);
    for (int d = source; d < target; d++) count = cg_imul(s->e, count, cg_dim(s->e, type->dim[d]));
    return count;
}

/* A tensor as outer × extent × inner around one axis. */
typedef struct axis_view {
    LLVMValueRef outer, extent, inner;
} axis_view;

static axis_view view_axis(const sequential *s, const ir_type *type, int axis)
{
    return (axis_view){
        .outer = product(s, type, 0, axis),
        .extent = cg_dim(s->e, type->dim[axis]),
        .inner = product(s, type, axis + 1, type->rank),
    };
}

/* Element (outer, place, inner) of a view. */
static LLVMValueRef place_in(const sequential *s, const axis_view *view, LLVMValueRef outer, LLVMValueRef place,
                             LLVMValueRef inner)
{
    LLVMValueRef row = cg_iadd(s->e, cg_imul(s->e, outer, view->extent), place);
    return cg_iadd(s->e, cg_imul(s->e, row, view->inner), inner);
}

static LLVMValueRef address(const sequential *s, int buffer, LLVMValueRef index)
{
    return cg_at(s->e, cg_storage_type(s->e, type_of(s, buffer)->dtype), s->buffers[buffer], index);
}

static LLVMValueRef load_stored(const sequential *s, int buffer, LLVMValueRef index)
{
    return cg_load(s->e, cg_storage_type(s->e, type_of(s, buffer)->dtype), address(s, buffer, index), 0);
}

static LLVMValueRef load(const sequential *s, int buffer, LLVMValueRef index)
{
    return cg_from_storage(s->e, load_stored(s, buffer, index), type_of(s, buffer)->dtype);
}

/* An index tensor's element, as i64. */
static LLVMValueRef load_index(const sequential *s, int buffer, LLVMValueRef index)
{
    return cg_convert(s->e, load(s, buffer, index), type_of(s, buffer)->dtype, MDOT_DTYPE_I64);
}

static LLVMValueRef clamp(cg_emitter *e, LLVMValueRef index, LLVMValueRef last_value)
{
    return cg_imax(e, cg_imin(e, index, last_value), cg_int(e, 0));
}

/* Maps an index to 0 … extent - 1. */
static LLVMValueRef wrap_index(cg_emitter *e, LLVMValueRef index, LLVMValueRef extent)
{
    LLVMValueRef negative = LLVMBuildICmp(e->builder, LLVMIntSLT, index, cg_int(e, 0), "");
    LLVMValueRef from_end = LLVMBuildAdd(e->builder, index, extent, "");
    LLVMValueRef place = cg_select(e, negative, from_end, index);
    return clamp(e, place, cg_isub(e, extent, cg_int(e, 1)));
}

/* The range of the loop before the axis, which is divided among calls. */
static cg_range outer_range(const sequential *s, LLVMValueRef count)
{
    return s->is_split ? cg_slice_of(s->e, count) : (cg_range){cg_int(s->e, 0), count};
}

/* Sums along the axis of `lanes` neighbours at a time, from inner index `from` up to `to`. */
static void cumulate_strip(const sequential *s, const axis_view *view, LLVMValueRef outer, cg_range strip, int lanes)
{
    cg_emitter *e = s->e;
    int input = s->k->input[0], out = s->k->output[0];
    mdot_dtype dtype = type_of(s, input)->dtype, sum_dtype = ir_dtype_is_float(dtype) ? MDOT_DTYPE_F64 : dtype;
    LLVMTypeRef stored = cg_vector(e, cg_storage_type(e, dtype), lanes);
    cg_combine add = cg_reducer_combine(PL_REDUCE_SUM, sum_dtype);
    LLVMValueRef zero = cg_const(e, cg_vector(e, cg_value_type(e, sum_dtype), lanes), 0);
    LLVMValueRef last_value = cg_isub(e, view->extent, cg_int(e, 1));
    cg_loop step;
    CG_FOR (e, inner, strip.from, strip.to, lanes) {
        cg_loop_begin(e, &step, cg_int(e, 0), view->extent, 1, 1, &zero, true);
        LLVMValueRef place = s->k->reverse ? cg_isub(e, last_value, step.index) : step.index;
        LLVMValueRef offset = place_in(s, view, outer, place, inner.index), before = step.carried[0];
        LLVMValueRef value = cg_from_storage(e, cg_load(e, stored, address(s, input, offset), 0), dtype);
        LLVMValueRef after = add(e, before, cg_convert(e, value, dtype, sum_dtype));
        value = cg_convert(e, s->k->exclusive ? before : after, sum_dtype, dtype);
        value = cg_to_storage(e, value, dtype);
        cg_store(e, value, address(s, out, offset), 0);
        cg_loop_end(e, &step, &after);
    }
}

/* Floating sums run in f64, and integers wrap. Neighbouring sums are computed together, because a single sum would
 * read and write a cache line for each number. */
static void emit_cumulate(const sequential *s)
{
    cg_emitter *e = s->e;
    const ir_type *type = type_of(s, s->k->input[0]);
    axis_view view = view_axis(s, type, s->k->axis);
    int lanes = 2 * e->target->lanes; /* their sums in f64 take four registers */
    cg_range strips = {cg_int(e, 0), cg_round_down(e, view.inner, lanes)}, rest = {strips.to, view.inner};
    cg_range outers = outer_range(s, view.outer);
    CG_FOR (e, outer, outers.from, outers.to, 1) {
        if (s->k->axis < type->rank - 1) cumulate_strip(s, &view, outer.index, strips, lanes);
        cumulate_strip(s, &view, outer.index, rest, 1);
    }
}

/* True if a ranks before b. A NaN ranks above every number. */
static LLVMValueRef ranks_before(const sequential *s, mdot_dtype dtype, LLVMValueRef a, LLVMValueRef b)
{
    cg_emitter *e = s->e;
    bool largest = s->k->largest;
    if (!ir_dtype_is_float(dtype))
        return cg_reducer_prefers(e, largest ? PL_REDUCE_ARGMAX_FIRST : PL_REDUCE_ARGMIN_FIRST, dtype, a, b);
    LLVMValueRef number = largest ? b : a; /* the operand that must not be NaN */
    LLVMValueRef differs = LLVMBuildFCmp(e->builder, largest ? LLVMRealUGT : LLVMRealULT, a, b, "");
    return LLVMBuildAnd(e->builder, differs, LLVMBuildFCmp(e->builder, LLVMRealORD, number, number, ""), "");
}

typedef struct ranking { /* the best elements so far of one row, in order, in the outputs */
    axis_view view;
    LLVMValueRef outer, inner;
} ranking;

static void put_ranked(const sequential *s, const ranking *r, LLVMValueRef rank, LLVMValueRef stored,
                       LLVMValueRef place)
{
    LLVMValueRef offset = place_in(s, &r->view, r->outer, rank, r->inner);
    cg_store(s->e, stored, address(s, s->k->output[0], offset), 0);
    if (s->k->output[1] >= 0) cg_store(s->e, place, address(s, s->k->output[1], offset), 0);
}

static void move_down(const sequential *s, const ranking *r, LLVMValueRef rank)
{
    cg_emitter *e = s->e;
    LLVMValueRef source = place_in(s, &r->view, r->outer, cg_isub(e, rank, cg_int(e, 1)), r->inner);
    LLVMValueRef place = s->k->output[1] >= 0 ? load_stored(s, s->k->output[1], source) : NULL;
    put_ranked(s, r, rank, load_stored(s, s->k->output[0], source), place);
}

/* Moves elements that rank after `value` one rank down, starting at the end of the `filled` best. Returns the free
 * rank. Equal values stay before it, because the lower index wins. Elements beyond the last rank are dropped. */
static LLVMValueRef shift_lower_ranks(const sequential *s, const ranking *r, LLVMValueRef value, LLVMValueRef filled)
{
    cg_emitter *e = s->e;
    mdot_dtype dtype = type_of(s, s->k->output[0])->dtype;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->builder);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, e->function, "rank");
    LLVMBasicBlockRef compare = LLVMAppendBasicBlockInContext(e->context, e->function, "compare");
    LLVMBasicBlockRef shift = LLVMAppendBasicBlockInContext(e->context, e->function, "shift");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "ranked");
    LLVMBuildBr(e->builder, head);

    LLVMPositionBuilderAtEnd(e->builder, head);
    LLVMValueRef rank = LLVMBuildPhi(e->builder, e->i64, "rank");
    LLVMAddIncoming(rank, &filled, &before, 1);
    LLVMBuildCondBr(e->builder, LLVMBuildICmp(e->builder, LLVMIntSGT, rank, cg_int(e, 0), ""), compare, after);

    LLVMPositionBuilderAtEnd(e->builder, compare);
    LLVMValueRef above = cg_isub(e, rank, cg_int(e, 1));
    LLVMValueRef other_value = load(s, s->k->output[0], place_in(s, &r->view, r->outer, above, r->inner));
    LLVMBuildCondBr(e->builder, ranks_before(s, dtype, value, other_value), shift, after);

    LLVMPositionBuilderAtEnd(e->builder, shift);
    CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, rank, r->view.extent, "")) move_down(s, r, rank);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder);
    LLVMAddIncoming(rank, &above, &latch, 1);
    LLVMBuildBr(e->builder, head);

    LLVMPositionBuilderAtEnd(e->builder, after);
    return rank;
}

static void emit_top_k(const sequential *s)
{
    cg_emitter *e = s->e;
    int input = s->k->input[0], out = s->k->output[0];
    mdot_dtype dtype = type_of(s, input)->dtype;
    axis_view view = view_axis(s, type_of(s, input), s->k->axis);
    ranking r = {.view = view_axis(s, type_of(s, out), s->k->axis)};
    cg_range outers = outer_range(s, view.outer);
    CG_FOR (e, outer, outers.from, outers.to, 1)
        CG_FOR (e, inner, cg_int(e, 0), view.inner, 1)
            CG_FOR (e, step, cg_int(e, 0), view.extent, 1) {
                r.outer = outer.index;
                r.inner = inner.index;
                LLVMValueRef stored = load_stored(s, input, place_in(s, &view, outer.index, step.index, inner.index));
                LLVMValueRef filled = cg_imin(e, step.index, r.view.extent);
                LLVMValueRef rank = shift_lower_ranks(s, &r, cg_from_storage(e, stored, dtype), filled);
                CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, rank, r.view.extent, ""))
                    put_ranked(s, &r, rank, stored, step.index);
            }
}

enum { COPY_BYTES = 32 };

static void copy_bytes(const sequential *s, LLVMValueRef source, LLVMValueRef target, LLVMValueRef begin,
                       LLVMValueRef end, int width)
{
    cg_emitter *e = s->e;
    CG_FOR (e, loop, begin, end, width) {
        LLVMValueRef bytes = cg_load(e, cg_vector(e, e->i8, width), cg_at(e, e->i8, source, loop.index), 1);
        cg_store(e, bytes, cg_at(e, e->i8, target, loop.index), 1);
    }
}

/* Copies the data to the output. */
static void copy_data(const sequential *s)
{
    cg_emitter *e = s->e;
    int input = s->k->input[0], out = s->k->output[0];
    const ir_type *type = type_of(s, input);
    int64_t size = (int64_t)mdot_dtype_size_bytes(type->dtype);
    LLVMValueRef total = cg_imul(e, product(s, type, 0, type->rank), cg_int(e, size));
    LLVMValueRef whole = cg_round_down(e, total, COPY_BYTES);
    copy_bytes(s, s->buffers[input], s->buffers[out], cg_int(e, 0), whole, COPY_BYTES);
    copy_bytes(s, s->buffers[input], s->buffers[out], whole, total, 1);
}

/* out[to] = updates[from], or its combination with out[to] by the reduction */
static void update(const sequential *s, LLVMValueRef target, int updates, LLVMValueRef source)
{
    int out = s->k->output[0];
    LLVMValueRef value = load(s, updates, source);
    if (s->k->reduction != PL_REDUCE_NONE) {
        mdot_dtype dtype = type_of(s, out)->dtype;
        value = cg_reducer_combine(s->k->reduction, dtype)(s->e, load(s, out, target), value);
    }
    LLVMValueRef stored = cg_to_storage(s->e, value, type_of(s, out)->dtype);
    cg_store(s->e, stored, address(s, out, target), 0);
}

/* Row-major strides of a type at the run-time length. */
static void find_strides(const sequential *s, const ir_type *type, LLVMValueRef *out)
{
    for (int d = 0; d < type->rank; d++) out[d] = product(s, type, d + 1, type->rank);
}

/* The number of updates along an extent: all, or as many as input 3 says. */
static LLVMValueRef update_count(const sequential *s, ir_dim extent)
{
    LLVMValueRef all = cg_dim(s->e, extent);
    if (s->k->input[3] < 0) return all;
    return cg_imin(s->e, load(s, s->k->input[3], cg_int(s->e, 0)), all);
}

static void emit_scatter_elements(const sequential *s)
{
    cg_emitter *e = s->e;
    int indices = s->k->input[1], axis = s->k->axis;
    const ir_type *data = type_of(s, s->k->input[0]), *shape = type_of(s, indices);
    LLVMValueRef strides[MDOT_MAX_RANK], extent = cg_dim(e, data->dim[axis]);
    cg_loop loops[MDOT_MAX_RANK];
    copy_data(s);
    find_strides(s, data, strides);
    LLVMValueRef source = cg_int(e, 0), target = cg_int(e, 0);
    for (int d = 0; d < shape->rank; d++) {
        LLVMValueRef count = d == axis ? update_count(s, shape->dim[d]) : cg_dim(e, shape->dim[d]);
        cg_loop_begin(e, &loops[d], cg_int(e, 0), count, 1, 0, NULL, true);
        source = cg_iadd(e, cg_imul(e, source, cg_dim(e, shape->dim[d])), loops[d].index);
        if (d != axis) target = cg_iadd(e, target, cg_imul(e, loops[d].index, strides[d]));
    }
    LLVMValueRef place = wrap_index(e, load_index(s, indices, source), extent);
    update(s, cg_iadd(e, target, cg_imul(e, place, strides[axis])), s->k->input[2], source);
    for (int d = shape->rank - 1; d >= 0; d--) cg_loop_end(e, &loops[d], NULL);
}

static void emit_scatter_nd(const sequential *s)
{
    cg_emitter *e = s->e;
    int indices = s->k->input[1];
    const ir_type *data = type_of(s, s->k->input[0]), *shape = type_of(s, indices);
    int length = (int)shape->dim[shape->rank - 1].offset; /* coordinates per tuple; fixed by the shape rule */
    LLVMValueRef strides[MDOT_MAX_RANK], slice = product(s, data, length, data->rank);
    ir_type tuples = *shape;
    tuples.rank = shape->rank - 1;
    axis_view view = {cg_int(e, 1), product(s, &tuples, 0, tuples.rank), cg_int(e, 1)};
    if (s->k->input[3] >= 0) view = view_axis(s, &tuples, s->k->axis);
    copy_data(s);
    find_strides(s, data, strides);
    CG_FOR (e, outer, cg_int(e, 0), view.outer, 1)
        CG_FOR (e, step, cg_int(e, 0), s->k->input[3] >= 0 ? update_count(s, tuples.dim[s->k->axis]) : view.extent, 1)
            CG_FOR (e, inner, cg_int(e, 0), view.inner, 1) {
                LLVMValueRef tuple = place_in(s, &view, outer.index, step.index, inner.index);
                LLVMValueRef target = cg_int(e, 0), coordinates = cg_imul(e, tuple, cg_int(e, length));
                for (int d = 0; d < length; d++) {
                    LLVMValueRef index = load_index(s, indices, cg_iadd(e, coordinates, cg_int(e, d)));
                    LLVMValueRef place = wrap_index(e, index, cg_dim(e, data->dim[d]));
                    target = cg_iadd(e, target, cg_imul(e, place, strides[d]));
                }
                CG_FOR (e, element, cg_int(e, 0), slice, 1) {
                    LLVMValueRef source = cg_iadd(e, cg_imul(e, tuple, slice), element.index);
                    update(s, cg_iadd(e, target, element.index), s->k->input[2], source);
                }
            }
}

/* Start along the axis for the update of an outer index. */
static LLVMValueRef write_start(const sequential *s, LLVMValueRef outer, LLVMValueRef space)
{
    cg_emitter *e = s->e;
    if (s->k->input[2] < 0) return cg_int(e, 0);
    LLVMValueRef per_batch = product(s, type_of(s, s->k->input[0]), 1, s->k->axis);
    LLVMValueRef batch = LLVMBuildSDiv(e->builder, outer, per_batch, "");
    LLVMValueRef start = load_index(s, s->k->input[2], batch);
    return s->k->circular ? cg_imax(e, start, cg_int(e, 0)) : clamp(e, start, space);
}

static void emit_tensor_scatter(const sequential *s)
{
    cg_emitter *e = s->e;
    axis_view cache = view_axis(s, type_of(s, s->k->input[0]), s->k->axis);
    axis_view fresh = view_axis(s, type_of(s, s->k->input[1]), s->k->axis);
    LLVMValueRef space = cg_isub(e, cache.extent, fresh.extent);
    copy_data(s);
    CG_FOR (e, outer, cg_int(e, 0), cache.outer, 1) {
        LLVMValueRef start = write_start(s, outer.index, space);
        CG_FOR (e, step, cg_int(e, 0), fresh.extent, 1) {
            LLVMValueRef place = LLVMBuildAdd(e->builder, start, step.index, "");
            if (s->k->circular) place = LLVMBuildURem(e->builder, place, cache.extent, "");
            CG_FOR (e, inner, cg_int(e, 0), cache.inner, 1) {
                LLVMValueRef target = place_in(s, &cache, outer.index, place, inner.index);
                update(s, target, s->k->input[1], place_in(s, &fresh, outer.index, step.index, inner.index));
            }
        }
    }
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_sequential *k = &kernel->sequential;
    static void (*const emitters[])(const sequential *s) = {
        [PL_SEQ_CUMULATE] = emit_cumulate,
        [PL_SEQ_TOP_K] = emit_top_k,
        [PL_SEQ_SCATTER_ELEMENTS] = emit_scatter_elements,
        [PL_SEQ_SCATTER_ND] = emit_scatter_nd,
        [PL_SEQ_TENSOR_SCATTER] = emit_tensor_scatter,
    };
    sequential s = {.e = e, .plan = plan, .k = k, .buffers = buffers, .is_split = pl_is_split(plan, kernel)};
    emitters[k->operation](&s);
}

/* The kernel's shapes are those of the buffers. */
static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_sequential *k = &kernel->sequential;
    cg_signature_add(w, k->operation);
    for (int i = 0; i < 4; i++) cg_signature_add_buffer(w, k->input[i]);
    for (int i = 0; i < 2; i++) cg_signature_add_buffer(w, k->output[i]);
    cg_signature_add(w, k->axis);
    cg_signature_add(w, k->exclusive | k->reverse << 1 | k->largest << 2 | k->sorted << 3 | k->circular << 4);
    cg_signature_add(w, k->reduction);
    for (int b = 0; b < w->buffer_count; b++) {
        const ir_type *type = &w->plan->buffers[w->buffers[b]].type;
        cg_signature_add(w, type->rank);
        for (int d = 0; d < type->rank; d++) cg_signature_add_dim(w, type->dim[d]);
    }
}

const cg_kind_ops cg_sequential_kind = {.emit = emit, .sign = sign};
