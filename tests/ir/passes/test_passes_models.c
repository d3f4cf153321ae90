/* test_passes_models.c — all passes together on models from other sources: ONNX's node tests and trained predictors. A
 * graph's values must stay the same. The expected result shapes for the reference predictors are constants in this
 * test. Folding rounds constants to f32, and evaluating the original graph skips this rounding, therefore the tolerance
 * is f32's. */
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_INPUTS = 64 };
static const double tolerance = 1e-6;

typedef struct node_test {
    ir_arena *arena;
    const char *folder;
    int input_count;
    ir_tensor *inputs[MAX_INPUTS];
} node_test;

static void read_inputs(node_test *t)
{
    for (; t->input_count < MAX_INPUTS; t->input_count++) {
        mdot_error err;
        const char *name;
        const char *path = ir_arena_printf(t->arena, "%s/test_data_set_0/input_%d.pb", t->folder, t->input_count);
        if (access(path, R_OK) != 0) return;
        if (fe_read_tensor(path, t->arena, &t->inputs[t->input_count], &name, &err) != MDOT_OK) {
            fail_msg("%s", err.message);
        }
    }
}

static ir_graph *import_test(const node_test *t)
{
    mdot_error err;
    ir_type types[MAX_INPUTS];
    for (int i = 0; i < t->input_count; i++) {
        types[i] = (ir_type){.dtype = t->inputs[i]->dtype, .rank = t->inputs[i]->rank};
        for (int d = 0; d < types[i].rank; d++) types[i].dim[d] = ir_dim_number(t->inputs[i]->dims[d]);
    }
    fe_options options = {.input_types = types, .input_type_count = (size_t)t->input_count};
    const char *path = ir_arena_printf(t->arena, "%s/model.onnx", t->folder);
    ir_graph *graph = NULL;
    if (fe_import(path, &options, t->arena, &graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

/* Makes constants for the inputs that shapes may depend on (scalars and vectors), with the data set's values. */
static void bind_small_inputs(const node_test *t, ir_graph *graph)
{
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *input = graph->inputs[i];
        if (input->type.rank > 1) continue;
        ir_graph_replace_uses(graph, input, ir_graph_add_constant(graph, input->name, t->inputs[i]));
    }
}

static void expect_ready_for_planning(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node; node = node->next) {
        ir_lowering lowering = node->op->lowering;
        if (lowering == IR_LOWER_EXPAND || lowering == IR_LOWER_FOLD) {
            fail_msg("%s: node %s (%s) is left", graph->name, node->name, node->op->name);
        }
    }
}

/* Returns true if the model can be compiled. The test fails if the compiled model is wrong. */
static bool check_node_test(node_test *t, bool binds)
{
    mdot_error err;
    ir_graph *graph = import_test(t);
    if (binds) bind_small_inputs(t, graph);
    ir_graph *result = ir_graph_clone(graph, t->arena);
    result->max_length = 1;
    mdot_status status = ir_run_passes(result, NULL, &err);
    if (status == MDOT_UNSUPPORTED) return false;
    if (status != MDOT_OK || ir_graph_verify(result, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_ready_for_planning(result);
    const ir_wide **in = IR_NEW_ARRAY(t->arena, const ir_wide *, t->input_count + 1);
    for (int i = 0; i < t->input_count; i++) in[i] = ir_wide_from_tensor(t->arena, t->inputs[i]);
    assert_same_results(graph, result, in, tolerance);
    return true;
}

static void node_tests_keep_their_values(void **state)
{
    (void)state;
    DIR *folder = opendir(MDOT_SHARED_ONNX "/node");
    if (!folder) {
        print_message("../shared/onnx/node is not there\n");
        skip();
    }
    int compiled = 0, all = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, "test_", 5) != 0) continue;
        node_test t = {.arena = ir_arena_create(0)};
        t.folder = ir_arena_printf(t.arena, "%s/node/%s", MDOT_SHARED_ONNX, entry->d_name);
        read_inputs(&t);
        compiled += check_node_test(&t, false) || check_node_test(&t, true);
        all++;
        ir_arena_destroy(t.arena);
    }
    closedir(folder);
    print_message("%d of %d node tests compared\n", compiled, all);
    assert_compare(compiled, >=, all * 9 / 10);
}

static ir_graph *import_model(const char *name, int64_t batch, ir_arena *arena)
{
    mdot_error err;
    ir_graph *graph = NULL;
    mdot_dim_binding binding = {"batch", batch, NULL};
    fe_options options = {.bindings = &binding, .binding_count = batch > 0};
    const char *path = ir_arena_printf(arena, "%s/%s", MDOT_SHARED_ONNX, name);
    if (access(path, R_OK) != 0) {
        ir_arena_destroy(arena);
        print_message("../shared/onnx/%s is not there\n", name);
        skip();
    }
    if (fe_import(path, &options, arena, &graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

static ir_graph *after_all_passes(const ir_graph *graph, int64_t max_length, ir_arena *arena)
{
    mdot_error err;
    ir_graph *result = ir_graph_clone(graph, arena);
    result->max_length = max_length;
    if (ir_run_passes(result, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (ir_graph_verify(result, &err) != MDOT_OK) fail_msg("%s", err.message);
    return result;
}

static int count_of(const ir_graph *graph, ir_opcode op)
{
    int count = 0;
    for (const ir_node *node = graph->first; node; node = node->next) count += ir_node_opcode(node) == op;
    return count;
}

typedef struct composition {
    int attentions, linears, norms, gelus;
} composition;

static void expect_model(const char *name, int64_t batch, composition expected)
{
    static const int64_t lengths[] = {1, 7, 32};
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = import_model(name, batch, arena);
    ir_graph *result = after_all_passes(graph, 32, arena);
    assert_int_equal(count_of(result, IR_OP_Attention), expected.attentions);
    assert_int_equal(count_of(result, IR_OP_Linear), expected.linears);
    assert_int_equal(count_of(result, IR_OP_LayerNormalization), expected.norms);
    assert_int_equal(count_of(result, IR_OP_Gelu), expected.gelus);
    assert_int_equal(count_of(result, IR_OP_MatMul) + count_of(result, IR_OP_Softmax) + count_of(result, IR_OP_Erf), 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_same_values(graph, result, lengths[i], tolerance);
    }
    ir_arena_destroy(arena);
}

/* Four layers, each with one Linear for Q, K and V, one for the output and two for the FFN; five embeddings and a
 * two-layer head. */
static void reference_a_becomes_fused_operators(void **state)
{
    (void)state;
    expect_model("predictor/reference_a/model.onnx", 0, (composition){4, 4 * 4 + 5 + 2, 10, 7});
}

/* One additional layer, over every operator's three tokens. */
static void reference_b_becomes_fused_operators(void **state)
{
    (void)state;
    expect_model("predictor/reference_b/model.onnx", 0, (composition){5, 5 * 4 + 5 + 2, 12, 8});
}

/* Five layers; a pooler, a transform and two heads. */
static void bert_becomes_fused_operators(void **state)
{
    (void)state;
    expect_model("real/transformer/bert_toy_optimized.onnx", 2, (composition){5, 5 * 4 + 4, 12, 6});
}

/* Codegen stores equal constants once, so each bucket must fold to the same constants. */
static void buckets_differ_only_in_their_length(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = import_model("predictor/reference_b/model.onnx", 0, arena);
    const char *small = graph_to_golden(after_all_passes(graph, 32, arena), arena);
    const char *large = graph_to_golden(after_all_passes(graph, 1024, arena), arena);
    assert_string_equal(small, large);
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_tests_keep_their_values),        cmocka_unit_test(reference_a_becomes_fused_operators),
        cmocka_unit_test(reference_b_becomes_fused_operators), cmocka_unit_test(bert_becomes_fused_operators),
        cmocka_unit_test(buckets_differ_only_in_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
