/* hare.c — Hare (Chen et al., HPDC 2022), reduced to filling gaps. A job that must wait has its GPUs reserved. Other
 * jobs run before it if they are predicted to end in time, or if they leave it enough GPUs.
 *
 * Implemented: predicted times let a scheduler use the GPUs that a blocked job leaves idle, without delaying that job.
 * Left out: tasks of one job on several types of GPUs, the relaxed program over all tasks, fast switching between them.
 * The result is EASY backfilling, as in batch schedulers, with any estimate: first come, first served, no preemption
 * (backfill.h). Jobs get the first free nodes. */
#include "simulator/policy/backfill.h"
#include "simulator/policy/policies.h"

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_backfill_create(view, SC_BACKFILL_EASY, false, out_self, err);
}

const sc_policy sc_policy_hare = {
    .name = "hare",
    .summary = "first come, first served, gaps filled by predicted ends (Hare, reduced)",
    .create = create,
    .decide = sc_backfill_decide,
    .destroy = sc_backfill_destroy,
};
