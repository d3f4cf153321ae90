/* limit_estimator.c — a job's requested time limit estimates its duration. */
#include "simulator/estimate/estimators.h"

#include <stdlib.h>

static double limit_over_duration(void *self, const sc_workload *workload, uint32_t job, double duration_s)
{
    (void)self;
    /* A job of 0 s ends at once under any limit. */
    return duration_s > 0 ? workload->jobs[job].limit_s / duration_s : 1;
}

mdot_status sc_estimator_make_limits(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    for (size_t i = 0; i < workload->job_count; i++)
        if (workload->jobs[i].limit_s == 0)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "job %s requests no time limit: add the column limit_s to the trace, or draw limits with "
                             "--user-limits",
                             workload->jobs[i].id);
    *out_estimator = (sc_estimator){.factor = limit_over_duration};
    return MDOT_OK;
}
