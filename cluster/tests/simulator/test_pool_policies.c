/* test_pool_policies.c — policies on a homogeneous pool: cases worked by hand, the naive simulator on random workloads
 * with many ties, and the published simulators' cases if ../shared exists. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/csv.h"
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/naive_pool.h"
#include "tests/simulator/support/workloads.h"

static const char *const policies[] = {"fifo", "fjf", "srtf", "srsf", "las", "dlas", "qssf"};
enum { POLICY_COUNT = sizeof policies / sizeof policies[0], RANDOM_JOBS = 120 };

typedef struct expected {
    double start_s, end_s;
    unsigned preemptions;
} expected;

static void expect(const double (*jobs)[3], size_t count, int gpus, const char *policy, const expected *want)
{
    sc_workload workload = workload_make(jobs, count);
    sc_result result = workload_run(&workload, gpus, policy, NULL, SC_ERRORS_SCALE);
    for (size_t i = 0; i < count; i++) {
        const sc_state *got = &result.states[i];
        if (got->start_s != want[i].start_s || got->end_s != want[i].end_s || got->preemptions != want[i].preemptions)
            fail_msg("%s, job %zu: %g to %g, %u preemptions; expected %g to %g, %u", policy, i, got->start_s,
                     got->end_s, got->preemptions, want[i].start_s, want[i].end_s, want[i].preemptions);
    }
    sc_result_free(&result);
    sc_workload_free(&workload);
}

/* Four GPUs: a job on 3, a job for 2 must wait, and a job for 1 could run beside the first. */
static const double blocked[][3] = {{0, 3, 100}, {10, 2, 50}, {20, 1, 30}};

static void fifo_waits_at_the_first_job_that_does_not_fit(void **state)
{
    (void)state;
    expect(blocked, 3, 4, "fifo", (expected[]){{0, 100, 0}, {100, 150, 0}, {100, 130, 0}});
}

static void fjf_skips_jobs_that_do_not_fit(void **state)
{
    (void)state;
    expect(blocked, 3, 4, "fjf", (expected[]){{0, 100, 0}, {100, 150, 0}, {20, 50, 0}});
}

static void qssf_orders_by_predicted_service_and_never_preempts(void **state)
{
    (void)state;
    /* When the first job ends, the services are 400, 100, 90. The last job goes first, and the job with 400 waits for
     * all others. */
    static const double jobs[][3] = {{0, 4, 100}, {1, 4, 100}, {2, 2, 50}, {3, 1, 90}};
    expect(jobs, 4, 4, "qssf", (expected[]){{0, 100, 0}, {190, 290, 0}, {100, 150, 0}, {100, 190, 0}});
}

static void srtf_and_srsf_preempt_by_remaining_work(void **state)
{
    (void)state;
    /* At 10 s: 90 s × 2 GPUs against 80 s × 4. */
    static const double jobs[][3] = {{0, 2, 100}, {10, 4, 80}};
    expect(jobs, 2, 4, "srtf", (expected[]){{0, 180, 1}, {10, 90, 0}});
    expect(jobs, 2, 4, "srsf", (expected[]){{0, 100, 0}, {100, 180, 0}});
}

static void las_alternates_in_quanta(void **state)
{
    (void)state;
    /* 0-60: the first job. 60-120: the second, then ahead of an equal job; it runs to the end. */
    static const double jobs[][3] = {{0, 1, 120}, {0, 1, 120}};
    expect(jobs, 2, 1, "las", (expected[]){{0, 240, 1}, {60, 180, 0}});
}

static void dlas_demotes_at_its_limits(void **state)
{
    (void)state;
    /* The first runs 3250 GPU-seconds on 1 GPU. Then the other runs to the same limit and continues, because it is
     * first in its list. */
    static const double jobs[][3] = {{0, 1, 4000}, {0, 1, 4000}};
    expect(jobs, 2, 1, "dlas", (expected[]){{0, 7250, 1}, {3250, 8000, 1}});
}

static void jobs_of_zero_length_end_when_they_begin(void **state)
{
    (void)state;
    static const double jobs[][3] = {{5, 1, 0}, {5, 1, 10}};
    for (size_t i = 0; i < POLICY_COUNT; i++) expect(jobs, 2, 1, policies[i], (expected[]){{5, 5, 0}, {5, 15, 0}});
}

static void compare(const sc_workload *workload, int gpus, const char *policy, const double *factors, sc_errors errors)
{
    naive_job want[RANDOM_JOBS];
    naive_simulate(workload, gpus, policy, factors, errors, want);
    sc_result result = workload_run(workload, gpus, policy, factors, errors);
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_state *got = &result.states[i];
        if (got->start_s != want[i].start_s || got->end_s != want[i].end_s || got->preemptions != want[i].preemptions)
            fail_msg("%s on %d GPUs, job %zu: %g to %g, %u preemptions; the lists say %g to %g, %u", policy, gpus, i,
                     got->start_s, got->end_s, got->preemptions, want[i].start_s, want[i].end_s, want[i].preemptions);
    }
    sc_result_free(&result);
}

static void all_policies_match_a_full_sort(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        sc_workload workload = workload_random(RANDOM_JOBS, seed % 3 == 0 ? 1 : 6, seed);
        double factors[RANDOM_JOBS];
        uint64_t random = seed;
        for (size_t i = 0; i < RANDOM_JOBS; i++) factors[i] = 0.25 * (double)(1 + sc_random_next(&random) % 12);
        for (size_t i = 0; i < POLICY_COUNT; i++) {
            compare(&workload, 8, policies[i], NULL, SC_ERRORS_SCALE);
            compare(&workload, 8, policies[i], factors, SC_ERRORS_SCALE);
            compare(&workload, 8, policies[i], factors, SC_ERRORS_TOTAL);
        }
        sc_workload_free(&workload);
    }
}

/* Splits for example "philly480_60_60_srsf.csv" into input philly480_60, 60 GPUs, srsf. Errors may follow, for
 * example "_scale0.5_seed1". */
static bool split_case(const char *file, char *input, int *out_gpus, char *policy, char *errors)
{
    static const struct {
        const char *prefix;
        int gpus;
    } inputs[] = {{"philly480_60", 60}, {"itp300_64_burst", 64}};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        char format[64];
        snprintf(format, sizeof format, "%s_%d_%%15[a-z]_%%15[a-z]", inputs[i].prefix, inputs[i].gpus);
        errors[0] = '\0';
        if (sscanf(file, format, policy, errors) < 1) continue;
        strcpy(input, inputs[i].prefix);
        *out_gpus = inputs[i].gpus;
        return true;
    }
    return false;
}

static void check_case(const char *file, const char *input, int gpus, const char *policy, const char *errors)
{
    char path[512];
    mdot_error err = {0};
    sc_workload workload;
    bs_csv csv;
    double *factors = NULL, want_sum = 0, got_sum = 0;
    size_t equal = 0, count = 0;
    snprintf(path, sizeof path, MDOT_SHARED_DATA "/simulators/inputs/%s.csv", input);
    assert_int_equal(sc_read_trace(path, &workload, &err), MDOT_OK);
    if (errors[0] != '\0')
        assert_int_equal(
            sc_read_factors(MDOT_SHARED_DATA "/simulators/inputs/itp300_factors_0.5.csv", &workload, &factors, &err),
            MDOT_OK);
    sc_result result = workload_run(&workload, gpus, policy, factors,
                                    strcmp(errors, "total") == 0 ? SC_ERRORS_TOTAL : SC_ERRORS_SCALE);
    snprintf(path, sizeof path, MDOT_SHARED_DATA "/simulators/cases/%s", file);
    assert_int_equal(bs_csv_open(path, UINT64_MAX, NULL, &csv, &err), MDOT_OK);
    for (bool is_row = true;; count++) {
        double end_s, jct_s;
        assert_int_equal(bs_csv_next(&csv, &is_row, &err), MDOT_OK);
        if (!is_row) break;
        assert_string_equal(csv.field[0], workload.jobs[count].id);
        assert_int_equal(bs_csv_number(&csv, 2, 0, 1e12, &end_s, &err), MDOT_OK);
        assert_int_equal(bs_csv_number(&csv, 3, 0, 1e12, &jct_s, &err), MDOT_OK);
        equal += result.states[count].end_s == end_s;
        got_sum += result.states[count].end_s - workload.jobs[count].submit_s;
        want_sum += jct_s;
    }
    print_message("%s: %zu of %zu jobs identical, mean off by %.2g\n", file, equal, count, got_sum / want_sum - 1);
    assert_int_equal(count, workload.job_count);
    assert_true(fabs(got_sum / want_sum - 1) < 1e-3);
    assert_true(100 * equal >= 99 * count);
    bs_csv_close(&csv);
    free(factors);
    sc_result_free(&result);
    sc_workload_free(&workload);
}

static void published_cases_match_for_every_job(void **state)
{
    (void)state;
    DIR *folder = opendir(MDOT_SHARED_DATA "/simulators/cases");
    if (folder == NULL) {
        print_message("%s/simulators is absent\n", MDOT_SHARED_DATA);
        skip();
    }
    size_t checked = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char input[64], policy[16], errors[16];
        int gpus;
        if (!split_case(entry->d_name, input, &gpus, policy, errors)) continue;
        check_case(entry->d_name, input, gpus, policy, errors);
        checked++;
    }
    closedir(folder);
    assert_true(checked >= 16);
}

/* Ghodsi's example: 9 CPUs and 18 GB; tasks of A need 1 CPU and 4 GB, those of B 3 CPUs and 1 GB. */
static void drf_shares_the_dominant_resource(void **state)
{
    (void)state;
    double jobs[12][3];
    for (size_t i = 0; i < 12; i++) memcpy(jobs[i], (const double[]){0, 1, 100}, sizeof jobs[i]);
    sc_workload w = workload_make((const double(*)[3])jobs, 12);
    for (size_t i = 0; i < 12; i++) {
        w.jobs[i].group = strdup(i < 6 ? "A" : "B");
        w.jobs[i].cpus = i < 6 ? 1 : 3;
        w.jobs[i].memory_gb = i < 6 ? 4 : 1;
    }
    for (int knows_cpus = 0; knows_cpus < 2; knows_cpus++) {
        sc_cluster c;
        sc_estimator oracle = sc_estimator_oracle();
        sc_result r;
        size_t begun[2] = {0};
        assert_int_equal(sc_cluster_make_pool(8, &c, NULL), MDOT_OK);
        c.cpus = knows_cpus ? 9 : 0;
        c.memory_gb = knows_cpus ? 18 : 0;
        assert_int_equal(sc_simulate(&w, &c, &sc_policy_drf, &oracle, &(sc_run_options){0}, &r, NULL), MDOT_OK);
        for (size_t i = 0; i < 12; i++) begun[i / 6] += r.states[i].start_s == 0;
        assert_int_equal(begun[0], knows_cpus ? 3 : 4);
        assert_int_equal(begun[1], knows_cpus ? 2 : 4);
        sc_result_free(&r);
        sc_cluster_free(&c);
    }
    sc_workload_free(&w);
}

static void yarn_starts_the_queue_with_the_fewest_gpus(void **state)
{
    (void)state;
    /* A fills the pool first. Then B has fewer GPUs whenever one becomes free, although A's jobs came before. */
    static const double jobs[][3] = {{0, 2, 50}, {0, 2, 100}, {1, 1, 10}, {1, 1, 10}, {2, 1, 10}, {2, 1, 10}};
    sc_workload w = workload_make(jobs, 6);
    for (size_t i = 0; i < 6; i++) w.jobs[i].group = strdup(i < 4 ? "A" : "B");
    sc_result r = workload_run(&w, 4, "yarn", NULL, SC_ERRORS_SCALE);
    for (size_t i = 2; i < 6; i++) assert_true(r.states[i].start_s == (i < 4 ? 60 : 50));
    sc_result_free(&r);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifo_waits_at_the_first_job_that_does_not_fit),
        cmocka_unit_test(fjf_skips_jobs_that_do_not_fit),
        cmocka_unit_test(qssf_orders_by_predicted_service_and_never_preempts),
        cmocka_unit_test(srtf_and_srsf_preempt_by_remaining_work),
        cmocka_unit_test(las_alternates_in_quanta),
        cmocka_unit_test(dlas_demotes_at_its_limits),
        cmocka_unit_test(jobs_of_zero_length_end_when_they_begin),
        cmocka_unit_test(all_policies_match_a_full_sort),
        cmocka_unit_test(drf_shares_the_dominant_resource),
        cmocka_unit_test(yarn_starts_the_queue_with_the_fewest_gpus),
        cmocka_unit_test(published_cases_match_for_every_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
