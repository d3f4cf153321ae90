/* estimate.h — estimated job durations. Policies read only these, never the true durations.
 *
 * An estimator (estimate/) states once, when a job arrives, the factor of its misprediction. The remaining time follows
 * from one of three error models:
 *
 *   scale      steps are known and the step time is mispredicted: factor · remaining. It shrinks to 0 as the job ends.
 *   total      the duration is mispredicted and never corrected: max(0, factor · duration - executed).
 *   residual   the estimator knows a distribution, and states the remaining time itself. It may grow, because a job
 *              that outlasts others of its kind is likely to go on. */
#ifndef SC_ESTIMATE_H
#define SC_ESTIMATE_H

#include "simulator/core/workload.h"

/* A job that fails or is cancelled ends before the plan (sc_job.planned). Estimates follow the plan, because a
 * prediction of step times does not know the early end. */

typedef enum sc_errors { SC_ERRORS_SCALE, SC_ERRORS_TOTAL, SC_ERRORS_RESIDUAL } sc_errors;

typedef struct sc_estimator {
    /* Returns predicted over true duration, above 0, for a job that has just arrived. `duration_s` is the true
     * duration, or the kind's estimate. */
    double (*factor)(void *self, const sc_workload *workload, uint32_t job, double duration_s);
    /* Learns from a job that has just completed after it took `duration_s`; may be NULL. */
    void (*learn)(void *self, const sc_workload *workload, uint32_t job, double duration_s, double now_s);
    /* Returns the seconds that a job still needs after `executed_s` seconds; NULL if the error model is another one
     * than residual. */
    double (*remaining_s)(void *self, const sc_workload *workload, uint32_t job, double executed_s);
    /* Estimates a job again, from what was learned since it arrived; NULL: an estimate stays as it is. */
    void (*renew)(void *self, const sc_workload *workload, uint32_t job);
    void (*destroy)(void *self);
    void *self;
} sc_estimator;

typedef struct sc_estimate {
    const sc_workload *workload;
    const sc_estimator *estimator; /* of the residual error model */
    sc_errors errors;
    double *factors;     /* for each job that has arrived */
    double *durations_s; /* each job's duration on a node of its fastest type, before the factor: the kind's estimate,
                          * or else the true duration, both as planned */
} sc_estimate;

/* Computes sc_estimate.durations_s for a job, on the fastest of the first `type_count` types. */
double sc_estimate_base_duration_s(const sc_workload *workload, const sc_job *job, unsigned type_count);

/* Predicted seconds on a node of the job's fastest type, without interruption. */
double sc_estimate_duration_s(const sc_estimate *estimate, uint32_t job);
/* Predicted remaining seconds, given `remaining` work and `executed_s` seconds so far. */
double sc_estimate_remaining_s(const sc_estimate *estimate, uint32_t job, double remaining, double executed_s);
/* Estimates a job again if the estimator learns distributions. Returns whether the remaining time may have changed. */
bool sc_estimate_renew(const sc_estimate *estimate, uint32_t job);
/* Predicted work per second on `gpus` GPUs of a node; 0 if the job does not run there, in truth or by the estimate. */
double sc_estimate_speed(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus);

/* Predicted slowdown on several nodes of a type relative to one, at least 1. */
double sc_estimate_spread(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus);

#endif
