/* cubin.h — a cubin: machine code of one GPU architecture in an ELF file, and what the file says that its kernels need.
 *
 * Comes from nvrtc.c and goes into the artefact. No GPU and no tool of NVIDIA's is needed to read one.
 */
#ifndef CU_CUBIN_H
#define CU_CUBIN_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef struct cu_cubin_kernel {
    const char *name;
    uint32_t registers;    /* of a thread */
    uint32_t max_threads;  /* of a block, by its __launch_bounds__; 0 without */
    uint32_t shared_bytes; /* of a block: static ones, without what the system keeps for itself */
    uint32_t local_bytes;  /* of a thread: stack, with spilled registers and local arrays */
    uint32_t spill_bytes;  /* stores and loads of spilled registers, by ptxas's word; local_bytes without it */
    uint32_t parameter_bytes;
    uint32_t barriers;            /* of a block in hardware */
    uint32_t tensor_instructions; /* HMMA, in the code */
    uint32_t code_bytes;
} cu_cubin_kernel;

typedef struct cu_cubin {
    const void *bytes; /* lent by whoever had it read */
    size_t size_bytes;
    const char *log; /* what the compiler said on the way; "" for nothing */
    uint32_t sm;     /* 90 for sm_90 and sm_90a */
    int kernel_count;
    cu_cubin_kernel *kernels; /* in the arena */
} cu_cubin;

/* Reads what `bytes` say of every kernel in them. `log` (NULL for none) is searched for ptxas's words on spilling, as
 * -Xptxas -v has them written. MALFORMED with the reason when they are no cubin or a damaged one. */
mdot_status cu_cubin_read(const void *bytes, size_t size_bytes, const char *log, ir_arena *arena, cu_cubin *out_cubin,
                          mdot_error *err);

/* NULL when there is none of the name. */
const cu_cubin_kernel *cu_cubin_find(const cu_cubin *cubin, const char *name);

#endif
