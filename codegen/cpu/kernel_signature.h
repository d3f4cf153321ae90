/* kernel_signature.h — a kernel's specification as bytes: kernels with equal keys are the same code. */
#ifndef CG_CPU_KERNEL_SIGNATURE_H
#define CG_CPU_KERNEL_SIGNATURE_H

#include "codegen/cpu/cpu_backend.h"

#include <string.h>

typedef struct cg_signature {
    const void *bytes;
    size_t count;
    uint64_t hash;
    int buffer_count;
    const int *buffers; /* plan buffers in the order of first use: the function's parameters */
} cg_signature;

/* Where the key's writer notes of each buffer of a plan which it is of the kernel's: for all kernels of a plan one, so
 * that a kernel takes memory for its own buffers only. In the arena; NULL when memory is out. */
int *cg_key_positions(const pl_plan *plan, ir_arena *arena);
/* Of the kernel's code for a target, in the arena. `positions` are as they were afterwards. False when memory is out.
 */
bool cg_signature_of(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel, int *positions,
                     ir_arena *arena, cg_signature *out_key);

static inline bool cg_signature_equal(const cg_signature *a, const cg_signature *b)
{
    return a->hash == b->hash && a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}

#endif
