/* elementwise_eval.c — reference evaluators of the elementwise family: loops around the functions of elementwise.h.
 *
 * Operands broadcast through strides that are 0 in repeated dimensions. Results are computed row by row, along the
 * innermost dimension, so the index arithmetic stays out of the inner loops. */
#include "ir/ops/elementwise.h"

#include <math.h>
#include <string.h>

enum { MAX_OPERANDS = 3 };

/* Result rows, and each operand's row start. An operand's innermost stride is 0 or 1. */
typedef struct rows {
    int rank; /* at least 1 */
    int64_t dims[MDOT_MAX_RANK];
    int64_t length; /* elements per row */
    int64_t index[MDOT_MAX_RANK];
    int operand_count;
    int64_t strides[MAX_OPERANDS][MDOT_MAX_RANK];
    int64_t at[MAX_OPERANDS]; /* offset of the current row */
    int64_t step[MAX_OPERANDS];
} rows;

static rows rows_begin(const ir_wide *result, ir_inputs operands, int operand_count)
{
    rows r = {.rank = result->rank ? result->rank : 1, .dims = {1}, .operand_count = operand_count};
    if (result->rank) memcpy(r.dims, result->dims, (size_t)result->rank * sizeof *r.dims);
    r.length = r.dims[r.rank - 1];
    for (int k = 0; k < operand_count; k++) {
        ir_broadcast_strides(operands[k]->rank, operands[k]->dims, r.rank, r.strides[k]);
        r.step[k] = r.strides[k][r.rank - 1];
    }
    return r;
}

static bool rows_next(rows *r)
{
    if (!ir_next_index(r->rank - 1, r->dims, r->index)) return false;
    for (int k = 0; k < r->operand_count; k++) r->at[k] = ir_dot_index(r->rank - 1, r->index, r->strides[k]);
    return true;
}

/* Allocates a tensor with the shape of `input`. */
static mdot_status make_like(ir_arena *arena, const ir_node *node, const ir_wide *input, mdot_dtype dtype,
                             ir_wide **out, mdot_error *err)
{
    return ir_make_wide(arena, node, dtype, input->rank, input->dims, out, err);
}

/* Allocates a tensor with the broadcast shape of all present inputs. */
static mdot_status make_broadcast(ir_arena *arena, const ir_node *node, ir_inputs input, mdot_dtype dtype,
                                  ir_wide **out, mdot_error *err)
{
    int64_t dims[MDOT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < node->input_count; i++) {
        if (input[i] == NULL) continue;
        BS_TRY(ir_broadcast_shapes(node, dims, rank, input[i]->dims, input[i]->rank, dims, &rank, err));
    }
    return ir_make_wide(arena, node, dtype, rank, dims, out, err);
}

/* An attribute that is an int or a float. */
static double number_attr(const ir_node *node, const char *name, double fallback)
{
    if (name == NULL) return fallback;
    const ir_attr *attr = ir_node_attr(node, name);
    return attr != NULL && attr->kind == IR_ATTR_INT ? (double)attr->i : ir_node_float(node, name, fallback);
}

static void apply_unary(const ir_node *node, const ir_unary_rule *rule, const ir_wide *x, ir_wide *y)
{
    double alpha = number_attr(node, rule->alpha_name, rule->alpha);
    double beta = number_attr(node, rule->beta_name, rule->beta);
    bool is_unsigned = ir_dtype_is_unsigned(x->dtype);
    for (int64_t i = 0; i < x->count; i++) {
        if (x->i != NULL && rule->on_integer != NULL) {
            y->i[i] = ir_wrap_integer(y->dtype, rule->on_integer(x->i[i], is_unsigned));
            continue;
        }
        /* Integers without their own function are computed in double and truncated. */
        double result = rule->on_float(ir_wide_get(x, i), alpha, beta);
        if (y->f != NULL)
            y->f[i] = result;
        else
            y->i[i] = ir_float_to_integer(y->dtype, result);
    }
}

mdot_status ir_eval_unary(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_unary_rule *rule = ir_unary_rule_of(node);
    BS_TRY(ir_check_accepts(node, rule->accepts, input[0]->dtype, err));
    ir_wide *y = NULL;
    BS_TRY(make_like(arena, node, input[0], rule->makes_bool ? MDOT_DTYPE_BOOL : input[0]->dtype, &y, err));
    apply_unary(node, rule, input[0], y);
    out[0] = y;
    return MDOT_OK;
}

/* result = rule(a, b) element by element; `result` may be `a` if that has the result's shape. */
static void apply_binary(const ir_binary_rule *rule, const ir_wide *a, const ir_wide *b, ir_wide *result)
{
    if (result->count == 0) return;
    rows r = rows_begin(result, (const ir_wide *const[]){a, b}, 2);
    bool is_unsigned = ir_dtype_is_unsigned(a->dtype);
    int64_t target = 0;
    do {
        int64_t from_a = r.at[0], from_b = r.at[1];
        for (int64_t i = 0; i < r.length; i++, target++, from_a += r.step[0], from_b += r.step[1]) {
            if (a->f != NULL && result->f != NULL)
                result->f[target] = rule->on_float(a->f[from_a], b->f[from_b]);
            else if (a->f != NULL)
                result->i[target] = rule->on_float(a->f[from_a], b->f[from_b]) != 0;
            else
                result->i[target] = rule->on_integer(a->i[from_a], b->i[from_b], is_unsigned);
        }
    } while (rows_next(&r));
    for (int64_t i = 0; result->i != NULL && i < result->count; i++)
        result->i[i] = ir_wrap_integer(result->dtype, result->i[i]);
}

/* Pow for a base and an exponent of mixed types, in the base's type. Whole exponents of integers are exact. Others are
 * computed in double, and a result that is an integer up to rounding counts as one. */
static void apply_mixed_power(const ir_binary_rule *rule, const ir_wide *a, const ir_wide *b, ir_wide *result)
{
    if (result->count == 0) return;
    rows r = rows_begin(result, (const ir_wide *const[]){a, b}, 2);
    int64_t target = 0;
    do {
        for (int64_t i = 0; i < r.length; i++, target++) {
            int64_t from_a = r.at[0] + i * r.step[0];
            double y = ir_wide_get(b, r.at[1] + i * r.step[1]), power = rule->on_float(ir_wide_get(a, from_a), y);
            if (result->f != NULL) {
                result->f[target] = power;
                continue;
            }
            bool is_near = fabs(power - round(power)) <= fabs(power) * 1e-12;
            result->i[target] = ir_wrap_integer(
                result->dtype, y == trunc(y)
                                   ? rule->on_integer(a->i[from_a], ir_float_to_integer(MDOT_DTYPE_I64, y), false)
                                   : ir_float_to_integer(result->dtype, is_near ? round(power) : power));
        }
    } while (rows_next(&r));
}

mdot_status ir_eval_binary(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_binary_rule *rule = ir_binary_rule_of(node);
    BS_TRY(ir_check_accepts(node, rule->accepts, input[0]->dtype, err));
    bool mixed = (input[0]->f != NULL) != (input[1]->f != NULL);
    if (mixed && ir_node_opcode(node) != IR_OP_Pow)
        return ir_fail(node, err, MDOT_MALFORMED, "the operands are of types %s and %s",
                       mdot_dtype_name(input[0]->dtype), mdot_dtype_name(input[1]->dtype));
    ir_wide *y = NULL;
    BS_TRY(make_broadcast(arena, node, input, rule->makes_bool ? MDOT_DTYPE_BOOL : input[0]->dtype, &y, err));
    if (mixed)
        apply_mixed_power(rule, input[0], input[1], y);
    else
        apply_binary(rule, input[0], input[1], y);
    out[0] = y;
    return MDOT_OK;
}

/* result = source, repeated over the result's shape. */
static void fill_broadcast(const ir_wide *source, ir_wide *result)
{
    if (result->count == 0) return;
    rows r = rows_begin(result, &source, 1);
    int64_t target = 0;
    do {
        for (int64_t i = 0; i < r.length; i++, target++)
            ir_copy_element(result, target, source, r.at[0] + i * r.step[0]);
    } while (rows_next(&r));
}

mdot_status ir_eval_variadic(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_binary_rule *rule = ir_binary_rule_of(node);
    for (int k = 0; k < node->input_count; k++) {
        BS_TRY(ir_check_accepts(node, rule->accepts, input[k]->dtype, err));
        if (input[k]->dtype != input[0]->dtype) return ir_fail(node, err, MDOT_MALFORMED, "operands differ in type");
    }
    ir_wide *y = NULL;
    BS_TRY(make_broadcast(arena, node, input, input[0]->dtype, &y, err));
    fill_broadcast(input[0], y);
    for (int k = 1; k < node->input_count; k++) apply_binary(rule, y, input[k], y);
    if (ir_node_opcode(node) == IR_OP_Mean)
        for (int64_t i = 0; i < y->count; i++) y->f[i] /= node->input_count;
    out[0] = y;
    return MDOT_OK;
}

mdot_status ir_eval_where(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    if (input[0]->dtype != MDOT_DTYPE_BOOL || input[1]->dtype != input[2]->dtype)
        return ir_fail(node, err, MDOT_MALFORMED, "a bool and two tensors of one type are needed");
    ir_wide *y = NULL;
    BS_TRY(make_broadcast(arena, node, input, input[1]->dtype, &y, err));
    out[0] = y;
    if (y->count == 0) return MDOT_OK;
    rows r = rows_begin(y, input, 3);
    int64_t target = 0;
    do {
        for (int64_t i = 0; i < r.length; i++, target++) {
            int k = input[0]->i[r.at[0] + i * r.step[0]] ? 1 : 2;
            ir_copy_element(y, target, input[k], r.at[k] + i * r.step[k]);
        }
    } while (rows_next(&r));
    return MDOT_OK;
}

/* Max(x, least), then Min(…, greatest): if the limits cross, the greatest wins (ONNX Clip-13). In quantisation, the
 * least limit replaces NaN (attribute "nan_to_min"). */
mdot_status ir_eval_clip(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = in[0];
    BS_TRY(ir_check_accepts(node, IR_ON_FLOAT | IR_ON_INTEGER, x->dtype, err));
    ir_wide *y = NULL;
    BS_TRY(make_like(arena, node, x, x->dtype, &y, err));
    fill_broadcast(x, y);
    static const ir_opcode folds[] = {IR_OP_Max, IR_OP_Min};
    for (int k = 1; k < node->input_count; k++) {
        if (in[k] == NULL) continue;
        if (in[k]->count != 1 || in[k]->dtype != x->dtype)
            return ir_fail(node, err, MDOT_MALFORMED, "limit %d must be a scalar of the type of the input", k);
        bool replaces = k == 1 && y->f != NULL && ir_node_int(node, "nan_to_min", 0) != 0;
        for (int64_t i = 0; replaces && i < y->count; i++)
            if (isnan(y->f[i])) y->f[i] = in[1]->f[0];
        apply_binary(ir_binary_default(folds[k - 1]), y, in[k], y);
    }
    out[0] = y;
    return MDOT_OK;
}

mdot_status ir_eval_identity(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_wide *y = NULL;
    BS_TRY(make_like(arena, node, input[0], input[0]->dtype, &y, err));
    fill_broadcast(input[0], y);
    out[0] = y;
    return MDOT_OK;
}

/* In inference everything is kept, and the mask is true. */
mdot_status ir_eval_dropout(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *ratio = ir_node_input(node, 1) != NULL ? input[1] : NULL,
                  *mode = ir_node_input(node, 2) != NULL ? input[2] : NULL;
    if ((ratio != NULL && ratio->count != 1) || (mode != NULL && (mode->count != 1 || mode->i == NULL)))
        return ir_fail(node, err, MDOT_MALFORMED, "ratio and training_mode must have one element each");
    if (mode != NULL && mode->i[0] && !(ratio != NULL && ir_wide_get(ratio, 0) == 0))
        return ir_fail(node, err, MDOT_UNSUPPORTED, "training mode drops elements at random");
    if (node->output_count > 1 && node->outputs[1] != NULL) {
        ir_wide *mask = NULL;
        BS_TRY(make_like(arena, node, input[0], MDOT_DTYPE_BOOL, &mask, err));
        for (int64_t i = 0; i < mask->count; i++) mask->i[i] = 1;
        out[1] = mask;
    }
    return ir_eval_identity(arena, node, input, out, err);
}

mdot_status ir_eval_cast(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = in[0];
    mdot_dtype target_dtype = MDOT_DTYPE_NONE;
    BS_TRY(ir_cast_target(node, node->input_count > 1 ? in[1]->dtype : MDOT_DTYPE_NONE, &target_dtype, err));
    ir_wide *y = NULL;
    BS_TRY(make_like(arena, node, x, target_dtype, &y, err));
    for (int64_t i = 0; i < x->count; i++) {
        if (y->f != NULL)
            y->f[i] = ir_round_float(target_dtype, ir_wide_get(x, i));
        else
            y->i[i] =
                x->f != NULL ? ir_float_to_integer(target_dtype, x->f[i]) : ir_wrap_integer(target_dtype, x->i[i]);
    }
    out[0] = y;
    return MDOT_OK;
}

/* com.microsoft: GELU of x plus an optional bias, which broadcasts to x. */
mdot_status ir_eval_bias_gelu(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_unary_rule *rule = ir_unary_rule_of(node);
    for (int k = 0; k < node->input_count; k++)
        BS_TRY(in[k] != NULL ? ir_check_accepts(node, IR_ON_FLOAT, in[k]->dtype, err) : MDOT_OK);
    ir_wide *y = NULL;
    BS_TRY(make_broadcast(arena, node, in, in[0]->dtype, &y, err));
    bool is_same = y->rank == in[0]->rank;
    for (int i = 0; i < y->rank && is_same; i++) is_same = y->dims[i] == in[0]->dims[i];
    if (!is_same) return ir_fail(node, err, MDOT_MALFORMED, "the bias does not broadcast to the input");
    fill_broadcast(in[0], y);
    if (ir_node_input(node, 1) != NULL) apply_binary(ir_binary_default(IR_OP_Add), y, in[1], y);
    apply_unary(node, rule, y, y);
    out[0] = y;
    return MDOT_OK;
}
