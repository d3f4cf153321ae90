/* limit_estimator.c — a job's requested time limit estimates its duration. */
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

static double limit_over_duration(void *self, const sc_workload *workload, uint32_t job, double duration_s)
{
    double limit_s = workload->jobs[job].limit_s;
    if (limit_s == 0) limit_s = *(const double *)self;
    /* A job of 0 s ends at once under any limit. */
    return duration_s > 0 ? limit_s / duration_s : 1;
}

/* Jobs without a limit, for example UNLIMITED or Partition_Limit in accounting, count as long as the longest limit. */
mdot_status sc_estimator_make_limits(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    double longest_s = 0;
    for (size_t i = 0; i < workload->job_count; i++) longest_s = fmax(longest_s, workload->jobs[i].limit_s);
    if (longest_s == 0 && workload->job_count > 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "no job requests a time limit: add the column limit_s to the trace, or draw limits with "
                         "--user-limits");
    double *self = malloc(sizeof *self);
    if (self == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *self = longest_s;
    *out_estimator = (sc_estimator){.factor = limit_over_duration, .destroy = free, .self = self};
    return MDOT_OK;
}
