/* cuda_device.h — what the files of runtime/cuda share: a GPU made ready for a predictor, and what one thread needs on
 * it.
 *
 *   open     cuda_open.c: the device, the image, its weights; cuda_kernels.c: what launches look like
 *   create   cuda_context.c
 *   run      cuda_run.c
 *
 * All calls of the driver are made by threads of its own (cuda_thread.c), which may be left behind when one does not
 * return: functions that call it are steps of such a thread, and all that they touch is kept for the thread until it
 * ends.
 *
 * The host's program may use CUDA itself, on any of its threads. These have nothing of ours: the device's primary
 * context, the one that the CUDA runtime API uses too, is current on the driver's threads alone, and streams are the
 * non-blocking kind, which wait for nobody's default stream.
 */
#ifndef RT_CUDA_DEVICE_H
#define RT_CUDA_DEVICE_H

#include "runtime/core/core.h"
#include "runtime/cuda/cuda_driver.h"

#include <stdatomic.h>

enum { RT_CUDA_NAME_BYTES = 128, RT_CUDA_ID_BYTES = 24 };

/* One bucket's kernel. */
typedef struct rt_cuda_kernel {
    rt_cu_function function;
    const mdot_abi_cuda_kernel *abi;
    uint32_t resident_blocks; /* how many blocks the whole GPU holds at once */
    uint32_t max_items;       /* of one launch */
    atomic_bool has_run;
    uint64_t input_bytes;    /* the packed inputs of an item, at the bucket's longest */
    mdot_abi_cuda_call call; /* what is the same in every launch; addresses are the context's */
} rt_cuda_kernel;

typedef struct rt_cuda_thread rt_cuda_thread;

typedef struct rt_cuda {
    rt_device device;
    const rt_artefact *artefact; /* not for the driver's threads, once it is open */
    rt_cuda_thread *thread;
    atomic_uint references;   /* of the driver's threads; the last one closes it */
    atomic_uint lost_threads; /* of them, those that did not return in time */
    int ordinal;
    rt_cuda_driver driver;
    rt_cu_device handle;
    char id[RT_CUDA_ID_BYTES], name[RT_CUDA_NAME_BYTES];
    int major, minor, multiprocessors;
    uint32_t timeout_ms;
    const mdot_abi_image *image;
    rt_cu_context primary;
    rt_cu_module module;
    rt_cu_address weights;
    rt_cuda_kernel *kernels; /* by mdot_abi_bucket.number */
    /* What a context needs: the most of any kernel. */
    uint32_t max_items;
    uint64_t scratch_bytes, input_bytes, output_bytes, parameter_bytes;
    uint64_t item_scratch_bytes; /* that it cannot do without */
    /* A kernel that never ends was left behind by a context: freeing what it uses would wait for it forever. */
    atomic_bool is_stuck;
} rt_cuda;

typedef struct rt_cuda_launch {
    rt_cu_function function;
    uint32_t blocks, items, threads, dynamic_shared_bytes;
    rt_cu_address barriers; /* of the items, to be cleared before; 0: they go on */
} rt_cuda_launch;

/* Device memory: `barriers` of a lone item, then of each item of a batch, and behind them the scratch. Memory of the
 * host that the device sees: `done` words, inputs, outputs. */
typedef struct rt_cuda_context {
    rt_cuda *cuda;
    rt_cuda_thread *thread;
    rt_cuda_launch launch; /* that it is asked for */
    bool is_current;       /* the device's context, on the thread */
    rt_cu_stream stream;
    rt_cu_address device_memory, mapped_address;
    unsigned char *mapped;
    unsigned char *parameter;                   /* mdot_abi_cuda_call and the inline inputs */
    uint64_t scratch_at, inputs_at, outputs_at; /* in device memory, and in mapped memory */
    uint64_t scratch_bytes;                     /* as much as there was room for */
    uint32_t ticket;                            /* of the last launch */
    uint32_t lone_barrier_base;                 /* the lone item's counter after it */
    bool is_running;                            /* the last launch, when the driver was asked last */
    bool is_stuck;                              /* it may be running still */
} rt_cuda_context;

static inline rt_cuda_kernel *rt_cuda_kernel_of(const rt_cuda *cuda, const mdot_abi_bucket *bucket)
{
    return &cuda->kernels[bucket->number];
}

/* A driver that has to wake the cards of a large machine, or frees what is in use, takes seconds, where a call takes
 * microseconds. */
static inline uint64_t rt_cuda_open_limit_ms(const rt_cuda *cuda)
{
    enum { LIMITS = 30 };
    return (uint64_t)cuda->timeout_ms * LIMITS;
}

/* In a loop that looks for what another processor is about to write. */
static inline void rt_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static inline uint64_t rt_round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* ---- cuda_open.c ------------------------------------------------------------------------------------------------- */

mdot_status rt_cuda_open(const rt_device_request *request, rt_device **out_device, mdot_error *err);
void rt_cuda_close(rt_device *device);

/* ---- cuda_lifetime.c --------------------------------------------------------------------------------------------- */

/* For the driver's threads. With the last reference the GPU is closed. */
void rt_cuda_keep(rt_cuda *cuda);
void rt_cuda_release(rt_cuda *cuda);

/* ---- cuda_thread.c ----------------------------------------------------------------------------------------------- */

/* What a thread of the driver's is for. `end` runs on it as the last of its steps, also when it was left behind and has
 * returned; `free` when neither it nor its caller will touch the object again. Either may be NULL. */
typedef struct rt_cuda_owner {
    void *object;
    void (*end)(void *object);
    void (*free)(void *object);
} rt_cuda_owner;

/* Calls of the driver that a caller waits for. */
typedef struct rt_cuda_step {
    const char *what; /* the driver did not … */
    mdot_status (*run)(void *object, mdot_error *err);
} rt_cuda_step;

/* A thread that has a reference to `cuda`. Its functions below are for one caller at a time. DEVICE where one was left
 * behind, of any GPU, and has not returned. */
mdot_status rt_cuda_thread_start(rt_cuda *cuda, rt_cuda_owner owner, rt_cuda_thread **out_thread, mdot_error *err);
/* Has it run the step. DEVICE where that takes longer than the limit: the thread is left behind then, is asked for
 * nothing more, and neither are the GPU's others. */
mdot_status rt_cuda_ask(rt_cuda_thread *thread, const rt_cuda_step *step, uint64_t limit_ms, mdot_error *err);
/* Has it end, and waits for that no longer than the limit. */
void rt_cuda_thread_end(rt_cuda_thread *thread, uint64_t limit_ms);

/* ---- cuda_kernels.c ---------------------------------------------------------------------------------------------- */

/* Fills cuda->kernels, and what a context needs for them. The device's context is current. */
mdot_status rt_cuda_prepare_kernels(rt_cuda *cuda, mdot_error *err);

/* ---- cuda_context.c ---------------------------------------------------------------------------------------------- */

mdot_status rt_cuda_context_create(rt_device *device, rt_device_context **out_context, mdot_error *err);
void rt_cuda_context_destroy(rt_device_context *context);

/* ---- cuda_run.c -------------------------------------------------------------------------------------------------- */

/* In as few launches as hold all items. */
mdot_status rt_cuda_run(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                        int64_t length, const rt_item *items, size_t count, mdot_error *err);

#endif
