/* estimate.h — what a policy believes of jobs' durations. Policies read it, and never the truth beside it.
 *
 * An estimator (estimate/) says once, when a job arrives, by which factor its duration is mispredicted; what remains
 * follows by one of two models of error:
 *
 *   scale  steps are known and the step time is mispredicted: factor · remaining. It shrinks to 0 as the job ends.
 *   total  the duration is mispredicted and never corrected: max(0, factor · duration - executed).
 */
#ifndef SC_ESTIMATE_H
#define SC_ESTIMATE_H

#include "simulator/core/workload.h"

typedef enum sc_errors { SC_ERRORS_SCALE, SC_ERRORS_TOTAL } sc_errors;

typedef struct sc_estimator {
    /* Predicted over true duration of a job that has just arrived, above 0. `duration_s` is the true one, or what is
     * believed of its kind. */
    double (*factor)(void *self, const sc_workload *workload, uint32_t job, double duration_s);
    /* A job has completed that took `duration_s`; NULL where nothing is learnt. */
    void (*learn)(void *self, const sc_workload *workload, uint32_t job, double duration_s);
    void (*destroy)(void *self);
    void *self;
} sc_estimator;

typedef struct sc_estimate {
    const sc_workload *workload;
    sc_errors errors;
    double *factors;     /* of each job that has arrived */
    double *durations_s; /* of each job on a node of its fastest type, before the factor: what is believed of its
                            kind, or else the truth */
} sc_estimate;

/* What sc_estimate.durations_s holds of a job, on the fastest of the first `type_count` types. */
double sc_estimate_believed_s(const sc_workload *workload, const sc_job *job, unsigned type_count);

/* Predicted seconds of a job on a node of its fastest type, without interruption. */
double sc_estimate_duration_s(const sc_estimate *estimate, uint32_t job);
/* Predicted seconds that it needs yet, of which `remaining` work is left after `executed_s` seconds. */
double sc_estimate_remaining_s(const sc_estimate *estimate, uint32_t job, double remaining, double executed_s);
/* Predicted work a second on `gpus` GPUs of a node of a type; 0 where it cannot run, or is believed not to. */
double sc_estimate_speed(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus);

/* Predicted: how many times as long it takes on several nodes of a type as on one, at least 1. */
double sc_estimate_spread(const sc_estimate *estimate, uint32_t job, unsigned type, int gpus);

#endif
