/* cpu_recurrence.c — kernels repeated step by step: a loop around the linears and nests of a step.
 *
 * A matmul with one row or a few reads every weight once per step. The cache that holds the weights sets the speed, and
 * the linear kernel's strips reach it even with a single row. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/signatures.h"

/* Kernel kinds allowed in a step (pl_recurrence). */
static const cg_kind_ops *const step_kinds[PL_KIND_COUNT] = {
    [PL_LINEAR] = &cg_linear_kind, [PL_ATTENTION] = &cg_attention_kind,   [PL_NORM] = &cg_norm_kind,
    [PL_NEST] = &cg_nest_kind,     [PL_SEQUENTIAL] = &cg_sequential_kind, [PL_TREES] = &cg_trees_kind,
};

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_recurrence *k = &kernel->recurrence;
    LLVMValueRef slice_begin = e->slice_begin, slice_end = e->slice_end;
    e->slice_begin = e->slice_end = NULL; /* one call computes all of a step's kernels */
    CG_FOR (e, loop, cg_int(e, 0), cg_dim(e, k->steps), 1) {
        e->step = loop.index;
        for (int i = 0; i < k->kernel_count; i++) {
            const pl_kernel *inner = &k->kernels[i];
            step_kinds[inner->kind]->emit(e, plan, inner, buffers, scratch);
        }
    }
    e->step = NULL;
    e->slice_begin = slice_begin;
    e->slice_end = slice_end;
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const pl_recurrence *k = &kernel->recurrence;
    int64_t maximum = 0;
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kernel *inner = &k->kernels[i];
        const cg_kind_ops *kind = step_kinds[inner->kind];
        int64_t bytes = kind->scratch_bytes != NULL ? kind->scratch_bytes(plan, inner, target) : 0;
        if (bytes > maximum) maximum = bytes;
    }
    return maximum;
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_recurrence *k = &kernel->recurrence;
    cg_signature_add_dim(w, k->steps);
    cg_signature_add(w, k->kernel_count);
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kernel *inner = &k->kernels[i];
        cg_signature_add(w, inner->kind);
        step_kinds[inner->kind]->sign(inner, w);
    }
}

const cg_kind_ops cg_recurrence_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
