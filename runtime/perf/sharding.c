/* sharding.c — see sharding.h. */
#include "runtime/perf/sharding.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>

bool rt_find_sharding(const mdot_job *job, const double *costs, rt_sharding *out)
{
    size_t count = job->info.operator_count;
    out->role = calloc(count, sizeof *out->role);
    out->position = calloc(count, sizeof *out->position);
    if (out->role == NULL || out->position == NULL || !rt_find_experts(job, &out->experts) ||
        !rt_find_sharding_roles(job, out))
        return false;
    rt_find_sharding_positions(job, costs, out);
    return rt_measure_sharding_borders(job, out);
}

void rt_free_sharding(rt_sharding *sharding)
{
    free(sharding->role);
    free(sharding->position);
    free(sharding->experts.is_expert);
}
