/* estimate.c — computes remaining times from a factor. */
#include "simulator/core/estimate.h"

#include <math.h>

double sc_estimate_base_duration_s(const sc_workload *workload, const sc_job *job, unsigned type_count)
{
    const sc_kind *kind = job->kind != SC_NONE ? &workload->kinds[job->kind] : NULL;
    unsigned width = sc_speed_index(job->gpus);
    double fastest = 0;
    for (unsigned type = 0;
         kind != NULL && kind->has_estimate && kind->scaling == NULL && width < SC_SPEEDS && type < type_count; type++)
        fastest = fmax(fastest, kind->estimated_speed[type + workload->first_type][width]);
    double duration_s = fastest > 0 ? job->work * sc_workload_step_samples(workload, job) / fastest
                                    : sc_workload_duration_s(workload, job, type_count);
    return duration_s * sc_workload_planned(job);
}

double sc_estimate_duration_s(const sc_estimate *estimate, uint32_t job)
{
    return estimate->factors[job] * estimate->durations_s[job];
}

double sc_estimate_remaining_s(const sc_estimate *estimate, uint32_t job, double remaining, double executed_s)
{
    double factor = estimate->factors[job], duration_s = estimate->durations_s[job];
    const sc_estimator *estimator = estimate->estimator;
    if (estimate->errors == SC_ERRORS_RESIDUAL)
        return estimator->remaining_s(estimator->self, estimate->workload, job, executed_s);
    if (estimate->errors == SC_ERRORS_TOTAL) return fmax(0, factor * duration_s - executed_s);
    const sc_job *j = &estimate->workload->jobs[job];
    double planned = sc_workload_planned(j), work = j->work * planned;
    remaining += j->work * (planned - 1);
    /* For a job without a kind, work is in seconds. This form is then exact, as comparisons of policies require. */
    return work == duration_s ? factor * remaining : factor * duration_s * (remaining / work);
}

bool sc_estimate_renew(const sc_estimate *estimate, uint32_t job)
{
    const sc_estimator *estimator = estimate->estimator;
    if (estimate->errors != SC_ERRORS_RESIDUAL || estimator->renew == NULL) return false;
    estimator->renew(estimator->self, estimate->workload, job);
    return true;
}

double sc_estimate_speed(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus)
{
    const sc_job *j = &estimate->workload->jobs[job];
    const sc_kind *kind = j->kind != SC_NONE ? &estimate->workload->kinds[j->kind] : NULL;
    double speed = sc_workload_speed(estimate->workload, j, type, gpus);
    if (kind == NULL || !kind->has_estimate || kind->scaling != NULL || speed == 0)
        return speed / estimate->factors[job];
    return kind->estimated_speed[type + estimate->workload->first_type][sc_speed_index(gpus)] /
           (sc_workload_step_samples(estimate->workload, j) * estimate->factors[job]);
}

double sc_estimate_spread(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus)
{
    const sc_job *j = &estimate->workload->jobs[job];
    const sc_kind *kind = j->kind != SC_NONE ? &estimate->workload->kinds[j->kind] : NULL;
    unsigned width = sc_speed_index(gpus);
    if (gpus < 2 || j->spread > 0 || kind == NULL || !kind->has_estimate || kind->scaling != NULL || width == SC_SPEEDS)
        return sc_workload_spread(estimate->workload, j, type, gpus);
    return fmax(1, kind->estimated_spread[type + estimate->workload->first_type][width]);
}
