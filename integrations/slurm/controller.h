/* controller.h — what the plugin in slurmctld keeps from one submission to the next: mdot.conf, the predictor, a
 * context. */
#ifndef SL_CONTROLLER_H
#define SL_CONTROLLER_H

#include "integrations/slurm/decision.h"

typedef struct sl_controller sl_controller;

/* Reads nothing yet. The caller's to destroy; NULL without memory. */
sl_controller *sl_controller_create(const char *site_path);
void sl_controller_destroy(sl_controller *controller);

/* Reads mdot.conf, the predictor and its calibration where one is another file than the last time; three calls of stat
 * where not. On failure what was read before goes on answering, and the same fault is told once: afterwards the answer
 * is OK. `*out_is_new`: something was read. Any thread. */
mdot_status sl_controller_refresh(sl_controller *controller, bool *out_is_new, mdot_error *err);

/* Decides on a request whose environment holds a parcel (parcel.h). Another status than OK says why nothing is
 * predicted. Opens no file. Any thread.
 *
 * A thread of the controller's own reads the job and predicts; the caller, who holds slurmctld's locks, waits for it no
 * longer than sl_site.patience_ms, however a job is made that came from a stranger: UNSUPPORTED then, and until that
 * thread is done for all others. */
mdot_status sl_controller_decide(sl_controller *controller, const char *const *environment, size_t count,
                                 const sl_ask *ask, sl_decision *out_decision, mdot_error *err);

#endif
