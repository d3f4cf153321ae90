/* nvrtc.h — CUDA C → cubin through NVIDIA's run-time compiler, which is loaded when it is asked for.
 *
 * mdot is built and runs without it; only compiling for a GPU needs it, in version 12.1 or later: before, a kernel's
 * parameters ended at 4 KB, and inputs travel in them. It takes neither a GPU nor a driver nor CUDA's headers, so that
 * artefacts for GPUs are made on any machine.
 */
#ifndef CU_NVRTC_H
#define CU_NVRTC_H

#include "codegen/cuda/cubin.h"

#include <stdbool.h>

typedef struct cu_nvrtc_program *cu_nvrtc_program;

/* What is used of the library (NVRTC's documentation, "User Interface"; an nvrtcResult is an int, 0 success):
 * name without "nvrtc", result, parameters. */
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

/* Loads the library: the file that environment variable MDOT_NVRTC names, else libnvrtc.so.13, .12 or libnvrtc.so where
 * the dynamic loader, $CUDA_HOME/lib64 or /usr/local/cuda/lib64 has one. It stays loaded. TOOLCHAIN says what to
 * install when there is none, or one that is too old. */
mdot_status cu_nvrtc_load(cu_nvrtc *out_nvrtc, mdot_error *err);

/* Compiles `parts`, one behind the other, for an architecture: 90 and true for sm_90a. Several threads may compile at
 * once, each with its own arena, which the cubin lives in. TOOLCHAIN with the compiler's first errors on failure. */
mdot_status cu_nvrtc_compile(const cu_nvrtc *nvrtc, const char *const *parts, int part_count, int sm,
                             bool is_accelerated, ir_arena *arena, cu_cubin *out_cubin, mdot_error *err);

#endif
