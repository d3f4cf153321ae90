/* verify_plan.c — checks the rules of plan.h: kernel by kernel, then the memory plan (see planner.h). */
#include "plan/planner.h"

#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

static void check_memory(pl_checker *c)
{
    const pl_plan *plan = c->plan;
    for (int a = 0; a < plan->buffer_count && c->status == MDOT_OK; a++) {
        const pl_buffer *x = &plan->buffers[a];
        if (x->kind != PL_SCRATCH || x->first_use < 0) continue;
        int64_t end = x->offset_bytes + pl_capacity_bytes(plan, x);
        bool fits = x->offset_bytes >= 0 && x->offset_bytes % 64 == 0 && end <= plan->scratch_bytes;
        if (!fits) c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: b%d is outside of the scratch memory", a);
        for (int b = 0; b < a; b++) {
            const pl_buffer *y = &plan->buffers[b];
            if (y->kind != PL_SCRATCH || y->first_use < 0) continue;
            bool disjoint = x->last_use < y->first_use || y->last_use < x->first_use ||
                            x->offset_bytes >= y->offset_bytes + pl_capacity_bytes(plan, y) || y->offset_bytes >= end;
            if (!disjoint)
                c->status = mdot_fail(c->err, MDOT_MALFORMED, "plan: b%d and b%d overlap while both are live", b, a);
        }
    }
}

mdot_status pl_verify(const pl_plan *plan, mdot_error *err)
{
    pl_checker c = {.plan = plan, .err = err};
    for (int k = 0; k < plan->kernel_count && c.status == MDOT_OK; k++) {
        c.kernel = &plan->kernels[k];
        const pl_kind_ops *kind = pl_kinds[c.kernel->kind];
        c.is_matrix = pl_is_matrix(plan, c.kernel);
        kind->verify(c.kernel, &c);
        if (c.kernel->limit != NULL) pl_check_read(&c, c.kernel->limit->count, false);
    }
    if (c.status == MDOT_OK) check_memory(&c);
    return c.status;
}
