/* test_plan_models.c — whole models: the kernel count for each kind, and the plan's values compared with the model's.
 * ONNX's node tests run through the plan interpreter. Tests with ../shared/onnx are skipped if it is absent. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/plan_oracle.h"

enum { MAX_INPUTS = 32 };

typedef struct model {
    ir_arena *arena;
    ir_graph *original, *graph; /* before and after the passes */
    pl_plan *plan;
} model;

static bool is_there(const char *path)
{
    if (access(path, R_OK) == 0) return true;
    print_message("skipped: %s is not there\n", path);
    return false;
}

static model load(const char *path, int64_t max_length)
{
    model m = {.arena = ir_arena_create(0)};
    mdot_error err = {0};
    if (fe_import(path, NULL, m.arena, &m.original, &err) != MDOT_OK) fail_msg("%s", err.message);
    m.original->max_length = max_length;
    m.graph = ir_graph_clone(m.original, m.arena);
    if (ir_run_passes(m.graph, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_build(m.graph, m.arena, &m.plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    return m;
}

/* One letter per kernel: linear, attention, norm, nest (e for elementwise), sequential. */
static void assert_kinds(const pl_plan *plan, const char *expected)
{
    static const char letters[] = {
        [PL_LINEAR] = 'l', [PL_ATTENTION] = 'a', [PL_NORM] = 'n', [PL_NEST] = 'e', [PL_SEQUENTIAL] = 's'};
    char kinds[256];
    assert_compare(plan->kernel_count, <, (int)sizeof kinds);
    for (int k = 0; k < plan->kernel_count; k++) kinds[k] = letters[plan->kernels[k].kind];
    kinds[plan->kernel_count] = 0;
    assert_string_equal(kinds, expected);
}

static const pl_kernel *find_kernel(const pl_plan *plan, const char *name)
{
    for (int k = 0; k < plan->kernel_count; k++)
        if (strcmp(plan->kernels[k].name, name) == 0) return &plan->kernels[k];
    fail_msg("there is no kernel %s", name);
    return NULL;
}

/* c1 l1 c2 l2, norm, position; mask; four layers; norm, two pooling sums, two head linears. */
static void reference_a_has_seven_kernels_a_layer_and_eleven_around(void **state)
{
    (void)state;
    const char *path = MDOT_SHARED_ONNX "/predictor/reference_a/model.onnx";
    if (!is_there(path)) skip();
    model m = load(path, 1024);
    assert_kinds(m.plan, "llllnle"
                         "nlalnll"
                         "nlalnll"
                         "nlalnll"
                         "nlalnll"
                         "neell");
    const pl_linear *hidden = &find_kernel(m.plan, "linear.layers_0_f1")->linear;
    assert_int_equal(hidden->epilogue->op, PL_GELU);
    assert_int_equal(hidden->columns, 512);
    const pl_linear *residual = &find_kernel(m.plan, "linear.layers_0_f2")->linear;
    assert_int_equal(residual->epilogue->op, PL_ADD);
    ir_arena_destroy(m.arena);
}

static void reference_b_concatenates_its_tokens_in_place(void **state)
{
    (void)state;
    const char *path = MDOT_SHARED_ONNX "/predictor/reference_b/model.onnx";
    if (!is_there(path)) skip();
    model m = load(path, 1024);
    assert_kinds(m.plan, "lllle"
                         "nlalnll"
                         "enle"
                         "nlalnll"
                         "nlalnll"
                         "nlalnll"
                         "nlalnll"
                         "neell");
    const pl_linear *token = &find_kernel(m.plan, "linear.c2")->linear;
    assert_true(ir_dim_is(token->out.row_stride, 3 * 128));
    assert_true(ir_dim_is(token->out.offset, 128));
    ir_arena_destroy(m.arena);
}

static void plans_of_predictors_match_the_evaluator(void **state)
{
    (void)state;
    static const char *const paths[] = {MDOT_SHARED_ONNX "/predictor/reference_a/model.onnx",
                                        MDOT_SHARED_ONNX "/predictor/reference_b/model.onnx",
                                        MDOT_SHARED_ONNX "/real/transformer/bert_toy_optimized.onnx"};
    static const int64_t lengths[] = {1, 2, 5};
    int checked = 0;
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        if (!is_there(paths[k])) continue;
        model m = load(paths[k], 32);
        /* Folded and fused constants are rounded to f32, and large negative masks lose digits. */
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            assert_plan_agrees(m.original, m.plan, lengths[l], 1e-5);
        ir_arena_destroy(m.arena);
        checked++;
    }
    if (!checked) skip();
}

typedef struct node_test {
    char folder[512];
    ir_arena *arena;
    ir_tensor *inputs[MAX_INPUTS];
    ir_type types[MAX_INPUTS];
    int input_count;
} node_test;

static bool read_tensor(const node_test *t, const char *what, int number, ir_tensor **out)
{
    char path[600];
    const char *name;
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", t->folder, what, number);
    return access(path, R_OK) == 0 && fe_read_tensor(path, t->arena, out, &name, &err) == MDOT_OK;
}

static void read_inputs(node_test *t)
{
    while (t->input_count < MAX_INPUTS && read_tensor(t, "input", t->input_count, &t->inputs[t->input_count])) {
        const ir_tensor *tensor = t->inputs[t->input_count];
        ir_type *type = &t->types[t->input_count++];
        *type = (ir_type){.dtype = tensor->dtype, .rank = tensor->rank};
        for (int d = 0; d < tensor->rank; d++) type->dim[d] = ir_dim_number(tensor->dims[d]);
    }
}

/* Small integer vectors (axes and shapes) and scalars become constants, because shapes may depend on them. */
static bool settle(const node_test *t, ir_graph *graph)
{
    for (int k = 0; k < t->input_count && k < graph->input_count; k++) {
        if (t->inputs[k]->rank > 1 || t->inputs[k]->count > 16 || t->inputs[k]->dtype == MDOT_DTYPE_STRING) continue;
        ir_value *constant = ir_graph_add_constant(graph, graph->inputs[k]->name, t->inputs[k]);
        if (!constant) return false;
        ir_graph_replace_uses(graph, graph->inputs[k], constant);
    }
    return true;
}

static mdot_status plan_model(const node_test *t, bool settled, pl_plan **out_plan, mdot_error *err)
{
    char path[600];
    ir_graph *graph;
    fe_options options = {.input_types = t->types, .input_type_count = (size_t)t->input_count};
    snprintf(path, sizeof path, "%s/model.onnx", t->folder);
    mdot_status status = fe_import(path, &options, t->arena, &graph, err);
    if (!status && settled && !settle(t, graph)) status = MDOT_OUT_OF_MEMORY;
    if (!status) status = ir_check_supported(graph, err);
    if (!status) status = ir_run_passes(graph, NULL, err);
    return status ? status : pl_build(graph, t->arena, out_plan, err);
}

static void check_outputs(const node_test *t, const pl_plan *plan)
{
    const ir_wide *inputs[MAX_INPUTS], *outputs[MAX_INPUTS];
    for (int k = 0; k < t->input_count; k++) inputs[k] = ir_wide_from_tensor(t->arena, t->inputs[k]);
    for (int k = 0; k < plan->graph->output_count; k++) {
        ir_tensor *tensor;
        if (!read_tensor(t, "output", k, &tensor)) fail_msg("%s: output %d cannot be read", t->folder, k);
        outputs[k] = ir_wide_from_tensor(t->arena, tensor);
    }
    /* The expected values were computed in f32, or in f16 and bf16 (three and two digits). */
    mdot_dtype dtype = outputs[0]->dtype;
    bool is_half = dtype == MDOT_DTYPE_F16 || dtype == MDOT_DTYPE_BF16;
    assert_plan_computes(plan, 0, inputs, outputs, is_half ? 1e-2 : 1e-3, 1e-5);
}

static void plans_of_onnx_node_tests_match(void **state)
{
    (void)state;
    DIR *folder = opendir(MDOT_SHARED_ONNX "/node");
    int agreed = 0, unsupported = 0;
    if (!folder) skip();
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "test_", 5) != 0) continue;
        node_test t = {.arena = ir_arena_create(0)};
        mdot_error err = {0};
        pl_plan *plan;
        snprintf(t.folder, sizeof t.folder, MDOT_SHARED_ONNX "/node/%s", entry->d_name);
        read_inputs(&t);
        mdot_status status = plan_model(&t, false, &plan, &err);
        if (status) status = plan_model(&t, true, &plan, &err);
        if (status) {
            print_message("not planned: %s\n", err.message);
            unsupported++;
        } else {
            check_outputs(&t, plan);
            agreed++;
        }
        ir_arena_destroy(t.arena);
    }
    closedir(folder);
    print_message("%d node tests agree, %d are not supported\n", agreed, unsupported);
    assert_compare(agreed, >=, 650);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_a_has_seven_kernels_a_layer_and_eleven_around),
        cmocka_unit_test(reference_b_concatenates_its_tokens_in_place),
        cmocka_unit_test(plans_of_predictors_match_the_evaluator),
        cmocka_unit_test(plans_of_onnx_node_tests_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
