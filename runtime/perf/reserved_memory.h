/* reserved_memory.h — memory that a training process takes from a GPU beyond its tensors, the part of a GPU that a
 * process can use, and the interval of the peak of its tensors. */
#ifndef RT_RESERVED_MEMORY_H
#define RT_RESERVED_MEMORY_H

#include "runtime/perf/peak_memory.h"

/* Bytes. Beyond the tensors of rt_memory. */
typedef struct rt_reserved {
    double rounding;    /* the caching allocator's rounding of sizes, and free parts of its segments */
    double context;     /* the CUDA context and the code of kernels */
    double workspace;   /* cuBLAS and cuDNN */
    double collectives; /* buffers of NCCL, if several GPUs work together */
} rt_reserved;

rt_reserved rt_reserve_memory(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_memory *memory);
/* The tensors and everything beyond them, at most UINT64_MAX. */
uint64_t rt_sum_reserved(const rt_memory *memory, const rt_reserved *reserved);

/* Memory that the driver offers to one process, in bytes. */
uint64_t rt_usable_memory(const mdot_gpu *gpu);

/* The 90 % interval of the peak of allocated memory: memory_error.def. It includes at least the weights and the
 * optimizer's state. */
typedef struct rt_memory_interval {
    uint64_t lower_bytes, upper_bytes;
} rt_memory_interval;
rt_memory_interval rt_memory_within(const mdot_job *job, const rt_memory *memory);

#endif
