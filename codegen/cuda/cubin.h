/* cubin.h — a cubin: machine code of one GPU architecture in an ELF file, and the resources of its kernels.
 *
 * nvrtc.c produces cubins, and the artefact stores them. Reading one works without a GPU and NVIDIA's tools.
 */
#ifndef CU_CUBIN_H
#define CU_CUBIN_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef struct cu_cubin_kernel {
    const char *name;
    uint32_t registers;    /* per thread */
    uint32_t max_threads;  /* per block, from __launch_bounds__; 0 if absent */
    uint32_t shared_bytes; /* static shared memory per block, excluding the part that the system reserves */
    uint32_t local_bytes;  /* per thread: stack, including spilled registers and local arrays */
    uint32_t spill_bytes;  /* stores and loads of spilled registers, as reported by ptxas; local_bytes if unreported */
    uint32_t parameter_bytes;
    uint32_t barriers;            /* hardware barriers per block */
    uint32_t tensor_instructions; /* HMMA instructions in the code */
    uint32_t code_bytes;
} cu_cubin_kernel;

typedef struct cu_cubin {
    const void *bytes; /* borrowed from the caller */
    size_t size_bytes;
    const char *log; /* the compiler's output; "" if empty */
    uint32_t sm;     /* 90 for sm_90 and sm_90a */
    int kernel_count;
    cu_cubin_kernel *kernels; /* in the arena */
} cu_cubin;

/* Reads the resources of every kernel in `bytes`. `log` (or NULL) is searched for ptxas's report of spills, as
 * -Xptxas -v prints it. Returns MALFORMED with the reason if the bytes are not a cubin or are damaged. */
mdot_status cu_cubin_read(const void *bytes, size_t size_bytes, const char *log, ir_arena *arena, cu_cubin *out_cubin,
                          mdot_error *err);

/* Returns NULL if the name is unknown. */
const cu_cubin_kernel *cu_cubin_find(const cu_cubin *cubin, const char *name);

#endif
