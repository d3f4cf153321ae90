/* analysis_parts.h — the parts of a job's analysis (analysis.h), beside sharding and activations. */
#pragma once

#include "runtime/perf/sharding.h"

/* fp32 bytes of one operator at batch 1. */
typedef struct rt_fusing {
    double saved; /* writing and reading the result, if a fusable operator is its only reader and the operator itself is
                   * fusable; otherwise 0 */
    double forward, backward; /* traffic that remains in fused kernels (fused_kernels.c) */
} rt_fusing;

/* Can graph compilers fuse the operator with its neighbours? */
bool rt_can_fuse(const mdot_job_operator *op);

/* fp32 bytes of one sample that autograd keeps inside of blocks, unless fused kernels compute them again. */
typedef struct rt_inner_tensors {
    double bytes, copied_bytes; /* results; operands that composed norms convert to fp32, if they have other types */
} rt_inner_tensors;

/* Adds the traffic of fused kernels to `fusing`, and fills `inner`, arrays with one element per operator. Returns false
 * if memory runs out. */
bool rt_measure_fused_kernels(const mdot_job *job, rt_fusing *fusing, rt_inner_tensors *inner);
/* Adds them up: whole under tensor parallelism, and sharded. */
void rt_sum_inner_tensors(const mdot_job *job, const rt_sharding *sharding, const rt_inner_tensors *inner,
                          rt_inner_tensors out_sums[2]);

/* Arrays indexed by operator. */
typedef struct rt_op_costs {
    double *cost; /* only for comparing operators with each other */
    rt_fusing *fusing;
    rt_inner_tensors *inner;
} rt_op_costs;

/* Returns false if memory runs out. The caller frees the arrays in either case. */
bool rt_measure_op_costs(const mdot_job *job, rt_op_costs *out_costs);
void rt_free_op_costs(rt_op_costs *costs);

/* A group of operators with the same type id, settings, loads and parameters. */
typedef struct rt_operator_group {
    uint32_t first, count; /* first operator's index; number of operators */
} rt_operator_group;

typedef struct rt_operator_groups {
    rt_operator_group *items; /* ordered by first operator */
    size_t count;
    uint32_t *of; /* indexed by operator: its group's index in `items` */
} rt_operator_groups;

/* With a sharding, the operators of a group are also sharded and fused alike; it and `fusing` may be NULL. Returns
 * false if memory runs out. The caller frees the arrays in either case. */
bool rt_group_operators(const mdot_job *job, const rt_sharding *sharding, const rt_fusing *fusing,
                        rt_operator_groups *out_groups);
void rt_free_operator_groups(rt_operator_groups *groups);

/* Hash over the fields that make operators equal. */
uint64_t rt_hash_operator(const mdot_job_operator *op);

/* The hardware rate that bounds an operator's computation. */
typedef enum rt_rate { RT_RATE_VECTOR, RT_RATE_MATMUL, RT_RATE_LINEAR, RT_RATE_CONVOLUTION, RT_RATE_COUNT } rt_rate;

/* Kinds of work that a step's time is summed over, because options and GPU generations affect them differently. */
typedef enum rt_work {
    RT_WORK_LINEAR, /* matmuls other than convolutions and attention, and recurrences */
    RT_WORK_ATTENTION,
    RT_WORK_CONVOLUTION,
    RT_WORK_OTHER, /* outside tensor cores */
    RT_WORK_COUNT
} rt_work;

/* A convolution's groups. */
typedef enum rt_grouping { RT_GROUPING_DENSE, RT_GROUPING_SOME, RT_GROUPING_DEPTHWISE, RT_GROUPING_COUNT } rt_grouping;

typedef struct rt_flops_and_bytes {
    double flops, bytes; /* bytes as if in fp32 */
} rt_flops_and_bytes;

typedef struct rt_roofline_kind { /* without padding */
    uint8_t rate, position;       /* rt_rate, rt_pipeline_position */
    uint8_t recomputations;       /* by the program (MDOT_OPERATOR_RECOMPUTED) */
    bool is_fp32;                 /* kept in fp32 by autocast */
    bool is_loss, uses_tensor_cores, is_in_block;
    bool is_replicated;     /* in a block, and whole on each GPU of tensor parallelism */
    bool is_selected;       /* recomputed by selective recomputation */
    bool ran_in_other_type; /* rt_ran_in_other_type */
} rt_roofline_kind;

typedef struct rt_roofline_inputs {
    rt_flops_and_bytes sample[MDOT_PHASE_COUNT], step[MDOT_PHASE_COUNT]; /* of each phase: per sample, per step */
    double count, score_bytes, fused_bytes, weights, frozen_weights;
    double kernel_bytes[2]; /* of fused kernels per sample: forward, backward */
    double operand, result; /* elements of a matmul's operand and result, per sample */
    rt_roofline_kind kind;
    uint8_t work, grouping; /* rt_work, rt_grouping */
} rt_roofline_inputs;

rt_work rt_work_of(const mdot_job_operator *op);
/* The inputs of one operator on one GPU of the shard. `fusing` covers all operators (op_cost.c). */
rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, const rt_sharding *sharding, const rt_fusing *fusing,
                                         size_t index, const rt_shard *shard);
/* The inputs for each group in the job with 1, 2, 4 and 8 tensor-parallel GPUs, one after the other, as far as they
 * divide it. The caller frees them. Returns NULL if memory runs out. */
enum { RT_STORED_SHARDS = 4 };
rt_roofline_inputs *rt_collect_roofline_inputs(const mdot_job *job, const rt_sharding *sharding,
                                               const rt_fusing *fusing, const rt_operator_groups *groups);
/* The sums of those inputs over groups of equal kind, with a count of one. Flops and bytes grow linearly
 * with these sums, so that a sum over all operators may read them instead. The array has *out_count elements, and the
 * caller frees it. Returns NULL if memory runs out. */
rt_roofline_inputs *rt_sum_roofline_inputs(const rt_roofline_inputs *inputs, size_t count, size_t *out_count);

/* The part of all kernels whose result one operator reads in the same kernel, if fused. */
double rt_chained_part(const rt_roofline_inputs *inputs, size_t count);

/* Sums over a job's parameters that optimizers need. Tables with sparse gradients are excluded, because their update
 * covers the picked rows only. */

typedef struct rt_update_parts {
    rt_parts factored;          /* numbers in Adafactor's second moments: rows and columns for matrices, and all
                                 * elements for other parameters */
    rt_parts matrices;          /* parameters of matrices in blocks, which Muon orthogonalises */
    rt_parts orthogonalisation; /* FLOPs of Muon's five Newton-Schulz iterations */
    rt_parts frozen_matmuls;    /* frozen parameters that autocast computes in half precision */
    double largest;             /* trained parameters of the largest operator: one tensor, and perhaps a bias */
    double largest_matrix;      /* of the largest operator in `matrices` */
    double largest_frozen;      /* of the largest operator in `frozen_matmuls` */
    double frozen_count;        /* operators in `frozen_matmuls` */
    double tensors;             /* trained tensors: weights and biases */
} rt_update_parts;

rt_update_parts rt_find_update_parts(const mdot_job *job, const rt_sharding *sharding);

typedef struct rt_job_totals {
    double flops_per_sample; /* over all phases */
    double forward_flops_per_sample;
    double flops_per_square, forward_flops_per_square; /* FLOPs per sample that grow with the batch */
    bool has_squares;                  /* work or a setting of an operator grows with the square of the batch */
    bool has_constants;                /* a large result is independent of the batch */
    double cost, cost_without_type_id; /* cost sums: all operators, and operators without a type id */
    bool lacks_type_id;                /* an operator's type lacks a type id */
    uint32_t highest_type_id;
    size_t logits; /* 1 + index of the matmul whose result a cross-entropy reads; 0: none */
    bool has_attention;
    double attention_count, attention_flops, causal_flops; /* of a sample's forward pass; with a mask */
    double key_value_bytes;                                /* fp32 bytes of all keys and values in one sample */
    bool is_recomputed;       /* the program checkpoints operators (MDOT_OPERATOR_RECOMPUTED) */
    bool mixes_types;         /* rt_ran_in_other_type holds for some operators */
    bool is_convolutional;    /* convolutions make up most of the FLOPs on tensor cores */
    bool compiles_in_nhwc[2]; /* by mdot_mode (compiled_layout.c) */
} rt_job_totals;

/* `costs` are those of the operators (op_cost.c). */
rt_job_totals rt_sum_job(const mdot_job *job, const double *costs);

/* The part of the logits that a loss computes at once: an eighth if chunked, or as many bytes as the operand of the
 * logits' matmul if fused. `logits` comes from the totals. */
double rt_loss_part(const mdot_job *job, size_t logits, mdot_loss loss);

/* True if the compiler runs convolutions with channels last (NHWC), whatever layout the inputs have. */
bool rt_compiles_in_nhwc(const mdot_job *job, mdot_mode mode);

/* Shares are whole ten-thousandths, which text holds exactly. */
enum { RT_WORK_CLASSES = 32, RT_SHARE_UNITS = 10000 };

typedef struct rt_job_identity {
    uint64_t digest;              /* of types, attributes, parameters and dependencies; never 0 */
    float share[RT_WORK_CLASSES]; /* fraction of work by operator class; adds up to 1 */
    bool waits;                   /* in a calibration: a measured step waited for its data loaders */
} rt_job_identity;

/* `cost` has a value for each operator (op_cost.c). */
void rt_identify_job(const mdot_job *job, const double *cost, rt_job_identity *out_identity);

/* Half of the summed share differences: 0 for equal shares, 1 for jobs without a common class. */
double rt_job_distance(const float a[RT_WORK_CLASSES], const float b[RT_WORK_CLASSES]);
