/* precision.c — see planner.h. */
#include "plan/planner.h"

#include "plan/kernel_kind.h"

static void note_read(void *user, int buffer, bool is_written)
{
    const pl_plan *plan = user;
    if (!is_written) plan->buffers[buffer].reads |= PL_READ_WHOLE;
}

/* Factors of a matrix kernel's products are noted separately, because an epilogue may read the same buffer in f32. */
static void note_factor(void *user, int buffer)
{
    const pl_plan *plan = user;
    plan->buffers[buffer].reads |= PL_READ_HALF;
}

/* A kernel that combines with existing content also reads the buffers that it writes. */
static void note_read_or_update(void *user, int buffer, bool is_written) { note_read(user, buffer, false); }

void pl_decide_precision(pl_plan *plan)
{
    for (int b = 0; b < plan->buffer_count; b++) plan->buffers[b].reads = 0;
    for (int k = 0; k < plan->kernel_count; k++) {
        const pl_kernel *kernel = &plan->kernels[k];
        const pl_kind_ops *kind = pl_kinds[kernel->kind];
        const pl_visitor visitor = {.visit = kind->updates_outputs ? note_read_or_update : note_read,
                                    .visit_factor = pl_is_matrix(plan, kernel) ? note_factor : NULL,
                                    .user = plan};
        kind->visit(kernel, &visitor);
        if (kernel->limit != NULL) note_read(plan, kernel->limit->count, false);
    }
}
