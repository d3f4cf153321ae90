/* test_elastic.c — jobs that grow and shrink within bounds: hand-made cases, and properties on random jobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void make_elastic(sc_job *job, int minimum, int maximum, double scaling)
{
    job->least_gpus = minimum;
    job->most_gpus = maximum;
    job->scaling = scaling;
}

static sc_result run(const sc_workload *w, int gpus, const char *name, double restart_s)
{
    sc_cluster c;
    sc_result r = {0};
    sc_estimator oracle = sc_estimator_oracle();
    mdot_error err = {0};
    const sc_policy *policy;
    assert_int_equal(sc_policy_find(name, &policy, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_make_pool(gpus, &c, NULL), MDOT_OK);
    c.types[0].watts = 100; /* which powerflow requires */
    sc_run_options options = {.restart = {.base_s = restart_s}};
    if (sc_simulate(w, &c, policy, &oracle, &options, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return r;
}

static void expect_ends(const sc_result *r, const double *ends_s)
{
    for (size_t i = 0; i < r->job_count; i++)
        if (fabs(r->states[i].end_s - ends_s[i]) > 1e-6)
            fail_msg("job %zu ends at %.9g, expected %.9g", i, r->states[i].end_s, ends_s[i]);
}

static void a_job_shrinks_for_another_and_grows_again(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 2, 1000}, {100, 2, 100}};
    sc_workload w = workload_make(jobs, 2);
    make_elastic(&w.jobs[0], 1, 4, 1);
    /* Alone it runs on 4 GPUs, twice as fast: 200 of 1,000 done at 100 s. Then on 2 beside the other job for 100 s, and
     * on 4 again: 300 + 700 / 2 at 200 s. */
    sc_result r = run(&w, 4, "elastic", 0);
    expect_ends(&r, (const double[]){200 + 700 / 2., 200});
    assert_int_equal(r.states[0].preemptions, 0);
    sc_result_free(&r);
    /* A restart of 10 s for each of the two changes; the first start is free. */
    r = run(&w, 4, "elastic", 10);
    expect_ends(&r, (const double[]){200 + 10 + 710 / 2., 200});
    sc_result_free(&r);
    /* The job has to shrink, which takes until 500 s. A second restart would cost 400 s and save less, because 800 s
     * are left on 2 GPUs then. */
    r = run(&w, 4, "elastic", 400);
    expect_ends(&r, (const double[]){100 + 400 + 800, 200});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void gpus_go_to_the_job_that_gains_most(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    sc_workload w = workload_make(jobs, 2);
    make_elastic(&w.jobs[0], 1, 3, .1);
    make_elastic(&w.jobs[1], 1, 3, 1);
    sc_result r = run(&w, 4, "elastic", 0); /* 1 and 3 until the second ends, then 3 */
    double done = 1000 / 3., rest_s = (1000 - done) / pow(3, .1);
    expect_ends(&r, (const double[]){done + rest_s, done});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void jobs_without_bounds_keep_their_width(void **state)
{
    (void)state;
    sc_workload w = workload_random(60, 8, 7);
    sc_result elastic = run(&w, 16, "elastic", 0), fifo = run(&w, 16, "fifo", 0);
    for (size_t i = 0; i < w.job_count; i++)
        assert_true(elastic.states[i].end_s == fifo.states[i].end_s &&
                    elastic.states[i].start_s == fifo.states[i].start_s);
    sc_result_free(&elastic);
    sc_result_free(&fifo);
    sc_workload_free(&w);
}

/* Follows the log: at every time, widths are within bounds and fit the GPUs, and the work done is the integral of the
 * speed. */
static void follow(const sc_workload *w, int gpus, FILE *log)
{
    double *since_s = calloc(w->job_count, sizeof *since_s), *work = calloc(w->job_count, sizeof *work);
    int *width = calloc(w->job_count, sizeof *width), used = 0;
    char line[512], decision[32];
    assert_non_null(since_s);
    assert_non_null(work);
    assert_non_null(width);
    assert_non_null(fgets(line, sizeof line, log)); /* header */
    double at_s = 0;
    while (fgets(line, sizeof line, log) != NULL) {
        double time_s;
        int job, granted = 0;
        char *fields[8] = {line};
        for (int i = 1; i < 8 && fields[i - 1] != NULL; i++) {
            fields[i] = strchr(fields[i - 1], ',');
            if (fields[i] != NULL) *fields[i]++ = '\0';
        }
        time_s = strtod(fields[0], NULL);
        snprintf(decision, sizeof decision, "%s", fields[1]);
        job = atoi(fields[2]);
        granted = atoi(fields[4]);
        if (time_s > at_s) assert_true(used <= gpus);
        at_s = time_s;
        if (strcmp(decision, "arrive") == 0) continue;
        const sc_job *j = &w->jobs[job];
        if (width[job] > 0) work[job] += (time_s - since_s[job]) * pow((double)width[job] / j->gpus, j->scaling);
        since_s[job] = time_s;
        used -= width[job];
        bool runs = strcmp(decision, "start") == 0 || strcmp(decision, "move") == 0 || strcmp(decision, "resume") == 0;
        width[job] = runs ? granted : 0;
        used += width[job];
        if (runs) assert_true(granted >= j->least_gpus && granted <= j->most_gpus);
    }
    for (size_t i = 0; i < w->job_count; i++) assert_true(fabs(work[i] - w->jobs[i].work) <= 1e-6 * w->jobs[i].work);
    free(since_s);
    free(work);
    free(width);
}

static void widths_stay_in_bounds_and_work_is_conserved(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed;
        sc_workload w = workload_random(60, 4, seed);
        for (size_t i = 0; i < w.job_count; i++) {
            int gpus = w.jobs[i].gpus, minimum = 1 + (int)(sc_random_next(&random) % (unsigned)gpus);
            make_elastic(&w.jobs[i], minimum, gpus + (int)(sc_random_next(&random) % 6), sc_random_unit(&random));
        }
        sc_cluster c;
        sc_result r = {0};
        sc_estimator oracle = sc_estimator_oracle();
        sc_run_options options = {.log = tmpfile()};
        assert_non_null(options.log);
        assert_int_equal(sc_cluster_make_pool(12, &c, NULL), MDOT_OK);
        assert_int_equal(sc_simulate(&w, &c, &sc_policy_elastic, &oracle, &options, &r, NULL), MDOT_OK);
        rewind(options.log);
        follow(&w, 12, options.log);
        fclose(options.log);
        for (size_t i = 0; i < w.job_count; i++) assert_int_equal(r.states[i].preemptions, 0);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

/* Policies with power-of-two widths run such a job at the requested width. */
static void bounds_without_a_power_of_two_are_run(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 6, 100}};
    static const char *const names[] = {"elastic", "powerflow", "elasticflow", "pollux", "sia"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sc_workload w = workload_make(jobs, 1);
        make_elastic(&w.jobs[0], 5, 7, 1);
        w.jobs[0].deadline_s = 1000;
        sc_result r = run(&w, 16, names[i], 0);
        if (!isfinite(r.states[0].end_s)) fail_msg("%s does not run the job", names[i]);
        assert_true(r.states[0].executed_s >= 600 / 7. - 1e-9);
        assert_true(r.states[0].executed_s <= 120 + 1e-9);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

/* A job cut off at the limit arrives again and still counts as one job. Every policy that accepts limits ends. */
static void every_policy_lists_a_job_that_was_cut_off_once(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t i = 0; sc_policies[i] != NULL; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            sc_workload w = workload_random(40, 4, seed);
            for (size_t k = 0; k < w.job_count; k++) make_elastic(&w.jobs[k], 1, 6, .8);
            sc_cluster c;
            sc_result r = {0};
            sc_estimator oracle = sc_estimator_oracle();
            sc_run_options options = {.limit_factor = .6};
            mdot_error err = {0};
            assert_int_equal(sc_cluster_make_pool(8, &c, NULL), MDOT_OK);
            c.types[0].watts = 100;
            mdot_status status = sc_simulate(&w, &c, sc_policies[i], &oracle, &options, &r, &err);
            if (status != MDOT_OK) assert_true(status == MDOT_INVALID_ARGUMENT || status == MDOT_UNSUPPORTED);
            size_t cuts = 0;
            for (size_t k = 0; k < r.job_count; k++) cuts += r.states[k].cuts;
            if (status == MDOT_OK) print_message("%s: %zu cut off\n", sc_policies[i]->name, cuts);
            tried += cuts > 0;
            sc_result_free(&r);
            sc_cluster_free(&c);
            sc_workload_free(&w);
        }
    }
    assert_true(tried >= 36);
}

static void bounds_are_read_or_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"4,5,8", "min_gpus"}, {"4,1,3", "max_gpus"}, {"4,0,8", "min_gpus"}};
    char *folder = process_make_folder();
    sc_workload w;
    mdot_error err = {0};
    char *path = workload_write_file(folder, "good.csv",
                                     "job_id,submit_s,gpus,duration_s,min_gpus,max_gpus,scaling\n"
                                     "a,0,4,10,2,8,.5\nb,0,4,10,,,\nc,0,4,10,,8,\n");
    if (sc_read_trace(path, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_number(sc_workload_speed(&w, &w.jobs[0], 0, 8), pow(2, .5));
    expect_number(sc_workload_speed(&w, &w.jobs[0], 0, 1), 0);
    expect_number(sc_workload_speed(&w, &w.jobs[1], 0, 4), 1);
    expect_number(sc_workload_speed(&w, &w.jobs[1], 0, 8), 0);
    expect_number(sc_workload_speed(&w, &w.jobs[2], 0, 8), 2);
    expect_number(sc_workload_speed(&w, &w.jobs[2], 0, 3), 0);
    sc_workload_free(&w);
    free(path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "job_id,submit_s,gpus,duration_s,min_gpus,max_gpus\na,0,%c,10,%s\n", bad[i][0][0],
                 bad[i][0] + 2);
        path = workload_write_file(folder, "bad.csv", text);
        assert_int_equal(sc_read_trace(path, &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, bad[i][1]);
        free(path);
    }
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_shrinks_for_another_and_grows_again),
        cmocka_unit_test(gpus_go_to_the_job_that_gains_most),
        cmocka_unit_test(jobs_without_bounds_keep_their_width),
        cmocka_unit_test(widths_stay_in_bounds_and_work_is_conserved),
        cmocka_unit_test(bounds_without_a_power_of_two_are_run),
        cmocka_unit_test(every_policy_lists_a_job_that_was_cut_off_once),
        cmocka_unit_test(bounds_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
