/* test_predict_calls.c — predictions as a scheduler's loop calls them: zero allocations, zero system calls, and threads
 * with their own contexts. The tests use a predictor with one entry and one with two, with jobs and with cached
 * features. */
#include "tests/support/assertions.h"
#include "tests/support/call_guard.h"
#include "tests/support/predict_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOB_COUNT = 3, CONFIGURATION_COUNT = 5 };

enum { IN_ONE_PIECE, IN_TWO, FORMS };

static predict_fixture bandwidth[FORMS];
static mdot_job *jobs[JOB_COUNT]; /* one fits, one has many equal operators, one is shortened */
static mdot_encoding *encodings[FORMS][JOB_COUNT];
static mdot_configuration configurations[CONFIGURATION_COUNT];
static mdot_prediction expected[FORMS][JOB_COUNT][CONFIGURATION_COUNT];

static int setup(void **state)
{
    predict_setup(state);
    bandwidth[IN_ONE_PIECE] = predict_bandwidth;
    predict_open_pair(&bandwidth[IN_TWO], predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", 2));
    static const size_t counts[JOB_COUNT] = {6, 500, 3000}, periods[JOB_COUNT] = {6, 20, 3000};
    static const char *const gpus[CONFIGURATION_COUNT] = {"T4", "Tesla V100-SXM2-32GB", "a100", "H200", "RTX 4090"};
    for (int i = 0; i < CONFIGURATION_COUNT; i++)
        configurations[i] =
            (mdot_configuration){.struct_size = sizeof(mdot_configuration), .batch = 1 + 100 * i, .gpu = gpus[i]};
    for (int i = 0; i < FORMS * JOB_COUNT; i++) {
        int form = i / JOB_COUNT, j = i % JOB_COUNT;
        mdot_context *context = bandwidth[form].context;
        mdot_prediction *p = expected[form][j];
        mdot_error err = {0};
        p[0] = MDOT_INIT(mdot_prediction);
        if (form == IN_ONE_PIECE) jobs[j] = predict_job(counts[j], periods[j]);
        mdot_status status = mdot_encoding_create(context, jobs[j], &encodings[form][j], &err);
        if (status == MDOT_OK) status = mdot_sweep(context, jobs[j], configurations, CONFIGURATION_COUNT, p, &err);
        if (status != MDOT_OK) fail_msg("%s", err.message);
    }
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < FORMS * JOB_COUNT; i++) mdot_encoding_destroy(encodings[i / JOB_COUNT][i % JOB_COUNT]);
    for (int j = 0; j < JOB_COUNT; j++) mdot_job_destroy(jobs[j]);
    predict_close(&bandwidth[IN_TWO]);
    return predict_teardown(state);
}

static bool is_expected(const mdot_prediction *p, int form, int job, int configuration)
{
    const mdot_prediction *e = &expected[form][job][configuration];
    return p->step_ms == e->step_ms && p->lower_ms == e->lower_ms && p->upper_ms == e->upper_ms &&
           p->peak_memory_bytes == e->peak_memory_bytes && p->fits == e->fits && p->warnings == e->warnings;
}

/* Every call kind, both valid and refused. */
static bool call_everything(mdot_context *context, int form, int rounds)
{
    mdot_error err;
    int wrong = 0;
    for (int i = 0; i < rounds; i++) {
        int j = i % JOB_COUNT, k = i % CONFIGURATION_COUNT;
        mdot_prediction p[CONFIGURATION_COUNT] = {MDOT_INIT(mdot_prediction)};
        wrong += mdot_predict(context, jobs[j], &configurations[k], p, &err) != MDOT_OK || !is_expected(p, form, j, k);
        wrong += mdot_evaluate(context, encodings[form][j], &configurations[k], 1, p, &err) != MDOT_OK;
        wrong += !is_expected(p, form, j, k);
        wrong += mdot_sweep(context, jobs[j], configurations, CONFIGURATION_COUNT, p, &err) != MDOT_OK;
        for (k = 0; k < CONFIGURATION_COUNT; k++) wrong += !is_expected(&p[k], form, j, k);
        p[0] = MDOT_INIT(mdot_prediction);
        wrong += mdot_evaluate(context, encodings[form][j], configurations, CONFIGURATION_COUNT, p, &err) != MDOT_OK;
        for (k = 0; k < CONFIGURATION_COUNT; k++) wrong += !is_expected(&p[k], form, j, k);
        const mdot_job *of_pair[CONFIGURATION_COUNT] = {jobs[0], jobs[0], jobs[2], jobs[1], jobs[0]};
        wrong += mdot_predict_many(context, of_pair, configurations, CONFIGURATION_COUNT, p, &err) != MDOT_OK;
        wrong += !is_expected(&p[2], form, 2, 2) || !is_expected(&p[3], form, 1, 3) || !is_expected(&p[4], form, 0, 4);
        mdot_configuration refused = {.struct_size = sizeof refused, .batch = 1, .gpu = "Voodoo 2"};
        wrong += mdot_predict(context, jobs[j], &refused, p, &err) != MDOT_INVALID_ARGUMENT;
        wrong += mdot_evaluate(context, encodings[form][j], &refused, 1, p, &err) != MDOT_INVALID_ARGUMENT;
    }
    return wrong == 0;
}

#ifdef OWN_THREAD
enum { THREAD_ROUNDS = 20 }; /* ThreadSanitizer checks each access, therefore a round takes ten times as long */
#else
enum { THREAD_ROUNDS = 200 };

static bool call_both_forms(int rounds)
{
    bool right = true;
    for (int form = 0; form < FORMS; form++) right = call_everything(bandwidth[form].context, form, rounds) && right;
    return right;
}
#endif

#ifndef OWN_MALLOC
static void predicting_allocates_nothing(void **state)
{
    (void)state;
    size_t before = allocations;
    assert_true(call_both_forms(60));
    assert_int_equal(allocations, before);
    mdot_job *counted = predict_job(2, 2);
    assert_compare(allocations, >, before); /* checks that the counter works */
    mdot_job_destroy(counted);
}
#endif

#ifndef OWN_THREAD
static bool calls_are_right(void) { return call_both_forms(60); }

static void predicting_makes_no_system_call(void **state)
{
    (void)state;
    int outcome = run_without_kernel(calls_are_right);
    if (outcome == CALLS_UNGUARDED) skip();
    assert_int_equal(outcome, CALLS_RIGHT);
}

static bool calls_sleep(void)
{
    usleep(1);
    return true;
}

static void guard_finds_system_calls(void **state)
{
    (void)state;
    int outcome = run_without_kernel(calls_sleep);
    if (outcome == CALLS_UNGUARDED) skip();
    assert_int_equal(outcome, CALLS_KILLED);
}
#endif

static void *call_from_a_thread(void *argument)
{
    const predict_fixture *form = argument;
    mdot_context *own = NULL;
    if (mdot_context_create(form->predictor, &own, NULL) != MDOT_OK) return argument;
    bool right = call_everything(own, (int)(form - bandwidth), THREAD_ROUNDS);
    mdot_context_destroy(own);
    return right ? NULL : argument;
}

static void threads_share_predictors_jobs_and_encodings(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_from_a_thread, &bandwidth[i % FORMS]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef OWN_MALLOC
        cmocka_unit_test(predicting_allocates_nothing),
#endif
#ifndef OWN_THREAD
        cmocka_unit_test(predicting_makes_no_system_call),
        cmocka_unit_test(guard_finds_system_calls),
#endif
        cmocka_unit_test(threads_share_predictors_jobs_and_encodings),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
