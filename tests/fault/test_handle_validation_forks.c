/* test_handle_validation_forks.c — MDOT_VALIDATE=1 in a forking program with other threads that create objects and
 * predict. The children work, although fork may have interrupted another thread in the middle of an operation
 * (runtime/core/lock.h). */
#include "runtime/core/core.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static predict_fixture f;
static mdot_job *job;
static mdot_configuration configuration;
static atomic_bool ends;

/* Uses its own context, and enough jobs to grow the table. */
static bool make_and_predict(void)
{
    enum { JOBS = 8 };
    mdot_context *own = NULL;
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_status status = mdot_context_create(f.predictor, &own, NULL);
    for (int i = 0; i < JOBS && status == MDOT_OK; i++) {
        mdot_job *made = predict_job(2, 2);
        status = mdot_predict(own, made, &configuration, &p, NULL);
        mdot_job_destroy(made);
    }
    mdot_context_destroy(own);
    return status == MDOT_OK;
}

static void *work(void *out_is_right)
{
    *(bool *)out_is_right = true;
    while (!atomic_load(&ends)) *(bool *)out_is_right = make_and_predict() && *(bool *)out_is_right;
    return NULL;
}

static int live_in_child(mdot_context *idle)
{
    enum { PATIENCE_S = 60 }; /* time limit, after which the child counts as hanging */
    alarm(PATIENCE_S);
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    bool is_right = mdot_predict(idle, job, &configuration, &p, NULL) == MDOT_OK && make_and_predict();
    mdot_context_destroy(idle);
    return is_right ? 0 : 1;
}

static void children_never_wait_for_their_parents_threads(void **state)
{
    (void)state;
    enum { CHILDREN = 200 };
    pthread_t thread;
    bool is_right = false;
    assert_int_equal(pthread_create(&thread, NULL, work, &is_right), 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        assert_compare(child, >=, 0);
        if (child == 0) _exit(live_in_child(f.context));
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (ended != 0) fail_msg("child %d ended with %d", i, ended);
    }
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    assert_true(is_right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_never_wait_for_their_parents_threads)};
#ifdef MDOT_SANITIZED
    print_message("skipped: a sanitizer's malloc may be held by a thread that stays with the parent\n");
    return 77;
#endif
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    setenv("MDOT_VALIDATE", "1", 1); /* before the first object exists */
    predict_open(&f, predict_bandwidth_model());
    job = predict_job(6, 6);
    configuration = predict_configuration(32, "A100");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mdot_job_destroy(job);
    predict_close(&f);
    return failed;
}
