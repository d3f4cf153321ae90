/* user_records.h — records by user: actual over predicted times, ended jobs' durations, recent prediction time. */
#ifndef SL_USER_RECORDS_H
#define SL_USER_RECORDS_H

#include "mdot/mdot_base.h"

#include "history/mdot_history.h"
#include "slurm/partition.h"

#include <stdbool.h>
#include <stdint.h>

/* How long jobs ran, compared with their predictions, remembered by user. A user whose jobs run longer
 * than they stated loses priority in the same proportion. Any thread may call the functions.
 */

typedef struct sl_outcomes sl_outcomes;

/* An empty record. The caller destroys it; NULL if memory ran out. */
sl_outcomes *sl_outcomes_create(void);
void sl_outcomes_destroy(sl_outcomes *outcomes);

/* Adds a job that ended at `now_s` (seconds since 1970). The seconds are above 0 and are multiplied by `gpus`, so many
 * short honest jobs do not outweigh a long understated one. A job that was cut off (`is_complete` is false) counts only
 * if it ran longer than predicted. */
void sl_outcomes_add(sl_outcomes *outcomes, uint32_t user, double predicted_s, double actual_s, double gpus,
                     bool is_complete, double now_s);

/* Returns the factor by which the user's jobs ran longer than predicted, at least 1. Time below a prediction does not
 * compensate for time above another. Older jobs count less; half as much after two weeks. */
double sl_outcomes_understatement(const sl_outcomes *outcomes, uint32_t user, double now_s);

/* Reads and writes the record as text. The file is replaced as a whole. MALFORMED, with the line, for other contents;
 * NOT_FOUND if there is no file. A failed read leaves the record as it was. Other calls do not wait for the file. */
mdot_status sl_outcomes_load(sl_outcomes *outcomes, const char *path, mdot_error *err);
mdot_status sl_outcomes_save(const sl_outcomes *outcomes, const char *path, mdot_error *err);

/* ---- Durations --------------------------------------------------------------------------------------------------- */

/* Durations of ended jobs (mdot_history.h), for requests without a number of steps. Any thread may call the
 * functions. */

typedef struct sl_durations sl_durations;

enum { SL_USER_BYTES = 11 }; /* the longest user number, 4294967295, with NUL */

/* An empty record. The caller destroys it; NULL if memory ran out. */
sl_durations *sl_durations_create(void);
void sl_durations_destroy(sl_durations *durations);

/* Makes a history's job from a request. `out_user` holds the user's text. */
mdot_history_job sl_durations_job(const sl_submission *submission, const sl_gpus *gpus, double submit_s,
                                  char out_user[SL_USER_BYTES]);

/* Adds a job that ended at `end_s` (seconds since 1970). Impossible durations are left out. */
void sl_durations_add(sl_durations *durations, const mdot_history_job *job, mdot_ended outcome, double duration_s,
                      double end_s);

/* Estimates a job in some microseconds. False if there are no jobs of this user, or if another thread uses the record;
 * the caller may hold slurmctld's locks and does not wait. */
bool sl_durations_ask(sl_durations *durations, const mdot_history_job *job, mdot_history_estimate *out_estimate);

/* Reads and writes the record; see mdot_history_load and mdot_history_save. Estimates are unavailable meanwhile. */
mdot_status sl_durations_load(sl_durations *durations, const char *path, mdot_error *err);
mdot_status sl_durations_save(sl_durations *durations, const char *path, mdot_error *err);

/* ---- Budget ------------------------------------------------------------------------------------------------------ */

/* Each user's recent prediction time. A user beyond the limit gets no prediction until time has passed, so one user's
 * costly jobs leave others' predictions alone. */

enum { SL_BUDGET_USERS = 256 };

typedef struct sl_budget {
    struct {
        uint32_t user;
        double ms, at_s; /* time taken, as at the monotonic second `at_s`; 0: the row is free */
    } rows[SL_BUDGET_USERS];
} sl_budget;

/* Returns the milliseconds counted against the user at `now_s`; `per_minute_ms` expire in a minute. */
double sl_budget_taken_ms(const sl_budget *budget, uint32_t user, double per_minute_ms, double now_s);

/* Adds milliseconds. If all rows are taken, the user with the least time is forgotten. */
void sl_budget_charge(sl_budget *budget, uint32_t user, double ms, double per_minute_ms, double now_s);

#endif
