/* workloads.h — small workloads for tests of the simulator, and a function that runs a policy on them. */
#ifndef TEST_SCHEDULER_WORKLOADS_H
#define TEST_SCHEDULER_WORKLOADS_H

#include "simulator/core/simulator.h"
#include "simulator/policy/learned.h"

/* `jobs` has submit_s, gpus, duration_s of each job, in order of arrival. The jobs are named "0", "1" … */
sc_workload workload_make(const double (*jobs)[3], size_t count);

/* Random jobs with many ties: few distinct times, widths up to `widest`, and durations. Equal seeds give equal
 * workloads. */
sc_workload workload_random(size_t count, int widest, uint64_t seed);

/* Runs the policy on a pool. `factors` may be NULL. Fails the test if the simulation fails. */
sc_result workload_run(const sc_workload *workload, int gpus, const char *policy, const double *factors,
                       sc_errors errors);

/* Writes a text to a file in a folder. Returns its path, malloc'ed. */
char *workload_write_file(const char *folder, const char *name, const char *text);

/* Compiles data/mlfs.onnx and opens it. The caller closes it. */
hs_row_model *compile_learned(void);

#endif
