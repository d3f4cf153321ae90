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
