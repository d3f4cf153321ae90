/* test_onnx_reference.c — compares the reference evaluator with ONNX's own node tests and with trained models. Every
 * folder of ../shared/onnx/node runs through import, inference and evaluation with each of its data sets. A model may
 * be unsupported, which import, inference or evaluation reports. A wrong value, a wrong shape or any other error
 * fails the test. Tolerances are those of ONNX's backend test runner: relative 1e-3 and absolute 1e-7. Half precision
 * outputs were computed with rounding after every operation, which the evaluator omits, therefore they get four units
 * in the last place. */
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_parser.h"
#include "tests/support/infer_graph.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_TENSORS = 64, PATH_BYTES = 4096 };

typedef enum verdict { PASSED, UNSUPPORTED, FAILED } verdict;

typedef struct data_set {
    int input_count, output_count;
    ir_tensor *inputs[MAX_TENSORS], *outputs[MAX_TENSORS];
} data_set;

typedef struct tolerance {
    double relative, absolute;
} tolerance;

static const tolerance runner_tolerance = {1e-3, 1e-7};

static double relative_tolerance(mdot_dtype dtype, tolerance allowed)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return 4 * 0x1p-10;
    case MDOT_DTYPE_BF16: return 4 * 0x1p-7;
    default: return allowed.relative;
    }
}

/* Reads PREFIX_0.pb, PREFIX_1.pb … of a data set, as many as exist. */
static mdot_status read_tensors(ir_arena *arena, const char *folder, const char *prefix, ir_tensor **out,
                                int *out_count, mdot_error *err)
{
    for (int k = 0; k < MAX_TENSORS; k++) {
        const char *path = ir_arena_printf(arena, "%s/%s_%d.pb", folder, prefix, k);
        if (access(path, R_OK) != 0) break;
        const char *name;
        mdot_status status = fe_read_tensor(path, arena, &out[k], &name, err);
        if (status != MDOT_OK) return status;
        *out_count = k + 1;
    }
    return MDOT_OK;
}

static ir_type type_of(const ir_tensor *tensor)
{
    ir_type type = {.dtype = tensor->dtype, .rank = tensor->rank};
    for (int i = 0; i < tensor->rank; i++) type.dim[i] = ir_dim_number(tensor->dims[i]);
    return type;
}

/* Infers the graph's types. If shapes depend on input content, as in the tests of Reshape, these inputs become
 * constants with the data set's content. If shapes depend on values that only folding computes, the graph stays partly
 * untyped. */
static mdot_status infer(ir_graph *graph, const data_set *data, mdot_error *err)
{
    mdot_status status = ir_infer(graph, err);
    if (status == MDOT_UNSUPPORTED) {
        for (int k = 0; k < data->input_count; k++) {
            ir_value *constant = ir_graph_add_constant(graph, graph->inputs[k]->name, data->inputs[k]);
            ir_graph_replace_uses(graph, graph->inputs[k], constant);
        }
        status = ir_infer(graph, err);
    }
    return status == MDOT_OK || status == MDOT_UNSUPPORTED ? ir_graph_verify(graph, err) : status;
}

static mdot_status evaluate(ir_arena *arena, const char *model, const data_set *data, ir_graph **out_graph,
                            ir_wide **out_outputs, mdot_error *err)
{
    ir_type types[MAX_TENSORS];
    const ir_wide *inputs[MAX_TENSORS];
    for (int k = 0; k < data->input_count; k++) {
        types[k] = type_of(data->inputs[k]);
        inputs[k] = ir_wide_from_tensor(arena, data->inputs[k]);
        if (!inputs[k]) return mdot_fail(err, MDOT_UNSUPPORTED, "an input has no wide form");
    }
    fe_options options = {.input_types = types, .input_type_count = (size_t)data->input_count};
    mdot_status status = fe_import(model, &options, arena, out_graph, err);
    if (status == MDOT_OK) status = ir_check_supported(*out_graph, err);
    if (status == MDOT_OK && (*out_graph)->input_count != data->input_count) {
        status = mdot_fail(err, MDOT_MALFORMED, "%d inputs in the data, %d in the model", data->input_count,
                           (*out_graph)->input_count);
    }
    if (status == MDOT_OK) status = infer(*out_graph, data, err);
    return status == MDOT_OK ? ir_evaluate(*out_graph, inputs, arena, out_outputs, err) : status;
}

/* The graph's text and its clone must be equal to the graph. */
static bool survives_copying(ir_arena *arena, const ir_graph *graph, mdot_error *err)
{
    ir_graph *parsed = NULL;
    const char *text = ir_graph_print(graph, arena);
    if (ir_graph_parse(text, graph, arena, &parsed, err) != MDOT_OK) return false;
    if (strcmp(ir_graph_print(parsed, arena), text) != 0) {
        mdot_fail(err, MDOT_MALFORMED, "the text of the graph does not survive being parsed");
        return false;
    }
    if (strcmp(ir_graph_print(ir_graph_clone(graph, arena), arena), text) != 0) {
        mdot_fail(err, MDOT_MALFORMED, "the clone of the graph differs");
        return false;
    }
    return true;
}

/* The inferred type, if any, must admit the computed shape. */
static bool fits_type(const ir_type *type, const ir_tensor *got)
{
    if (type->rank < 0) return true;
    if (type->dtype != got->dtype || type->rank != got->rank) return false;
    for (int i = 0; i < type->rank; i++) {
        if (ir_dim_is_number(type->dim[i]) && type->dim[i].offset != got->dims[i]) return false;
    }
    return true;
}

static bool agrees(ir_arena *arena, const ir_tensor *got_tensor, const ir_tensor *want_tensor, tolerance allowed,
                   mdot_error *err)
{
    const ir_wide *got = ir_wide_from_tensor(arena, got_tensor), *want = ir_wide_from_tensor(arena, want_tensor);
    bool same_shape = got->dtype == want->dtype && got->rank == want->rank;
    for (int i = 0; i < got->rank && same_shape; i++) same_shape = got->dims[i] == want->dims[i];
    if (!same_shape) {
        mdot_fail(err, MDOT_MALFORMED, "the shape or the type is wrong");
        return false;
    }
    double relative = relative_tolerance(want->dtype, allowed);
    for (int64_t i = 0; i < want->count; i++) {
        if (want->i && got->i[i] == want->i[i]) continue;
        double g = ir_wide_get(got, i), w = ir_wide_get(want, i);
        bool same =
            want->f && (g == w || (isnan(g) && isnan(w)) || fabs(g - w) <= allowed.absolute + relative * fabs(w));
        if (same) continue;
        mdot_fail(err, MDOT_MALFORMED, "element %lld is %.9g instead of %.9g", (long long)i, g, w);
        return false;
    }
    return true;
}

static verdict run_data_set(const char *model, const char *folder, tolerance allowed, mdot_error *err)
{
    verdict result = FAILED;
    ir_arena *arena = ir_arena_create(0);
    data_set data = {0};
    ir_graph *graph = NULL;
    ir_wide *outputs[MAX_TENSORS] = {0};
    mdot_status status = read_tensors(arena, folder, "input", data.inputs, &data.input_count, err);
    if (status == MDOT_OK) status = read_tensors(arena, folder, "output", data.outputs, &data.output_count, err);
    if (status == MDOT_OK) status = evaluate(arena, model, &data, &graph, outputs, err);
    if (status == MDOT_UNSUPPORTED) result = UNSUPPORTED;
    if (status == MDOT_OK) {
        bool all = graph->output_count == data.output_count;
        if (!all) mdot_fail(err, MDOT_MALFORMED, "the number of outputs is wrong");
        all = all && survives_copying(arena, graph, err);
        for (int k = 0; k < data.output_count && all; k++) {
            /* Converts through the nominal type, so values are as in a file or a kernel. */
            const ir_tensor *got = ir_tensor_from_wide(arena, outputs[k]);
            all = agrees(arena, got, data.outputs[k], allowed, err);
            if (all && !fits_type(&graph->outputs[k]->type, got)) {
                mdot_fail(err, MDOT_MALFORMED, "the inferred type of output %d is wrong", k);
                all = false;
            }
        }
        result = all ? PASSED : FAILED;
    }
    ir_arena_destroy(arena);
    return result;
}

/* Runs up to `most` data sets of a model and returns the worst verdict. */
static verdict run_model(const char *folder, int most, tolerance allowed, mdot_error *err)
{
    char model[PATH_BYTES + 64], set[PATH_BYTES + 64];
    verdict worst = PASSED;
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    for (int k = 0; k < most && worst == PASSED; k++) {
        snprintf(set, sizeof set, "%s/test_data_set_%d", folder, k);
        if (access(set, R_OK) != 0) return k ? worst : FAILED;
        worst = run_data_set(model, set, allowed, err);
    }
    return worst;
}

static int is_test(const struct dirent *entry) { return strncmp(entry->d_name, "test_", 5) == 0; }

/* All 654 except two: the outputs of Dropout in training mode depend on NumPy's random numbers. */
enum { LEAST_PASSED = 652 };

static void onnx_node_tests_pass(void **state)
{
    (void)state;
    struct dirent **entries;
    int count = scandir(MDOT_SHARED_ONNX "/node", &entries, is_test, alphasort);
    if (count <= 0) {
        print_message("skipped: no ONNX node tests at %s/node\n", MDOT_SHARED_ONNX);
        skip();
    }
    int tally[3] = {0};
    for (int i = 0; i < count; i++) {
        char folder[PATH_BYTES];
        mdot_error err = {.status = MDOT_OK};
        snprintf(folder, sizeof folder, "%s/node/%s", MDOT_SHARED_ONNX, entries[i]->d_name);
        verdict v = run_model(folder, INT_MAX, runner_tolerance, &err);
        tally[v]++;
        if (v != PASSED)
            print_message("%s %s: %s\n", v == FAILED ? "FAILED" : "unsupported", entries[i]->d_name, err.message);
        free(entries[i]);
    }
    free(entries);
    print_message("%d of %d pass, %d are unsupported, %d fail\n", tally[PASSED], count, tally[UNSUPPORTED],
                  tally[FAILED]);
    assert_int_equal(tally[FAILED], 0);
    assert_compare(tally[PASSED], >=, LEAST_PASSED);
}

/* The expected values of trained models were computed by ONNX Runtime in single precision, so the evaluator is more
 * exact. */
static void expect_model(const char *folder, int data_sets)
{
    mdot_error err = {.status = MDOT_OK};
    if (access(folder, R_OK) != 0) {
        print_message("skipped: no model at %s\n", folder);
        skip();
    }
    if (run_model(folder, data_sets, (tolerance){1e-5, 1e-5}, &err) != PASSED) fail_msg("%s: %s", folder, err.message);
}

static void reference_predictors_match(void **state)
{
    (void)state;
    expect_model(MDOT_SHARED_ONNX "/predictor/reference_a", 6);
    expect_model(MDOT_SHARED_ONNX "/predictor/reference_b", 6);
}

/* CTest's exit code for a program that is skipped entirely; see tests/CMakeLists.txt. */
enum { SKIPPED = 77 };

int main(void)
{
    if (access(MDOT_SHARED_ONNX, R_OK) != 0) {
        printf("skipped: no ONNX test data at %s\n", MDOT_SHARED_ONNX);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_node_tests_pass),
        cmocka_unit_test(reference_predictors_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
