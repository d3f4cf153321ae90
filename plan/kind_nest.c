/* kind_nest.c — general loop nests, with an optional reduction. */
#include "plan/kind_nest.h"

#include "plan/expr_ops.h"
#include "plan/kernel_kind.h"
#include "plan/plan_checker.h"
#include "plan/plan_machine.h"
#include "plan/plan_text.h"
#include "plan/scalar.h"
#include "plan/units.h"
#include "plan/visit.h"

#include <math.h>
#include <string.h>

#include "ir/ops/families.h"

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

static void print(const pl_kernel *kernel, pl_text *t)
{
    const pl_nest *k = &kernel->nest;
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        pl_put(t, i ? " " : "  ");
        pl_put(t, "%s i%d<", i < k->loop_count ? "for" : pl_reducer_name(k->reducer), i);
        pl_put_dim(t, k->extent[i]);
    }
    if (k->loop_count + k->reduce_count) pl_put(t, "\n");
    if (k->body != NULL) {
        pl_put(t, "  body ");
        pl_put_expr(t, k->body);
        pl_put(t, "\n");
    }
    for (int i = 0; i < k->store_count; i++) {
        pl_put(t, "  b%d[", k->store[i].buffer);
        pl_put_expr(t, k->store[i].index);
        pl_put(t, "] = ");
        pl_put_expr(t, k->store[i].value);
        pl_put(t, "\n");
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

/* ---- Interpretation ---------------------------------------------------------------------------------------------- */

static bool advance(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    for (int k = count - 1; k >= 0; k--) {
        if (++index[k] < pl_machine_dim(m, extent[k])) return true;
        index[k] = 0;
    }
    return false;
}

/* Sets the loop indices to zero. False: the loops have no point. */
static bool begin(const pl_machine *m, const ir_dim *extent, int64_t *index, int count)
{
    bool any = true;
    for (int k = 0; k < count; k++) {
        index[k] = 0;
        any = any && pl_machine_dim(m, extent[k]) > 0;
    }
    return any;
}

static pl_scalar neutral(pl_reducer reducer, mdot_dtype dtype)
{
    bool is_float = ir_dtype_is_float(dtype);
    double sign = reducer == PL_REDUCE_MAX ? -1 : 1;
    int bits = 8 * (int)mdot_dtype_size_bytes(dtype);
    int64_t most = ir_dtype_is_unsigned(dtype) ? (int64_t)(UINT64_MAX >> (64 - bits)) : INT64_MAX >> (64 - bits);
    switch (reducer) {
    case PL_REDUCE_SUM:
        return (pl_scalar){0};
    case PL_REDUCE_PROD:
        return is_float ? (pl_scalar){.f = 1} : (pl_scalar){.n = 1};
    default:
        break;
    }
    if (is_float) return (pl_scalar){.f = sign * INFINITY};
    if (reducer == PL_REDUCE_MIN) return (pl_scalar){.n = most};
    return (pl_scalar){.n = ir_dtype_is_unsigned(dtype) ? 0 : -most - 1};
}

static void reduce_values(pl_machine *m, const pl_nest *k)
{
    static const pl_expr_op steps[] = {
        [PL_REDUCE_SUM] = PL_ADD, [PL_REDUCE_PROD] = PL_MUL, [PL_REDUCE_MAX] = PL_MAX, [PL_REDUCE_MIN] = PL_MIN};
    mdot_dtype dtype = k->body->dtype;
    const ir_dim *extent = k->extent + k->loop_count;
    int64_t *index = m->index + k->loop_count;
    pl_scalar acc = neutral(k->reducer, dtype);
    if (begin(m, extent, index, k->reduce_count)) {
        do {
            acc = pl_scalar_apply(steps[k->reducer], dtype, dtype, (pl_scalar[]){acc, pl_machine_evaluate(m, k->body)});
        } while (advance(m, extent, index, k->reduce_count));
    }
    m->acc_f = acc.f;
    m->acc_n = acc.n;
}

static bool is_nan(pl_scalar x, mdot_dtype dtype)
{
    return ir_dtype_is_float(dtype) && x.f != x.f;
}

/* Position of the first or last maximum or minimum. A NaN is more extreme than every number. */
static void reduce_position(pl_machine *m, const pl_nest *k)
{
    mdot_dtype dtype = k->body->dtype;
    const ir_dim *extent = k->extent + k->loop_count;
    int64_t *index = m->index + k->loop_count, position = 0;
    bool last = k->reducer == PL_REDUCE_ARGMAX_LAST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    bool least = k->reducer == PL_REDUCE_ARGMIN_FIRST || k->reducer == PL_REDUCE_ARGMIN_LAST;
    pl_scalar best = {0};
    m->acc_n = 0;
    if (!begin(m, extent, index, k->reduce_count)) return;
    do {
        pl_scalar x = pl_machine_evaluate(m, k->body), pair[2] = {least ? x : best, least ? best : x};
        bool better = pl_scalar_apply(last ? PL_LE : PL_LT, MDOT_DTYPE_BOOL, dtype, pair).n != 0;
        if (is_nan(x, dtype) || is_nan(best, dtype)) better = is_nan(x, dtype) && (last || !is_nan(best, dtype));
        if (position == 0 || better) {
            best = x;
            m->acc_n = position;
        }
        position++;
    } while (advance(m, extent, index, k->reduce_count));
}

static void interpret(const pl_kernel *kernel, pl_machine *m)
{
    const pl_nest *k = &kernel->nest;
    if (!begin(m, k->extent, m->index, k->loop_count)) return;
    do {
        if (k->body != NULL && k->reducer >= PL_REDUCE_ARGMAX_FIRST)
            reduce_position(m, k);
        else if (k->body != NULL)
            reduce_values(m, k);
        pl_scalar value[PL_MAX_STORES];
        for (int s = 0; s < k->store_count; s++) value[s] = pl_machine_evaluate(m, k->store[s].value);
        for (int s = 0; s < k->store_count; s++)
            pl_machine_store(m, k->store[s].buffer, pl_machine_evaluate(m, k->store[s].index).n, value[s]);
    } while (m->status == MDOT_OK && advance(m, k->extent, m->index, k->loop_count));
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

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

/* ---- Slices ------------------------------------------------------------------------------------------------------ */

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

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    (void)plan;
    return pl_nest_split_loop(&kernel->nest) >= 0;
}

const pl_kind_ops pl_nest_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .interpret = interpret,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
