/* durations.h — the durations of jobs that ended on the cluster (mdot_history.h), for requests without a number of
 * steps. Any thread may call the functions. */
#ifndef SL_DURATIONS_H
#define SL_DURATIONS_H

#include "history/mdot_history.h"

#include "slurm/submission.h"

typedef struct sl_durations sl_durations;

enum { SL_USER_BYTES = 11 }; /* of the longest user number, 4294967295, with its end */

/* An empty record. The caller destroys it; NULL if memory ran out. */
sl_durations *sl_durations_create(void);
void sl_durations_destroy(sl_durations *durations);

/* Makes the job of a history from a request. `out_user` holds the text of its user. */
mdot_history_job sl_durations_job(const sl_submission *submission, const sl_gpus *gpus, double submit_s,
                                  char out_user[SL_USER_BYTES]);

/* Adds a job that ended at `end_s` (seconds since 1970). Jobs of impossible durations are left out. */
void sl_durations_add(sl_durations *durations, const mdot_history_job *job, mdot_ended outcome, double duration_s,
                      double end_s);

/* Estimates a job in some microseconds. False if there are no jobs of this user, or if another thread uses the record;
 * the caller may hold slurmctld's locks and does not wait. */
bool sl_durations_ask(sl_durations *durations, const mdot_history_job *job, mdot_history_estimate *out_estimate);

/* Reads and writes the record; see mdot_history_load and mdot_history_save. Estimates are unavailable meanwhile. */
mdot_status sl_durations_load(sl_durations *durations, const char *path, mdot_error *err);
mdot_status sl_durations_save(sl_durations *durations, const char *path, mdot_error *err);

#endif
