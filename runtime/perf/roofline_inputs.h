/* roofline_inputs.h — the inputs of the roofline for a group of operators. */
#ifndef RT_ROOFLINE_INPUTS_H
#define RT_ROOFLINE_INPUTS_H

#include "runtime/perf/operator_groups.h"

/* The hardware rate that bounds an operator's computation. */
typedef enum rt_rate { RT_RATE_VECTOR, RT_RATE_MATMUL, RT_RATE_LINEAR, RT_RATE_CONVOLUTION, RT_RATE_COUNT } rt_rate;

typedef struct rt_flops_and_bytes {
    double flops, bytes; /* bytes as if in fp32 */
} rt_flops_and_bytes;

typedef struct rt_roofline_inputs {
    rt_flops_and_bytes sample[MDOT_PHASE_COUNT], step[MDOT_PHASE_COUNT]; /* of each phase: per sample, per step */
    double count, score_bytes, fused_bytes, weights, frozen_weights;
    double operand, result; /* elements of a matmul's operand and result, per sample */
    uint8_t rate, position; /* rt_rate, rt_pipeline_position */
    bool is_fp32;           /* kept in fp32 by autocast */
    bool is_loss;
    bool uses_tensor_cores, is_in_block;
    bool is_replicated; /* in a block, and whole on each GPU of tensor parallelism */
    bool is_selected;   /* recomputed by selective recomputation */
    bool is_recomputed; /* by the program (MDOT_OPERATOR_RECOMPUTED) */
} rt_roofline_inputs;

/* The inputs of one operator on one GPU of the shard. `fused_bytes` are those of all operators (op_cost.h). */
rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, const rt_sharding *sharding, const double *fused_bytes,
                                         size_t index, const rt_shard *shard);
/* The inputs of each group of the unsharded job, which the caller frees. Returns NULL if memory runs out. */
rt_roofline_inputs *rt_collect_roofline_inputs(const mdot_job *job, const rt_sharding *sharding,
                                               const double *fused_bytes, const rt_operator_groups *groups);
/* The sums of those inputs over groups whose other fields are equal, with a count of one. Flops and bytes grow linearly
 * with these sums, so that a sum over all operators may read them instead. The array has *out_count elements, and the
 * caller frees it. Returns NULL if memory runs out. */
rt_roofline_inputs *rt_sum_roofline_inputs(const rt_roofline_inputs *inputs, size_t count, size_t *out_count);

#endif
