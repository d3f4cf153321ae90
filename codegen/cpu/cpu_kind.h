/* cpu_kind.h — the function table of each kernel kind for CPUs, one file per kind. */
#pragma once

#include "codegen/cpu/emit.h"
#include "plan/plan.h"

struct cg_signature_writer; /* signatures.h */

typedef struct cg_kind_ops {
    /* Emits the current function's body, which computes the call's slice of the outermost loop. buffers[b] is plan
     * buffer b's pointer. `scratch` is 64-byte aligned memory with cg_kernel_scratch_bytes for this worker. Results are
     * bit-identical with and without slices, because units are whole tiles, vectors and blocks, so the same
     * instructions compute every element. */
    void (*emit)(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch);
    /* Working memory that a kernel needs on a target, besides the plan's buffers, at max_length. NULL: none. */
    int64_t (*scratch_bytes)(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target);
    /* Writes every kernel field that `emit` may read. */
    void (*sign)(const pl_kernel *kernel, struct cg_signature_writer *writer);
} cg_kind_ops;

#define PL_KERNEL_KIND(identifier, name) extern const cg_kind_ops cg_##name##_kind;
#include "plan/kernel_kinds.def"

extern const cg_kind_ops *const cg_kinds[PL_KIND_COUNT]; /* indexed by pl_kind */

int64_t cg_kernel_scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target);
