/* workloads.h — small workloads for tests of the simulator, and running a policy on them. */
#ifndef TEST_SCHEDULER_WORKLOADS_H
#define TEST_SCHEDULER_WORKLOADS_H

#include "simulator/core/simulator.h"

/* submit_s, gpus, duration_s of each job; they are called "0", "1" … Jobs stand in order of arrival. */
sc_workload workload_make(const double (*jobs)[3], size_t count);

/* Jobs with ties in everything: few distinct times, widths up to `widest`, durations. Equal seeds give equal ones. */
sc_workload workload_random(size_t count, int widest, uint64_t seed);

/* Runs the policy on a pool; `factors` may be NULL. Fails the test where the simulation fails. */
sc_result workload_run(const sc_workload *workload, int gpus, const char *policy, const double *factors,
                       sc_errors errors);

/* A text as a file in a folder; its path, malloc'ed. */
char *workload_write_file(const char *folder, const char *name, const char *text);

#endif
