/* operator_traits.h — properties of one operator, for several estimates. */
#pragma once

#include "mdot/mdot_predict.h"

static inline bool rt_has_trait(const mdot_job_operator *op, uint32_t trait)
{
    return (op->traits.traits & trait) != 0;
}

/* True if the operator is computed on tensor cores: a matmul, a convolution, attention or a recurrence. */
static inline bool rt_uses_tensor_cores(const mdot_job_operator *op)
{
    return op->traits.autocast == MDOT_AUTOCAST_HALF;
}

/* True for a matmul that the program ran in another type than its own: fp32 in a network in half precision, or the
 * reverse. */
static inline bool rt_ran_in_other_type(const mdot_job_operator *op)
{
    return rt_uses_tensor_cores(op) && (op->flags & (MDOT_OPERATOR_RAN_FULL | MDOT_OPERATOR_RAN_HALF)) != 0;
}

/* True if a table's gradient has only the rows that a step looks up (torch.nn.Embedding, sparse=True). Its bytes then
 * grow with the batch, whereas a dense gradient has the size of the table. */
static inline bool rt_has_sparse_gradient(const mdot_job_operator *op)
{
    return op->parameters > 0 && rt_has_trait(op, MDOT_TRAIT_PICKS) &&
           op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written > 0 &&
           op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written == 0;
}

/* Parameters whose gradients and updates cover all elements. */
static inline double rt_dense_parameters(const mdot_job_operator *op)
{
    return rt_has_sparse_gradient(op) ? 0 : op->parameters;
}

static inline double rt_weights_of(const mdot_job_operator *op) { return op->parameters + op->frozen_parameters; }

/* FLOPs of a phase for one sample alone. */
static inline double rt_phase_flops(const mdot_job_operator *op, mdot_phase phase)
{
    return op->per_sample[phase].flops + op->per_step[phase].flops + op->per_square[phase].flops;
}

/* True if work or a setting grows with the square of the batch. */
static inline bool rt_has_squares(const mdot_job_operator *op)
{
    double sum = 0;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        sum += op->per_square[phase].flops + op->per_square[phase].bytes_read + op->per_square[phase].bytes_written;
    return sum > 0 || op->batch_settings != 0;
}

/* Own weights, or weights tied to another operator, where they are counted. */
static inline bool rt_has_weights(const mdot_job_operator *op)
{
    return rt_weights_of(op) > 0 || rt_phase_flops(op, MDOT_PHASE_WEIGHT_GRADIENT) > 0;
}

/* True if a matmul multiplies by weights. Each step reads them, even if they are frozen and tied. */
static inline bool rt_multiplies_by_weights(const mdot_job_operator *op)
{
    return rt_has_weights(op) || op->per_step[MDOT_PHASE_FORWARD].bytes_read > 0;
}

/* fp32 bytes of one sample's result. */
static inline double rt_result_bytes(const mdot_job_operator *op)
{
    return op->per_sample[MDOT_PHASE_FORWARD].bytes_written;
}

/* fp32 bytes of a result that is independent of the batch. Other operators write running statistics per step. */
static inline double rt_constant_result_bytes(const mdot_job_operator *op)
{
    bool has_batch = rt_result_bytes(op) > 0 || op->per_square[MDOT_PHASE_FORWARD].bytes_written > 0;
    return has_batch ? 0 : op->per_step[MDOT_PHASE_FORWARD].bytes_written;
}

/* Type ids from ir/ops_job.def, which predictors store. */
enum { RT_TYPE_SOFTMAX_CROSS_ENTROPY = 138, RT_TYPE_NEGATIVE_LOG_LIKELIHOOD = 139 };

/* True for a cross-entropy of logits. */
static inline bool rt_is_cross_entropy(const mdot_job_operator *op)
{
    return op->traits.number == RT_TYPE_SOFTMAX_CROSS_ENTROPY;
}

/* True for a cross-entropy, or for the part that reads log-probabilities. */
static inline bool rt_is_loss(const mdot_job_operator *op)
{
    return rt_is_cross_entropy(op) || op->traits.number == RT_TYPE_NEGATIVE_LOG_LIKELIHOOD;
}

/* An attention's fp32 score bytes per sample; 0 for other operators. Derived from the FLOPs, which account for windows
 * and masks: two matmuls with 2 * head_size FLOPs per score and a softmax with 5 (ir/ops). */
static inline double rt_score_bytes(const mdot_job_operator *op)
{
    int64_t head_size = op->setting[MDOT_SETTING_HEAD_SIZE];
    if (head_size <= 0) return 0;
    return sizeof(float) * op->per_sample[MDOT_PHASE_FORWARD].flops / (4.0 * (double)head_size + 5);
}

/* Bytes of the masks of queries by keys in `bytes` of an attention; 0 unless these are nearly one or two. */
static inline double rt_masks_in(const mdot_job_operator *op, double bytes)
{
    double mask = sizeof(float) * (double)op->setting[MDOT_SETTING_QUERIES] * (double)op->setting[MDOT_SETTING_KEYS];
    return bytes > 0.99 * mask && bytes < 1.05 * mask   ? mask
           : bytes > 1.99 * mask && bytes < 2.05 * mask ? 2 * mask
                                                        : 0;
}

/* Bytes of an attention's masks for each sample: those that it reads beyond the tensors whose gradients it writes. */
static inline double rt_mask_bytes(const mdot_job_operator *op)
{
    double written = op->per_sample[MDOT_PHASE_DATA_GRADIENT].bytes_written;
    if (written <= op->per_sample[MDOT_PHASE_FORWARD].bytes_written) return 0;
    return rt_masks_in(op, op->per_sample[MDOT_PHASE_FORWARD].bytes_read - written);
}

static inline bool rt_has_mask(const mdot_job_operator *op)
{
    return rt_mask_bytes(op) > 0 || rt_masks_in(op, op->per_step[MDOT_PHASE_FORWARD].bytes_read) > 0;
}
