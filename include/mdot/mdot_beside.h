/* mdot_beside.h — two jobs on one GPU: how much each slows the other down.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors.
 *
 * A job's load on a GPU model is computed once; then each pair takes microseconds. The answer comes from a second
 * artefact, interference.mdot, which ships beside the predictor and was fitted to measured pairs without MPS partitions
 * (weights/MODEL_CARD.md). Its interval is wide for jobs and GPU models unlike the measured ones. */
#ifndef MDOT_BESIDE_H
#define MDOT_BESIDE_H

#include "mdot_predict.h"

MDOT_BEGIN_DECLARATIONS

/* One job alone on one GPU, as far as another job on this GPU feels it. */
typedef struct mdot_gpu_load {
    size_t struct_size;
    double step_ms;        /* median step time alone, above 0; a measured one may replace it, and scales the shares */
    double gpu_busy_ms;    /* time in which the GPU computes, up to step_ms; 0 with host_busy_ms 0: an idle job */
    double host_busy_ms;   /* time in which the host launches kernels, up to step_ms */
    double operator_count; /* operators in the job */
    double compute_share;  /* fraction of the GPU's peak FLOP rate during step_ms; above 1 counts as 1 */
    double memory_share;   /* fraction of its peak memory bandwidth; above 1 counts as 1 */
    double fp32_tflops;    /* the GPU's peak rate in fp32, 10^12/s */
    double memory_gbps;    /* its peak memory bandwidth, 10^9 bytes per second */
    uint64_t peak_memory_bytes, reserved_bytes, usable_bytes; /* mdot_prediction's */
} mdot_gpu_load;

/* A job's step beside a partner. */
typedef struct mdot_beside {
    size_t struct_size;
    double slowdown;                       /* median step time beside the partner, relative to alone; at least 1 */
    double lower_slowdown, upper_slowdown; /* 90 % interval, at least 1 */
    double step_ms;                        /* step time beside the partner */
    double reserved_bytes;                 /* memory of both processes */
    bool fits;                             /* reserved_bytes are at most the GPU's usable bytes */
    uint32_t extrapolated; /* 1: unlike the measured pairs; interference.mdot then assumes that the GPU slices time */
} mdot_beside;

/* Computes a job's load on the configuration's GPU. It allocates memory, as mdot_explain does.
 *
 * @param context of a predictor of jobs
 * @param configuration how the job trains; on several GPUs, the load is that of each
 * @param out_load receives the load
 * @errors those of mdot_explain */
mdot_status mdot_gpu_load_of(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                             mdot_gpu_load *out_load, mdot_error *err);

/* Predicts a job's step beside a partner on the same GPU. Call it twice, with exchanged loads, for both jobs.
 *
 * Packing pays if 1 / slowdown, added up over both jobs, is above 1: then both together do more work than in turn.
 *
 * @param context of interference.mdot: its entry "predict" reads own and partner, f32 [1, 9], and writes
 *     slowdown, f32 [1, 3]: the 5 %, 50 % and 95 % quantiles. The nine numbers are step_ms, gpu_busy_ms / step_ms,
 *     gpu_busy_ms / operator_count, compute_share, memory_share, host_busy_ms / step_ms, peak memory in GiB,
 *     fp32_tflops, memory_gbps. A second output, outside_training, f32 [1, 1], is optional: above 0 is `extrapolated`
 * @param load the job's load
 * @param partner the other job's load, on the same GPU model
 * @param out_beside receives the answer
 * @errors INVALID_ARGUMENT for a load outside 0 to 10^12 or without a step, and for loads on two GPU models;
 *     INCOMPATIBLE for another artefact; MALFORMED if the answer is not a slowdown */
mdot_status mdot_predict_beside(mdot_context *context, const mdot_gpu_load *load, const mdot_gpu_load *partner,
                                mdot_beside *out_beside, mdot_error *err);

MDOT_END_DECLARATIONS
#endif
