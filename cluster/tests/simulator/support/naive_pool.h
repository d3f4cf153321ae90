/* naive_pool.h — a second, naive implementation of the baseline policies. It sorts whole lists at every event, has a
 * clock in whole seconds, and stores only the lists between events. The simulator in simulator, whose
 * ordered structure moves few jobs, must give the same result for each job. */
#ifndef TEST_SCHEDULER_NAIVE_POOL_H
#define TEST_SCHEDULER_NAIVE_POOL_H

#include "simulator/core/simulator.h"

typedef struct naive_job {
    double start_s, end_s;
    unsigned preemptions;
} naive_job;

/* `policy` is one of fifo, fjf, srtf, srsf, las, dlas, qssf. out_jobs has one element per job. */
void naive_simulate(const sc_workload *workload, int gpus, const char *policy, const double *factors, sc_errors errors,
                    naive_job *out_jobs);

#endif
