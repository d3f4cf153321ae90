/* fuzz_trace.c — libFuzzer on job traces, in any format for mdot-simulate. Any bytes are refused with a message, or
 * become jobs in order of arrival. A window is cut from them and, if the jobs are few, simulated.
 *
 *     scripts/fuzz.sh 600 trace */
#include "simulator/core/simulator.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/fuzz/memory_file.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_JOBS = 32 };
#define LONGEST_S 1e5 /* continuous LAS decides once per minute */

static void check_jobs(const sc_workload *workload)
{
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        if (i > 0 && !(workload->jobs[i - 1].submit_s <= job->submit_s)) abort();
        if (job->gpus < 1 || !(job->work >= 0) || !isfinite(job->work) || job->id[0] == '\0') abort();
        if (!(job->deadline_s >= job->submit_s) || !(job->weight > 0)) abort();
        if (!(sc_workload_spread(workload, job, 0, job->gpus) >= 1)) abort();
    }
}

static bool is_short(const sc_workload *workload)
{
    double total_s = workload->job_count > 0 ? workload->jobs[workload->job_count - 1].submit_s : 0;
    for (size_t i = 0; i < workload->job_count; i++) total_s += workload->jobs[i].work * 1e3;
    return workload->job_count <= MOST_JOBS && total_s < LONGEST_S * 1e3;
}

static void simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy)
{
    sc_estimator oracle = sc_estimator_oracle();
    sc_result result;
    mdot_error err = {0};
    if (sc_simulate(workload, cluster, policy, &oracle, &(sc_run_options){0}, &result, &err) != MDOT_OK) {
        if (err.message[0] == '\0') abort();
        return;
    }
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        const sc_state *state = &result.states[i];
        if (!(state->start_s >= job->submit_s && state->end_s >= state->start_s)) abort();
        /* times are rounded sums */
        if (state->end_s - state->start_s < job->work * (1 - 1e-9) - 1e-6) abort();
    }
    sc_result_free(&result);
}

static void try_window(sc_workload *workload, const sc_cluster *cluster, const sc_window *window)
{
    mdot_error err = {0};
    if (sc_workload_select(workload, cluster, window, &err) != MDOT_OK) {
        if (err.message[0] == '\0') abort();
        return;
    }
    check_jobs(workload);
    if (workload->kind_count > 0 || !is_short(workload)) return;
    static const sc_policy *const policies[] = {&sc_policy_fjf,  &sc_policy_srsf,    &sc_policy_las, &sc_policy_dlas,
                                                &sc_policy_hare, &sc_policy_gandiva, &sc_policy_smd};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) simulate(workload, cluster, policies[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_workload workload = {0};
    sc_cluster cluster = {0};
    mdot_error err = {0};
    const char *path = memory_file(data, size, "trace.csv");
    if (sc_read_trace(path, &workload, &err) != MDOT_OK) {
        if (err.message[0] == '\0' || workload.jobs != NULL) abort();
        return 0;
    }
    check_jobs(&workload);
    for (char name[] = "a"; name[0] < 'd'; name[0]++)
        if (sc_cluster_add_node(&cluster, name, "gpu", 4, &err) != MDOT_OK) abort();
    static const sc_window windows[] = {{0}, {.count = 1}, {.load = 0.9}};
    try_window(&workload, &cluster, &windows[size % 3]);
    sc_cluster_free(&cluster);
    sc_workload_free(&workload);
    return 0;
}
