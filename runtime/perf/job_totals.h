/* job_totals.h — sums over a job's operators. */
#ifndef RT_JOB_TOTALS_H
#define RT_JOB_TOTALS_H

#include "runtime/job/job_model.h"

typedef struct rt_job_totals {
    double flops_per_sample; /* over all phases */
    double forward_flops_per_sample;
    double cost, cost_without_type_id; /* sums of costs: of all operators, and of those whose type lacks a type id */
    bool lacks_type_id;                /* an operator's type lacks a type id */
    uint32_t highest_type_id;
    size_t logits; /* 1 + index of the matmul whose result a cross-entropy reads; 0: none */
    bool has_attention;
    double attention_count, attention_flops; /* flops of one sample's forward pass */
    double key_value_bytes;                  /* fp32 bytes of the keys and values of one sample, in all attentions */
    bool is_recomputed;                      /* the program checkpoints operators (MDOT_OPERATOR_RECOMPUTED) */
    bool is_convolutional;                   /* convolutions make up most of the FLOPs on tensor cores */
    bool compiles_in_nhwc[2];                /* by mdot_mode (compiled_layout.h) */
} rt_job_totals;

/* `costs` are those of the operators (op_cost.h). */
rt_job_totals rt_sum_job(const mdot_job *job, const double *costs);

/* The part of the logits that a loss computes at once: an eighth if it is chunked, or as many bytes as the operand of
 * the logits' matmul has if it is fused. `logits` is that of the totals. */
double rt_loss_part(const mdot_job *job, size_t logits, mdot_loss loss);

#endif
