/* cubin_fixture.h — cubins for tests of CUDA images: one made by hand, and real ones if NVRTC is installed. */
#pragma once

#include "codegen/cuda/nvrtc.h"

/* Architectures for which artefacts are made. */
typedef struct cubin_architecture {
    int sm;
    bool is_accelerated;
    const char *name;
    int since; /* the first NVRTC that supports it, for example 128 = 12.8 */
} cubin_architecture;
enum { CUBIN_ARCHITECTURES = 7 };
extern const cubin_architecture cubin_architectures[CUBIN_ARCHITECTURES];

/* A cubin for sm_90 in NVRTC 13's layout, with one kernel, "scale": 40 registers, 128 threads, 768 bytes of shared
 * memory, 16 of stack, 32 of parameters, 2 barriers, 5 instructions (3 HMMA). It is allocated in the arena. */
const unsigned char *cubin_by_hand(ir_arena *arena, size_t *out_bytes);

/* Opens NVRTC, or skips the running test and prints the reason. */
cu_nvrtc cubin_nvrtc_or_skip(void);
/* Returns false and prints the architecture's name if the installed NVRTC is too old for it. */
bool cubin_is_known(const cu_nvrtc *nvrtc, const cubin_architecture *architecture);
