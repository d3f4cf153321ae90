/* kernel_kind.c — the list of kernel kinds, and calls through a kernel's table. */
#include "plan/kernel_kind.h"

const pl_kind_ops *const pl_kinds[PL_KIND_COUNT] = {
#define PL_KERNEL_KIND(identifier, name) [PL_##identifier] = &pl_##name##_kind,
#include "plan/kernel_kinds.def"
};

const char *pl_kind_name(pl_kind kind)
{
    static const char *const names[PL_KIND_COUNT] = {
#define PL_KERNEL_KIND(identifier, name) [PL_##identifier] = #name,
#include "plan/kernel_kinds.def"
    };
    return names[kind];
}

void pl_kernel_visit_buffers(const pl_kernel *kernel, void (*visit)(void *user, int buffer, bool is_written),
                             void *user)
{
    const pl_visitor visitor = {.visit = visit, .user = user};
    pl_kinds[kernel->kind]->visit(kernel, &visitor);
    if (kernel->limit != NULL) visit(user, kernel->limit->count, false);
}

bool pl_is_matrix(const pl_plan *plan, const pl_kernel *kernel)
{
    const pl_kind_ops *kind = pl_kinds[kernel->kind];
    return !kernel->is_step && kind->is_matrix != NULL && kind->is_matrix(kernel, plan);
}

bool pl_is_split(const pl_plan *plan, const pl_kernel *kernel)
{
    const pl_kind_ops *kind = pl_kinds[kernel->kind];
    return kind->is_split != NULL && kind->is_split(kernel, plan);
}
