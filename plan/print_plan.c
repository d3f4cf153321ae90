/* print_plan.c — prints plans as text (see planner.h). */
#include "plan/planner.h"

#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

#include <inttypes.h>

static void put_type(pl_text *t, const ir_type *type)
{
    pl_put(t, "%s[", mdot_dtype_name(type->dtype));
    for (int d = 0; d < type->rank; d++) {
        if (d) pl_put(t, ",");
        pl_put_dim(t, type->dim[d]);
    }
    pl_put(t, "]");
}

static void put_buffer(pl_text *t, int number, const pl_buffer *b)
{
    static const char *const kinds[] = {"input", "output", "weight", "scratch"};
    pl_put(t, "b%d %s ", number, kinds[b->kind]);
    put_type(t, &b->type);
    pl_put(t, " \"%s\"", b->name);
    if (b->kind == PL_WEIGHT && b->use != PL_ELEMENTS) pl_put(t, b->use == PL_TAPS ? " taps" : " matrix");
    if (pl_is_half(b))
        pl_put(t, " half");
    else if (b->reads & PL_READ_HALF && b->kind != PL_INPUT)
        pl_put(t, " whole and half");
    if (b->kind == PL_SCRATCH) pl_put(t, " at %" PRId64 " live %d-%d", b->offset_bytes, b->first_use, b->last_use);
    pl_put(t, "\n");
}

static void put_kernel(pl_text *t, int number, const pl_kernel *k)
{
    pl_put(t, "%d %s: %s", number, k->name, k->origin);
    if (k->is_rowwise) pl_put(t, " | rowwise");
    if (k->unit_offset != 0) pl_put(t, " of L%+" PRId64, k->unit_offset);
    if (k->limit != NULL) pl_put(t, " | i%d up to b%d * %" PRId64, k->limit->loop, k->limit->count, k->limit->points);
    pl_put(t, "\n");
    pl_kinds[k->kind]->print(k, t);
}

char *pl_print(const pl_plan *plan, ir_arena *arena)
{
    pl_text t = {.arena = arena};
    pl_put(&t, "plan L<=%" PRId64 " scratch %" PRId64 " kernels %d", plan->max_length, plan->scratch_bytes,
           plan->kernel_count);
    if (plan->most_items > 0) pl_put(&t, " items %d", plan->most_items);
    pl_put(&t, "\n");
    for (int k = 0; k < plan->buffer_count; k++) put_buffer(&t, k, &plan->buffers[k]);
    for (int k = 0; k < plan->kernel_count; k++) put_kernel(&t, k, &plan->kernels[k]);
    return pl_text_finish(&t);
}
