/* analysis.h — the analysis in each job: values for predictions, independent of the configuration. Creating the job
 * computes them, so that a prediction allocates no memory. */
#pragma once

#include "runtime/core/core.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/sharding.h"

struct rt_analysis {
    rt_op_costs op_costs;
    rt_sharding sharding;
    rt_operator_groups groups;
    rt_operator_groups sharded_groups;   /* groups that are also sharded and fused alike */
    rt_roofline_inputs *roofline_inputs; /* of each of sharded_groups (rt_collect_roofline_inputs) */
    rt_roofline_inputs *roofline_sums;   /* of those inputs, by kind (rt_sum_roofline_inputs) */
    size_t roofline_sum_count;
    double chained_part;       /* of the kernels (rt_chained_part) */
    rt_inner_tensors inner[2]; /* rt_sum_inner_tensors */
    rt_activation_table activations;
    rt_job_totals totals;
    rt_update_parts update_parts;
    rt_job_identity identity;
};

/* The interface of runtime/perf to runtime/components.c: makes each job's analysis (core.h). */

extern const rt_job_analyzer rt_perf_analyzer;
