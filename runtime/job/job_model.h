/* job_model.h — a job in memory, shared by the files that make, read and predict jobs. Private to runtime/job. */
#ifndef RT_JOB_MODEL_H
#define RT_JOB_MODEL_H

#include "runtime/perf/sharding.h"

#include <string.h>

/* Operators of one type number with equal settings, loads and parameters. */
typedef struct rt_operator_group {
    uint32_t first, count; /* the first of them; how many there are */
} rt_operator_group;

typedef struct rt_operator_groups {
    rt_operator_group *items; /* in the order of their first operators */
    size_t count;
    uint32_t *of; /* each operator's, by its place in `items` */
} rt_operator_groups;

/* What decides how much memory activations take, beside the batch. */
typedef enum rt_activation_type {
    RT_ACTIVATION_FP32,
    RT_ACTIVATION_AMP,
    RT_ACTIVATION_BF16,
    RT_ACTIVATION_TYPES
} rt_activation_type;
enum { RT_ATTENTIONS = MDOT_ATTENTION_EAGER + 1, RT_RECOMPUTATIONS = MDOT_RECOMPUTE_SELECTIVE + 1 };

/* Bytes at the peak of a forward and backward pass, for each sample. */
typedef struct rt_activations {
    double all;
    double whole; /* without what tensor parallelism divides */
} rt_activations;

/* What rooflines read of a class of operators (roofline_inputs.c): loads of its phases, of a sample and of a step. */
typedef enum rt_rate { RT_RATE_VECTOR, RT_RATE_MATMUL, RT_RATE_CONVOLUTION, RT_RATE_COUNT } rt_rate;
typedef struct rt_moved {
    double flops, bytes; /* as of fp32 */
} rt_moved;
typedef struct rt_roofline_inputs {
    rt_moved sample[MDOT_PHASE_COUNT], step[MDOT_PHASE_COUNT];
    double count, score_bytes, fused_bytes, weights;
    uint8_t rate, place; /* rt_rate, rt_pipeline_position */
    bool is_kept;        /* in fp32 by autocast */
    bool is_product, is_in_block;
    bool is_selected; /* by selective recomputation */
} rt_roofline_inputs;

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their texts and inputs point into the two arrays below */
    uint32_t *inputs;
    char *texts; /* each once, in the order of the alphabet: two of them compare as their addresses do */
    size_t text_bytes;
    /* What predictions need and no configuration changes, worked out once. */
    bool has_unnumbered;     /* a type that has no number */
    uint32_t highest_number; /* of a type */
    bool attends;            /* it has an attention */
    bool convolves_mostly;   /* most FLOPs of products are convolutions' */
    double *costs;           /* of one operator, to compare operators with each other */
    rt_operator_groups classes;
    rt_operator_groups sharded_groups; /* of which operators of a class also divide and fuse alike */
    double *fused_bytes;      /* of an operator and one sample: what its result and the reading of it move, where one
                                   that is no product alone reads it, and it is none itself */
    rt_roofline_inputs *work; /* of each of the divided classes, undivided */
    rt_sharding division;
    rt_activations activations[RT_ACTIVATION_TYPES][RT_ATTENTIONS][RT_RECOMPUTATIONS];
    double flops_per_sample;      /* of all phases */
    double cost, unnumbered_cost; /* sums of costs: of all operators, of those without a number */
};

/* FNV-1a (Fowler, Noll, Vo), 64 bits, a word at a time, the upper half folded in since multiplying moves bits up. */
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

/* A table of hashes is looked through so far and no farther, so that a job whose operators were chosen to collide costs
 * no more than another: what it finds too late counts as different, which is right, only longer. Nothing honest lies so
 * far: a quarter of the slots is filled at most, and of 10^5 values the farthest lies about 18 off. */
enum { RT_MOST_PROBES = 64 };

/* How many slots such a table has for `count` values: a power of two. */
static inline size_t rt_hash_slots(size_t count)
{
    size_t slots = 4;
    while (slots < 4 * count) slots *= 2;
    return slots;
}

/* The largest whole number up to which a double holds every one. */
#define RT_JOB_MAX_COUNT 9007199254740992.0 /* 2^53 */
/* Of settings: more positions than a sample has, and few enough for what predictors do with them in f32. */
#define RT_JOB_MAX_SETTING (INT64_C(1) << 40)
/* Of type numbers: predictors hold a row for each. */
enum { RT_JOB_MAX_TYPE = 65535 };
/* Of operators, each of which takes about a kilobyte (mdot_predict.h); the longest real job has some ten thousand. */
enum { RT_JOB_MAX_OPERATORS = 1 << 22 };
/* Of a `.job` file: 64 bytes for each of them, which is about what one takes with its name. */
#define RT_JOB_MAX_FILE_BYTES (UINT64_C(1) << 28)

/* job.c: mdot_job_create of operators that are in this library's form already, on the heap: they become the job's, also
 * where it fails. Strings and inputs are copied; the description's own operators are not read. */
mdot_status rt_job_make(const mdot_job_description *d, mdot_job_operator *operators, mdot_job **out_job,
                        mdot_error *err);

/* string_pool.c: types and modules become the job's, equal ones one. False: memory ran out. */
bool rt_job_pool_strings(mdot_job *job);

/* An operator that is computed on tensor cores: a matrix product, a convolution, attention, a recurrence. */
static inline bool rt_uses_tensor_cores(const mdot_job_operator *op)
{
    return op->traits.autocast == MDOT_AUTOCAST_HALF;
}

/* fp32 bytes of one sample's scores where the operator is an attention, 0 elsewhere. From the FLOPs, which know of
 * windows and of what a mask leaves out: two products of 2 * head_size each and a softmax of 5 a score (ir/ops). */
static inline double rt_score_bytes(const mdot_job_operator *op)
{
    int64_t head_size = op->setting[MDOT_SETTING_HEAD_SIZE];
    if (head_size <= 0) return 0;
    return sizeof(float) * op->per_sample[MDOT_PHASE_FORWARD].flops / (4.0 * (double)head_size + 5);
}

/* operator_groups.c: costs, then, behind sharding.c, classes. False: memory ran out. */
bool rt_job_measure_costs(mdot_job *job);
bool rt_job_group_operators(mdot_job *job);
/* Of what makes operators equal. */
uint64_t rt_job_hash_operator(const mdot_job_operator *op);

/* roofline_inputs.c, behind classes: fills `work`. False: memory ran out. */
bool rt_job_collect_roofline_inputs(mdot_job *job);
/* Of one operator as one GPU of the share has it; of divided class i, the job's own or in *room. */
rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, size_t index, const rt_shard *share);
const rt_roofline_inputs *rt_get_roofline_inputs(const mdot_job *job, size_t i, const rt_shard *share,
                                                 rt_roofline_inputs *room);

/* sharding.c: fills `division` from operators and costs. False: memory ran out. */
bool rt_job_shard(mdot_job *job);
bool rt_job_find_experts(mdot_job *job); /* of it, experts.c */

/* equal_blocks.c: fills how many blocks are equal to each operator's. False: memory ran out. */
bool rt_job_compare_blocks(mdot_job *job);

/* activation_memory.c: fills `activations` from the operators. False: memory ran out. */
bool rt_job_measure_activations(mdot_job *job);
/* Which of them a way to train has. */
typedef struct rt_activation_case {
    rt_activation_type type;
    mdot_attention attention;
    mdot_recompute recompute;
} rt_activation_case;
/* The bytes at the peak, for each sample, by the operator whose tensors they are, at this degree of tensor parallelism:
 * they add up to whole + (all - whole) / tensor. False: memory ran out. */
bool rt_job_shard_activations(const mdot_job *job, const rt_activation_case *which, double tensor, double *out_bytes);
/* plausibility.c: adds up costs and FLOPs. */
void rt_job_add_up(mdot_job *job);
/* How long a step's arithmetic takes at the card's peak, and its traffic. */
typedef struct rt_roofline_terms {
    double compute_ms, memory_ms;
    double
        masked_ms; /* of compute_ms, at most: scores that fused attention does not compute where its mask is causal */
} rt_roofline_terms;
/* Fills what the prediction can be judged by from its step_ms, and warns (MDOT_WARN_IMPLAUSIBLE and its like). Types
 * from type_count on are unknown to the predictor. */
void rt_check_plausibility(const mdot_job *job, const rt_roofline_terms *effort, uint32_t type_count,
                           mdot_prediction *prediction);

#endif
