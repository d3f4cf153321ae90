/* sharding.h — how a job's work is sharded over GPUs: the role of each operator under tensor parallelism, the
 * operators that are experts, and the operators before, in and after the blocks that a pipeline distributes. */
#pragma once

#include "mdot/mdot_predict.h"

#include <stdint.h>

/* Every number divides 0. */
static inline uint64_t rt_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

typedef struct rt_experts {
    uint8_t *is_expert; /* for each operator */
    /* A degree of expert parallelism must divide `common_count`, a common divisor of the expert counts in all layers. 0
     * means a job without experts. */
    uint64_t common_count;
    double exchanged_bytes;  /* fp32 bytes per sample that a forward pass sends to experts and collects */
    uint32_t exchange_count; /* all-to-alls of one forward pass */
} rt_experts;

/* Returns false if memory runs out. The caller frees out_experts->is_expert in either case. */
bool rt_find_experts(const mdot_job *job, rt_experts *out_experts);

/* The role of an operator under tensor parallelism. */
typedef enum rt_role {
    RT_ROLE_REPLICATED, /* replicated: every GPU computes all of it */
    RT_ROLE_SHARDED,    /* operands and result are sharded */
    RT_ROLE_COLUMNS,    /* matmul with a whole operand and some parameter columns; the result is sharded */
    RT_ROLE_ROWS,       /* matmul with a sharded operand and some parameter rows; results are summed over GPUs */
    RT_ROLE_TABLE       /* look-up in some rows of the table; results are summed, too */
} rt_role;

/* Position of an operator relative to the blocks. In a job that has zero blocks, all operators are at
 * RT_PIPELINE_BLOCKS. */
typedef enum rt_pipeline_position {
    RT_PIPELINE_BEFORE,
    RT_PIPELINE_BLOCKS,
    RT_PIPELINE_AFTER,
    RT_PIPELINE_POSITIONS
} rt_pipeline_position;

/* Element counts by position: all operators, operators that tensor parallelism shards, experts, and experts that it
 * shards. */
typedef struct rt_parts {
    double all[RT_PIPELINE_POSITIONS], sharded[RT_PIPELINE_POSITIONS], experts[RT_PIPELINE_POSITIONS],
        sharded_experts[RT_PIPELINE_POSITIONS];
} rt_parts;

/* Tables with sparse gradients. */
typedef struct rt_sparse_tables {
    double parameters; /* elements of all tables */
    double picked;     /* elements in the rows that one sample looks up */
} rt_sparse_tables;

typedef struct rt_sharding {
    uint8_t *role;     /* rt_role of each operator */
    uint8_t *position; /* rt_pipeline_position of each operator */
    /* Tensor parallelism. A degree must divide `common`. 0 means that the job has no operator to shard. */
    uint64_t common;
    double summed_forward_bytes, summed_backward_bytes; /* fp32 bytes per sample of summed results and gradients */
    uint32_t summed_count;                              /* number of summed tensors, both ways */
    rt_experts experts;
    rt_parts parameters,
        frozen; /* tables with sparse gradients count as frozen, because no tensor beside them has their
                                  * size except the state of Adam */
    /* Heads behind the blocks that are tied to a table before them. A pipeline's last stage has a table copy. */
    rt_parts tied, frozen_tied;
    rt_sparse_tables sparse;
    rt_parts half_parameters;        /* trained and frozen parameters that autocast computes in half precision */
    double largest_block_parameters; /* trained and frozen parameters of the largest block */
    double largest_block_experts;    /* parameters of the experts in that block */
    /* Pipeline: fp32 bytes of one sample that cross the widest border between two blocks. */
    double border_bytes;
    /* Of the operators at a position: work on the GPU, relative to one another, and launches by the host. */
    double cost[RT_PIPELINE_POSITIONS], launches[RT_PIPELINE_POSITIONS];
} rt_sharding;

/* One GPU's part of a job: the degrees of tensor and expert parallelism, and the fraction of operators at each
 * position. Every GPU compares the samples of its own micro-batch. */
typedef struct rt_shard {
    double tensor, experts;
    double of[RT_PIPELINE_POSITIONS];
    /* The micro-batch, at which work that grows with the square of the batch counts per sample; 0 in a job without such
     * work. */
    double square_batch;
} rt_shard;

/* Element counts of experts and of other operators. Only data-parallel workers have copies of experts. */
typedef struct rt_elements {
    double others, experts;
} rt_elements;

static inline double rt_sum_elements(rt_elements elements) { return elements.others + elements.experts; }

/* Adds `elements` to the parts at the operator's position and role. */
void rt_add_parts(const rt_sharding *sharding, size_t index, double elements, rt_parts *out);
/* The elements on one GPU of the shard. */
rt_elements rt_part_of(const rt_parts *parts, const rt_shard *shard);
/* Trained parameters, and all weights, on one GPU of the shard, with the table copy for a tied head. */
rt_elements rt_trained_part(const rt_sharding *sharding, const rt_shard *shard);
rt_elements rt_weights_part(const rt_sharding *sharding, const rt_shard *shard);

static inline bool rt_is_unsharded(const rt_shard *shard)
{
    return shard->tensor == 1 && shard->experts == 1 && shard->of[RT_PIPELINE_BEFORE] == 1 &&
           shard->of[RT_PIPELINE_BLOCKS] == 1 && shard->of[RT_PIPELINE_AFTER] == 1;
}

/* The steps of rt_find_sharding, in this order. Two return false if memory runs out. */
bool rt_find_sharding_roles(const mdot_job *job, rt_sharding *out);
void rt_find_sharding_positions(const mdot_job *job, const double *costs, rt_sharding *out);
bool rt_measure_sharding_borders(const mdot_job *job, rt_sharding *out);

/* Fills the sharding of a job whose operators have these costs. Returns false if memory runs out. */
bool rt_find_sharding(const mdot_job *job, const double *costs, rt_sharding *out_sharding);
void rt_free_sharding(rt_sharding *sharding);

/* The factor by which the operator's parameters are divided. */
double rt_shard_divisor(const rt_sharding *sharding, size_t index, const rt_shard *shard);

/* The operator as one GPU of the shard computes it: FLOPs and bytes, parameters, and the settings that give its
 * width. Returns the job's own operator or *buffer. */
const mdot_job_operator *rt_sharded_operator(const mdot_job *job, const rt_sharding *sharding, size_t index,
                                             const rt_shard *shard, mdot_job_operator *buffer);
