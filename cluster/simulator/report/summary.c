/* summary.c — summary values over all jobs. */
#include "simulator/report/simulation_report.h"

#include <math.h>
#include <stdlib.h>

static const double bound_s = 600; /* in the slowdown, so that very short jobs do not decide it */

/* Ascending times, and the sums of those before each. */
typedef struct times {
    double *items, *sums;
    size_t count;
} times;

static void sum_up(times *t)
{
    for (size_t i = 0; i < t->count; i++) t->sums[i + 1] = t->sums[i] + t->items[i];
}

/* The integral, until `now_s`, of the number of times that have passed. */
static double integrate(const times *t, double now_s)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->items[middle] < now_s)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low * now_s - t->sums[low];
}

/* Computes finish-time fairness over all jobs that were not rejected. */
static mdot_status rate_fairness(const sc_workload *workload, const sc_cluster *cluster, const sc_result *result,
                                 sc_summary *summary, mdot_error *err)
{
    size_t jobs = workload->job_count + 1;
    double *memory = calloc(4 * jobs, sizeof *memory), first_s = workload->jobs[0].submit_s;
    times begun = {memory, memory + jobs, 0}, ended = {memory + 2 * jobs, memory + 3 * jobs, 0};
    if (memory == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < workload->job_count; i++) {
        if (result->states[i].phase == SC_REJECTED) continue;
        begun.items[begun.count++] = workload->jobs[i].submit_s - first_s;
        ended.items[ended.count++] = result->states[i].end_s - first_s;
    }
    qsort(ended.items, ended.count, sizeof *ended.items, sc_by_value);
    sum_up(&begun);
    sum_up(&ended);
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        if (result->states[i].phase == SC_REJECTED) continue;
        double from_s = job->submit_s - first_s, until_s = result->states[i].end_s - first_s;
        double active_s = integrate(&begun, until_s) - integrate(&begun, from_s) - integrate(&ended, until_s) +
                          integrate(&ended, from_s);
        double fair_s = sc_workload_duration_s(workload, job, cluster->type_count);
        if (until_s > from_s) fair_s *= fmax(1, active_s / (until_s - from_s) * job->gpus / cluster->gpus);
        double rho = fair_s > 0 ? (until_s - from_s) / fair_s : 1;
        summary->mean_rho += rho / (double)begun.count;
        summary->max_rho = fmax(summary->max_rho, rho);
    }
    free(memory);
    return MDOT_OK;
}

mdot_status sc_summarise(const sc_workload *workload, const sc_cluster *cluster, const sc_result *result,
                         sc_summary *out_summary, mdot_error *err)
{
    double *jct_s = calloc(workload->job_count + 1, sizeof *jct_s);
    if (jct_s == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    sc_summary summary = {.jobs = workload->job_count, .decisions = result->decisions, .notes = result->notes};
    double first_s = workload->jobs[0].submit_s, last_s = first_s, held_gpu_s = 0, used_gpu_s = 0;
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
        used_gpu_s += state->used_gpu_s;
        summary.preemptions += state->preemptions;
        summary.deadlines_met += isfinite(job->deadline_s) && state->end_s <= job->deadline_s;
    }
    qsort(jct_s, count, sizeof *jct_s, sc_by_value);
    if (count > 0) {
        summary.mean_jct_s /= (double)count;
        summary.mean_wait_s /= (double)count;
        summary.mean_slowdown /= (double)count;
        summary.median_jct_s = (jct_s[(count - 1) / 2] + jct_s[count / 2]) / 2;
        summary.p95_jct_s = jct_s[(95 * count + 99) / 100 - 1];
    }
    summary.makespan_s = last_s - first_s;
    if (last_s > first_s) summary.utilisation = held_gpu_s / (cluster->gpus * (last_s - first_s));
    if (last_s > first_s) summary.used = used_gpu_s / (cluster->gpus * (last_s - first_s));
    bool has_watts = true, has_price = true;
    for (unsigned type = 0; type < cluster->type_count; type++) {
        summary.cost += result->held_gpu_s[type] * cluster->types[type].price / 3600;
        has_watts &= result->held_gpu_s[type] == 0 || cluster->types[type].watts > 0;
        has_price &= result->held_gpu_s[type] == 0 || cluster->types[type].price > 0;
    }
    summary.energy_kwh = has_watts ? result->joules / 3.6e6 : 0;
    if (!has_price) summary.cost = 0;
    if (result->decisions > 0) summary.decision_us = 1e6 * result->decision_s / (double)result->decisions;
    free(jct_s);
    mdot_status status = rate_fairness(workload, cluster, result, &summary, err);
    if (status == MDOT_OK) *out_summary = summary;
    return status;
}
