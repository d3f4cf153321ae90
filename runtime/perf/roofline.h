/* roofline.h — a lower bound of the time of a step on one GPU: the larger of the times of computation and memory
 * traffic, summed over the operators of the GPU's shard. Kernels reach only part of either rate, so that only ratios of
 * rooflines are meaningful. */
#ifndef RT_ROOFLINE_H
#define RT_ROOFLINE_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

typedef struct rt_roofline {
    double forward_ms, backward_ms; /* of one micro-batch; recomputation belongs to the backward pass */
    double optimizer_ms;
} rt_roofline;

/* The time of a step's computation at the GPU's peak, and of its memory traffic. */
typedef struct rt_roofline_terms {
    double compute_ms, memory_ms;
    double
        masked_ms; /* upper bound of the part of compute_ms for scores that fused attention skips under a causal mask */
} rt_roofline_terms;

/* The roofline of one operator by phase, and of all operators. */
void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *resolved,
                          double out_ms[MDOT_PHASE_COUNT]);
rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *resolved);
/* The times of computation and traffic of a whole step, separately. */
rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *resolved);

#endif
