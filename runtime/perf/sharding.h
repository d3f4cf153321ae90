/* sharding.h — how a job's work divides over GPUs: what tensor parallelism makes of each operator, which of them are
 * experts, and which stand before, in and behind the blocks that a pipeline deals out. Private to runtime/job.
 */
#ifndef RT_SHARDING_H
#define RT_SHARDING_H

#include "mdot/mdot.h"

/* What tensor parallelism makes of an operator. */
typedef enum rt_role {
    RT_ROLE_REPLICATED, /* every GPU computes all of it */
    RT_ROLE_SHARDED,    /* its operands are divided, and so is its result */
    RT_ROLE_COLUMNS,    /* a product of a whole operand with some columns of its parameters: the result is divided */
    RT_ROLE_ROWS,       /* a product of a divided operand with some rows: results of all GPUs are summed */
    RT_ROLE_TABLE       /* a look-up in some rows of its table: the same */
} rt_role;

/* Where an operator stands, seen from the blocks. All are in them where a job has none. */
typedef enum rt_pipeline_position {
    RT_PIPELINE_BEFORE,
    RT_PIPELINE_BLOCKS,
    RT_PIPELINE_AFTER,
    RT_PIPELINE_POSITIONS
} rt_pipeline_position;

/* Elements by place: all, of them those in operators that tensor parallelism divides, in experts, and in experts
 * that it divides. */
typedef struct rt_parts {
    double all[RT_PIPELINE_POSITIONS], divided[RT_PIPELINE_POSITIONS], experts[RT_PIPELINE_POSITIONS],
        divided_experts[RT_PIPELINE_POSITIONS];
} rt_parts;

typedef struct rt_sharding {
    uint8_t *role;  /* of each operator, rt_role; freed with the job */
    uint8_t *place; /* rt_pipeline_position */
    /* Tensor parallelism. A degree must divide `common`; 0: there is nothing to divide. */
    uint64_t common;
    double summed_forward_bytes, summed_backward_bytes; /* of one sample, fp32: results and gradients that are summed */
    uint32_t summed_count;                              /* of such tensors, both ways */
    /* Expert parallelism (experts.c). A degree must divide `experts`, those of every layer; 0: there are none. */
    uint8_t *is_expert; /* of each operator; freed with the job */
    uint64_t experts;
    double exchanged_bytes;  /* of one sample, fp32: what a forward pass deals out to experts and collects */
    uint32_t exchange_count; /* all-to-alls of one */
    rt_parts parameters, frozen;
    rt_parts half_parameters;        /* of both, of operators that autocast computes in half precision */
    double largest_block_parameters; /* of both; */
    double largest_block_experts;    /* of that block those of experts */
    /* Pipeline: fp32 bytes of one sample that pass the widest border between two blocks. */
    double border_bytes;
    rt_pipeline_position heavier_end; /* RT_PIPELINE_BEFORE or _BEHIND: the one that costs more */
} rt_sharding;

/* How much of a job one GPU does: the degrees of tensor and expert parallelism, and which part of the operators at each
 * place. */
typedef struct rt_shard {
    double tensor, experts;
    double of[RT_PIPELINE_POSITIONS];
} rt_shard;

/* 0 is divided by all. */
static inline uint64_t rt_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static inline bool rt_is_unsharded(const rt_shard *share)
{
    return share->tensor == 1 && share->experts == 1 && share->of[RT_PIPELINE_BEFORE] == 1 &&
           share->of[RT_PIPELINE_BLOCKS] == 1 && share->of[RT_PIPELINE_AFTER] == 1;
}

/* What the parameters of an operator are divided by. */
double rt_shard_divisor(const mdot_job *job, size_t index, const rt_shard *share);

/* The operator as one GPU of the share has it: loads, parameters and the settings that say how wide it is. The
 * job's own, or in *room. */
const mdot_job_operator *rt_sharded_operator(const mdot_job *job, size_t index, const rt_shard *share,
                                             mdot_job_operator *room);

#endif
