/* test_handle_validation.c — MDOT_VALIDATE=1. These calls are refused with a message: concurrent use of a context, use
 * or destruction of a destroyed object, and use of other pointers. Correct programs run as before. */
#include "runtime/core/core.h"
#include "tests/fault/destroyed_objects.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static predict_fixture f;
static mdot_job *job;
static mdot_configuration configuration;

static int set_up(void **state)
{
    (void)state;
    predict_open(&f, predict_bandwidth_model());
    job = predict_job(6, 6);
    configuration = predict_configuration(32, "A100");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    predict_close(&f);
    return 0;
}

static mdot_status predict(mdot_context *context, const mdot_job *of, mdot_error *err)
{
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    return mdot_predict(context, of, &configuration, &prediction, err);
}

static void expect_refused(mdot_status status, const mdot_error *err, const char *function, const char *why)
{
    assert_int_equal(status, MDOT_INVALID_ARGUMENT);
    assert_int_equal(err->status, MDOT_INVALID_ARGUMENT);
    if (strstr(err->message, function) == NULL || strstr(err->message, why) == NULL) fail_msg("%s", err->message);
}

/* Simulates a call that another thread has in progress. */
static void a_context_in_use_is_refused_to_others(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    const float number = 1;
    float result = 0;
    assert_int_equal(rt_handle_enter(f.context, "test", &err), MDOT_OK);
    expect_refused(predict(f.context, job, &err), &err, "mdot_predict", "in use");
    expect_refused(mdot_sweep(f.context, job, &configuration, 1, &prediction, &err), &err, "mdot_sweep", "in use");
    const mdot_job *jobs[] = {job};
    expect_refused(mdot_predict_many(f.context, jobs, &configuration, 1, &prediction, &err), &err, "mdot_predict_many",
                   "in use");
    const void *inputs[] = {&number};
    void *outputs[] = {&result};
    expect_refused(mdot_run_ordered(f.context, 0, 1, inputs, outputs, &err), &err, "mdot_run_ordered", "in use");
    expect_refused(mdot_run(f.context, 0, NULL, 0, NULL, 0, &err), &err, "mdot_run", "in use");
    mdot_context_destroy(f.context); /* refused, too */
    rt_handle_leave(f.context);
    assert_int_equal(predict(f.context, job, &err), MDOT_OK);
}

static void a_destroyed_context_is_refused(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_context *context = NULL, *next = NULL;
    assert_int_equal(mdot_context_create(f.predictor, &context, NULL), MDOT_OK);
    mdot_context_destroy(context);
    assert_int_equal(mdot_context_create(f.predictor, &next, NULL), MDOT_OK);
    assert_ptr_not_equal(next, context);
    expect_refused(predict(context, job, &err), &err, "mdot_predict", "destroyed before");
    expect_refused(mdot_run(context, 0, NULL, 0, NULL, 0, &err), &err, "mdot_run", "destroyed before");
    mdot_context_destroy(context); /* otherwise it would drop a reference of the predictor */
    mdot_context_destroy(context);
    assert_int_equal(predict(next, job, &err), MDOT_OK);
    mdot_context_destroy(next);
}

static void pointers_to_other_memory_are_refused(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_context *context = NULL;
    char other[256] = {0};
    expect_refused(predict((mdot_context *)other, job, &err), &err, "mdot_predict",
                   "invalid handle; expected: context");
    expect_refused(predict((mdot_context *)f.predictor, job, &err), &err, "mdot_predict",
                   "invalid handle; expected: context");
    expect_refused(mdot_context_create((mdot_predictor *)job, &context, &err), &err, "mdot_context_create",
                   "invalid handle; expected: predictor");
    expect_refused(predict(f.context, (mdot_job *)other, &err), &err, "mdot_predict", "invalid handle; expected: job");
    mdot_context_destroy((mdot_context *)other);
    mdot_predictor_close((mdot_predictor *)other);
    mdot_job_destroy((mdot_job *)other);
    assert_int_equal(predict(f.context, job, &err), MDOT_OK);
}

/* The caller's memory functions run inside a call. During each allocation the context is in use. */
static mdot_context *watched; /* NULL = unchecked */
static int calls_inside, accepted;

static void *allocate_and_enter(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (watched != NULL) {
        calls_inside++;
        if (rt_handle_enter(watched, "test", NULL) == MDOT_OK) {
            accepted++;
            rt_handle_leave(watched);
        }
    }
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void explaining_holds_the_context_throughout(void **state)
{
    (void)state;
    const mdot_open_options options = {
        .struct_size = sizeof options, .allocate = allocate_and_enter, .release = release};
    mdot_explanation *explanation = NULL;
    predict_fixture own;
    predict_open_explained_with(&own, predict_bandwidth_model(), predict_bandwidth_explained(), &options);
    watched = own.context;
    assert_int_equal(mdot_explain(own.context, job, &configuration, &explanation, NULL), MDOT_OK);
    assert_compare(calls_inside, >, 0);
    assert_int_equal(accepted, 0);
    watched = NULL;
    assert_int_equal(predict(own.context, job, NULL), MDOT_OK); /* the context is free again */
    mdot_explanation_destroy(explanation);
    predict_close(&own);
}

static void a_predictor_can_be_closed_only_once(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_context *context = NULL;
    predict_fixture own;
    predict_open(&own, predict_bandwidth_model());
    mdot_predictor_close(own.predictor);
    mdot_predictor_close(own.predictor); /* otherwise the context would lose its predictor */
    assert_int_equal(predict(own.context, job, &err), MDOT_OK);
    expect_refused(mdot_context_create(own.predictor, &context, &err), &err, "mdot_context_create", "destroyed before");
    assert_null(context);
    mdot_context_destroy(own.context);
}

/* A calibration is made from a context, and only needs the predictor parts kept by contexts. */
static void a_context_of_a_closed_predictor_still_calibrates(void **state)
{
    (void)state;
    const mdot_job *jobs[] = {job};
    const double ms = 30;
    mdot_calibration *calibration = NULL;
    predict_fixture own;
    predict_open(&own, predict_bandwidth_model());
    mdot_predictor_close(own.predictor);
    assert_int_equal(mdot_calibrate(own.context, jobs, &configuration, &ms, 1, &calibration, NULL), MDOT_OK);
    mdot_calibration_destroy(calibration);
    mdot_context_destroy(own.context);
}

static void a_destroyed_job_is_refused(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_job *own = predict_job(6, 6);
    mdot_job_destroy(own);
    mdot_job_destroy(own);
    expect_refused(predict(f.context, own, &err), &err, "mdot_predict", "destroyed before");
    assert_int_equal(predict(f.context, job, &err), MDOT_OK); /* the context is free again */
}

static void a_destroyed_encoding_is_refused(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_encoding *encoding = NULL, *none = NULL;
    char other[256] = {0};
    mdot_job *own = predict_job(6, 6);
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    assert_int_equal(mdot_encoding_create(f.context, own, &encoding, &err), MDOT_OK);
    assert_int_equal(mdot_evaluate(f.context, encoding, &configuration, 1, &p, &err), MDOT_OK);
    expect_refused(mdot_evaluate(f.context, (mdot_encoding *)other, &configuration, 1, &p, &err), &err, "mdot_evaluate",
                   "invalid handle; expected: encoding");
    expect_refused(mdot_evaluate((mdot_context *)other, encoding, &configuration, 1, &p, &err), &err, "mdot_evaluate",
                   "invalid handle; expected: context");
    mdot_job_destroy(own); /* borrowed from the encoding */
    expect_refused(mdot_evaluate(f.context, encoding, &configuration, 1, &p, &err), &err, "mdot_evaluate",
                   "destroyed before");
    expect_refused(mdot_encoding_create(f.context, own, &none, &err), &err, "mdot_encoding_create", "destroyed before");
    mdot_encoding_destroy(encoding);
    mdot_encoding_destroy(encoding); /* otherwise the context would lose its predictor */
    expect_refused(mdot_evaluate(f.context, encoding, &configuration, 1, &p, &err), &err, "mdot_evaluate",
                   "destroyed before");
    assert_int_equal(predict(f.context, job, &err), MDOT_OK);
}

static void *make_and_predict(void *result)
{
    *(mdot_status *)result = MDOT_OK;
    for (int i = 0; i < 50 && *(mdot_status *)result == MDOT_OK; i++) {
        mdot_context *own = NULL;
        *(mdot_status *)result = mdot_context_create(f.predictor, &own, NULL);
        for (int k = 0; k < 10 && *(mdot_status *)result == MDOT_OK; k++)
            *(mdot_status *)result = predict(own, job, NULL);
        mdot_context_destroy(own);
    }
    return NULL;
}

static void threads_with_separate_contexts_are_accepted(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    mdot_status results[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_predict, &results[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(results[i], MDOT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_in_use_is_refused_to_others),
        cmocka_unit_test(a_destroyed_context_is_refused),
        cmocka_unit_test(explaining_holds_the_context_throughout),
        cmocka_unit_test(pointers_to_other_memory_are_refused),
        cmocka_unit_test(a_predictor_can_be_closed_only_once),
        cmocka_unit_test(a_context_of_a_closed_predictor_still_calibrates),
        cmocka_unit_test(a_destroyed_job_is_refused),
        cmocka_unit_test(a_destroyed_encoding_is_refused),
        cmocka_unit_test(threads_with_separate_contexts_are_accepted),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    setenv("MDOT_VALIDATE", "1", 1); /* before the first object exists */
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
