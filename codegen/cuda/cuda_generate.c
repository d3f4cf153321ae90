/* cuda_generate.c — entries → a program: each bucket in stages, every step a call, equal steps one function. */
#include "codegen/cuda/cuda_program.h"

#include "codegen/byte_pool.h"
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

#include <inttypes.h>
#include <string.h>

/* A kernel's parameters have 4 KB; on sm_70 and later with driver 530 (CUDA 12.1) nearly 32 KB (CUDA C++ Programming
 * Guide, "Function Parameters"). The limit is rounded down to a multiple of 16. */
enum { MAX_PARAMETER_BYTES = 32764 / 16 * 16 };

typedef struct function {
    const char *name, *text; /* text: declarations and body */
    struct function *next;
} function;

typedef struct generator {
    cg_compute kernel_precision;
    const cu_schedule *schedule;
    ir_arena *arena;
    mdot_error *err;
    cu_program *program;
    function *functions;
    cu_text functions_text, kernels_text;
} generator;

typedef struct bucket { /* the bucket being generated */
    generator *g;
    const char *name;
    const cg_entry *entry;
    const cu_stages *stages;
    const cu_layout *layout;
    const cu_wait *before, *again; /* see memory_placement.h */
    cu_text calls;
} bucket;

static bool is_name_taken(const generator *g, const char *name)
{
    for (const function *other_item = g->functions; other_item != NULL; other_item = other_item->next)
        if (strcmp(other_item->name, name) == 0) return true;
    return false;
}

static const char *new_name(const generator *g, const cu_step *step)
{
    static const char *const parts[] = {[CU_WHOLE] = "",
                                        [CU_PARTIAL] = "_partial",
                                        [CU_FINISH] = "_finish",
                                        [CU_COPY] = "_copy",
                                        [CU_UPDATE] = "_update"};
    const char *base_name = ir_arena_printf(g->arena, "%s%s", step->kernel->name, parts[step->part]);
    const char *base = base_name != NULL ? cu_identifier(g->arena, base_name) : NULL, *name = base;
    for (int number = 2; name != NULL && is_name_taken(g, name); number++)
        name = ir_arena_printf(g->arena, "%s_%d", base, number);
    return name;
}

/* The function that performs a step: an existing equal one, or a new one. */
static const char *intern_function(generator *g, const cu_function *f)
{
    const char *text = ir_arena_printf(g->arena, "(const tile t%s)\n{\n%s%s}\n\n", cu_text_get(&f->declarations),
                                       cu_text_get(&f->locals), cu_text_get(&f->body));
    if (text == NULL) return NULL;
    for (const function *other_item = g->functions; other_item != NULL; other_item = other_item->next)
        if (strcmp(other_item->text, text) == 0) return other_item->name;
    function *created = IR_NEW(g->arena, function);
    const char *name = new_name(g, f->step);
    if (created == NULL || name == NULL) return NULL;
    *created = (function){name, text, g->functions};
    g->functions = created;
    cu_put(&g->functions_text, "__device__ __noinline__ void %s%s", name, text);
    return name;
}

/* `number` is the step's, or the enclosing recurrence's. `tile` is the text of the units to work on. */
static mdot_status put_call(bucket *b, const cu_step *step, int number, const char *tile, cu_wait wait)
{
    cu_function f = {.layout = b->layout,
                     .step = step,
                     .number = number,
                     .wait = wait,
                     .weights = &b->g->program->weights,
                     .arena = b->g->arena,
                     .err = b->g->err};
    step->kind->emit(&f);
    bool failed = f.declarations.failed || f.arguments.failed || f.locals.failed || f.body.failed;
    const char *name = f.status == MDOT_OK && !failed ? intern_function(b->g, &f) : NULL;
    if (f.status == MDOT_OK && name == NULL) f.status = mdot_fail(f.err, MDOT_OUT_OF_MEMORY, NULL);
    if (name != NULL && f.wait != CU_NO_WAIT) cu_put(&b->calls, "        %s;\n", cu_wait_text(f.wait));
    if (name != NULL)
        cu_put(&b->calls, "        // %s: %s\n        %s(%s%s);\n", cu_comment(b->g->arena, step->kernel->name),
               cu_comment(b->g->arena, step->kernel->origin), name, tile, cu_text_get(&f.arguments));
    cu_text_done(&f.declarations);
    cu_text_done(&f.arguments);
    cu_text_done(&f.locals);
    cu_text_done(&f.body);
    return f.status;
}

/* A recurrence's steps, in a loop in block 0. If the row count follows the length, the tile holds all rows. */
static mdot_status put_recurrence(bucket *b, int number, cu_wait wait)
{
    const cu_step *step = &b->stages->steps[number];
    cu_function f = {.arena = b->g->arena};
    cu_wait *before;
    mdot_status status = cu_find_inner_barriers(b->layout, number, b->g->arena, &before, b->g->err);
    bool is_first_enough = status == MDOT_OK && before[0] >= wait; /* the barrier of the first inner step */
    if (!is_first_enough) cu_put(&b->calls, "        %s;\n", cu_wait_text(wait));
    cu_put(&b->calls, "        for (int step = 0; step < %s; step++) {\n",
           cu_dim_text(&f, step->kernel->recurrence.steps));
    for (int k = 0; k < step->inner_count && status == MDOT_OK; k++) {
        const cu_step *inner = &step->inner[k];
        const char *tile = "t";
        if (inner->distribution == CU_FREE)
            tile = ir_arena_printf(b->g->arena, "tile{0, %s, t.length}", inner->kind->row_count(&f, inner->kernel));
        status = put_call(b, inner, number, tile, before[k]);
    }
    cu_put(&b->calls, "        }\n");
    return status;
}

static void put_loop_begin(bucket *b, const cu_step *step)
{
    const cu_schedule *schedule = b->stages->schedule;
    cu_function f = {.arena = b->g->arena};
    if (step->distribution == CU_SINGLE) {
        schedule->put_once(schedule, &b->calls);
    } else if (cu_distributes_points(step)) {
        cu_put(&b->calls, "    {\n        const tile t = whole;\n");
    } else if (step->distribution == CU_FREE) {
        cu_put(&b->calls, "    { const tile t = whole; // rows, dealt out alone\n    const int rows = %s;\n",
               step->kind->row_count(&f, step->kernel));
        schedule->put_tiles(schedule, &b->calls, "rows", 1);
    } else {
        schedule->put_tiles(schedule, &b->calls, "whole.length", schedule->blocks_per_tile);
    }
}

static void put_loop_end(bucket *b, const cu_step *step, cu_wait again)
{
    const cu_schedule *schedule = b->stages->schedule;
    if (again != CU_NO_WAIT)
        schedule->put_next_tile(schedule, &b->calls, step->distribution == CU_FREE ? "rows" : "whole.length",
                                cu_blocks_of(schedule, step), cu_wait_text(again));
    bool has_scope = step->distribution == CU_FREE && !cu_distributes_points(step);
    cu_put(&b->calls, has_scope ? "    }\n    }\n" : "    }\n");
}

static mdot_status put_stage(bucket *b, int *index)
{
    const cu_stages *stages = b->stages;
    int stage = stages->steps[*index].stage;
    while (*index < stages->step_count && stages->steps[*index].stage == stage) {
        int first = *index, end = cu_loop_end(stages, first);
        if (b->before[first] != CU_NO_WAIT) cu_put(&b->calls, "    %s;\n", cu_wait_text(b->before[first]));
        put_loop_begin(b, &stages->steps[first]);
        for (int s = first; s < end; s++) {
            cu_wait wait = s > first ? b->before[s] : CU_NO_WAIT;
            BS_TRY(stages->steps[s].inner_count > 0 ? put_recurrence(b, s, wait)
                                                    : put_call(b, &stages->steps[s], s, "t", wait));
        }
        put_loop_end(b, &stages->steps[first], b->again[end - 1]);
        *index = end;
    }
    return MDOT_OK;
}

static void put_barrier(bucket *b, int stage)
{
    const cu_barrier *why = &b->stages->barriers[stage];
    cu_put(&b->calls, "\n    // Stage %d: ", stage);
    if (why->before != NULL)
        cu_put(&b->calls, "%s needs b%d (%s) of other tiles, from %s.\n", why->after->kernel->name, why->buffer,
               cu_comment(b->g->arena, b->stages->buffers[why->buffer].name), why->before->kernel->name);
    b->stages->schedule->put_grid_barrier(b->stages->schedule, &b->calls);
}

/* Bytes of the inputs in the parameter; 0 if they do not fit. */
static size_t inline_input_bytes(const bucket *b)
{
    const pl_plan *plan = b->stages->plan;
    size_t sum = 0;
    for (int k = 0; k < plan->buffer_count; k++) {
        const pl_buffer *buffer = &plan->buffers[k];
        if (buffer->kind != PL_INPUT) continue;
        int64_t count = ir_type_count_at(&buffer->type, plan->max_length);
        if (count < 0 || count > MAX_PARAMETER_BYTES) return 0;
        sum += ((size_t)count * mdot_dtype_size_bytes(buffer->type.dtype) + 15) / 16 * 16;
    }
    return sum + sizeof(mdot_abi_cuda_call) <= MAX_PARAMETER_BYTES ? sum : 0;
}

static void declare_parameter(bucket *b, size_t bytes)
{
    cu_text *target = &b->g->kernels_text;
    cu_put(target, "struct __align__(16) parameter_of_%s {\n    cuda_call call;\n", b->name);
    if (bytes > 0) cu_put(target, "    unsigned char input[%zu];\n", bytes);
    cu_put(target, "};\n\n");
}

/* Prints each location's offset, under the location's name. */
static void put_locations(const bucket *b, cu_text *target)
{
    static const char *const where[] = {[CU_SHARED] = "shared", [CU_SCRATCH] = "scratch"};
    const cu_stages *stages = b->stages;
    for (int k = 0; k < stages->buffer_count; k++) {
        const cu_placement *placement = &b->layout->placements[k];
        const cu_location *locations[] = {&placement->plain, &placement->half, &placement->output};
        for (int i = 0; i < 3; i++) {
            const cu_location *p = locations[i];
            if (p->kind == CU_UNPLACED || p->kind == CU_WEIGHTS) continue;
            const char *name = cu_location_name(b->layout, b->g->arena, k, p);
            int index = stages->buffers[k].index;
            if (p->kind == CU_SHARED || p->kind == CU_SCRATCH)
                cu_put(target, "    const int %s = %zu; // %s\n", name, p->offset_bytes, where[p->kind]);
            else
                cu_put(target, "    const int %s = p.call.%s_at[%d];\n", name, p->kind == CU_INPUT ? "input" : "output",
                       index);
        }
    }
}

static bool stores_in_any_order(const cu_step *step)
{
    bool any = step->kind->stores_in_any_order;
    for (int k = 0; k < step->inner_count; k++) any = any || step->inner[k].kind->stores_in_any_order;
    return any;
}

/* True if thread 0 in block 0 writes all outputs. In a step run by block 0 alone, it takes the first element, unless
 * the kind is an exception. */
static bool is_result_of_one_thread(const cu_stages *stages)
{
    for (int s = 0; s < stages->step_count; s++)
        if (stores_in_any_order(&stages->steps[s])) return false;
    for (int k = 0; k < stages->plan->buffer_count; k++) {
        const pl_buffer *buffer = &stages->buffers[k];
        if (buffer->kind == PL_OUTPUT && ir_type_count_at(&buffer->type, stages->plan->max_length) != 1) return false;
    }
    return true;
}

static void put_kernel(bucket *b, size_t inline_bytes)
{
    generator *g = b->g;
    const cu_schedule *schedule = b->stages->schedule;
    bool has_clusters = schedule->blocks_per_tile > 1;
    declare_parameter(b, inline_bytes);
    cu_put(&g->kernels_text, "// Entry %s, lengths up to %" PRId64 ".\n", cu_comment(g->arena, b->entry->name),
           b->stages->plan->max_length);
    cu_put(&g->kernels_text, "extern \"C\" __global__ void __launch_bounds__(%d, 1) ", schedule->threads);
    if (has_clusters) cu_put(&g->kernels_text, "__cluster_dims__(%d, 1, 1) ", schedule->blocks_per_tile);
    cu_put(&g->kernels_text,
           "%s(const __grid_constant__ parameter_of_%s p)\n{\n"
           "    if (threadIdx.x == 0) {\n"
           "        item.weights = (const unsigned char *)p.call.weights;\n"
           "        item.scratch = (unsigned char *)p.call.scratch + blockIdx.y * p.call.scratch_stride;\n"
           "        item.output = (unsigned char *)p.call.output + blockIdx.y * p.call.output_stride;\n"
           "    }\n"
           "    const unsigned char *const input =\n"
           "        %s(const unsigned char *)p.call.input + blockIdx.y * p.call.input_stride;\n"
           "    unsigned *const barrier = (unsigned *)p.call.barrier + blockIdx.y;\n"
           "    unsigned target = p.call.barrier_base;\n"
           "    const tile whole = {0, (int)p.call.length, (int)p.call.length};\n",
           b->name, b->name, inline_bytes > 0 ? "p.call.inline_input ? p.input : " : "");
    put_locations(b, &g->kernels_text);
    cu_put(&g->kernels_text, "    %s; // the item's memory%s\n%s",
           cu_wait_text(has_clusters ? CU_CLUSTER_WAIT : CU_BLOCK_WAIT),
           has_clusters ? ", and all blocks of the cluster have begun" : "", cu_text_get(&b->calls));
    if (b->stages->barrier_at_end) {
        cu_put(&g->kernels_text, "\n    // The result is there when all blocks have written theirs.\n");
        schedule->put_grid_barrier(schedule, &g->kernels_text);
    } else if (!is_result_of_one_thread(b->stages)) {
        cu_put(&g->kernels_text, "\n    __syncthreads(); // all of the result\n");
    }
    cu_put(&g->kernels_text,
           "    if (blockIdx.x == 0 && threadIdx.x == 0)\n"
           "        store_release_system((unsigned *)p.call.done + blockIdx.y, p.call.ticket);\n}\n\n");
}

static mdot_status check_sizes(const pl_plan *plan, mdot_error *err)
{
    for (int k = 0; k < plan->buffer_count; k++) {
        int64_t count = ir_type_count_at(&plan->buffers[k].type, plan->max_length);
        if (count < 0 || count > INT32_MAX)
            return mdot_fail(err, MDOT_UNSUPPORTED, "buffer %s has more elements than CUDA code can index",
                             plan->buffers[k].name);
    }
    int inputs = 0, outputs = 0;
    for (int k = 0; k < plan->buffer_count; k++) {
        inputs += plan->buffers[k].kind == PL_INPUT;
        outputs += plan->buffers[k].kind == PL_OUTPUT;
    }
    if (inputs <= MDOT_ABI_CUDA_MAX_TENSORS && outputs <= MDOT_ABI_CUDA_MAX_TENSORS) return MDOT_OK;
    return mdot_fail(err, MDOT_UNSUPPORTED, "%d inputs and %d outputs; at most %d of each on CUDA", inputs, outputs,
                     MDOT_ABI_CUDA_MAX_TENSORS);
}

static bool is_kernel_taken(const cu_program *program, const char *name)
{
    for (int k = 0; k < program->kernel_count; k++)
        if (strcmp(program->kernels[k].name, name) == 0) return true;
    return false;
}

/* Name from entry and bucket. It starts with a fixed word, because an entry may be named "8x" or "double". A number
 * is added if two names collide, for example those of "a-b" and "a_b". Returns NULL if memory runs out. */
static const char *kernel_name(const generator *g, const cg_entry *entry, int64_t max_length)
{
    const char *base = cu_identifier(g->arena, entry->name);
    if (base != NULL && max_length > 0)
        base = ir_arena_printf(g->arena, "entry_%s_n%" PRId64, base, max_length);
    else if (base != NULL)
        base = ir_arena_printf(g->arena, "entry_%s", base);
    const char *name = base;
    for (int number = 2; name != NULL && is_kernel_taken(g->program, name); number++)
        name = ir_arena_printf(g->arena, "%s_%d", base, number);
    return name;
}

/* True if clusters help: some step is split. Steps along an axis read their own results, so they need a block each. */
static bool suits_clusters(const cu_stages *stages, cg_compute kernel_precision)
{
    bool any_split = false;
    for (int s = 0; s < stages->step_count; s++) {
        const cu_step *step = &stages->steps[s];
        if (step->distribution != CU_TILED) continue;
        if (step->kernel->kind == PL_SEQUENTIAL) return false;
        any_split = any_split || pl_is_matrix(stages->plan, step->kernel);
    }
    return any_split && kernel_precision != CG_FP32;
}

/* Large tiles read weights less often, but some models need more memory for them than a block has. */
static mdot_status find_layout(generator *g, const pl_plan *plan, cu_schedule *schedule, cu_stages *stages,
                               cu_layout *layout)
{
    BS_TRY(cu_find_stages(plan, schedule, g->arena, stages, g->err));
    bool suits = schedule->blocks_per_tile == 1 || suits_clusters(stages, g->kernel_precision);
    mdot_status status = suits ? cu_lay_out(stages, g->kernel_precision, g->arena, layout, g->err) : MDOT_UNSUPPORTED;
    if (status != MDOT_UNSUPPORTED || (suits && schedule->tile_units == g->schedule->tile_units)) return status;
    schedule->tile_units = g->schedule->tile_units;
    if (!suits) schedule->blocks_per_tile = 1;
    BS_TRY(cu_find_stages(plan, schedule, g->arena, stages, g->err));
    return cu_lay_out(stages, g->kernel_precision, g->arena, layout, g->err);
}

static mdot_status generate_bucket(generator *g, const cg_entry *entry, const pl_plan *plan, cu_kernel *out)
{
    cu_stages stages;
    cu_layout layout;
    cu_wait *before, *again;
    cu_schedule schedule = cu_fit_schedule(g->schedule, plan->max_length);
    mdot_status status = check_sizes(plan, g->err);
    if (status == MDOT_OK) status = find_layout(g, plan, &schedule, &stages, &layout);
    if (status == MDOT_OK && layout.scratch_bytes > INT32_MAX)
        status = mdot_fail(g->err, MDOT_UNSUPPORTED,
                           "%s: kernels pass %zu bytes to each other; the limit of CUDA code is 2 GB", entry->name,
                           layout.scratch_bytes);
    if (status == MDOT_OK) status = cu_find_barriers(&layout, g->arena, &before, &again, g->err);
    if (status != MDOT_OK) return status;
    bucket b = {.g = g, .entry = entry, .stages = &stages, .layout = &layout, .before = before, .again = again};
    b.name = kernel_name(g, entry, plan->max_length);
    if (b.name == NULL) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, NULL);
    cu_put(&b.calls, "\n    // Stage 0: what reads inputs and weights alone.\n");
    for (int index = 0; index < stages.step_count && status == MDOT_OK;) {
        if (index > 0) put_barrier(&b, stages.steps[index].stage);
        status = put_stage(&b, &index);
    }
    if (status == MDOT_OK) put_kernel(&b, inline_input_bytes(&b));
    if (status == MDOT_OK && b.calls.failed) status = mdot_fail(g->err, MDOT_OUT_OF_MEMORY, NULL);
    cu_text_done(&b.calls);
    *out = (cu_kernel){.name = b.name,
                       .threads = g->schedule->threads,
                       .tile_rows = plan->max_length > 0 ? schedule.tile_units : 0,
                       .blocks_per_tile = schedule.blocks_per_tile,
                       .grid_barriers = stages.stage_count - 1 + stages.barrier_at_end,
                       .dynamic_shared_bytes = layout.shared_bytes,
                       .inline_input_bytes = inline_input_bytes(&b),
                       .scratch_bytes = layout.scratch_bytes};
    return status;
}

static mdot_status generate(generator *g, const cg_entry *entries, int entry_count, cu_program *program)
{
    int count = 0;
    for (int e = 0; e < entry_count; e++) count += entries[e].plan_count;
    program->kernels = IR_NEW_ARRAY(g->arena, cu_kernel, count + 1);
    if (program->kernels == NULL) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, NULL);
    for (int e = 0; e < entry_count; e++) {
        for (int k = 0; k < entries[e].plan_count; k++) {
            cu_kernel *kernel = &program->kernels[program->kernel_count];
            BS_TRY(generate_bucket(g, &entries[e], entries[e].plans[k], kernel));
            kernel->entry = e;
            kernel->bucket = k;
            program->kernel_count++;
        }
    }
    cg_pool *weights = &program->weights;
    cg_pool_reserve(weights, 0, CU_WEIGHT_ALIGNMENT);
    if (weights->size_bytes > INT32_MAX)
        return mdot_fail(g->err, MDOT_UNSUPPORTED, "%zu bytes of weights; the limit of CUDA code is 2 GB",
                         weights->size_bytes);
    bool failed = weights->failed || g->functions_text.failed || g->kernels_text.failed;
    const char *half_type = g->kernel_precision == CG_BF16 ? cu_bf16 : g->kernel_precision == CG_FP16 ? cu_f16 : "";
    bool is_half = g->kernel_precision != CG_FP32;
    program->prelude = cu_prelude;
    program->source =
        ir_arena_printf(g->arena, "%s%s%s%s\n%s%s", half_type, is_half ? cu_half_functions : "", cu_common,
                        is_half ? cu_fast : cu_exact, cu_text_get(&g->functions_text), cu_text_get(&g->kernels_text));
    if (failed || program->source == NULL) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, NULL);
    return MDOT_OK;
}

mdot_status cu_generate(const cg_entry *entries, int entry_count, cg_compute kernel_precision,
                        const cu_schedule *schedule, ir_arena *arena, cu_program *out_program, mdot_error *err)
{
    cu_program program = {0};
    generator g = {
        .kernel_precision = kernel_precision, .schedule = schedule, .arena = arena, .err = err, .program = &program};
    mdot_status status = generate(&g, entries, entry_count, &program);
    cu_text_done(&g.functions_text);
    cu_text_done(&g.kernels_text);
    if (status == MDOT_OK)
        *out_program = program;
    else
        cu_program_done(&program);
    return status;
}

void cu_program_done(cu_program *program) { cg_pool_done(&program->weights); }
