/* kind_nest.c — general loop nests, with an optional reduction. */
#include "plan/kernel_kind.h"

#include "plan/kind_tools.h"

#include <string.h>

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_nest *k = &kernel->nest;
    pl_visit_loads(v, k->body);
    for (int i = 0; i < k->store_count; i++) {
        pl_visit_loads(v, k->store[i].index);
        pl_visit_loads(v, k->store[i].value);
        pl_visit_write(v, k->store[i].buffer);
    }
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_nest *k = &kernel->nest;
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        fprintf(t, i ? " " : "  ");
        fprintf(t, "%s i%d<", i < k->loop_count ? "for" : pl_reducer_name(k->reducer), i);
        pl_put_dim(t, k->extent[i]);
    }
    if (k->loop_count + k->reduce_count) fprintf(t, "\n");
    if (k->body != NULL) {
        fprintf(t, "  body ");
        pl_put_expr(t, k->body);
        fprintf(t, "\n");
    }
    for (int i = 0; i < k->store_count; i++) {
        fprintf(t, "  b%d[", k->store[i].buffer);
        pl_put_expr(t, k->store[i].index);
        fprintf(t, "] = ");
        pl_put_expr(t, k->store[i].value);
        fprintf(t, "\n");
    }
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_nest *k = &kernel->nest;
    if (k->loop_count + k->reduce_count > PL_MAX_LOOPS || k->store_count > PL_MAX_STORES) {
        pl_check_fail(c, "too many loops or stores", -1);
        return;
    }
    memcpy(c->extent, k->extent, sizeof c->extent);
    c->acc_count = 0;
    c->loop_count = k->loop_count + k->reduce_count;
    if ((k->body != NULL) != (k->reduce_count > 0) || (k->body != NULL) != (k->reducer != PL_REDUCE_NONE))
        pl_check_fail(c, "reduction loops, body and reducer do not match", -1);
    if (k->body != NULL) {
        pl_check_expr(c, k->body);
        c->acc_count = 1;
        c->acc_dtype = k->reducer >= PL_REDUCE_ARGMAX_FIRST ? MDOT_DTYPE_I64 : k->body->dtype;
    }
    c->loop_count = k->loop_count;
    for (int s = 0; s < k->store_count && c->status == MDOT_OK; s++) {
        const pl_store *store = &k->store[s];
        const pl_buffer *buffer = pl_check_buffer(c, store->buffer);
        if (buffer == NULL) return;
        if (buffer->kind == PL_INPUT || buffer->kind == PL_WEIGHT)
            pl_check_fail(c, "a store into a read-only buffer", store->buffer);
        if (buffer->type.dtype != store->value->dtype)
            pl_check_fail(c, "the type of a store differs from that of its buffer", store->buffer);
        pl_check_expr(c, store->index);
        pl_check_expr(c, store->value);
        pl_check_position(c, store->buffer, store->index);
    }
}

static bool store_follows(const pl_units *u, const pl_store *s)
{
    int64_t step;
    return pl_find_step(u, s->index, &step) && pl_access_follows(u, s->buffer, step) && pl_is_of_unit(u, s->value);
}

/* There must be exactly one loop over the units, and every other loop must have a fixed number of points. */
static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_nest *k = &kernel->nest;
    int loop = -1;
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        if (ir_dim_is_number(k->extent[i])) continue;
        if (loop >= 0 || i >= k->loop_count) return false;
        loop = i;
    }
    if (loop < 0 || !pl_begin_units(u, loop, k->extent[loop]) || !pl_is_of_unit(u, k->body)) return false;
    for (int s = 0; s < k->store_count; s++)
        if (!store_follows(u, &k->store[s])) return false;
    return true;
}

/* Points of the nest per iteration of the loop, including reductions. A variable length counts as INT64_MAX. */
static int64_t points_of_a_unit(const pl_nest *k, int loop)
{
    int64_t points = 1;
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        if (i == loop) continue;
        if (!ir_dim_is_number(k->extent[i])) return INT64_MAX;
        if (__builtin_mul_overflow(points, k->extent[i].offset, &points)) return INT64_MAX;
    }
    return points;
}

/* Threads that divide a kernel meet after it, and each divided nest adds code for its slice at every ISA level.
 * Therefore loops with few columns per row are left to one call. */
int pl_nest_split_loop(const pl_nest *k)
{
    enum { FEWEST_POINTS = 64 }; /* minimum points per iteration */
    for (int i = 0; i < k->loop_count; i++)
        if (pl_is_split_extent(k->extent[i])) return points_of_a_unit(k, i) >= FEWEST_POINTS ? i : -1;
    return -1;
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan) { return pl_nest_split_loop(&kernel->nest) >= 0; }

const pl_kind_ops pl_nest_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
