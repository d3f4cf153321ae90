/* cuda_device.h — declarations for the files in runtime/cuda: a GPU prepared for a predictor, and a thread's resources
 * on it.
 *
 *   open     cuda_open.c: the device, the image, its weights; cuda_kernels.c: launch parameters
 *   create   cuda_context.c
 *   run      cuda_run.c
 *
 * Dedicated threads make all driver calls (cuda_thread.c). Such a thread is abandoned if a call does not return.
 * Functions with driver calls are steps of such a thread, and all their data is kept alive until the thread ends.
 *
 * The host program may use CUDA itself, on any of its threads. Those threads are unaffected: the device's primary
 * context, which the CUDA runtime API uses, too, is current only on the driver's threads. Streams are non-blocking:
 * they never wait for the program's default stream. */
#pragma once

#include "runtime/core/core.h"
#include "runtime/cuda/cuda_driver.h"

#include <stdatomic.h>

enum { RT_CUDA_NAME_BYTES = 128, RT_CUDA_ID_BYTES = 24 };

/* The kernel of one bucket. */
typedef struct rt_cuda_kernel {
    rt_cu_function function;
    const mdot_abi_cuda_kernel *abi;
    uint32_t resident_blocks; /* most blocks on the whole GPU at once */
    uint32_t max_items;       /* maximum items of one launch */
    atomic_bool has_run;
    uint64_t input_bytes;    /* packed inputs of an item at the bucket's maximum length */
    mdot_abi_cuda_call call; /* the fields that are the same in every launch; the context supplies addresses */
} rt_cuda_kernel;

typedef struct rt_cuda_thread rt_cuda_thread;

typedef struct rt_cuda {
    rt_device device;
    const rt_artefact *artefact; /* the driver's threads must not read it after opening */
    rt_cuda_thread *thread;
    atomic_uint references;   /* number of driver threads; the last one closes the GPU */
    atomic_uint lost_threads; /* driver threads that did not return in time */
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
    rt_cuda_kernel *kernels; /* indexed by mdot_abi_bucket.number */
    /* Sizes of a context: the maximum over all kernels. */
    uint32_t max_items;
    uint64_t scratch_bytes, input_bytes, output_bytes, parameter_bytes;
    uint64_t item_scratch_bytes; /* minimum scratch */
    /* A context abandoned an endless kernel. Freeing its memory would wait forever. */
    atomic_bool is_stuck;
} rt_cuda;

typedef struct rt_cuda_launch {
    rt_cu_function function;
    uint32_t blocks, items, threads, dynamic_shared_bytes;
    rt_cu_address barriers; /* barriers of the items, to be cleared before the launch; 0: the counter continues */
} rt_cuda_launch;

/* Device memory holds the barrier for a single item, then those for each item in a batch, then the scratch.
 * Device-accessible host memory holds `done` words, outputs and inputs. */
typedef struct rt_cuda_context {
    rt_cuda *cuda;
    rt_cuda_thread *thread;
    rt_cuda_launch launch; /* the requested launch */
    bool is_current;       /* the device's context is current on the thread */
    rt_cu_stream stream;
    rt_cu_address device_memory, mapped_address;
    unsigned char *mapped;
    unsigned char *parameter;                   /* mdot_abi_cuda_call and the inline inputs */
    uint64_t scratch_at, inputs_at, outputs_at; /* offsets in device memory (scratch) and in mapped memory */
    uint64_t scratch_bytes;                     /* as much as could be allocated */
    uint32_t ticket;                            /* number of the last launch */
    uint32_t lone_barrier_base;                 /* the single item's counter after it */
    bool is_running;                            /* the last launch was still running at the last query */
    bool is_stuck;                              /* the last launch may still be running */
} rt_cuda_context;

static inline rt_cuda_kernel *rt_cuda_kernel_of(const rt_cuda *cuda, const mdot_abi_bucket *bucket)
{
    return &cuda->kernels[bucket->number];
}

/* Limit for set-up calls. They can take seconds, for example to wake the GPUs of a large machine or to free memory
 * in use; a call takes microseconds. */
static inline uint64_t rt_cuda_open_limit_ms(const rt_cuda *cuda)
{
    enum { LIMITS = 30 };
    return (uint64_t)cuda->timeout_ms * LIMITS;
}

static inline uint64_t rt_round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

mdot_status rt_cuda_open(const rt_device_request *request, rt_device **out_device, mdot_error *err);
void rt_cuda_close(rt_device *device);

/* Reference count for the driver's threads. The last release closes the GPU. */
void rt_cuda_keep(rt_cuda *cuda);
void rt_cuda_release(rt_cuda *cuda);

/* A driver thread's object. `end` runs on the thread as its last step, even if the thread was abandoned and has
 * returned later. `free` runs when both the thread and its caller are finished with the object. Either may be NULL. */
typedef struct rt_cuda_owner {
    void *object;
    void (*end)(void *object);
    void (*free)(void *object);
} rt_cuda_owner;

/* Driver calls that a caller waits for. */
typedef struct rt_cuda_step {
    const char *what; /* completes the message "the driver did not …" */
    mdot_status (*run)(void *object, mdot_error *err);
} rt_cuda_step;

/* Starts a thread with a reference to `cuda`. The functions below are for one caller at a time. Returns DEVICE if an
 * abandoned thread, on any GPU, has yet to return. */
mdot_status rt_cuda_thread_start(rt_cuda *cuda, rt_cuda_owner owner, rt_cuda_thread **out_thread, mdot_error *err);
/* Runs the step on the thread. Returns DEVICE if that takes longer than the limit. Then the thread is abandoned, and
 * neither it nor the GPU's other threads are used again. */
mdot_status rt_cuda_ask(rt_cuda_thread *thread, const rt_cuda_step *step, uint64_t limit_ms, mdot_error *err);
/* Ends the thread, and waits for that at most the limit. */
void rt_cuda_thread_end(rt_cuda_thread *thread, uint64_t limit_ms);

/* Fills cuda->kernels and the sizes of a context. The device's context must be current. */
mdot_status rt_cuda_prepare_kernels(rt_cuda *cuda, mdot_error *err);

mdot_status rt_cuda_context_create(rt_device *device, rt_device_context **out_context, mdot_error *err);
void rt_cuda_context_destroy(rt_device_context *context);

/* The grid's blocks along x for each of `items` items: clusters for all tiles, or as many as fit when all items run
 * together. */
uint32_t rt_cuda_blocks_per_item(const rt_cuda_kernel *kernel, int64_t length, uint32_t items);

/* Uses as few launches as hold all items. */
mdot_status rt_cuda_run(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                        int64_t length, const rt_item *items, size_t count, mdot_error *err);
