/* nvrtc.h — CUDA C → cubin through NVIDIA's run-time compiler, which is loaded on demand.
 *
 * mdot builds and runs without it. Only compiling for a GPU needs it, in version 12.1 or later, because earlier
 * versions limit a kernel's parameters to 4 KB and inputs are passed in them. It works without a GPU, a driver and
 * CUDA's headers, so artefacts for GPUs can be made on any machine. */
#pragma once

#include "base/status.h"
#include "ir/arena.h"

#include <stdbool.h>

/* ---- cubin.c: a cubin: machine code of one GPU architecture in an ELF file, and the resources of its kernels.
 *
 * nvrtc.c produces cubins, and the artefact stores them. Reading one works without a GPU and NVIDIA's tools.
 */

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

typedef struct cu_nvrtc_program *cu_nvrtc_program;

/* The library's functions in use (NVRTC's documentation, "User Interface"; an nvrtcResult is an int, 0 means
 * success): name without "nvrtc", result, parameters. */
#define CU_NVRTC_SYMBOL_MAP(X)                                                                                         \
    X(GetErrorString, const char *, (int result))                                                                      \
    X(Version, int, (int *out_major, int *out_minor))                                                                  \
    X(GetNumSupportedArchs, int, (int *out_count))                                                                     \
    X(GetSupportedArchs, int, (int *out_sms))                                                                          \
    X(CreateProgram, int,                                                                                              \
      (cu_nvrtc_program * out_program, const char *source, const char *name, int header_count,                         \
       const char *const *headers, const char *const *include_names))                                                  \
    X(CompileProgram, int, (cu_nvrtc_program program, int option_count, const char *const *options))                   \
    X(GetCUBINSize, int, (cu_nvrtc_program program, size_t * out_bytes))                                               \
    X(GetCUBIN, int, (cu_nvrtc_program program, char *out_cubin))                                                      \
    X(GetProgramLogSize, int, (cu_nvrtc_program program, size_t * out_bytes))                                          \
    X(GetProgramLog, int, (cu_nvrtc_program program, char *out_log))                                                   \
    X(DestroyProgram, int, (cu_nvrtc_program * program))

typedef struct cu_nvrtc {
#define CU_NVRTC_MEMBER(name, result, parameters) result(*name) parameters;
    CU_NVRTC_SYMBOL_MAP(CU_NVRTC_MEMBER)
#undef CU_NVRTC_MEMBER
    int major, minor;
} cu_nvrtc;

/* Loads the library: the file in environment variable MDOT_NVRTC, otherwise libnvrtc.so.13, .12 or libnvrtc.so from
 * the dynamic loader's path, $CUDA_HOME/lib64 or /usr/local/cuda/lib64. It stays loaded. If it is missing or too
 * old, the result is TOOLCHAIN with installation advice. */
mdot_status cu_nvrtc_load(cu_nvrtc *out_nvrtc, mdot_error *err);

/* Compiles the concatenated `parts` for an architecture: 90 and true for sm_90a. Several threads may compile at once,
 * each with its own arena, which holds the cubin. On failure returns TOOLCHAIN with the compiler's first errors. */
mdot_status cu_nvrtc_compile(const cu_nvrtc *nvrtc, const char *const *parts, int part_count, int sm,
                             bool is_accelerated, ir_arena *arena, cu_cubin *out_cubin, mdot_error *err);
