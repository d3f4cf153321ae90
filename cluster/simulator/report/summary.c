/* summary.c — summary values over all jobs. */
#include "simulator/report/simulation_report.h"

#include <math.h>
#include <stdlib.h>

static const double bound_s = 600; /* in the slowdown, so that very short jobs do not decide it */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

mdot_status sc_summarise(const sc_workload *workload, const sc_cluster *cluster, const sc_result *result,
                         sc_summary *out_summary, mdot_error *err)
{
    double *jct_s = calloc(workload->job_count + 1, sizeof *jct_s);
    if (jct_s == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    sc_summary summary = {.jobs = workload->job_count, .decisions = result->decisions, .notes = result->notes};
    double first_s = workload->jobs[0].submit_s, last_s = first_s, held_gpu_s = 0;
    size_t count = 0;
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        const sc_state *state = &result->states[i];
        summary.deadlines += isfinite(job->deadline_s);
        if (state->phase == SC_REJECTED) {
            summary.rejected++;
            continue;
        }
        jct_s[count] = state->end_s - job->submit_s;
        summary.mean_jct_s += jct_s[count++];
        double duration_s = sc_workload_duration_s(workload, job, cluster->type_count);
        summary.mean_wait_s += state->start_s - job->submit_s;
        summary.mean_slowdown += fmax(1, (state->end_s - job->submit_s) / fmax(bound_s, duration_s));
        summary.cuts += state->cuts;
        summary.lost_gpu_h += state->lost_gpu_s / 3600;
        last_s = fmax(last_s, state->end_s);
        held_gpu_s += state->attained_gpu_s;
        summary.preemptions += state->preemptions;
        summary.deadlines_met += isfinite(job->deadline_s) && state->end_s <= job->deadline_s;
    }
    qsort(jct_s, count, sizeof *jct_s, by_size);
    if (count > 0) {
        summary.mean_jct_s /= (double)count;
        summary.mean_wait_s /= (double)count;
        summary.mean_slowdown /= (double)count;
        summary.median_jct_s = (jct_s[(count - 1) / 2] + jct_s[count / 2]) / 2;
        summary.p95_jct_s = jct_s[(95 * count + 99) / 100 - 1];
    }
    summary.makespan_s = last_s - first_s;
    if (last_s > first_s) summary.utilisation = held_gpu_s / (cluster->gpus * (last_s - first_s));
    if (cluster->type_count == 1) summary.energy_kwh = held_gpu_s * cluster->types[0].watts / 3.6e6;
    if (result->decisions > 0) summary.decision_us = 1e6 * result->decision_s / (double)result->decisions;
    free(jct_s);
    *out_summary = summary;
    return MDOT_OK;
}
