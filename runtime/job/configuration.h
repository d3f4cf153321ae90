/* configuration.h — a caller's configuration, checked, with its GPU found and every default filled in. Everything here
 * holds for any job; runtime/perf/resolved_configuration.h resolves a configuration against a job. */
#pragma once

#include "base/struct_version.h"
#include "mdot/mdot_configuration.h"

typedef struct rt_configuration {
    mdot_configuration c; /* counts and degrees are at least 1 and the degrees multiply to gpu_count; rates are above
                           * 0 */
    mdot_gpu gpu;         /* a copy, because c.gpu_spec points at the caller's memory */
    int64_t micro_batch;  /* samples per micro-step */
    bool plain_workers;   /* all options on how GPUs cooperate are at their defaults, apart from the number of GPUs */
} rt_configuration;

extern const bs_struct_version rt_configuration_type;

/* Names looked up in one call, because many pairs use few GPUs. Starts as zero. */
enum { RT_GPU_SLOTS = 64 };
typedef struct rt_gpu_names {
    struct {
        const char *name; /* the caller's pointer, constant during the call */
        const mdot_gpu *gpu;
    } slots[RT_GPU_SLOTS];
} rt_gpu_names;

/* Reads configuration i of the caller's array. */
mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  rt_configuration *out_configuration, mdot_error *err);
/* Fills in defaults of a configuration whose numbers are valid, and refuses contradictions. */
mdot_status rt_configuration_complete(rt_configuration *configuration, mdot_error *err);

/* ---- By the column `facts` of configuration.def ------------------------------------------------------------------ */

/* Sets options that no predictor reads to their defaults. */
void rt_set_unread_defaults(mdot_configuration *c);
/* The two differ in an option that a predictor may lack as an input. Precision and attention are compared apart,
 * because their effect depends on the job. */
bool rt_is_corrected(const mdot_configuration *requested, const mdot_configuration *queried);
/* The micro-steps of one shard take the same time on one GPU. */
bool rt_equal_micro_steps(const rt_configuration *a, const rt_configuration *b);
/* Copies the options that select kernels. */
void rt_copy_kernels(mdot_configuration *target, const mdot_configuration *source);

/* ---- Properties -------------------------------------------------------------------------------------------------- */

/* The number of GPUs that hold the same weights; those of all operators but experts are held by expert_parallel times
 * as many. ZeRO divides over them. */
static inline double rt_copies(const mdot_configuration *c)
{
    return (double)c->gpu_count / ((double)c->tensor_parallel * c->pipeline_parallel * c->expert_parallel);
}

/* Samples of an optimizer step over all GPUs, of a configuration with all degrees. */
static inline double rt_samples_of_step(const mdot_configuration *c)
{
    return (double)c->batch * c->data_parallel * c->expert_parallel * (c->accumulate > 0 ? c->accumulate : 1);
}

#define RT_HOPPER_CAPABILITY 9.0 /* compute capabilities of the first GPU models */
#define RT_BLACKWELL_CAPABILITY 10.0

static inline bool rt_is_fp8(mdot_precision precision)
{
    return precision == MDOT_PRECISION_FP8 || precision == MDOT_PRECISION_FP8_ROWWISE ||
           precision == MDOT_PRECISION_MXFP8 || precision == MDOT_PRECISION_FP8_BLOCKWISE;
}

/* Half-precision weights for matmuls, beside fp32 weights for the optimizer's update. */
static inline bool rt_is_mixed(mdot_precision precision)
{
    return precision == MDOT_PRECISION_MIXED_BF16 || precision == MDOT_PRECISION_MIXED_FP16 || rt_is_fp8(precision);
}

/* fp32 weights, which autocast copies for matmuls. */
static inline bool rt_is_autocast(mdot_precision precision)
{
    return precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_AMP_BF16;
}

static inline bool rt_is_half(mdot_precision precision)
{
    return rt_is_autocast(precision) || precision == MDOT_PRECISION_BF16 || rt_is_mixed(precision);
}
