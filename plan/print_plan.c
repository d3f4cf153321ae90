/* print_plan.c — prints plans as text (see planner.h). */
#include "plan/planner.h"

#include "base/text.h"
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

#include <inttypes.h>
#include <stdlib.h>

static void put_type(FILE *t, const ir_type *type)
{
    fprintf(t, "%s[", mdot_dtype_name(type->dtype));
    for (int d = 0; d < type->rank; d++) {
        if (d) fprintf(t, ",");
        pl_put_dim(t, type->dim[d]);
    }
    fprintf(t, "]");
}

static void put_buffer(FILE *t, int number, const pl_buffer *b)
{
    static const char *const kinds[] = {"input", "output", "weight", "scratch"};
    fprintf(t, "b%d %s ", number, kinds[b->kind]);
    put_type(t, &b->type);
    fprintf(t, " \"%s\"", b->name);
    if (b->kind == PL_WEIGHT && b->use != PL_ELEMENTS) fprintf(t, b->use >= PL_TAPS ? " taps" : " matrix");
    if (pl_is_half(b))
        fprintf(t, " half");
    else if (b->reads & PL_READ_HALF && b->kind != PL_INPUT)
        fprintf(t, " whole and half");
    if (b->kind == PL_SCRATCH) fprintf(t, " at %" PRId64 " live %d-%d", b->offset_bytes, b->first_use, b->last_use);
    fprintf(t, "\n");
}

static void put_kernel(FILE *t, int number, const pl_kernel *k)
{
    fprintf(t, "%d %s: %s", number, k->name, k->origin);
    if (k->is_rowwise) fprintf(t, " | rowwise");
    if (k->unit_offset != 0) fprintf(t, " of L%+" PRId64, k->unit_offset);
    if (k->limit != NULL) fprintf(t, " | i%d up to b%d * %" PRId64, k->limit->loop, k->limit->count, k->limit->points);
    fprintf(t, "\n");
    pl_kinds[k->kind]->print(k, t);
}

char *pl_print(const pl_plan *plan, ir_arena *arena)
{
    bs_memstream text;
    if (!bs_memstream_open(&text)) return NULL;
    fprintf(text.file, "plan L<=%" PRId64 " scratch %" PRId64 " kernels %d", plan->max_length, plan->scratch_bytes,
            plan->kernel_count);
    if (plan->most_items > 0) fprintf(text.file, " items %d", plan->most_items);
    fprintf(text.file, "\n");
    for (int k = 0; k < plan->buffer_count; k++) put_buffer(text.file, k, &plan->buffers[k]);
    for (int k = 0; k < plan->kernel_count; k++) put_kernel(text.file, k, &plan->kernels[k]);
    char *whole = bs_memstream_close(&text, NULL);
    char *copy = whole != NULL ? ir_arena_strdup(arena, whole) : NULL;
    free(whole);
    return copy;
}
