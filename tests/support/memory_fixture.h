/* memory_fixture.h — a small network whose peak memory tests compute by hand, and its measurement. */
#pragma once

#include "runtime/perf/peak_memory.h"

enum { MEMORY_UNIT = 4096 };

/* An operator that reads one unit per sample and writes `units`. */
mdot_job_operator memory_operator(const char *type, double units, double parameters);
/* Matmuls with 600 and 400 parameters, sharded by tensor parallelism, and a normalisation with 24. The test fails if
 * the job cannot be made; it destroys the job. */
mdot_job *memory_small_network(uint32_t block_count);
/* A step's memory. The test fails if the configuration is invalid. */
rt_memory memory_measure(const mdot_job *job, mdot_configuration c);
