/* test_empty_inputs.c — a dimension of 0 (--dim NAME=0). The artefact leaves out inputs with zero elements, and readers
 * compute the model's values. */
#include "compiler/compiler.h"
#include "ir/passes.h"
#include "plan/planner.h"
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static mdot_dim_binding no_past[] = {{"P", 0, NULL}};
static const fe_options without_past = {.bindings = no_past, .binding_count = 1};

/* Attention over [1, N, 8] with keys and values from the past, as written by exporters of transformers. */
static onnx_builder *model_with_past(void)
{
    float weights[8 * 8];
    const int64_t split[] = {0, 0, 2, 4}, joined[] = {0, 0, 8};
    for (int i = 0; i < 64; i++) weights[i] = (float)(i * 37 % 64) / 64 - 0.5F;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,N,8");
    onnx_input(b, "past_key", MDOT_DTYPE_F32, "1,2,P,4");
    onnx_input(b, "past_value", MDOT_DTYPE_F32, "1,2,P,4");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,8", weights);
    onnx_initializer(b, "split", MDOT_DTYPE_I64, "4", split);
    onnx_initializer(b, "joined", MDOT_DTYPE_I64, "3", joined);
    onnx_node(b, "MatMul", "x,w", "projected");
    onnx_node(b, "Reshape", "projected,split", "rows");
    onnx_node(b, "Transpose", "rows", "q");
    onnx_attr_ints(b, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    onnx_node(b, "Concat", "past_key,q", "present_key");
    onnx_attr_int(b, "axis", 2);
    onnx_node(b, "Concat", "past_value,q", "present_value");
    onnx_attr_int(b, "axis", 2);
    onnx_node(b, "Transpose", "present_key", "kt");
    onnx_attr_ints(b, "perm", 4, (const int64_t[]){0, 1, 3, 2});
    onnx_node(b, "MatMul", "q,kt", "scores");
    onnx_node(b, "Softmax", "scores", "weighed");
    onnx_attr_int(b, "axis", -1);
    onnx_node(b, "MatMul", "weighed,present_value", "heads");
    onnx_node(b, "Transpose", "heads", "back");
    onnx_attr_ints(b, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    onnx_node(b, "Reshape", "back,joined", "y");
    onnx_output(b, "y");
    onnx_output(b, "present_key");
    onnx_output(b, "present_value");
    return b;
}

static bool has_kernel(const pl_plan *plan, pl_kind kind)
{
    for (int i = 0; i < plan->kernel_count; i++)
        if (plan->kernels[i].kind == kind) return true;
    return false;
}

/* Returns the plan of a bucket's graph after comparing it with the original graph. */
static pl_plan *checked_plan(ir_graph *graph, ir_arena *arena)
{
    mdot_error err;
    pl_plan *plan = NULL;
    graph->max_length = 16;
    ir_graph *after = ir_graph_clone(graph, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (ir_run_passes(after, NULL, &err) != MDOT_OK || pl_build(after, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    for (int64_t length = 1; length <= 16; length += 5) assert_plan_agrees(graph, plan, length, 2e-6);
    return plan;
}

static void an_empty_past_is_not_an_input(void **state)
{
    (void)state;
    imported m = expect_imported(model_with_past(), &without_past);
    assert_int_equal(m.graph->input_count, 1);
    assert_int_equal(m.graph->output_count, 3);
    assert_string_equal(m.graph->symbol, "N");
    assert_true(has_kernel(checked_plan(m.graph, m.arena), PL_ATTENTION));
    release(&m);
}

static void verify_reads_the_model_as_compile_does(void **state)
{
    (void)state;
    char folder[] = "/tmp/mdot_empty_XXXXXX", model[64], artefact[64];
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/m.onnx", folder);
    snprintf(artefact, sizeof artefact, "%s/m.mdot", folder);
    pb_buffer bytes = onnx_finish(model_with_past());
    FILE *file = fopen(model, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    pb_free(&bytes);
    const mdotc_entry entry = {.struct_size = sizeof entry, .name = "predict", .model_path = model};
    const int64_t bucket = 8;
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = &bucket, .bucket_count = 1, .dims = no_past, .dim_count = 1};
    const mdotc_verify_options verify = {.struct_size = sizeof verify, .dims = no_past, .dim_count = 1};
    mdot_error err;
    bool passed = false;
    if (mdotc_compile(&entry, 1, artefact, &options, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (mdotc_verify(artefact, model, &verify, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(passed);
    unlink(model);
    unlink(artefact);
    rmdir(folder);
}

/* An empty input whose other dimension is the length is refused, because the length could not be read from it. */
static void an_empty_input_has_no_length(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,N");
    onnx_input(b, "past", MDOT_DTYPE_F32, "P,N");
    onnx_node(b, "Concat", "past,x", "y");
    onnx_attr_int(b, "axis", 0);
    onnx_output(b, "y");
    expect_refused(b, &without_past, MDOT_INVALID_ARGUMENT, "'past'", "empty", "'N'", NULL);
}

static void a_job_has_no_empty_inputs(void **state)
{
    (void)state;
    fe_options job = without_past;
    job.job = true;
    expect_refused(model_with_past(), &job, MDOT_INVALID_ARGUMENT, "'P'", "at least 1", NULL);
}

/* Fused operators read a past with zero rows. Results that depend only on empty values equal the evaluator's. */
static void operators_read_empty_tensors(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "x = input f32[1,L,8]\np = constant f32[1,2,0,4] []\n"
        "y, k, v = Attention(x, x, x, _, p, p) {q_num_heads=2, kv_num_heads=2}\nreturn y, k, v\n",
        "x = input f32[1,L,8]\np = constant f32[1,2,0,4] []\n"
        "y, k, v = com.microsoft.MultiHeadAttention(x, x, x, _, _, _, p, p) {num_heads=2}\nreturn y, k, v\n",
        "x = input f32[1,L,8]\nw = weights f32[8,24]\np = constant f32[2,1,2,0,4] []\n"
        "y = com.microsoft.Attention(x, w, _, _, p) {num_heads=2}\nreturn y\n",
        "x = input f32[1,L,8]\np = constant f32[1,0,8] []\nc = Concat(p, x, p, x) {axis=1}\nreturn c\n",
        "x = input f32[L,8]\nfrom = constant i64[1] [0]\nn = Slice(x, from, from)\ny = Concat(n, x) {axis=0}\n"
        "return y\n",
        "x = input f32[L,8]\np = constant f32[8,0] []\nq = constant f32[0,3] []\nxp = MatMul(x, p)\n"
        "y = MatMul(xp, q)\nreturn y\n",
        "x = input f32[L,8]\nb = input f32[1,8]\nfrom = constant i64[1] [8]\naxis = constant i64[1] [1]\n"
        "n = Slice(x, from, from, axis)\ns = ReduceSum(n, axis)\ny = Add(s, b)\nreturn y\n",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        ir_arena *arena = ir_arena_create(0);
        print_message("%s\n", graphs[i]); /* names the graph if the comparison fails */
        checked_plan(graph_from_notation(graphs[i], 16, arena), arena);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_past_is_not_an_input), cmocka_unit_test(verify_reads_the_model_as_compile_does),
        cmocka_unit_test(an_empty_input_has_no_length),  cmocka_unit_test(a_job_has_no_empty_inputs),
        cmocka_unit_test(operators_read_empty_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
