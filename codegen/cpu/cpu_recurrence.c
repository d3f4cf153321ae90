/* cpu_recurrence.c — kernels that repeat step by step: a loop around the linears and nests of a step.
 *
 * A step's matmul of one row or a few rows reads every weight once. Its speed is that of the cache that holds the
 * weights, and the linear kernel's strips reach it even with a single row.
 */
#include "codegen/cpu/emit.h"

void cg_recurrence(cg_emitter *e, const pl_plan *plan, const pl_recurrence *k, const LLVMValueRef *buffers,
                   LLVMValueRef scratch)
{
    LLVMValueRef share_begin = e->share_begin, share_end = e->share_end;
    cg_loop step;
    e->share_begin = e->share_end = NULL; /* one call computes all of a step's kernels */
    cg_loop_begin(e, &step, cg_int(e, 0), cg_dim(e, k->steps), 1, 0, NULL, true);
    e->step = step.index;
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kernel *kernel = &k->kernels[i];
        if (kernel->kind == PL_LINEAR)
            cg_linear(e, plan, &kernel->linear, buffers, scratch);
        else
            cg_nest(e, plan, &kernel->nest, buffers, scratch);
    }
    cg_loop_end(e, &step, NULL);
    e->step = NULL;
    e->share_begin = share_begin;
    e->share_end = share_end;
}

int64_t cg_recurrence_scratch_bytes(const pl_plan *plan, const pl_recurrence *k, const cg_cpu_target *target)
{
    int64_t most = 0;
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kernel *kernel = &k->kernels[i];
        int64_t bytes = kernel->kind == PL_LINEAR ? cg_linear_scratch_bytes(plan, &kernel->linear, target) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}
