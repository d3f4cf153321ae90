/* cuda_device.h — what the files of runtime/cuda share: a GPU made ready for a predictor, and what one thread needs on
 * it.
 *
 *   open     cuda_open.c: the device, the image, its weights; cuda_kernels.c: what launches look like
 *   create   cuda_context.c
 *   run      cuda_run.c
 *
 * The host's program may use CUDA itself, on any of its threads, so nothing of its state is left changed: the device's
 * primary context, the one that the CUDA runtime API uses too, is made current for the time of a call and the thread's
 * own put back after it, and streams are the non-blocking kind, which wait for nobody's default stream.
 */
#ifndef RT_CUDA_DEVICE_H
#define RT_CUDA_DEVICE_H

#include "runtime/core/core.h"
#include "runtime/cuda/cuda_driver.h"

enum { RT_CUDA_NAME_BYTES = 128, RT_CUDA_ID_BYTES = 24 };

/* One bucket's kernel. */
typedef struct rt_cuda_kernel {
    rt_cu_function function;
    const mdot_abi_cuda_kernel *abi;
    uint32_t resident_blocks; /* how many blocks the whole GPU holds at once */
    uint32_t max_items;       /* of one launch */
    uint64_t input_bytes;     /* the packed inputs of an item, at the bucket's longest */
    mdot_abi_cuda_call call;  /* what is the same in every launch; addresses are the context's */
} rt_cuda_kernel;

typedef struct rt_cuda {
    rt_device device;
    const rt_artefact *artefact;
    const rt_allocator *allocator;
    rt_cuda_driver driver;
    rt_cu_device handle;
    char id[RT_CUDA_ID_BYTES], name[RT_CUDA_NAME_BYTES];
    uint32_t timeout_ms;
    rt_cu_context primary;
    rt_cu_module module;
    rt_cu_address weights;
    rt_cuda_kernel *kernels; /* by mdot_abi_bucket.number */
    /* What a context needs: the most of any kernel. */
    uint32_t max_items;
    uint64_t scratch_bytes, input_bytes, output_bytes, parameter_bytes;
    uint64_t item_scratch_bytes; /* that it cannot do without */
    /* A kernel that never ends was left behind by a context: freeing what it uses would wait for it forever. */
    _Atomic bool is_stuck;
} rt_cuda;

/* Device memory: `barriers` of a lone item, then of each item of a batch, and behind them the scratch. Memory of the
 * host that the device sees: `done` words, inputs, outputs. */
typedef struct rt_cuda_context {
    rt_cuda *cuda;
    rt_cu_stream stream;
    rt_cu_address device_memory, mapped_address;
    unsigned char *mapped;
    unsigned char *parameter;                   /* mdot_abi_cuda_call and the inline inputs */
    uint64_t scratch_at, inputs_at, outputs_at; /* in device memory, and in mapped memory */
    uint64_t scratch_bytes;                     /* as much as there was room for */
    uint32_t ticket;                            /* of the last launch */
    uint32_t lone_barrier_base;                 /* the lone item's counter after it */
    bool is_stuck;                              /* the last launch may be running still */
} rt_cuda_context;

static inline rt_cuda_kernel *rt_cuda_kernel_of(const rt_cuda *cuda, const mdot_abi_bucket *bucket)
{
    return &cuda->kernels[bucket->number];
}

static inline uint64_t rt_round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* ---- cuda_open.c ------------------------------------------------------------------------------------------------- */

mdot_status rt_cuda_open(const rt_device_request *request, rt_device **out_device, mdot_error *err);
void rt_cuda_close(rt_device *device);

/* ---- cuda_limit.c ------------------------------------------------------------------------------------------------ */

/* What is asked of the driver by a thread of its own. */
typedef struct rt_cuda_step {
    const char *what; /* the driver did not … */
    mdot_status (*run)(void *state, mdot_error *err);
    void (*undo)(void *state); /* of a run that was right and that nobody waited for; NULL: nothing is to be undone */
} rt_cuda_step;

/* Runs the step on a copy of the state, which comes back where it was right. DEVICE where it takes longer. */
mdot_status rt_cuda_run_limited(const rt_cuda_step *step, void *state, size_t state_bytes, uint64_t limit_ms,
                                mdot_error *err);

/* ---- cuda_kernels.c ---------------------------------------------------------------------------------------------- */

/* Fills cuda->kernels, and what a context needs for them. The device's context is current. */
mdot_status rt_cuda_prepare_kernels(rt_cuda *cuda, int multiprocessors, const mdot_abi_image *image, mdot_error *err);

/* ---- cuda_context.c ---------------------------------------------------------------------------------------------- */

mdot_status rt_cuda_context_create(rt_device *device, rt_device_context **out_context, mdot_error *err);
void rt_cuda_context_destroy(rt_device_context *context);

/* ---- cuda_run.c -------------------------------------------------------------------------------------------------- */

/* In as few launches as hold all items. */
mdot_status rt_cuda_run(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                        int64_t length, const rt_item *items, size_t count, mdot_error *err);

#endif
