/* job_model.h — a job in memory, shared by the files that make, read and predict jobs. Private to runtime/job. */
#ifndef RT_JOB_MODEL_H
#define RT_JOB_MODEL_H

#include "runtime/perf/sharding.h"

#include <string.h>

/* A group of operators with the same type id, settings, FLOPs, bytes and parameters. */
typedef struct rt_operator_group {
    uint32_t first, count; /* index of the first operator; number of operators */
} rt_operator_group;

typedef struct rt_operator_groups {
    rt_operator_group *items; /* in the order of their first operators */
    size_t count;
    uint32_t *of; /* indexed by operator: its group's index in `items` */
} rt_operator_groups;

/* The properties of a configuration, besides the batch, that determine the memory of activations. */
typedef enum rt_activation_type {
    RT_ACTIVATION_FP32,
    RT_ACTIVATION_AMP,
    RT_ACTIVATION_BF16,
    RT_ACTIVATION_TYPES
} rt_activation_type;
enum { RT_ATTENTIONS = MDOT_ATTENTION_EAGER + 1, RT_RECOMPUTATIONS = MDOT_RECOMPUTE_SELECTIVE + 1 };

/* Bytes per sample at the peak of a forward and backward pass. */
typedef struct rt_activations {
    double all;
    double whole; /* excluding the tensors that tensor parallelism shards */
} rt_activations;

/* The inputs of the roofline for a group of operators (roofline_inputs.c): FLOPs and bytes of each phase, per sample and per
 * step. */
typedef enum rt_rate { RT_RATE_VECTOR, RT_RATE_MATMUL, RT_RATE_CONVOLUTION, RT_RATE_COUNT } rt_rate;
typedef struct rt_moved {
    double flops, bytes; /* bytes as if in fp32 */
} rt_moved;
typedef struct rt_roofline_inputs {
    rt_moved sample[MDOT_PHASE_COUNT], step[MDOT_PHASE_COUNT];
    double count, score_bytes, fused_bytes, weights;
    uint8_t rate, place; /* rt_rate, rt_pipeline_position */
    bool is_kept;        /* kept in fp32 by autocast */
    bool is_product, is_in_block;
    bool is_selected; /* recomputed by selective recomputation */
} rt_roofline_inputs;

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their texts and inputs point into the two arrays below */
    uint32_t *inputs;
    char *texts; /* each text once, in alphabetical order: comparing two addresses compares the texts */
    size_t text_bytes;
    /* Values that predictions need and that are independent of the configuration, computed once. */
    bool has_unnumbered;     /* an operator's type lacks a type id */
    uint32_t highest_number; /* highest type id */
    bool attends;            /* the job has an attention */
    bool convolves_mostly;   /* convolutions make up most of the FLOPs on tensor cores */
    double *costs;           /* cost of each operator, only for comparing operators with each other */
    rt_operator_groups classes;
    rt_operator_groups sharded_groups; /* groups of operators that are also sharded and fused alike */
    double *fused_bytes;               /* per operator and sample: bytes of writing and reading its result, if a fusable
                                 * operator is its only reader and the operator itself is fusable; otherwise 0 */
    rt_roofline_inputs *work;          /* for each of the divided classes, unsharded */
    rt_sharding division;
    rt_activations activations[RT_ACTIVATION_TYPES][RT_ATTENTIONS][RT_RECOMPUTATIONS];
    double flops_per_sample;      /* sum over all phases */
    double cost, unnumbered_cost; /* sums of costs: of all operators, and of those that lack a type id */
};

/* FNV-1a (Fowler, Noll, Vo), 64 bits, one word at a time. The upper half is folded in because multiplying moves bits
 * up. */
#define RT_HASH_START UINT64_C(14695981039346656037)
static inline uint64_t rt_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Limit on the slots that a look-up in a hash table visits, so that operators chosen to collide cost as little as
 * others. A value beyond the limit counts as different, which is correct but makes the table longer. Ordinary values
 * are found much sooner: at most a quarter of the slots is filled, and the farthest of 10^5 values is about 18 slots
 * away. */
enum { RT_MOST_PROBES = 64 };

/* Number of slots of such a table for `count` values: a power of two. */
static inline size_t rt_hash_slots(size_t count)
{
    size_t slots = 4;
    while (slots < 4 * count) slots *= 2;
    return slots;
}

/* The largest integer up to which a double represents every integer. */
#define RT_JOB_MAX_COUNT 9007199254740992.0 /* 2^53 */
/* Limit of settings. It exceeds the positions of a sample and is small enough for a predictor's f32 operations. */
#define RT_JOB_MAX_SETTING (INT64_C(1) << 40)
/* Limit of type ids. Predictors hold a row for each. */
enum { RT_JOB_MAX_TYPE = 65535 };
/* Limit of operators. Each takes about a kilobyte (mdot_predict.h). The longest real job has some ten thousand. */
enum { RT_JOB_MAX_OPERATORS = 1 << 22 };
/* Limit of a `.job` file: 64 bytes per operator, about the size of an operator with its name. */
#define RT_JOB_MAX_FILE_BYTES (UINT64_C(1) << 28)

/* job.c: like mdot_job_create, for heap-allocated operators that are already in this library's form. The job takes
 * ownership of them, even on failure. Strings and inputs are copied. The description's own operators are ignored. */
mdot_status rt_job_make(const mdot_job_description *d, mdot_job_operator *operators, mdot_job **out_job,
                        mdot_error *err);

/* string_pool.c: copies types and modules into the job, equal ones once. Returns false if memory runs out. */
bool rt_job_pool_strings(mdot_job *job);

/* True if the operator is computed on tensor cores: a matmul, a convolution, attention or a recurrence. */
static inline bool rt_uses_tensor_cores(const mdot_job_operator *op)
{
    return op->traits.autocast == MDOT_AUTOCAST_HALF;
}

/* fp32 bytes of one sample's scores if the operator is an attention, otherwise 0. Derived from the FLOPs, which
 * account for windows and masks: two matmuls of 2 * head_size FLOPs per score and a softmax of 5 (ir/ops). */
static inline double rt_score_bytes(const mdot_job_operator *op)
{
    int64_t head_size = op->setting[MDOT_SETTING_HEAD_SIZE];
    if (head_size <= 0) return 0;
    return sizeof(float) * op->per_sample[MDOT_PHASE_FORWARD].flops / (4.0 * (double)head_size + 5);
}

/* operator_groups.c: costs, then, after sharding.c, groups. They return false if memory runs out. */
bool rt_job_measure_costs(mdot_job *job);
bool rt_job_group_operators(mdot_job *job);
/* Hash of the fields that make operators equal. */
uint64_t rt_job_hash_operator(const mdot_job_operator *op);

/* roofline_inputs.c, called after the groups are known: fills `work`. Returns false if memory runs out. */
bool rt_job_collect_roofline_inputs(mdot_job *job);
/* Roofline inputs of one operator on one GPU of the shard; and of divided class i, either the job's own or in *room. */
rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, size_t index, const rt_shard *share);
const rt_roofline_inputs *rt_get_roofline_inputs(const mdot_job *job, size_t i, const rt_shard *share,
                                                 rt_roofline_inputs *room);

/* sharding.c: fills `division` from operators and costs. Returns false if memory runs out. */
bool rt_job_shard(mdot_job *job);
bool rt_job_find_experts(mdot_job *job); /* experts.c: the experts' part of it */

/* equal_blocks.c: fills each operator's number of equal blocks. Returns false if memory runs out. */
bool rt_job_compare_blocks(mdot_job *job);

/* activation_memory.c: fills `activations` from the operators. Returns false if memory runs out. */
bool rt_job_measure_activations(mdot_job *job);
/* Selects the activations of a configuration. */
typedef struct rt_activation_case {
    rt_activation_type type;
    mdot_attention attention;
    mdot_recompute recompute;
} rt_activation_case;
/* Bytes per sample at the peak, by the operator that owns the tensors, at this degree of tensor parallelism. They
 * sum to whole + (all - whole) / tensor. Returns false if memory runs out. */
bool rt_job_shard_activations(const mdot_job *job, const rt_activation_case *which, double tensor, double *out_bytes);
/* plausibility.c: sums costs and FLOPs. */
void rt_job_add_up(mdot_job *job);
/* Roofline terms: the time of a step's computation at the GPU's peak, and of its memory traffic. */
typedef struct rt_roofline_terms {
    double compute_ms, memory_ms;
    double
        masked_ms; /* upper bound of the part of compute_ms for scores that fused attention skips under a causal mask */
} rt_roofline_terms;
/* Fills the plausibility fields of the prediction from its step_ms, and sets warnings (MDOT_WARN_IMPLAUSIBLE and
 * others). Type ids from type_count on are unknown to the predictor. */
void rt_check_plausibility(const mdot_job *job, const rt_roofline_terms *effort, uint32_t type_count,
                           mdot_prediction *prediction);

#endif
