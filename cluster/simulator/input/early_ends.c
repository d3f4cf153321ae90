/* outcomes.c — draws which jobs fail or are cancelled.
 *
 * Of the jobs of Philly 69.3 % passed, 13.5 % were killed and 17.2 % were unsuccessful (M. Jeon et al., "Analysis of
 * large-scale multi-tenant GPU clusters for DNN training workloads", USENIX ATC 2019, table 6; quoted from memory). A
 * trace records how long a job ran, so the duration stays. The completed part of the plan is unpublished. Here it is
 * uniform, for killed as for unsuccessful jobs, and the outcome is independent of the duration. In Philly, killed jobs
 * ran longer: they used 37.7 % of the GPU time. */
#include "simulator/core/workload.h"
#include "simulator/input/input.h"

static const double killed = .135, unsuccessful = .172;
static const double least_part = .01; /* a plan is at most a hundred times the run */

void sc_workload_draw_outcomes(sc_workload *workload, uint64_t seed)
{
    for (size_t i = 0; i < workload->job_count; i++) {
        double outcome = sc_random_unit(&seed), part = least_part + (1 - least_part) * sc_random_unit(&seed);
        sc_job *job = &workload->jobs[i];
        if (job->planned > 0 || outcome >= killed + unsuccessful) continue;
        job->planned = 1 / part;
        job->outcome = outcome < killed ? MDOT_ENDED_CANCELLED : MDOT_ENDED_FAILED; /* a history learns it */
    }
}
