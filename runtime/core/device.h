/* device.h — where a predictor's calls run: on the CPU, or on a GPU with the CPU behind it.
 *
 *   open    device.c reads the option, has cuda_open.c and cuda_kernels.c make the GPU ready, tries it out and, for
 *           "auto", measures both
 *   create  cuda_context.c, for what one thread needs on the GPU
 *   run     run.c asks cuda_run.c first and runs on the CPU what that could not answer
 *
 * Everything that runs an entry goes through rt_run_many: mdot_run with one item, the calls for many predictions with
 * as many of one length as they have, which on a GPU run side by side in one launch.
 */
#ifndef RT_DEVICE_H
#define RT_DEVICE_H

#include "runtime/core/predictor.h"

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

/* Settles predictor->cuda as options->device asks, once everything else is open. On failure nothing is held. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);
void rt_device_close(mdot_predictor *predictor);

/* ---- run.c ------------------------------------------------------------------------------------------------------- */

/* One prediction of several: tensors in the entry's order. */
typedef struct rt_item {
    const void *const *inputs;
    void *const *outputs;
} rt_item;

/* Runs `entry` once for each item, all at one length, which has been checked. Cannot fail: what the GPU does not answer
 * the CPU does, and rt_fell_back tells. Allocates nothing. Answers of one call all come from one device. */
void rt_run_many(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                 size_t count);

/* The same on the CPU, whatever the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);

/* The context's GPU has failed and the CPU answers: MDOT_WARN_FALLBACK. */
static inline bool rt_fell_back(const mdot_context *context)
{
    return context->device_error.status != MDOT_OK;
}

/* ---- cuda_open.c: a GPU made ready for a predictor --------------------------------------------------------------- */

typedef struct rt_cuda rt_cuda;

/* Device `ordinal` with the artefact's code loaded and its weights uploaded. DEVICE or OUT_OF_MEMORY. */
mdot_status rt_cuda_open(const mdot_predictor *predictor, int ordinal, uint32_t timeout_ms, rt_cuda **out_cuda,
                         mdot_error *err);
/* After its contexts are destroyed. */
void rt_cuda_close(rt_cuda *cuda);

/* For mdot_predictor_info; lent. */
const char *rt_cuda_id(const rt_cuda *cuda);      /* "cuda:0" */
const char *rt_cuda_name(const rt_cuda *cuda);    /* "NVIDIA H200" */
const char *rt_cuda_compute(const rt_cuda *cuda); /* "bf16" */

/* ---- cuda_context.c: what one thread needs on it ----------------------------------------------------------------- */

typedef struct rt_cuda_context rt_cuda_context;

mdot_status rt_cuda_context_create(rt_cuda *cuda, rt_cuda_context **out_context, mdot_error *err);
void rt_cuda_context_destroy(rt_cuda_context *context);

/* ---- cuda_run.c: predictions on it ------------------------------------------------------------------------------- */

/* All items, in as few launches as hold them. DEVICE or OUT_OF_MEMORY, outputs then undefined: the context is not to be
 * used again. */
mdot_status rt_cuda_run(rt_cuda_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                        int64_t length, const rt_item *items, size_t count, mdot_error *err);

#endif
