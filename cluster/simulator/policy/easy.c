/* easy.c — backfill as batch schedulers do it, without preemption.
 *
 *   easy           EASY (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995): a job runs before others if that
 *                  delays the first job of the queue in no plan.
 *   conservative   a job runs before others if that delays none of them in any plan. As in Slurm, all plans are made
 *                  anew at each decision, in order of priority.
 *
 * With accounts, the queue is ordered by Slurm's multifactor priority with Fair Tree, and quotas hold (fair_tree.h,
 * quota.h). Otherwise it is first come, first served. Nodes are chosen by topology (topology.h). Left out of Slurm: the
 * period of backfill (bf_interval), because decisions are free here; the window (bf_window); preemption and QOS. */
#include "simulator/policy/backfill.h"
#include "simulator/policy/policies.h"

const sc_policy sc_policy_easy = {
    .name = "easy",
    .summary = "EASY backfill by time limits or estimates; Slurm's priorities and quotas with --accounts",
    .one_type = true,
    .variant = SC_BACKFILL_EASY,
    .create = sc_backfill_create,
    .decide = sc_backfill_decide,
    .destroy = sc_backfill_destroy,
};

const sc_policy sc_policy_conservative = {
    .name = "conservative",
    .summary = "conservative backfill, otherwise like easy",
    .one_type = true,
    .variant = SC_BACKFILL_CONSERVATIVE,
    .create = sc_backfill_create,
    .decide = sc_backfill_decide,
    .destroy = sc_backfill_destroy,
};
