/* plan_interpreter_sequential.c — sequential kernels with naive loops (see plan_interpreter.h). */
#include "tests/support/plan_interpreter.h"

#include "ir/ops/families.h"
#include "ir/ops/operands.h"

static pl_scalar get(const ir_wide *wide, int64_t at)
{
    return wide->f != NULL ? (pl_scalar){.f = wide->f[at]} : (pl_scalar){.n = wide->i[at]};
}

static void set(ir_wide *wide, int64_t at, pl_scalar value)
{
    if (wide->f != NULL)
        wide->f[at] = value.f;
    else
        wide->i[at] = ir_wrap_integer(wide->dtype, value.n);
}

static void run_cumulate(const pl_sequential *k, const ir_wide *in, ir_wide *out)
{
    ir_axis_view view = ir_view_axis(in, k->axis);
    for (int64_t row = 0; row < view.outer * view.inner; row++) {
        int64_t base = row / view.inner * view.extent * view.inner + row % view.inner;
        pl_scalar sum = {0};
        for (int64_t step = 0; step < view.extent; step++) {
            int64_t at = base + (k->reverse ? view.extent - 1 - step : step) * view.inner;
            pl_scalar after = pl_scalar_apply(PL_ADD, in->dtype, in->dtype, (pl_scalar[]){sum, get(in, at)});
            set(out, at, k->exclusive ? sum : after);
            sum = after;
        }
    }
}

/* Does x rank strictly before y? NaN is above all numbers, and equal values keep their order. */
static bool ranks_before(mdot_dtype dtype, bool largest, pl_scalar x, pl_scalar y)
{
    bool x_nan = ir_dtype_is_float(dtype) && x.f != x.f, y_nan = ir_dtype_is_float(dtype) && y.f != y.f;
    if (x_nan || y_nan) return x_nan != y_nan && x_nan == largest;
    pl_scalar pair[2] = {largest ? y : x, largest ? x : y};
    return pl_scalar_apply(PL_LT, MDOT_DTYPE_BOOL, dtype, pair).n != 0;
}

/* Selection: each rank in turn takes the best remaining element. */
static void run_top_k(pl_machine *m, const pl_sequential *k, const ir_wide *in, ir_wide *values, ir_wide *positions)
{
    ir_axis_view view = ir_view_axis(in, k->axis);
    int64_t wanted = (values != NULL ? values : positions)->dims[k->axis];
    bool *taken = IR_NEW_ARRAY(m->arena, bool, view.extent + 1);
    if (taken == NULL) return;
    for (int64_t row = 0; row < view.outer * view.inner; row++) {
        int64_t o = row / view.inner, i = row % view.inner;
        for (int64_t e = 0; e < view.extent; e++) taken[e] = false;
        for (int64_t rank = 0; rank < wanted; rank++) {
            int64_t best = -1;
            for (int64_t e = 0; e < view.extent; e++) {
                pl_scalar x = get(in, (o * view.extent + e) * view.inner + i);
                if (taken[e]) continue;
                if (best < 0 ||
                    ranks_before(in->dtype, k->largest, x, get(in, (o * view.extent + best) * view.inner + i)))
                    best = e;
            }
            taken[best] = true;
            int64_t to = (o * wanted + rank) * view.inner + i;
            if (values != NULL) set(values, to, get(in, (o * view.extent + best) * view.inner + i));
            if (positions != NULL) positions->i[to] = best;
        }
    }
}

static void combine(const pl_sequential *k, ir_wide *out, int64_t to, const ir_wide *updates, int64_t from)
{
    static const pl_expr_op steps[] = {
        [PL_REDUCE_SUM] = PL_ADD, [PL_REDUCE_PROD] = PL_MUL, [PL_REDUCE_MAX] = PL_MAX, [PL_REDUCE_MIN] = PL_MIN};
    pl_scalar update = get(updates, from);
    if (k->reduction != PL_REDUCE_NONE)
        update = pl_scalar_apply(steps[k->reduction], out->dtype, out->dtype, (pl_scalar[]){get(out, to), update});
    set(out, to, update);
}

/* Negative positions count from the end; others are clamped. */
static int64_t position(int64_t at, int64_t extent)
{
    if (at < 0) at += extent;
    if (at >= extent) at = extent - 1;
    return at < 0 ? 0 : at;
}

/* Does update number `e` along the axis exist? */
static bool is_update(const pl_sequential *k, const ir_wide *count, const ir_wide *updates, int64_t e)
{
    ir_axis_view view = ir_view_axis(updates, k->axis);
    return count == NULL || e / view.inner % view.extent < count->i[0];
}

static void run_scatter_elements(const pl_sequential *k, ir_wide *const *in, ir_wide *out)
{
    const ir_wide *indices = in[1], *updates = in[2];
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_strides(out->rank, out->dims, strides);
    for (int64_t e = 0; e < indices->count; e++) {
        int64_t at = position(indices->i[e], out->dims[k->axis]);
        int64_t to = ir_dot_index(out->rank, index, strides) + (at - index[k->axis]) * strides[k->axis];
        if (is_update(k, in[3], updates, e)) combine(k, out, to, updates, e);
        ir_next_index(indices->rank, indices->dims, index);
    }
}

static void run_scatter_nd(const pl_sequential *k, ir_wide *const *in, ir_wide *out)
{
    const ir_wide *indices = in[1], *updates = in[2];
    int length = (int)indices->dims[indices->rank - 1];
    int64_t strides[MDOT_MAX_RANK], slice = ir_product(out->dims, length, out->rank);
    int64_t tuples = ir_product(indices->dims, 0, indices->rank - 1);
    ir_strides(out->rank, out->dims, strides);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t to = 0;
        for (int i = 0; i < length; i++) to += position(indices->i[t * length + i], out->dims[i]) * strides[i];
        for (int64_t e = 0; e < slice; e++)
            if (is_update(k, in[3], updates, t * slice + e)) combine(k, out, to + e, updates, t * slice + e);
    }
}

static void run_tensor_scatter(const pl_sequential *k, const ir_wide *update, const ir_wide *starts, ir_wide *out)
{
    ir_axis_view cache = ir_view_axis(out, k->axis), part = ir_view_axis(update, k->axis);
    int64_t per_batch = ir_product(out->dims, 1, k->axis);
    for (int64_t row = 0; row < cache.outer; row++) {
        int64_t start = starts != NULL ? starts->i[row / per_batch] : 0;
        int64_t limit = k->circular ? cache.extent - 1 : cache.extent - part.extent;
        start = start < 0 ? 0 : start > limit && !k->circular ? limit : start;
        for (int64_t e = 0; e < part.extent; e++) {
            int64_t at = (start + e) % cache.extent;
            ir_copy_elements(out, (row * cache.extent + at) * cache.inner, update,
                             (row * part.extent + e) * cache.inner, cache.inner);
        }
    }
}

void interpret_sequential(const pl_kernel *kernel, pl_machine *m)
{
    const pl_sequential *k = &kernel->sequential;
    ir_wide *in[4], *out[2];
    for (int i = 0; i < 4; i++) in[i] = k->input[i] < 0 ? NULL : m->memory[k->input[i]];
    for (int i = 0; i < 2; i++) out[i] = k->output[i] < 0 ? NULL : m->memory[k->output[i]];
    switch (k->operation) {
    case PL_SEQ_CUMULATE: run_cumulate(k, in[0], out[0]); return;
    case PL_SEQ_TOP_K: run_top_k(m, k, in[0], out[0], out[1]); return;
    default: break;
    }
    ir_copy_elements(out[0], 0, in[0], 0, in[0]->count);
    if (k->operation == PL_SEQ_SCATTER_ELEMENTS)
        run_scatter_elements(k, in, out[0]);
    else if (k->operation == PL_SEQ_SCATTER_ND)
        run_scatter_nd(k, in, out[0]);
    else
        run_tensor_scatter(k, in[1], in[2], out[0]);
}
