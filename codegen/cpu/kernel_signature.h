/* kernel_signature.h — the signature of a kernel: its specification as bytes. Kernels with equal signatures have the
 * same code. */
#ifndef CG_CPU_KERNEL_SIGNATURE_H
#define CG_CPU_KERNEL_SIGNATURE_H

#include "codegen/cpu/cpu_target.h"

#include <string.h>

typedef struct cg_signature {
    const void *bytes;
    size_t count;
    uint64_t hash;
    int buffer_count;
    const int *buffers; /* plan buffers in the order of first use: the function's parameters */
} cg_signature;

/* An array in which cg_signature_of maps a plan's buffers to the kernel's. All kernels of a plan share it, so that a
 * kernel needs memory only for its own buffers. In the arena; NULL if memory runs out. */
int *cg_signature_positions(const pl_plan *plan, ir_arena *arena);
/* The signature of the kernel's code for a target, in the arena. `positions` is restored afterwards. Returns false if
 * memory runs out. */
bool cg_signature_of(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel, int *positions,
                     ir_arena *arena, cg_signature *out_signature);

static inline bool cg_signature_equal(const cg_signature *a, const cg_signature *b)
{
    return a->hash == b->hash && a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}

#endif
