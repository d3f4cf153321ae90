/* qssf.c — quasi-shortest service first (Helios: Hu et al., SC 2021): a job's priority is its predicted service at
 * submission, time × GPUs. No preemption; waits at the first job that does not fit.
 *
 * The paper predicts from users' history and job names by gradient-boosted trees. Any estimate can be used here
 * (`--estimate rolling` is the closest). Its placement by consolidation is left out.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

static mdot_status decide(void *self, const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < view->arrived_count; i++) {
        uint32_t job = view->arrived[i];
        sc_order_put_last(self, job, sc_estimate_duration_s(view->estimate, job) * view->workload->jobs[job].gpus);
    }
    sc_queue_keep_running(view, plan);
    sc_queue_start(self, view, plan, false);
    return MDOT_OK;
}

const sc_policy sc_policy_qssf = {
    .name = "qssf",
    .summary = "shortest predicted service first, fixed at submission, no preemption (Helios)",
    .create = sc_queue_create,
    .decide = decide,
};
