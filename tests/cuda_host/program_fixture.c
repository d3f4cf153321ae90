/* program_fixture.c — see program_fixture.h. */
#include "tests/cuda_host/program_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/nvrtc.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "tests/support/graph_notation.h"

enum { MOST_PARAMETER_BYTES = 32768, OUTPUT_GUARD = 64 };

/* Passed by value and as large as the largest kernel parameter. The callee only reads the part covered by its
 * structure. */
typedef struct parameter {
    mdot_abi_cuda_call call;
    unsigned char input[MOST_PARAMETER_BYTES - sizeof(mdot_abi_cuda_call)];
} parameter;

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

/* Returns false if the model has no CUDA code; the message gives the reason. */
static bool compile(program *p, const int64_t *buckets, const cu_schedule *schedule, cuda_host_mode checks,
                    mdot_error *err)
{
    static const co_hooks no_hooks;
    size_t count = 0;
    while (buckets[count] != 0) count++;
    mdot_status status = co_plan_entry("predict", p->model, buckets, count, false, &no_hooks, p->arena, &p->entry, err);
    if (status != MDOT_OK) fail_msg("%s", err->message);
    status = cu_generate(&p->entry, 1, p->kernel_precision, schedule, p->arena, &p->code, err);
    if (status == MDOT_UNSUPPORTED && err->message[0] != '\0') return false;
    if (status != MDOT_OK) fail_msg("%s", err->message);
    const char *save = getenv("MDOT_SAVE_CUDA"); /* saves the tested source for inspection */
    if (save) {
        FILE *file = fopen(save, "w");
        assert_non_null(file);
        fputs(p->code.source, file);
        fclose(file);
    }
    p->module = cuda_compile(p->code.source, checks);
    return true;
}

static bool try_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, const cu_schedule *schedule,
                     cuda_host_mode checks, program *out_program, mdot_error *err)
{
    program p = {.arena = ir_arena_create(0), .kernel_precision = kernel_precision};
    ir_graph *model = NULL;
    assert_non_null(p.arena);
    if (fe_import(path, NULL, p.arena, &model, err) != MDOT_OK) fail_msg("%s", err->message);
    p.model = model;
    bool is_supported = compile(&p, buckets, schedule, checks, err);
    *out_program = p;
    if (!is_supported) ir_arena_destroy(p.arena);
    return is_supported;
}

bool program_try_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks,
                      program *out_program, mdot_error *err)
{
    return try_file(path, buckets, kernel_precision, &cu_blocks, checks, out_program, err);
}

program program_in_schedule(const char *path, const int64_t *buckets, cg_compute kernel_precision,
                            const cu_schedule *schedule)
{
    program p;
    mdot_error err = {0};
    if (!try_file(path, buckets, kernel_precision, schedule, CUDA_HOST_CHECKED, &p, &err)) fail_msg("%s", err.message);
    return p;
}

program program_from_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks)
{
    program p;
    mdot_error err = {0};
    if (!program_try_file(path, buckets, kernel_precision, checks, &p, &err)) fail_msg("%s", err.message);
    return p;
}

program program_from_notation(const char *graph, const int64_t *buckets, cg_compute kernel_precision,
                              cuda_host_mode checks)
{
    return program_from_variant(graph, &(program_variant){0}, buckets, kernel_precision, checks);
}

program program_from_variant(const char *graph, const program_variant *variant, const int64_t *buckets,
                             cg_compute kernel_precision, cuda_host_mode checks)
{
    program p = {.arena = ir_arena_create(0), .kernel_precision = kernel_precision};
    assert_non_null(p.arena);
    ir_graph *model = graph_from_notation(graph, INT64_MAX, p.arena);
    if (buckets[0] == 0) model->symbol = NULL;
    const char *const *names = variant->names;
    for (int k = 0; names && k < model->input_count; k++) model->inputs[k]->name = *names++;
    for (ir_node *node = model->first; names && node; node = node->next) {
        node->name = *names;
        for (int k = 0; k < node->output_count; k++) node->outputs[k]->name = *names++;
    }
    p.model = model;
    mdot_error err = {0};
    if (!compile(&p, buckets, variant->schedule ? variant->schedule : &cu_blocks, checks, &err))
        fail_msg("%s", err.message);
    return p;
}

void program_done(program *p)
{
    cuda_host_unload(p->module);
    cu_program_done(&p->code);
    ir_arena_destroy(p->arena);
}

/* ---- A launch ---------------------------------------------------------------------------------------------------- */

typedef struct launch {
    const program *program;
    const cu_kernel *kernel;
    const program_run *run;
    ir_arena *arena;
    cuda_host_memory *memory;
    unsigned items;
    int64_t output_bytes;
    unsigned char *input, *output;
    unsigned *barrier, *done;
    ir_wide ***wanted;              /* indexed by item and output */
    cuda_host_published *published; /* each item's outputs, with a flag */
    parameter parameter;
    void (*function)(parameter p);
} launch;

static void body(void *user)
{
    const launch *l = user;
    l->function(l->parameter);
}

static size_t round_up(size_t n) { return (n + 15) / 16 * 16; }

/* Lays out the inputs, writes those of each item, and computes the expected results. */
static void prepare_inputs(launch *l)
{
    const ir_graph *model = l->program->model;
    mdot_abi_cuda_call *call = &l->parameter.call;
    mdot_error err = {0};
    unsigned char *bytes = NULL;
    l->wanted = IR_NEW_ARRAY(l->arena, ir_wide **, l->items);
    assert_non_null(l->wanted);
    for (unsigned item = 0; item < l->items; item++) {
        ir_wide **inputs = random_inputs(model, l->run->length, l->run->seed * 31 + item, l->arena);
        const ir_wide **rounded = IR_NEW_ARRAY(l->arena, const ir_wide *, model->input_count + 1);
        const ir_tensor **tensors = IR_NEW_ARRAY(l->arena, const ir_tensor *, model->input_count + 1);
        size_t end = 0;
        for (int k = 0; k < model->input_count; k++) {
            tensors[k] = ir_tensor_from_wide(l->arena, inputs[k]);
            rounded[k] = ir_wide_from_tensor(l->arena, tensors[k]);
            call->input_at[k] = (uint32_t)end;
            end += round_up((size_t)tensors[k]->count * mdot_dtype_size_bytes(tensors[k]->dtype));
        }
        if (!bytes) {
            call->input_stride = end;
            bytes = calloc(l->items, end + 1);
            assert_non_null(bytes);
        }
        for (int k = 0; k < model->input_count; k++)
            memcpy(bytes + item * end + call->input_at[k], tensors[k]->data,
                   (size_t)tensors[k]->count * mdot_dtype_size_bytes(tensors[k]->dtype));
        l->wanted[item] = IR_NEW_ARRAY(l->arena, ir_wide *, model->output_count + 1);
        mdot_dtype rounding = l->run->in_f32 ? MDOT_DTYPE_F32 : MDOT_DTYPE_NONE;
        if (ir_evaluate_in(model, rounding, rounded, l->arena, l->wanted[item], &err) != MDOT_OK)
            fail_msg("%s", err.message);
    }
    bool fits = l->items == 1 && l->kernel->inline_input_bytes >= call->input_stride;
    if (fits && !l->run->inputs_in_memory) {
        call->inline_input = 1;
        memcpy(l->parameter.input, bytes, call->input_stride);
    } else {
        l->input = cuda_host_constant(l->memory, "inputs", bytes, call->input_stride * l->items);
        call->input = (uintptr_t)l->input;
    }
    free(bytes);
}

static void prepare_memory(launch *l)
{
    const ir_graph *model = l->program->model;
    mdot_abi_cuda_call *call = &l->parameter.call;
    unsigned start = 0xfffffff0u; /* wraps around soon */
    size_t end = 0, smallest = sizeof(uint32_t);
    for (int k = 0; k < model->output_count; k++) {
        size_t element_bytes = mdot_dtype_size_bytes(l->wanted[0][k]->dtype);
        if (element_bytes < smallest) smallest = element_bytes;
        call->output_at[k] = (uint32_t)end;
        end += round_up((size_t)l->wanted[0][k]->count * mdot_dtype_size_bytes(l->wanted[0][k]->dtype));
    }
    call->output_stride = end;
    call->scratch_stride = (l->kernel->scratch_bytes + 255) / 256 * 256;
    const cg_pool *weights = &l->program->code.weights;
    unsigned *starts = calloc(l->items, sizeof *starts), *zeros = calloc(l->items, sizeof *zeros);
    assert_non_null(starts);
    assert_non_null(zeros);
    for (unsigned k = 0; k < l->items; k++) starts[k] = start;
    call->weights = (uintptr_t)cuda_host_constant(l->memory, "weights", weights->bytes, weights->size_bytes);
    call->scratch = (uintptr_t)cuda_host_buffer(l->memory, "scratch", NULL, call->scratch_stride * l->items, 1);
    l->output = cuda_host_buffer(l->memory, "outputs", NULL, end * l->items, (int)smallest);
    l->barrier = cuda_host_buffer(l->memory, "barriers", starts, l->items * sizeof *starts, 4);
    l->done = cuda_host_buffer(l->memory, "flags", zeros, l->items * sizeof *zeros, 4);
    call->output = (uintptr_t)l->output;
    call->barrier = (uintptr_t)l->barrier;
    call->done = (uintptr_t)l->done;
    call->barrier_base = start;
    call->ticket = 77;
    l->published = IR_NEW_ARRAY(l->arena, cuda_host_published, l->items * (unsigned)model->output_count + 1);
    assert_non_null(l->published);
    cuda_host_published *next = l->published;
    for (unsigned item = 0; item < l->items; item++) {
        for (int k = 0; k < model->output_count; k++) {
            const ir_wide *wanted = l->wanted[item][k];
            size_t bytes = (size_t)wanted->count * mdot_dtype_size_bytes(wanted->dtype);
            *next++ = (cuda_host_published){&l->done[item], l->output + item * end + call->output_at[k], bytes};
        }
    }
    call->length = l->run->length;
    free(starts);
    free(zeros);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static bool agrees(const ir_wide *got, const ir_wide *want, double tolerance, double greatest, char *message,
                   size_t size)
{
    for (int64_t k = 0; k < want->count && want->f; k++) greatest = fmax(greatest, fabs(want->f[k]));
    for (int64_t k = 0; k < want->count; k++) {
        double g = ir_wide_get(got, k), w = ir_wide_get(want, k);
        if (want->i ? g == w : fabs(g - w) <= tolerance * greatest || (isnan(g) && isnan(w)) || g == w) continue;
        snprintf(message, size, "element %" PRId64 " is %.9g and should be %.9g", k, g, w);
        return false;
    }
    return true;
}

static bool results_agree(launch *l, char *message, size_t size)
{
    const ir_graph *model = l->program->model;
    const cu_kernel *kernel = l->kernel;
    double tolerance = l->run->tolerance > 0                     ? l->run->tolerance
                       : l->program->kernel_precision == CG_FP32 ? 1e-5
                                                                 : 1e-2;
    unsigned blocks = (l->run->blocks ? l->run->blocks : 1) * (unsigned)kernel->blocks_per_tile;
    for (unsigned item = 0; item < l->items; item++) {
        unsigned counted = l->barrier[item] - l->parameter.call.barrier_base;
        if (l->done[item] != l->parameter.call.ticket || counted != blocks * (unsigned)kernel->grid_barriers) {
            snprintf(message, size, "item %u: flag %u, and %u passed barriers", item, l->done[item], counted);
            return false;
        }
        for (int k = 0; k < model->output_count; k++) {
            const ir_wide *want = l->wanted[item][k];
            ir_tensor tensor = {.dtype = want->dtype, .rank = want->rank, .count = want->count};
            memcpy(tensor.dims, want->dims, sizeof tensor.dims);
            tensor.data = l->output + item * l->parameter.call.output_stride + l->parameter.call.output_at[k];
            if (!agrees(ir_wide_from_tensor(l->arena, &tensor), want, tolerance, l->run->magnitude, message, size))
                return false;
        }
    }
    return true;
}

bool program_try(const program *p, const program_run *run, cuda_host_report *report, char *message, size_t size)
{
    launch *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->program = p;
    l->run = run;
    l->kernel = &p->code.kernels[run->bucket];
    l->items = run->items ? run->items : 1;
    l->arena = ir_arena_create(0);
    l->memory = cuda_host_memory_create();
    *(void **)&l->function = cuda_host_symbol(p->module, l->kernel->name);
    assert_non_null(l->function);
    prepare_inputs(l);
    prepare_memory(l);
    cuda_host_launch how = {.module = p->module,
                            .grid = {(run->blocks ? run->blocks : 1) * (unsigned)l->kernel->blocks_per_tile, l->items},
                            .cluster = (unsigned)l->kernel->blocks_per_tile,
                            .block = {(unsigned)l->kernel->threads},
                            .shared_bytes = l->kernel->dynamic_shared_bytes,
                            .seed = run->seed,
                            .published = l->published,
                            .skip = run->skip,
                            .skip_line = run->skip_line};
    bool right = cuda_host_run(l->memory, &how, body, l, report);
    if (!right)
        snprintf(message, size, "%s", report->message);
    else
        right = results_agree(l, message, size);
    cuda_host_memory_destroy(l->memory);
    ir_arena_destroy(l->arena);
    free(l);
    return right;
}

void assert_program_right(const program *p, const program_run *run)
{
    static cuda_host_report report;
    char message[512];
    if (!program_try(p, run, &report, message, sizeof message))
        fail_msg("%s, bucket %d, length %" PRId64 ", %u blocks, %u items, seed %u: %s",
                 cg_compute_name(p->kernel_precision), run->bucket, run->length, run->blocks, run->items, run->seed,
                 message);
}

/* ---- Compilation for a GPU --------------------------------------------------------------------------------------- */

void assert_program_fits(const program *p, int sm)
{
    static cu_nvrtc nvrtc;
    static mdot_status loaded = MDOT_OK;
    mdot_error err = {0};
    if (loaded == MDOT_OK && !nvrtc.major && (loaded = cu_nvrtc_load(&nvrtc, &err)) != MDOT_OK)
        print_message("not compiled for a card: %s\n", err.message);
    if (loaded != MDOT_OK) return;
    ir_arena *arena = ir_arena_create(0);
    const char *const parts[] = {p->code.prelude, p->code.source};
    cu_cubin cubin;
    if (cu_nvrtc_compile(&nvrtc, parts, 2, sm, false, arena, &cubin, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int k = 0; k < p->code.kernel_count; k++) {
        const cu_cubin_kernel *kernel = cu_cubin_find(&cubin, p->code.kernels[k].name);
        assert_non_null(kernel);
        assert_int_equal(kernel->local_bytes, 0);
        assert_int_equal(kernel->spill_bytes, 0);
    }
    ir_arena_destroy(arena);
}

/* ---- All precisions ---------------------------------------------------------------------------------------------- */

static bool has_matrix_steps(const program *p) { return strstr(p->code.source, "tensor_mma(chain") != NULL; }

/* Checks a graph at each length in one precision and schedule. Returns whether it has matrix steps. */
static bool assert_right_in(const char *graph, const int64_t *lengths, cg_compute kernel_precision,
                            const cu_schedule *schedule)
{
    static const int64_t bucket[] = {64, 0}, none[] = {0};
    program p = program_from_variant(graph, &(program_variant){.schedule = schedule}, lengths ? bucket : none,
                                     kernel_precision, CUDA_HOST_CHECKED);
    unsigned seed = 1;
    if (kernel_precision == CG_BF16) assert_program_fits(&p, schedule->blocks_per_tile > 1 ? 90 : 80);
    for (const int64_t *length = lengths ? lengths : none; seed == 1 || *length; length++, seed++) {
        assert_program_right(
            &p, &(program_run){.length = *length, .blocks = 1 + (seed + 1) % 3, .seed = seed, .magnitude = 1});
        if (!*length) break;
    }
    bool any = has_matrix_steps(&p);
    program_done(&p);
    return any;
}

void assert_graph_right(const char *graph, const int64_t *lengths)
{
    assert_right_in(graph, lengths, CG_FP32, &cu_blocks);
    assert_right_in(graph, lengths, CG_FP16, &cu_blocks);
    if (!assert_right_in(graph, lengths, CG_BF16, &cu_blocks) || lengths == NULL) return;
    cu_schedule pairs = cu_clusters;
    pairs.blocks_per_tile = 2;
    assert_right_in(graph, lengths, CG_BF16, &pairs);
}
