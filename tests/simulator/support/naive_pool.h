/* naive_pool.h — the baseline policies once more, as their semantics read: lists that are sorted whole at every event,
 * the clock in whole seconds, nothing kept between events but the lists. What simulator does with an order
 * that moves few jobs must come out the same, job by job.
 */
#ifndef TEST_SCHEDULER_NAIVE_POOL_H
#define TEST_SCHEDULER_NAIVE_POOL_H

#include "simulator/core/simulator.h"

typedef struct naive_job {
    double start_s, end_s;
    unsigned preemptions;
} naive_job;

/* `policy` is one of fifo, fjf, srtf, srsf, las, dlas, qssf. out_jobs has room for each job. */
void naive_simulate(const sc_workload *workload, int gpus, const char *policy, const double *factors, sc_errors errors,
                    naive_job *out_jobs);

#endif
