/* cuda.h — what the cuda_*.c files share; device.h is their interface to the rest of the runtime.
 *
 * The host's program may use CUDA itself, on any of its threads, so nothing of its state is left changed: the device's
 * primary context, the one that the CUDA runtime API uses too, is made current for the time of a call and the thread's
 * own put back after it, and streams are the non-blocking kind, which wait for nobody's default stream.
 */
#ifndef RT_CUDA_H
#define RT_CUDA_H

#include "runtime/cuda/cuda_driver.h"
#include "runtime/core/device.h"

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

struct rt_cuda {
    const mdot_predictor *predictor;
    rt_cuda_driver driver;
    rt_cu_device device;
    char id[RT_CUDA_ID_BYTES], name[RT_CUDA_NAME_BYTES];
    const char *compute;
    uint32_t timeout_ms;
    rt_cu_context primary;
    rt_cu_module module;
    rt_cu_address weights;
    rt_cuda_kernel *kernels; /* in the order of mdot_abi_bucket.first_code */
    /* What a context needs: the most of any kernel. */
    uint32_t max_items;
    uint64_t scratch_bytes, input_bytes, output_bytes, parameter_bytes;
    uint64_t item_scratch_bytes; /* that it cannot do without */
    /* A kernel that never ends was left behind by a context: freeing what it uses would wait for it forever. */
    _Atomic bool is_stuck;
};

/* Device memory: `barriers` of a lone item, then of each item of a batch, and behind them the scratch. Memory of the
 * host that the device sees: `done` words, inputs, outputs. */
struct rt_cuda_context {
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
};

static inline rt_cuda_kernel *rt_cuda_kernel_of(const rt_cuda *cuda, const mdot_abi_bucket *bucket)
{
    return &cuda->kernels[rt_cuda_index(cuda->predictor->table, bucket)];
}

static inline uint64_t rt_round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Makes the device's context current; rt_cuda_leave puts back what was current before. */
mdot_status rt_cuda_enter(const rt_cuda *cuda, mdot_error *err);
void rt_cuda_leave(const rt_cuda *cuda);

/* cuda_kernels.c: fills cuda->kernels, and what a context needs for them. The device's context is current. */
mdot_status rt_cuda_prepare_kernels(rt_cuda *cuda, int multiprocessors, const mdot_abi_cuda_image *image,
                                    mdot_error *err);

#endif
