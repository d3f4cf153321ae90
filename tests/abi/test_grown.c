/* test_grown.c — programs and libraries of different versions. It is built twice:
 *
 *   test_older   with the current headers, to run with a library whose structs all have two more fields (grow.sh)
 *   test_newer   with the grown headers, MDOT_GROWN, to run with the current library
 *
 * Every function that takes or fills a struct is called. The tests with one element also apply to arrays.
 */
#include "mdot/mdot.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPERATOR_COUNT = 5, PAIR_COUNT = 100 };

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *job;
} fixture;

/* A result followed by program memory, which the library must leave unchanged. */
#define GUARDED(type)                                                                                                  \
    struct {                                                                                                           \
        type value;                                                                                                    \
        uint64_t behind;                                                                                               \
    }
static const uint64_t untouched = UINT64_C(0x5A5A5A5A5A5A5A5A);

static void fill_operators(mdot_job_operator *operators, uint32_t *inputs)
{
    memset(operators, 0, OPERATOR_COUNT * sizeof *operators);
    for (uint32_t i = 0; i < OPERATOR_COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        op->struct_size = sizeof *op;
        op->type = "Relu";
        op->known = true;
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e6 * (i + 1), 4e6, 4e6};
        op->per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){1e6, 4e6, 4e6 + i};
        op->input_count = i > 0;
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
    }
}

static int setup(void **state)
{
    static fixture f;
    mdot_error err = {0};
    mdot_open_options options = MDOT_INIT(mdot_open_options);
    options.device = "cpu";
    mdot_job_operator operators[OPERATOR_COUNT];
    uint32_t inputs[OPERATOR_COUNT];
    fill_operators(operators, inputs);
    mdot_job_description description = MDOT_INIT(mdot_job_description);
    description.operators = operators;
    description.operator_count = OPERATOR_COUNT;
    description.batch = 7;
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, &options, &f.predictor, &err);
    if (status == MDOT_INCOMPATIBLE) {
        print_message("skipped: %s\n", err.message);
        exit(77);
    }
    if (status == MDOT_OK) status = mdot_context_create(f.predictor, &f.context, &err);
    if (status == MDOT_OK) status = mdot_job_create(&description, &f.job, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    mdot_job_destroy(f->job);
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    return 0;
}

#ifdef MDOT_GROWN
#define ASSERT_LATER_IS_ZERO(value) assert_true((value).later[0] == 0 && (value).later[1] == 0)
#define DIRTY(value) memset((value).later, 0x5A, sizeof(value).later)
#else
#define ASSERT_LATER_IS_ZERO(value) (void)0
#define DIRTY(value) (void)0
#endif

/* Calls `call` with a new `result`. The call keeps the size and fills the fields that the program knows. */
#define FILL(type, call)                                                                                               \
    GUARDED(type) guarded = {MDOT_INIT(type), untouched};                                                              \
    type *result = &guarded.value;                                                                                     \
    DIRTY(*result);                                                                                                    \
    assert_int_equal(call, MDOT_OK);                                                                                   \
    assert_int_equal(result->struct_size, sizeof(type));                                                               \
    assert_true(guarded.behind == untouched);                                                                          \
    ASSERT_LATER_IS_ZERO(*result)

static void fields_of_the_callers_version_are_filled(void **state)
{
    const fixture *f = *state;
    size_t entry = 0;
    assert_int_equal(mdot_predictor_find_entry(f->predictor, "evaluate", &entry), MDOT_OK);
    {
        FILL(mdot_predictor_info, mdot_predictor_get_info(f->predictor, result));
        assert_string_equal(result->device, "cpu");
        assert_string_equal(result->device_reason, "requested by name");
    }
    {
        FILL(mdot_entry_info, mdot_predictor_get_entry(f->predictor, entry, result));
        assert_compare(result->schema_hash, !=, 0);
        assert_compare(result->bucket_count, >, 0);
    }
    {
        FILL(mdot_tensor_info, mdot_predictor_get_output(f->predictor, entry, 0, result));
        assert_string_equal(result->name, "step_ms");
        assert_int_equal(result->dim[0].offset, 3);
    }
    {
        FILL(mdot_tensor_info, mdot_predictor_get_input(f->predictor, entry, 0, result));
        assert_non_null(result->name);
    }
    {
        FILL(mdot_bucket_info, mdot_predictor_get_bucket(f->predictor, entry, 0, result));
        assert_compare(result->kernel_count, >, 0);
        assert_compare(result->max_length, >, 0);
    }
    {
        FILL(mdot_kernel_info, mdot_predictor_get_kernel(f->predictor, entry, 0, 0, result));
        assert_non_null(result->kind);
    }
    {
        FILL(mdot_job_info, mdot_job_get_info(f->job, result));
        assert_int_equal(result->operator_count, OPERATOR_COUNT);
        assert_int_equal(result->batch, 7);
    }
    {
        FILL(mdot_gpu, mdot_gpu_find("T4", result, NULL));
        assert_string_equal(result->name, "T4");
        assert_compare(result->fp16_tflops, ==, 65);
    }
}

static void operators_round_trip(void **state)
{
    const fixture *f = *state;
    mdot_job_operator operators[OPERATOR_COUNT];
    uint32_t inputs[OPERATOR_COUNT];
    fill_operators(operators, inputs);
    for (uint32_t i = 0; i < OPERATOR_COUNT; i++) {
        FILL(mdot_job_operator, mdot_job_get_operator(f->job, i, result));
        assert_string_equal(result->type, "Relu");
        assert_memory_equal(result->setting, operators[i].setting, sizeof result->setting);
        assert_memory_equal(result->per_sample, operators[i].per_sample, sizeof result->per_sample);
        assert_int_equal(result->input_count, i > 0);
        assert_int_equal(result->depth, i);
        assert_int_equal(result->height, OPERATOR_COUNT - 1 - i);
    }
}

static void list_configurations(mdot_configuration *c, mdot_gpu *specs)
{
    static const char *const gpus[] = {"T4", "A100", "H100"};
    for (int i = 0; i < PAIR_COUNT; i++) {
        c[i] = MDOT_INIT(mdot_configuration);
        c[i].batch = 1 + i;
        c[i].gpu = gpus[i % 3];
        c[i].optimizer = MDOT_OPTIMIZER_ADAM;
        if (i % 2 == 0) continue;
        specs[i] = MDOT_INIT(mdot_gpu);
        assert_int_equal(mdot_gpu_find(c[i].gpu, &specs[i], NULL), MDOT_OK);
        c[i].gpu = NULL;
        c[i].gpu_spec = &specs[i];
    }
}

static void arrays_give_the_same_answers_as_single_calls(void **state)
{
    const fixture *f = *state;
    static mdot_configuration c[PAIR_COUNT];
    static mdot_gpu specs[PAIR_COUNT];
    static mdot_prediction swept[PAIR_COUNT + 1], many[PAIR_COUNT + 1];
    const mdot_job *jobs[PAIR_COUNT];
    mdot_error err = {0};
    list_configurations(c, specs);
    for (int i = 0; i < PAIR_COUNT; i++) jobs[i] = f->job;
    memset(swept, 0x5A, sizeof swept);
    memset(many, 0x5A, sizeof many);
    swept[0].struct_size = many[0].struct_size = sizeof(mdot_prediction);
    if (mdot_sweep(f->context, f->job, c, PAIR_COUNT, swept, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (mdot_predict_many(f->context, jobs, c, PAIR_COUNT, many, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int i = 0; i < PAIR_COUNT; i++) {
        FILL(mdot_prediction, mdot_predict(f->context, f->job, &c[i], result, &err));
        assert_compare(result->step_ms, >, 0);
        assert_compare(result->peak_memory_bytes, >, 0);
        for (const mdot_prediction *p = &swept[i]; p != NULL; p = p == &swept[i] ? &many[i] : NULL) {
            assert_int_equal(p->struct_size, sizeof *p);
            assert_compare(p->step_ms, ==, result->step_ms);
            assert_compare(p->upper_ms, ==, result->upper_ms);
            assert_compare(p->peak_memory_bytes, ==, result->peak_memory_bytes);
            assert_compare(p->warnings, ==, result->warnings);
            ASSERT_LATER_IS_ZERO(*p);
        }
    }
    assert_compare(swept[PAIR_COUNT].peak_memory_bytes, ==, untouched);
    assert_compare(many[PAIR_COUNT].peak_memory_bytes, ==, untouched);
}

static void explanations_are_filled(void **state)
{
    const fixture *f = *state;
    mdot_configuration c = MDOT_INIT(mdot_configuration);
    c.batch = 8;
    c.gpu = "T4";
    mdot_explanation *e = NULL;
    mdot_error err = {0};
    if (mdot_explain(f->context, f->job, &c, &e, &err) != MDOT_OK) fail_msg("%s", err.message);
    {
        FILL(mdot_explanation_info, mdot_explanation_get_info(e, result));
        assert_compare(result->step_ms, >, 0);
        assert_compare(result->operator_count, ==, OPERATOR_COUNT);
    }
    for (size_t i = 0; i < OPERATOR_COUNT; i++) {
        FILL(mdot_operator_time, mdot_explanation_get_operator(e, i, result));
        assert_compare(result->forward_ms, >, 0);
    }
    mdot_explanation_destroy(e);
}

#ifdef MDOT_GROWN
static void unknown_later_fields_are_refused(void **state)
{
    const fixture *f = *state;
    mdot_error err = {0};
    static mdot_configuration c[PAIR_COUNT];
    static mdot_gpu specs[PAIR_COUNT];
    static mdot_prediction p[PAIR_COUNT] = {{.struct_size = sizeof(mdot_prediction)}};
    list_configurations(c, specs);
    c[PAIR_COUNT - 1].later[1] = 1;
    assert_int_equal(mdot_sweep(f->context, f->job, c, PAIR_COUNT, p, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "pair 99: a mdot_configuration of "));
    for (int i = 0; i < PAIR_COUNT; i++) {
        assert_int_equal(p[i].status, i == PAIR_COUNT - 1 ? MDOT_INCOMPATIBLE : MDOT_OK);
        assert_compare(p[i].step_ms > 0, ==, p[i].status == MDOT_OK);
    }
    c[PAIR_COUNT - 1].later[1] = 0;
    specs[1].later[0] = 1;
    assert_int_equal(mdot_sweep(f->context, f->job, c, PAIR_COUNT, p, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "pair 1: a mdot_gpu of "));
    assert_int_equal(p[1].status, MDOT_INCOMPATIBLE);
    assert_compare(p[0].status, ==, MDOT_OK);
    assert_compare(p[0].step_ms, >, 0);

    mdot_job_operator operators[OPERATOR_COUNT];
    uint32_t inputs[OPERATOR_COUNT];
    fill_operators(operators, inputs);
    mdot_job_description description = MDOT_INIT(mdot_job_description);
    description.operators = operators;
    description.operator_count = OPERATOR_COUNT;
    mdot_job *job = NULL;
    description.later[0] = 1;
    assert_int_equal(mdot_job_create(&description, &job, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "mdot_job_description"));
    description.later[0] = 0;
    operators[3].later[0] = 1;
    assert_int_equal(mdot_job_create(&description, &job, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "mdot_job_operator"));
    assert_null(job);

    mdot_open_options options = MDOT_INIT(mdot_open_options);
    options.later[0] = 1;
    mdot_predictor *predictor = NULL;
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, &options, &predictor, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "mdot_open_options"));
    assert_null(predictor);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_the_callers_version_are_filled),
        cmocka_unit_test(operators_round_trip),
        cmocka_unit_test(explanations_are_filled),
        cmocka_unit_test(arrays_give_the_same_answers_as_single_calls),
#ifdef MDOT_GROWN
        cmocka_unit_test(unknown_later_fields_are_refused),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
