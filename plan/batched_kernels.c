/* batched_kernels.c — selects the kernels that process the rows of several items at once, in a call with several items
 * (see planner.h). kind_tools.h states the rule for one kernel. */
#include "plan/planner.h"

#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

enum { MOST_ITEMS = 64 };

/* Extents are products of scale * (L + r), without floors, because a floor of a sum is not the sum of the floors.
 * Suppose that the items' lengths, plus the greatest r for each item except the first, add up to at most
 * max_length. Then the items' tensors need at most the memory of a single call at max_length, because sums of
 * products of non-negative numbers are at most products of sums. */
static bool note_offsets(pl_plan *plan, const ir_type *type)
{
    int lengths = 0;
    for (int d = 0; d < type->rank; d++) {
        ir_dim dim = type->dim[d];
        if (ir_dim_is_number(dim)) continue;
        if (!ir_dim_is_affine(dim) || dim.scale < 0 || ++lengths > PL_MOST_LENGTHS) return false;
        int64_t offset = dim.offset > 0 ? (dim.offset + dim.scale - 1) / dim.scale : 0;
        if (offset > plan->unit_offset) plan->unit_offset = offset;
    }
    return true;
}

/* Each item has its own tensors without the length. Together they may take at most as much memory as all tensors with
 * the length. */
static int count_items(pl_plan *plan)
{
    int64_t fixed = 0, growing = 0;
    plan->unit_offset = 0;
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind == PL_WEIGHT) continue;
        if (!note_offsets(plan, &buffer->type)) return 0;
        *(pl_has_length(&buffer->type) ? &growing : &fixed) += buffer->max_bytes;
    }
    int64_t first = ir_first_length(plan->graph), maximum = plan->max_length / first;
    if (plan->unit_offset > plan->max_length - 2 * first) return 0; /* two items never fit */
    if (fixed > 0 && growing / fixed < maximum) maximum = growing / fixed;
    return maximum < 2 ? 0 : maximum > MOST_ITEMS ? MOST_ITEMS : (int)maximum;
}

/* Items are combined only if it is worthwhile, because work that is done item by item walks through the memory of all
 * items once per kernel. */
void pl_decide_items(pl_plan *plan)
{
    double together = 0;
    plan->most_items = 0;
    if (plan->max_length == 0) return;
    for (int k = 0; k < plan->kernel_count; k++) {
        pl_units units = {.plan = plan};
        pl_kernel *kernel = &plan->kernels[k];
        const pl_kind_ops *kind = pl_kinds[kernel->kind];
        kernel->is_rowwise = kernel->limit == NULL && kind->is_rowwise != NULL && kind->is_rowwise(kernel, &units);
        kernel->unit_offset = kernel->is_rowwise ? units.offset : 0;
        if (kernel->is_rowwise) together += kernel->flops;
    }
    if (together >= plan->flops / 2) plan->most_items = count_items(plan);
}
