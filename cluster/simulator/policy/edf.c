/* edf.c — earliest deadline first, preemptive, for comparison with elasticflow.c. The rules are this project's own:
 * jobs keep their requested widths. They are not the baselines that ElasticFlow's paper (Gu et al., ASPLOS 2023)
 * measures under the names EDF and EDF with admission control, so their numbers cannot be compared with the paper's.
 *
 *   edf         by deadline, skipping jobs that do not fit; jobs without a deadline come last
 *   edf-admit   the same for admitted jobs. A job is admitted if a simulation by the same rule shows that it and every
 *               admitted job meet their deadlines; others are rejected.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

static mdot_status decide_edf(void *self, const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(self, view->completed[i]);
    for (size_t i = 0; i < view->arrived_count; i++)
        sc_order_put_last(self, view->arrived[i], view->workload->jobs[view->arrived[i]].deadline_s);
    sc_queue_fill(self, view, plan);
    return MDOT_OK;
}

static bool is_admissible(const sc_order *order, const sc_view *view, sc_outlook_job *ahead)
{
    size_t count = 0;
    for (uint32_t job = SC_NONE; (job = sc_order_next(order, job, view->cluster->gpus)) != SC_NONE;) {
        if (!isfinite(view->workload->jobs[job].deadline_s)) break; /* jobs without a deadline yield to all others */
        ahead[count++] = sc_outlook_of(view, job);
    }
    return sc_outlook_meets(view, ahead, count, 0, view->now_s);
}

static mdot_status decide_admit(void *self, const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(self, view->completed[i]);
    size_t maximum = sc_order_count(self) + view->arrived_count + 1;
    sc_outlook_job *ahead = calloc(maximum, sizeof *ahead);
    if (ahead == NULL) return mdot_fail(view->err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < view->arrived_count; i++) {
        uint32_t job = view->arrived[i];
        sc_order_put_last(self, job, view->workload->jobs[job].deadline_s);
        bool yields = !isfinite(view->workload->jobs[job].deadline_s);
        if (yields || is_admissible(self, view, ahead)) continue;
        sc_order_remove(self, job);
        sc_plan_reject(plan, job);
    }
    free(ahead);
    sc_queue_fill(self, view, plan);
    return MDOT_OK;
}

const sc_policy sc_policy_edf = {
    .name = "edf",
    .summary = "earliest deadline first, preemptive",
    .create = sc_queue_create,
    .decide = decide_edf,
};

const sc_policy sc_policy_edf_admit = {
    .name = "edf-admit",
    .summary = "earliest deadline first; admits a job only if all admitted jobs meet their deadlines",
    .create = sc_queue_create,
    .decide = decide_admit,
};
