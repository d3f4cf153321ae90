/* reduce.c — reductions along axes: ReduceSum and similar ones, ArgMax and ArgMin.
 *
 * A reduction is a fold, defined by a table: a start, a step for each element, a finish. The axes are an input (ONNX
 * opset 18). If they are absent, all axes are reduced, or none if noop_with_empty_axes is set; then step and finish
 * still apply.
 */
#include "ir/ops/families.h"

#include <math.h>

static double add(double acc, double x) { return acc + x; }
static double multiply(double acc, double x) { return acc * x; }
static double add_magnitude(double acc, double x) { return acc + fabs(x); }
static double add_square(double acc, double x) { return acc + x * x; }
static double larger(double acc, double x) { return acc != acc || acc > x ? acc : x; } /* NaN takes precedence */
static double smaller(double acc, double x) { return acc != acc || acc < x ? acc : x; }

/* log(exp(acc) + exp(x)) without overflow. */
static double add_exponential(double acc, double x)
{
    if (acc != acc || x != x) return NAN;
    double top = fmax(acc, x), rest = fmin(acc, x);
    return isinf(top) ? top : top + log1p(exp(rest - top));
}

static double as_is(double acc, double count) { return acc; }

static double divide(double acc, double count) { return acc / count; }

static double root(double acc, double count) { return sqrt(acc); }

static double logarithm(double acc, double count) { return log(acc); }

#define INTEGER_STEP(name, expression)                                                                                 \
    static int64_t name(int64_t acc, int64_t x, bool is_unsigned) { return expression; }

INTEGER_STEP(add_integer, (int64_t)((uint64_t)acc + (uint64_t)x))
INTEGER_STEP(multiply_integer, ((int64_t)((uint64_t)acc * (uint64_t)x)))

static int64_t add_integer_magnitude(int64_t acc, int64_t x, bool is_unsigned)
{
    bool negative = !is_unsigned && x < 0;
    return (int64_t)(negative ? (uint64_t)acc - (uint64_t)x : (uint64_t)acc + (uint64_t)x);
}

INTEGER_STEP(add_integer_square, (int64_t)((uint64_t)acc + (uint64_t)x * (uint64_t)x))

static bool is_below(int64_t a, int64_t b, bool is_unsigned) { return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b; }

INTEGER_STEP(larger_integer, is_below(acc, x, is_unsigned) ? x : acc)
INTEGER_STEP(smaller_integer, is_below(x, acc, is_unsigned) ? x : acc)

typedef struct fold {
    double start; /* also the result of an empty reduction; clamped to the integer range */
    double (*step)(double acc, double x);
    double (*finish)(double acc, double count);
    /* NULL: integers are folded in double and the result is truncated. */
    int64_t (*step_integer)(int64_t acc, int64_t x, bool is_unsigned);
    int step_flops, finish_flops;
} fold;

static const fold folds[IR_OP_COUNT] = {
    [IR_OP_ReduceSum] = {0, add, as_is, add_integer, 1, 0},
    [IR_OP_ReduceMean] = {0, add, divide, NULL, 1, 1},
    [IR_OP_ReduceMax] = {-INFINITY, larger, as_is, larger_integer, 1, 0},
    [IR_OP_ReduceMin] = {INFINITY, smaller, as_is, smaller_integer, 1, 0},
    [IR_OP_ReduceProd] = {1, multiply, as_is, multiply_integer, 1, 0},
    [IR_OP_ReduceL1] = {0, add_magnitude, as_is, add_integer_magnitude, 2, 0},
    [IR_OP_ReduceL2] = {0, add_square, root, NULL, 2, 1},
    [IR_OP_ReduceLogSum] = {0, add, logarithm, NULL, 1, 1},
    [IR_OP_ReduceLogSumExp] = {-INFINITY, add_exponential, as_is, NULL, 2, 1},
    [IR_OP_ReduceSumSquare] = {0, add_square, as_is, add_integer_square, 2, 0},
    [IR_OP_ArgMax] = {.step_flops = 1},
    [IR_OP_ArgMin] = {.step_flops = 1},
};

/* The reduced axes as a bit mask, from the axes as far as they are given. */
static mdot_status reduced_axes(const ir_node *node, const int64_t *axes, int count, int rank, unsigned *out_mask,
                                mdot_error *err)
{
    if (count == 0) {
        *out_mask = ir_node_int(node, "noop_with_empty_axes", 0) ? 0 : (1u << rank) - 1;
        return MDOT_OK;
    }
    return ir_axes_mask(node, axes, count, rank, out_mask, err);
}

/* bool cannot be summed; its maximum and minimum are "any" and "all" (ONNX opset 20). */
static mdot_status check_dtype(const ir_node *node, mdot_dtype dtype, mdot_error *err)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (dtype == MDOT_DTYPE_STRING ||
        (dtype == MDOT_DTYPE_BOOL && opcode != IR_OP_ReduceMax && opcode != IR_OP_ReduceMin))
        return ir_fail(node, err, MDOT_MALFORMED, "the operator is undefined for %s", mdot_dtype_name(dtype));
    return MDOT_OK;
}

static void set_reduced_type(ir_node *node, mdot_dtype dtype, unsigned mask)
{
    const ir_type *type = &node->inputs[0]->type;
    bool keep = ir_node_int(node, "keepdims", 1) != 0;
    ir_dim dims[MDOT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < type->rank; i++) {
        bool reduced = mask >> i & 1;
        if (reduced && !keep) continue;
        dims[rank++] = reduced ? ir_dim_number(1) : type->dim[i];
    }
    ir_set_type(node, 0, dtype, rank, dims);
}

/* One step on known content. False: the result is unknown. */
static bool known_step(const ir_graph *graph, ir_opcode opcode, ir_dim acc, ir_dim x, ir_dim *out)
{
    switch (opcode) {
    case IR_OP_ReduceSum: return ir_dim_add(acc, x, out);
    case IR_OP_ReduceProd: return ir_dim_mul(acc, x, out);
    case IR_OP_ReduceMax: return ir_dim_max(graph, acc, x, out);
    case IR_OP_ReduceMin: return ir_dim_min(graph, acc, x, out);
    default: return false;
    }
}

/* Reduces one-dimensional known content to one number, for example the element count of a shape or its largest dim. */
static mdot_status reduce_known(ir_graph *graph, ir_node *node, unsigned mask, mdot_error *err)
{
    ir_dim elements[IR_MAX_KNOWN];
    int count;
    const ir_value *input = node->inputs[0];
    bool one_dimensional = input->type.rank == 1 && mask == 1 && input->type.dtype == MDOT_DTYPE_I64;
    if (!one_dimensional || !ir_value_known(input, elements, &count) || count == 0) return MDOT_OK;
    ir_dim acc = elements[0];
    for (int i = 1; i < count; i++)
        if (!known_step(graph, ir_node_opcode(node), acc, elements[i], &acc)) return MDOT_OK;
    return folds[ir_node_opcode(node)].step_integer != NULL ? ir_set_known(graph, node, 0, &acc, 1, err) : MDOT_OK;
}

mdot_status ir_shape_reduce(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    int64_t axes[IR_MAX_KNOWN];
    int count = 0;
    unsigned mask = 0;
    BS_TRY(check_dtype(node, type->dtype, err));
    BS_TRY(ir_input_ints(node, 1, axes, &count, err));
    BS_TRY(reduced_axes(node, axes, count, type->rank, &mask, err));
    set_reduced_type(node, type->dtype, mask);
    return reduce_known(graph, node, mask, err);
}

mdot_status ir_shape_arg(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    int axis = 0;
    BS_TRY(check_dtype(node, type->dtype, err));
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), type->rank, &axis, err));
    bool is_empty = ir_dim_is(type->dim[axis], 0);
    set_reduced_type(node, MDOT_DTYPE_I64, 1u << axis);
    if (is_empty && ir_type_count_at(&node->outputs[0]->type, 1) != 0)
        return ir_fail(node, err, MDOT_MALFORMED, "axis %d is empty", axis);
    return MDOT_OK;
}

void ir_cost_reduce(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const fold *f = &folds[ir_node_opcode(node)];
    out_cost->flops = f->step_flops * ir_value_elements(node->inputs[0], length) +
                      f->finish_flops * ir_value_elements(node->outputs[0], length);
}

/* Allocates the result of reducing `x` along `mask`, and returns the strides from x's indices into it. */
static mdot_status make_reduced(ir_arena *arena, const ir_node *node, const ir_wide *x, mdot_dtype dtype, unsigned mask,
                                int64_t *out_strides, ir_wide **out, mdot_error *err)
{
    bool keep = ir_node_int(node, "keepdims", 1) != 0;
    int64_t kept[MDOT_MAX_RANK], dims[MDOT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool reduced = mask >> i & 1;
        kept[i] = reduced ? 1 : x->dims[i];
        if (!reduced || keep) dims[rank++] = kept[i];
    }
    ir_strides(x->rank, kept, out_strides);
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1) out_strides[i] = 0;
    return ir_make_wide(arena, node, dtype, rank, dims, out, err);
}

/* A walk over rows along the innermost dimension of x, and the result's movement along them. */
typedef struct row_walk {
    int64_t index[MDOT_MAX_RANK];
    int64_t length, step; /* row length; the result's step along it */
} row_walk;

static row_walk start_rows(const ir_wide *x, const int64_t *strides)
{
    row_walk w = {.length = 1};
    if (x->rank > 0) w = (row_walk){.length = x->dims[x->rank - 1], .step = strides[x->rank - 1]};
    return w;
}

/* Advances to the next row and returns the result's position for the first element. False after the last. */
static bool next_row(const ir_wide *x, const int64_t *strides, row_walk *w, int64_t *out_at)
{
    if (x->rank < 2 || !ir_next_index(x->rank - 1, x->dims, w->index)) return false;
    *out_at = ir_dot_index(x->rank - 1, w->index, strides);
    return true;
}

static void fold_floats(const fold *f, const ir_wide *x, const int64_t *strides, double *acc)
{
    if (x->count == 0) return;
    row_walk w = start_rows(x, strides);
    int64_t source = 0, offset = 0;
    do {
        for (int64_t i = 0; i < w.length; i++, source++, offset += w.step)
            acc[offset] = f->step(acc[offset], ir_wide_get(x, source));
    } while (next_row(x, strides, &w, &offset));
}

static void fold_integers(const fold *f, const ir_wide *x, const int64_t *strides, int64_t *acc)
{
    if (x->count == 0) return;
    bool is_unsigned = ir_dtype_is_unsigned(x->dtype);
    row_walk w = start_rows(x, strides);
    int64_t source = 0, offset = 0;
    do {
        for (int64_t i = 0; i < w.length; i++, source++, offset += w.step)
            acc[offset] = f->step_integer(acc[offset], x->i[source], is_unsigned);
    } while (next_row(x, strides, &w, &offset));
}

static mdot_status reduce(ir_arena *arena, const ir_node *node, const ir_wide *x, const int64_t *strides, ir_wide *y,
                          mdot_error *err)
{
    const fold *f = &folds[ir_node_opcode(node)];
    if (y->i != NULL && f->step_integer != NULL) {
        /* The least bool is false; converting -∞ would give true. */
        int64_t start = y->dtype == MDOT_DTYPE_BOOL ? f->start > 0 : ir_float_to_integer(y->dtype, f->start);
        for (int64_t k = 0; k < y->count; k++) y->i[k] = start;
        fold_integers(f, x, strides, y->i);
        for (int64_t k = 0; k < y->count; k++) y->i[k] = ir_wrap_integer(y->dtype, y->i[k]);
        return MDOT_OK;
    }
    double *acc = y->f != NULL ? y->f : IR_NEW_ARRAY(arena, double, y->count);
    if (acc == NULL) return ir_fail_memory(node, err);
    for (int64_t k = 0; k < y->count; k++) acc[k] = f->start;
    fold_floats(f, x, strides, acc);
    double part = y->count ? (double)(x->count / y->count) : 0;
    for (int64_t k = 0; k < y->count; k++) {
        acc[k] = f->finish(acc[k], part);
        if (y->i != NULL) y->i[k] = ir_float_to_integer(y->dtype, acc[k]);
    }
    return MDOT_OK;
}

mdot_status ir_eval_reduce(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = in[0];
    const ir_wide *axes = ir_node_input(node, 1) != NULL ? in[1] : NULL;
    unsigned mask = 0;
    if (axes != NULL && (axes->i == NULL || axes->count > x->rank))
        return ir_fail(node, err, MDOT_MALFORMED, "axes must be integers, at most one per dimension");
    BS_TRY(check_dtype(node, x->dtype, err));
    BS_TRY(reduced_axes(node, axes != NULL ? axes->i : NULL, axes != NULL ? (int)axes->count : 0, x->rank, &mask, err));
    int64_t strides[MDOT_MAX_RANK];
    ir_wide *y = NULL;
    BS_TRY(make_reduced(arena, node, x, x->dtype, mask, strides, &y, err));
    BS_TRY(reduce(arena, node, x, strides, y, err));
    out[0] = y;
    return MDOT_OK;
}

/* Does the element at `a` precede the one at `b`: is it less, or greater for ArgMax? NaN counts as the most extreme. */
static bool goes_before(const ir_wide *x, int64_t a, int64_t b, bool largest)
{
    if (x->i != NULL) {
        bool is_unsigned = ir_dtype_is_unsigned(x->dtype);
        return largest ? is_below(x->i[b], x->i[a], is_unsigned) : is_below(x->i[a], x->i[b], is_unsigned);
    }
    if (x->f[b] != x->f[b]) return false;
    if (x->f[a] != x->f[a]) return true;
    return largest ? x->f[a] > x->f[b] : x->f[a] < x->f[b];
}

mdot_status ir_eval_arg(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = in[0];
    bool largest = ir_node_opcode(node) == IR_OP_ArgMax;
    bool is_last = ir_node_int(node, "select_last_index", 0) != 0;
    int axis = 0;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), x->rank, &axis, err));
    int64_t strides[MDOT_MAX_RANK];
    ir_wide *y = NULL;
    BS_TRY(make_reduced(arena, node, x, MDOT_DTYPE_I64, 1u << axis, strides, &y, err));
    int64_t extent = x->dims[axis];
    if (extent == 0 && y->count) return ir_fail(node, err, MDOT_MALFORMED, "axis %d is empty", axis);

    ir_strides(x->rank, x->dims, strides);
    int64_t inner = strides[axis];
    for (int64_t k = 0; k < y->count; k++) {
        int64_t base = k / inner * extent * inner + k % inner, best = 0;
        for (int64_t j = 1; j < extent; j++) {
            int64_t candidate = base + j * inner, holder = base + best * inner;
            bool better =
                is_last ? !goes_before(x, holder, candidate, largest) : goes_before(x, candidate, holder, largest);
            if (better) best = j;
        }
        y->i[k] = best;
    }
    out[0] = y;
    return MDOT_OK;
}
