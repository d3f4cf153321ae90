/* test_modules.c — frontend/job/modules.c: module names in jobs, and parameters frozen by these names. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static mdot_job *read_and_free(pb_buffer bytes, uint32_t keep_names)
{
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.keep_names = keep_names;
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_read_bytes(bytes.data, bytes.size, "m", &options, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    pb_free(&bytes);
    return job;
}

static onnx_builder *named_model(void)
{
    onnx_builder *b = job_begin("N,16");
    onnx_initializer(b, "encoder.layer.3.dense.weight", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_node(b, "MatMul", "x,encoder.layer.3.dense.weight", "h");
    onnx_node(b, "Sigmoid", "h", "g");
    onnx_node_name(b, "/encoder/layer.3/gate/Sigmoid");
    onnx_node(b, "Tanh", "g", "y");
    onnx_output(b, "y");
    return b;
}

static mdot_job *read_named(uint32_t keep_names) { return read_and_free(onnx_finish(named_model()), keep_names); }

static void module_names_are_kept_on_request(void **state)
{
    (void)state;
    static const char *const modules[] = {"encoder.layer.3.dense", "encoder.layer.3.gate", NULL};
    for (uint32_t keep = 0; keep < 2; keep++) {
        mdot_job *job = read_named(keep);
        for (size_t i = 0; i < 3; i++) {
            mdot_job_operator op = MDOT_INIT(mdot_job_operator);
            assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
            if (keep == 0 || modules[i] == NULL) {
                assert_null(op.module);
            } else {
                assert_string_equal(op.module, modules[i]);
            }
        }
        mdot_job_destroy(job);
    }
}

/* The read_named model, read with a pattern for frozen or trained modules. */
static mdot_status read_frozen(const mdot_job_freezing *freezing, uint32_t keep_names, mdot_job **out_job,
                               mdot_error *err)
{
    pb_buffer bytes = onnx_finish(named_model());
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.keep_names = keep_names;
    options.freezing = freezing;
    mdot_status status = mdot_job_read_bytes(bytes.data, bytes.size, "m", &options, out_job, err);
    pb_free(&bytes);
    return status;
}

static void parameters_are_frozen_by_names_that_the_job_may_drop(void **state)
{
    (void)state;
    static const char *const encoder[] = {"encoder"}, *const absent[] = {"decoder"};
    const mdot_job_freezing trained = {.struct_size = sizeof trained, .trained = encoder, .trained_count = 1};
    const mdot_job_freezing gate = {
        .struct_size = sizeof gate, .frozen = (const char *const[]){"*.gate"}, .frozen_count = 1};
    const mdot_job_freezing all = {.struct_size = sizeof all, .frozen = encoder, .frozen_count = 1};
    const mdot_job_freezing unknown = {.struct_size = sizeof unknown, .frozen = absent, .frozen_count = 1};
    mdot_error err = {0};
    for (uint32_t keep = 0; keep < 2; keep++) {
        mdot_job *named = read_named(1), *frozen = NULL, *read = NULL;
        assert_int_equal(mdot_job_freeze(named, keep != 0 ? &trained : &gate, &frozen, &err), MDOT_OK);
        assert_int_equal(read_frozen(keep != 0 ? &trained : &gate, keep, &read, &err), MDOT_OK);
        for (size_t i = 0; i < 3; i++) {
            mdot_job_operator x = MDOT_INIT(mdot_job_operator), y = MDOT_INIT(mdot_job_operator);
            assert_int_equal(mdot_job_get_operator(frozen, i, &x), MDOT_OK);
            assert_int_equal(mdot_job_get_operator(read, i, &y), MDOT_OK);
            assert_memory_equal(x.per_sample, y.per_sample, sizeof x.per_sample);
            assert_memory_equal(x.per_step, y.per_step, sizeof x.per_step);
            assert_compare(x.parameters, ==, y.parameters);
            assert_compare(x.frozen_parameters, ==, y.frozen_parameters);
            assert_true(keep != 0 ? (x.module == NULL) == (y.module == NULL) : y.module == NULL);
        }
        mdot_job_destroy(named);
        mdot_job_destroy(frozen);
        mdot_job_destroy(read);
    }
    mdot_job *none = NULL;
    assert_int_equal(read_frozen(&all, 0, &none, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "m: the patterns freeze every parameter: keep at least one trainable");
    assert_int_equal(read_frozen(&unknown, 0, &none, &err), MDOT_NOT_FOUND);
    assert_string_equal(err.message, "m: the pattern \"decoder\" matches no module of the job");
    assert_null(none);
}

/* PyTorch's dynamo exporter names nodes after operators, and stores the place in the network in metadata. */
static void scopes_in_metadata_name_modules(void **state)
{
    (void)state;
    static const struct {
        const char *scopes, *module;
    } rows[] = {
        {"['', 'layers.0', 'layers.0.attn', 'view_3']", "layers.0.attn"},
        {"['', \"it's\", 'gelu']", "it's"},
        {"['', 'relu']", NULL}, /* the whole network */
        {"['relu']", NULL},
        {"[]", NULL},
        {"", NULL},
        {"['', 'layers.0', 'cut", NULL},
        {"['', 'layers.0', 'relu'", NULL},
        {"['', 'a\\'b', 'relu']", NULL}, /* Python prints this string in double quotes */
        {"layers.0", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onnx_builder *b = onnx_begin(18);
        onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
        onnx_node(b, "Sigmoid", "x", "y");
        onnx_node_name(b, "node_sigmoid");
        onnx_node_metadata(b, "pkg.torch.onnx.fx_node", "%sigmoid : call_function");
        onnx_node_metadata(b, "pkg.torch.onnx.name_scopes", rows[i].scopes);
        onnx_output(b, "y");
        mdot_job *job = read_and_free(onnx_finish(b), 1);
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, 0, &op), MDOT_OK);
        if ((op.module == NULL) != (rows[i].module == NULL)) fail_msg("%s", rows[i].scopes);
        if (op.module != NULL) assert_string_equal(op.module, rows[i].module);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(module_names_are_kept_on_request),
        cmocka_unit_test(parameters_are_frozen_by_names_that_the_job_may_drop),
        cmocka_unit_test(scopes_in_metadata_name_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
