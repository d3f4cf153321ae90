/* activation_memory.h — the peak memory of the tensors in a forward and backward pass. */
#pragma once

#include "runtime/perf/sharding.h"

/* The properties of a configuration that determine activation memory, besides the batch. */
typedef enum rt_activation_type {
    RT_ACTIVATION_FP32,
    RT_ACTIVATION_AMP,
    RT_ACTIVATION_BF16,
    RT_ACTIVATION_TYPES
} rt_activation_type;
enum {
    RT_ATTENTIONS = MDOT_ATTENTION_FLASH + 1,
    RT_RECOMPUTATIONS = MDOT_RECOMPUTE_SELECTIVE + 1,
    RT_LOSSES = MDOT_LOSS_FUSED + 1
};

/* Tensors are of this type in the precision. */
rt_activation_type rt_activation_type_of(mdot_precision precision);

typedef struct rt_activation_case {
    rt_activation_type type;
    mdot_attention attention; /* EAGER or FLASH */
    mdot_recompute recompute;
    mdot_loss loss;
    bool is_inference; /* a forward pass that saves nothing; the last two are NOTHING and WHOLE then */
} rt_activation_case;

/* Bytes at one moment of a forward and backward pass: per sample, and of the terms that few jobs have. */
typedef enum rt_batch_term { RT_TERM_SAMPLE, RT_TERM_SQUARE, RT_TERM_STEP, RT_BATCH_TERMS } rt_batch_term;
typedef struct rt_activation_moment {
    double all, whole; /* per sample; `whole` excludes the tensors that tensor parallelism shards */
    double gradients;  /* fraction of dense gradients that exist, 0 to 1 */
    float square, whole_square, step, whole_step; /* per square of the batch, and independent of the batch */
    uint32_t moment;                              /* position in the pass */
} rt_activation_moment;

/* Bytes per sample at the peak, and the moments at which activations and gradients together may be largest. The first
 * moment is the peak. Later moments have fewer activations and more gradients. */
enum { RT_ACTIVATION_MOMENTS = 8, RT_ACTIVATION_MOMENTS_MAX = 12 }; /* at one batch; at several */
typedef struct rt_activations {
    double all;
    double whole; /* excluding the tensors that tensor parallelism shards */
    rt_activation_moment moments[RT_ACTIVATION_MOMENTS_MAX];
    size_t moment_count; /* at least 1 */
} rt_activations;

/* MDOT_ATTENTION_PROGRAM has the elements of FLASH, which it stands for in jobs without a program. */
typedef struct rt_activation_table {
    rt_activations of[RT_ACTIVATION_TYPES][RT_ATTENTIONS][RT_RECOMPUTATIONS]; /* with a loss on all logits */
    /* With other loss kernels, from CHUNKED on; only for jobs with a cross-entropy. */
    rt_activations with_loss[RT_LOSSES - 1][RT_ACTIVATION_TYPES][RT_ATTENTIONS][RT_RECOMPUTATIONS];
    rt_activations inference[RT_ACTIVATION_TYPES][RT_ATTENTIONS];
} rt_activation_table;

static inline const rt_activations *rt_activations_of(const rt_activation_table *table, const rt_activation_case *which)
{
    if (which->is_inference) return &table->inference[which->type][which->attention];
    if (which->loss != MDOT_LOSS_WHOLE)
        return &table->with_loss[which->loss - 1][which->type][which->attention][which->recompute];
    return &table->of[which->type][which->attention][which->recompute];
}

/* Fills the activations of every case, with work per sample only. `logits` is rt_job_totals's. Returns false if memory
 * runs out. */
bool rt_measure_activations(const mdot_job *job, const rt_sharding *sharding, size_t logits,
                            rt_activation_table *out_table);

/* Fills one term of each moment in the table. All work of the job is work per sample of that term. */
bool rt_measure_activation_term(const mdot_job *job, const rt_sharding *sharding, size_t logits, rt_batch_term term,
                                rt_activation_table *table);

/* Bytes per sample at the peak, by the operator that owns the tensors, at this degree of tensor parallelism. They
 * sum to whole + (all - whole) / tensor. Returns false if memory runs out. */
bool rt_shard_activations(const mdot_job *job, const rt_sharding *sharding, size_t logits,
                          const rt_activation_case *which, double tensor, double *out_bytes);

/* A copy of the job in which all work counts per sample: the terms times these weights. It shares everything but the
 * operators, which the caller frees. Returns false if memory runs out. */
bool rt_weigh_terms(const mdot_job *job, const double weight[RT_BATCH_TERMS], mdot_job *out_job);
/* Like rt_measure_activations, for jobs with all terms. */
bool rt_measure_activations_of_terms(const mdot_job *job, const rt_sharding *sharding, size_t logits, bool has_squares,
                                     rt_activation_table *out_table);
