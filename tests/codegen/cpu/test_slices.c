/* test_slices.c — kernels split into slices for several calls. The results are bit-identical to one call's, for any
 * slices. */
#include "ir/ops.h"
#include "plan/kernel_kind.h"
#include "plan/planner.h"
#include "tests/support/cg_harness.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LENGTH = 300, MAX_TENSORS = 4, GUARD = 64 };

/* Halves; many unequal slices, some empty; a last slice almost empty. */
static const int64_t halves[] = {INT64_C(1) << 31};
static const int64_t many[] = {1,
                               INT64_C(1) << 20,
                               INT64_C(0x15555555),
                               INT64_C(0x40000000),
                               INT64_C(0x7fffffff),
                               INT64_C(0x80000001),
                               INT64_C(0xc0000000),
                               INT64_C(0xffffffff)};
static const struct {
    const int64_t *cuts;
    int count;
} partitions[] = {{halves, 1}, {many, 8}};

static ir_graph *graph_of(const char *notation, ir_arena *arena)
{
    mdot_error err = {0};
    ir_graph *graph = graph_from_notation(notation, MAX_LENGTH, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

static size_t output_bytes(const pl_plan *plan, int output, int64_t length)
{
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != PL_OUTPUT || buffer->index != output) continue;
        size_t bytes = mdot_dtype_size_bytes(buffer->type.dtype);
        for (int d = 0; d < buffer->type.rank; d++) bytes *= (size_t)ir_dim_at(buffer->type.dim[d], length);
        return bytes;
    }
    fail_msg("no output %d", output);
    return 0;
}

static void create_outputs(const ir_graph *graph, const pl_plan *plan, int64_t length, int fill, void **out)
{
    for (int o = 0; o < graph->output_count; o++) {
        size_t bytes = output_bytes(plan, o, length);
        out[o] = malloc(bytes + GUARD);
        assert_non_null(out[o]);
        memset(out[o], fill, bytes + GUARD);
    }
}

static void check_length(const ir_graph *graph, const pl_plan *plan, const harness_plan *code, int64_t length)
{
    ir_arena *arena = ir_arena_create(0);
    ir_wide **wide = random_inputs(graph, length, 7, arena);
    const void *inputs[MAX_TENSORS];
    void *whole[MAX_TENSORS], *shared[MAX_TENSORS];
    for (int i = 0; i < graph->input_count; i++) inputs[i] = ir_tensor_from_wide(arena, wide[i])->data;
    create_outputs(graph, plan, length, 0x11, whole);
    harness_call_plan(code, inputs, whole, length);
    for (size_t p = 0; p < sizeof partitions / sizeof partitions[0]; p++) {
        create_outputs(graph, plan, length, 0x77, shared);
        harness_call_slices(code, inputs, shared, length, partitions[p].cuts, partitions[p].count);
        for (int o = 0; o < graph->output_count; o++) {
            size_t bytes = output_bytes(plan, o, length);
            if (memcmp(shared[o], whole[o], bytes) != 0)
                fail_msg("output %d differs at length %lld, partition %zu", o, (long long)length, p);
            for (int i = 0; i < GUARD; i++) assert_int_equal(((unsigned char *)shared[o])[bytes + (size_t)i], 0x77);
            free(shared[o]);
        }
    }
    for (int o = 0; o < graph->output_count; o++) free(whole[o]);
    ir_arena_destroy(arena);
}

static void check_levels(const ir_graph *graph, pl_plan *plan)
{
    static const mdot_cpu_isa levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4, MDOT_CPU_AARCH64_NEON};
    static const int64_t lengths[] = {1, 2, 5, 7, 63, 64, 97, 128, 200, 300};
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) {
            print_message("this machine does not run level %d\n", (int)levels[l]);
            continue;
        }
        harness_plan code;
        harness_load_plan(&code, plan, levels[l]);
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) check_length(graph, plan, &code, lengths[i]);
        harness_unload_plan(&code);
    }
}

static pl_plan *plan_of(ir_graph *graph)
{
    pl_plan *plan = NULL;
    mdot_error err = {0};
    if (pl_build(graph, graph->arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    return plan;
}

/* Checks each kernel with this kind: split or whole, as expected. */
static void check_slices(const char *notation, pl_kind kind, bool is_split)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_of(notation, arena);
    pl_plan *plan = plan_of(graph);
    bool found = false;
    for (int k = 0; k < plan->kernel_count; k++) {
        if (plan->kernels[k].kind != kind) continue;
        found = true;
        assert_int_equal(pl_is_split(plan, &plan->kernels[k]), is_split);
    }
    assert_true(found);
    check_levels(graph, plan);
    ir_arena_destroy(arena);
}

static void linear_is_sliced_by_rows(void **state)
{
    (void)state;
    check_slices("x = input f32[L,70]\nw = weights f32[70,130]\nb = weights f32[130]\ny = mdot.Linear(x, w, b)\n"
                 "return y\n",
                 PL_LINEAR, true);
}

static void linear_with_an_activation_is_sliced(void **state)
{
    (void)state;
    check_slices("x = input f32[L,160]\nw = weights f32[160,192]\nb = weights f32[192]\nh = mdot.Linear(x, w, b)\n"
                 "y = Gelu(h)\nreturn y\n",
                 PL_LINEAR, true);
}

static void linear_with_a_residual_is_sliced(void **state)
{
    (void)state;
    check_slices("x = input f32[L,300]\nr = input f32[L,64]\nw = weights f32[300,64]\nh = mdot.Linear(x, w)\n"
                 "y = Add(h, r)\nreturn y\n",
                 PL_LINEAR, true);
}

/* Some sums are infinite, and computed again. */
static void three_by_three_windows_are_sliced_by_squares(void **state)
{
    (void)state;
    for (int stride = 1; stride <= 2; stride++) {
        char windows[512];
        snprintf(windows, sizeof windows,
                 "r = input f32[L,%d,%d,16]\np = Relu(r)\nx = Log(p)\nw = weights f32[144,16]\n"
                 "h = mdot.Windows(x) {axis=2, size=3, stride=%d, dilation=1}\n"
                 "v = mdot.Windows(h) {axis=1, size=3, stride=%d, dilation=1}\n"
                 "t = Transpose(v) {perm=[0, 1, 3, 2, 4, 5]}\ns = constant i64[4] [-1, 4, 4, 144]\n"
                 "m = Reshape(t, s)\ny = mdot.Linear(m, w)\nreturn y\n",
                 3 * stride + 3, 3 * stride + 3, stride, stride);
        ir_arena *arena = ir_arena_create(0);
        const pl_plan *plan = plan_of(graph_of(windows, arena));
        int taps = 0;
        for (int b = 0; b < plan->buffer_count; b++) taps += plan->buffers[b].use >= PL_TAPS;
        ir_arena_destroy(arena);
        assert_int_equal(taps, 1);
        check_slices(windows, PL_LINEAR, true);
    }
}

static void linear_of_one_row_is_not_split(void **state)
{
    (void)state;
    check_slices("x = input f32[1,70]\nn = input f32[L]\nw = weights f32[70,130]\ny = mdot.Linear(x, w)\nm = Neg(n)\n"
                 "return y, m\n",
                 PL_LINEAR, false);
}

static void attention_is_sliced_by_blocks_of_queries(void **state)
{
    (void)state;
    check_slices("q = input f32[1,3,L,24]\nk = input f32[1,3,L,24]\nv = input f32[1,3,L,20]\n"
                 "y = Attention(q, k, v) {scale=0.2}\nreturn y\n",
                 PL_ATTENTION, true);
}

static void causal_attention_of_shared_key_heads_is_sliced(void **state)
{
    (void)state;
    check_slices("q = input f32[2,4,L,16]\nk = input f32[2,2,L,16]\nv = input f32[2,2,L,16]\n"
                 "y = Attention(q, k, v) {scale=0.25, is_causal=1}\nreturn y\n",
                 PL_ATTENTION, true);
}

static void small_attention_is_sliced_by_batches(void **state)
{
    (void)state;
    check_slices("q = input f32[L,2,3,16]\nk = input f32[L,2,3,16]\nv = input f32[L,2,3,16]\n"
                 "y = Attention(q, k, v) {scale=0.25}\nreturn y\n",
                 PL_ATTENTION, true);
}

static void norm_is_sliced_by_rows(void **state)
{
    (void)state;
    check_slices("x = input f32[L,100]\ng = weights f32[100]\nb = weights f32[100]\n"
                 "y = LayerNormalization(x, g, b)\nreturn y\n",
                 PL_NORM, true);
    check_slices("x = input f32[L,L]\ny = Softmax(x)\nreturn y\n", PL_NORM, true); /* through scratch memory */
}

static void pointwise_nest_is_sliced_by_vectors(void **state)
{
    (void)state;
    check_slices("x = input f32[L,64]\nz = input f32[64]\ne = Exp(x)\ny = Mul(e, z)\nreturn y\n", PL_NEST, true);
    check_slices("x = input f32[3,L]\nz = input f32[L]\ne = Exp(x)\ny = Mul(e, z)\nreturn y\n", PL_NEST, false);
}

/* A row has so few points: a barrier would take longer than the computation. */
static void nest_of_few_points_per_row_is_not_split(void **state)
{
    (void)state;
    check_slices("x = input f32[L]\ny = Tanh(x)\nreturn y\n", PL_NEST, false);
    check_slices("x = input f32[L,63]\nz = input f32[63]\ne = Exp(x)\ny = Mul(e, z)\nreturn y\n", PL_NEST, false);
    check_slices("x = input f32[64,63]\nn = input f32[L]\ny = Tanh(x)\nm = Neg(n)\nreturn y, m\n", PL_NEST, false);
}

/* Two whole kernels, a split one, two whole ones. */
static void kernels_that_are_not_split_run_as_one_step(void **state)
{
    (void)state;
    static const bool want[] = {false, false, true, false, false};
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_of("x = input f32[L]\naxes = constant i64[1] [0]\na = ReduceSum(x, axes) {keepdims=1}\n"
                               "b = Add(x, a)\nw = weights f32[1,80]\nones = constant i64[1] [1]\n"
                               "r = Unsqueeze(b, ones)\np = Add(r, w)\nd = ReduceMax(p, ones) {keepdims=0}\n"
                               "e = ReduceSum(d, axes) {keepdims=1}\ny = Mul(d, e)\nreturn y\n",
                               arena);
    pl_plan *plan = plan_of(graph);
    assert_int_equal(plan->kernel_count, 5);
    for (int k = 0; k < 5; k++) assert_int_equal(pl_is_split(plan, &plan->kernels[k]), want[k]);
    check_levels(graph, plan);
    ir_arena_destroy(arena);
}

static void reductions_are_sliced_by_outputs(void **state)
{
    (void)state;
    check_slices("x = input f32[L,90]\naxes = constant i64[1] [1]\ny = ReduceSum(x, axes) {keepdims=0}\nreturn y\n",
                 PL_NEST, true);
    check_slices("x = input f32[90,L]\naxes = constant i64[1] [0]\ny = ReduceSum(x, axes) {keepdims=0}\nreturn y\n",
                 PL_NEST, true);
    check_slices("x = input f32[L]\naxes = constant i64[1] [0]\ny = ReduceSum(x, axes) {keepdims=0}\nreturn y\n",
                 PL_NEST, false);
}

/* By rows; by columns, if the length is there alone; by batches. */
static void products_of_two_inputs_are_sliced(void **state)
{
    (void)state;
    check_slices("x = input f32[L,40]\nz = input f32[L,40]\nt = Transpose(z) {perm=[1,0]}\ns = MatMul(x, t)\n"
                 "y = Sigmoid(s)\nreturn y\n",
                 PL_NEST, true);
    check_slices("x = input f32[40,20]\nz = input f32[L,20]\nt = Transpose(z) {perm=[1,0]}\ny = MatMul(x, t)\n"
                 "return y\n",
                 PL_NEST, true);
    check_slices("x = input f32[L,7,20]\nz = input f32[L,20,33]\ny = MatMul(x, z)\nreturn y\n", PL_NEST, true);
}

static void transposes_are_sliced(void **state)
{
    (void)state;
    check_slices("x = input f32[L,70]\ny = Transpose(x) {perm=[1,0]}\nreturn y\n", PL_NEST, true);
    check_slices("x = input f32[70,L]\ny = Transpose(x) {perm=[1,0]}\nreturn y\n", PL_NEST, true);
}

static void cumulative_sums_are_sliced_and_scatters_are_not(void **state)
{
    (void)state;
    check_slices("x = input f32[L,5]\naxis = constant i64[] [1]\ny = CumSum(x, axis)\nreturn y\n", PL_SEQUENTIAL, true);
    check_slices("x = input f32[L,5]\naxis = constant i64[] [0]\ny = CumSum(x, axis)\nreturn y\n", PL_SEQUENTIAL,
                 false);
    check_slices("x = input f32[4,5]\ni = input i64[L,1]\nu = input f32[L,5]\n"
                 "y = ScatterND(x, i, u) {reduction=\"add\"}\nreturn y\n",
                 PL_SEQUENTIAL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_sliced_by_rows),
        cmocka_unit_test(linear_with_an_activation_is_sliced),
        cmocka_unit_test(linear_with_a_residual_is_sliced),
        cmocka_unit_test(three_by_three_windows_are_sliced_by_squares),
        cmocka_unit_test(linear_of_one_row_is_not_split),
        cmocka_unit_test(attention_is_sliced_by_blocks_of_queries),
        cmocka_unit_test(causal_attention_of_shared_key_heads_is_sliced),
        cmocka_unit_test(small_attention_is_sliced_by_batches),
        cmocka_unit_test(norm_is_sliced_by_rows),
        cmocka_unit_test(pointwise_nest_is_sliced_by_vectors),
        cmocka_unit_test(nest_of_few_points_per_row_is_not_split),
        cmocka_unit_test(kernels_that_are_not_split_run_as_one_step),
        cmocka_unit_test(reductions_are_sliced_by_outputs),
        cmocka_unit_test(products_of_two_inputs_are_sliced),
        cmocka_unit_test(transposes_are_sliced),
        cmocka_unit_test(cumulative_sums_are_sliced_and_scatters_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
