/* controller.h — plugin state in slurmctld between submissions: mdot.conf, the predictor, a context. */
#ifndef SL_CONTROLLER_H
#define SL_CONTROLLER_H

#include "slurm/decision.h"
#include "slurm/user_records.h"

typedef struct sl_controller sl_controller;

/* Creates a controller that has read no file yet. The caller destroys it; NULL if memory ran out. */
sl_controller *sl_controller_create(const char *site_path);
void sl_controller_destroy(sl_controller *controller);

/* Reads mdot.conf, the predictor, its calibration and trees if one of the files has changed; otherwise it costs four
 * calls of stat. On failure the previous state stays in use. The same fault is reported once, later calls return OK.
 * `*out_is_new` is true if files were read. Call it without slurmctld's locks, because a file system may take long to
 * answer; submissions go on meanwhile. The files must belong to root or to this process's user (sl_check_trusted). */
mdot_status sl_controller_refresh(sl_controller *controller, bool *out_is_new, mdot_error *err);

/* Replaces the cluster snapshot, which the controller frees later. */
void sl_controller_set_cluster(sl_controller *controller, sl_cluster *cluster);

/* sl_limit_kept and sl_binding_minutes with the snapshot, for a job in its partitions. Without a snapshot, they return
 * the job's own minutes. Any thread may call them. */
uint32_t sl_controller_limit_kept(sl_controller *controller, const sl_submission *submission, uint32_t set_minutes);
uint32_t sl_controller_binding(sl_controller *controller, const sl_submission *submission);

/* The users' records, kept as long as the controller, and the path in mdot.conf, possibly empty. */
sl_outcomes *sl_controller_outcomes(sl_controller *controller);
void sl_controller_outcomes_path(sl_controller *controller, char out_path[SL_PATH_BYTES]);
/* The same for job durations. */
sl_durations *sl_controller_durations(sl_controller *controller);
void sl_controller_history_path(sl_controller *controller, char out_path[SL_PATH_BYTES]);

/* Decides on a request whose environment holds a parcel (request.h). A status other than OK gives the reason why there
 * is no prediction. Opens no file. Any thread may call it.
 *
 * A thread of the controller reads the job and predicts, because jobs may come from hostile users. The caller holds
 * slurmctld's locks, so it waits for at most sl_site.patience_ms. After that time, this call returns UNSUPPORTED. A
 * later call waits within its own limit until the thread is finished. The submission's user is charged for the thread's
 * time (sl_budget); OUT_OF_RANGE for a user beyond sl_site.user_ms. */
mdot_status sl_controller_decide(sl_controller *controller, const char *const *environment, size_t count,
                                 const sl_submission *submission, sl_decision *out_decision, mdot_error *err);

#endif
