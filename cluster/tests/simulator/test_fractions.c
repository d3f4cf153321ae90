/* test_fractions.c — fractions of GPUs: read, rounded up without --slices, shared with it, and never split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static sc_workload read_trace(const char *text)
{
    char *folder = process_make_folder(), *path = workload_write_file(folder, "trace.csv", text);
    sc_workload w;
    mdot_error err = {0};
    if (sc_read_trace(path, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
    process_remove_folder(folder);
    free(path);
    return w;
}

static sc_result run(sc_workload *w, int gpus, int slices, const sc_policy *policy)
{
    sc_cluster c;
    sc_result r;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(gpus, &c, NULL), MDOT_OK);
    if (slices > 0 && sc_slice_gpus(slices, &c, w, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_number(c.gpus, slices > 0 ? gpus * slices : gpus);
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return r;
}

/* Two GPUs. Halves and quarters fill the first one, so the whole GPU is free for the last job. With whole GPUs, a third
 * job waits. */
static void fractions_share_a_gpu(void **state)
{
    (void)state;
    static const char trace[] = "job_id,submit_s,gpus,duration_s\na,0,0.5,100\nb,0,0.25,100\nc,0,0.25,100\nd,0,1,100\n";
    sc_workload w = read_trace(trace);
    sc_result r = run(&w, 2, 4, &sc_policy_kubeshare);
    for (size_t i = 0; i < 4; i++) expect_number(r.states[i].end_s, 100);
    expect_number(r.states[0].attained_gpu_s, 200); /* in quarters */
    sc_result_free(&r);
    sc_workload_free(&w);
    w = read_trace(trace);
    r = run(&w, 2, 0, &sc_policy_fifo);
    expect_number(r.states[2].start_s, 100);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Three quarters on each of two GPUs leave two quarters, which are no half. */
static void a_fraction_is_never_split(void **state)
{
    (void)state;
    static const sc_policy *const policies[] = {&sc_policy_kubeshare, &sc_policy_hived};
    for (size_t i = 0; i < 2; i++) {
        sc_workload w = read_trace("job_id,submit_s,gpus,duration_s\na,0,0.75,100\nb,0,0.75,100\nc,0,0.5,100\n");
        sc_result r = run(&w, 2, 4, policies[i]);
        expect_number(r.states[1].start_s, 0);
        expect_number(r.states[2].start_s, 100);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

static void slices_reject_speeds_by_width(void **state)
{
    (void)state;
    sc_workload w = read_trace("job_id,submit_s,gpus,duration_s,min_gpus,max_gpus\na,0,2,100,1,4\n");
    sc_cluster c;
    mdot_error err = {0};
    assert_int_equal(sc_cluster_make_pool(2, &c, NULL), MDOT_OK);
    assert_int_equal(sc_slice_gpus(4, &c, &w, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "job a has a job_type or bounds");
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions_share_a_gpu),
        cmocka_unit_test(a_fraction_is_never_split),
        cmocka_unit_test(slices_reject_speeds_by_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
