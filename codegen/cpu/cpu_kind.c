/* cpu_kind.c — the list of kernel kinds in CPU code. */
#include "codegen/cpu/cpu_kind.h"

const cg_kind_ops *const cg_kinds[PL_KIND_COUNT] = {
#define PL_KERNEL_KIND(identifier, name) [PL_##identifier] = &cg_##name##_kind,
#include "codegen/cpu/cpu_target.h"
#include "plan/kernel_kinds.def"
};

int64_t cg_kernel_scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const cg_kind_ops *kind = cg_kinds[kernel->kind];
    return kind->scratch_bytes != NULL ? kind->scratch_bytes(plan, kernel, target) : 0;
}

LLVMValueRef cg_loop_extent(cg_emitter *e, const pl_kernel *kernel, int loop, ir_dim extent,
                            const LLVMValueRef *buffers)
{
    LLVMValueRef all = cg_dim(e, extent);
    const pl_row_limit *limit = kernel->limit;
    if (limit == NULL || limit->loop != loop) return all;
    LLVMValueRef count = cg_load(e, e->i64, buffers[limit->count], 0);
    return cg_imin(e, cg_imul(e, count, cg_int(e, limit->points)), all);
}
