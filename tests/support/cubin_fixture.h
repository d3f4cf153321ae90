/* cubin_fixture.h — what tests of CUDA images share: a cubin made by hand, and real ones where NVRTC is installed. */
#ifndef CUBIN_FIXTURE_H
#define CUBIN_FIXTURE_H

#include "codegen/cuda/nvrtc.h"

/* Architectures that artefacts are made for. */
typedef struct cubin_architecture {
    int sm;
    bool is_accelerated;
    const char *name;
    int since; /* the first NVRTC that knows it, 128 for 12.8 */
} cubin_architecture;
enum { CUBIN_ARCHITECTURES = 7 };
extern const cubin_architecture cubin_architectures[CUBIN_ARCHITECTURES];

/* A cubin for sm_90 as NVRTC 13 lays them out, with one kernel, "scale": 40 registers, 128 threads, 768 bytes of shared
 * memory, 16 of stack, 32 of parameters, 2 barriers, 5 instructions of which 3 are HMMA. Lies in the arena. */
const unsigned char *cubin_by_hand(ir_arena *arena, size_t *out_bytes);

/* NVRTC, or the running test is skipped with the reason printed. */
cu_nvrtc cubin_nvrtc_or_skip(void);
/* False, with the architecture's name printed, where the NVRTC at hand is too old for it. */
bool cubin_is_known(const cu_nvrtc *nvrtc, const cubin_architecture *architecture);

#endif
