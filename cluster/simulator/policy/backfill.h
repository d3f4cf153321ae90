/* backfill.h — first come, first served, or by priority, with gaps filled: the common part of easy, conservative and
 * hare.
 *
 * A job is planned for its time limit if limits are enforced, else for its estimated duration. A running job that
 * outlives an estimate without a limit is planned for 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50 and then 100 h more, one
 * after the other (Tsafrir et al., "Backfilling using system-generated predictions rather than user runtime
 * estimates", IEEE TPDS 18(6), 2007).
 */
#ifndef SC_BACKFILL_H
#define SC_BACKFILL_H

#include "simulator/core/policy.h"

typedef enum sc_backfill_kind {
    SC_BACKFILL_EASY,        /* only the first job that does not fit has a reservation */
    SC_BACKFILL_CONSERVATIVE /* every job has one, up to a depth of 500 (Slurm's bf_max_job_test) */
} sc_backfill_kind;

/* Create, decide and destroy for a policy. `chooses_nodes`: jobs are placed by topology; otherwise the simulator
 * chooses the first free nodes. */
mdot_status sc_backfill_create(const sc_view *view, sc_backfill_kind kind, bool chooses_nodes, void **out_self,
                               mdot_error *err);
mdot_status sc_backfill_decide(void *self, const sc_view *view, sc_plan *plan, mdot_error *err);
void sc_backfill_destroy(void *self);

#endif
