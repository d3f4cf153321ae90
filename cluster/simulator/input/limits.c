/* limits.c — draws the time limits that users would have requested.
 *
 * The model has the properties that logs of batch systems show. The part of the requested time that a job uses is
 * uniform (A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in
 * scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001). Users request round values, of which twenty cover
 * 90 % of jobs, and the largest allowed one is always among the popular ones (D. Tsafrir, Y. Etsion, D. G. Feitelson,
 * "Modeling user runtime estimates", JSSPP 2005; D. Tsafrir, "Using inaccurate estimates accurately", JSSPP 2010).
 * Therefore the drawn time is rounded up to one of the twenty round values below, or to the maximum.
 */
#include "simulator/core/workload.h"
#include "simulator/input/input.h"

#include <math.h>

static const double round_s[] = {300,   600,   900,   1200,  1800,  2700,  3600,  5400,   7200,   10800,
                                 14400, 21600, 28800, 36000, 43200, 57600, 86400, 129600, 172800, 259200};

double sc_draw_limit_s(double duration_s, double most_s, uint64_t *random)
{
    double wanted_s = duration_s / sc_random_unit(random);
    for (size_t i = 0; i < sizeof round_s / sizeof round_s[0]; i++)
        if (wanted_s <= round_s[i] && round_s[i] <= most_s) return round_s[i];
    /* A job that is longer than the maximum would be cut off there; sites give such jobs an exception. */
    return duration_s > most_s ? duration_s : most_s;
}

static double planned_s(const sc_workload *workload, const sc_cluster *cluster, const sc_job *job)
{
    return sc_workload_duration_s(workload, job, cluster->type_count) * sc_workload_planned(job);
}

void sc_workload_request_limits(sc_workload *workload, const sc_cluster *cluster, double most_s, uint64_t seed)
{
    for (size_t i = 0; i < workload->job_count; i++) {
        sc_job *job = &workload->jobs[i];
        double limit_s = sc_draw_limit_s(planned_s(workload, cluster, job), most_s, &seed);
        if (job->limit_s == 0) job->limit_s = limit_s;
    }
}

void sc_workload_request_maximum(sc_workload *workload, const sc_cluster *cluster, double most_s)
{
    for (size_t i = 0; i < workload->job_count; i++)
        workload->jobs[i].limit_s = fmax(most_s, planned_s(workload, cluster, &workload->jobs[i]));
}
