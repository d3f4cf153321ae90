/* lower_quantised.c — rewrites quantisation as f32 operators, so neighbouring operators fuse with it and matmuls become
 * linears. Weights become f32 constants.
 *
 * Sums of products of bytes are integers. They are exact in f32 up to 2^24, which is about 260 products of the largest
 * factors. Beyond that they are rounded like every sum in f32. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

#include <math.h>

/* Reshapes a scale or zero point that is a vector to lie along `axis` of data of this rank. A single number becomes a
 * scalar. NULL: absent. */
static ir_value *along_axis(ir_builder *b, ir_value *operand, int rank, int64_t axis)
{
    ir_dim dims[MDOT_MAX_RANK];
    if (operand == NULL || operand->type.rank == 0) return operand;
    if (ir_dim_is(operand->type.dim[0], 1)) return ir_build_reshape(b, operand, NULL, 0);
    for (int d = 0; d < rank; d++) dims[d] = ir_dim_number(1);
    dims[axis < 0 ? axis + rank : axis] = operand->type.dim[0];
    return ir_build_reshape(b, operand, dims, rank);
}

/* A quantised value as a float. If it was quantised by this pass, the value before the cast is used, after clipping
 * to the type's range. */
static ir_value *as_float(ir_builder *b, ir_value *x, mdot_dtype dtype)
{
    const ir_node *cast = x->def, *clip = cast != NULL && cast->op == &ir_ops[IR_OP_Cast] ? cast->inputs[0]->def : NULL;
    bool is_own = clip != NULL && ir_node_int(clip, "nan_to_min", 0) != 0 && clip->outputs[0]->type.dtype == dtype;
    return is_own ? cast->inputs[0] : ir_build_cast(b, x, dtype);
}

static ir_value *less_zero(ir_builder *b, ir_value *x, ir_value *zero, mdot_dtype dtype)
{
    ir_value *value = as_float(b, x, dtype);
    const ir_value *given =
        zero != NULL && zero->def != NULL && ir_node_opcode(zero->def) == IR_OP_Reshape ? zero->def->inputs[0] : zero;
    if (value != NULL && (given == NULL || ir_value_is_filled(given, 0, 0)) && value->constant == NULL) {
        ir_value *none = ir_build_cast(b, ir_build_scalar(b, 0), dtype); /* integers have no -0 */
        value = ir_build_where(b, ir_build_op2(b, IR_OP_Equal, value, none), none, value);
    }
    return zero != NULL ? ir_build_sub(b, value, ir_build_cast(b, zero, dtype)) : value;
}

static void dequantise(ir_builder *b, ir_node *node)
{
    if (ir_node_int(node, "block_size", 0) > 0 && node->inputs[1]->type.rank > 1) {
        if (node->inputs[0]->constant == NULL)
            b->status = mdot_fail(b->err, MDOT_UNSUPPORTED,
                                  "%s: node %s (DequantizeLinear) has blocks of elements that are no constants; store "
                                  "the quantised weights as initializers",
                                  b->graph->name, node->name);
        return; /* constants are folded */
    }
    ir_value *x = node->inputs[0];
    int64_t axis = ir_node_int(node, "axis", 1);
    int rank = x->type.rank;
    ir_value *scale = along_axis(b, node->inputs[1], rank, axis);
    ir_value *zero = along_axis(b, ir_node_input(node, 2), rank, axis);
    ir_replace(b, node->outputs[0], ir_build_mul(b, less_zero(b, x, zero, b->dtype), scale));
}

/* round(x / scale) + zero, clipped to the type. NaN, for example -inf / inf, becomes the minimum, as in ONNX Runtime
 * and ONNX's reference. */
static ir_value *quantised(ir_builder *b, ir_value *x, ir_value *scale, ir_value *zero, mdot_dtype dtype)
{
    int bits = 8 * (int)mdot_dtype_size_bytes(dtype);
    bool is_unsigned = ir_dtype_is_unsigned(dtype);
    ir_value *rounded = ir_build_op1(b, IR_OP_Round, ir_build_div(b, x, scale));
    if (zero != NULL) rounded = ir_build_add(b, rounded, ir_build_cast(b, zero, b->dtype));
    ir_value *minimum = ir_build_scalar(b, is_unsigned ? 0 : -ldexp(1, bits - 1));
    ir_value *maximum = ir_build_scalar(b, ldexp(1, is_unsigned ? bits : bits - 1) - 1);
    ir_value *clipped =
        ir_build_with(b, IR_OP_Clip, IR_VALUES(rounded, minimum, maximum), IR_ATTRS(IR_INT("nan_to_min", 1)));
    return ir_build_cast(b, clipped, dtype);
}

static void quantise(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    int64_t axis = ir_node_int(node, "axis", 1);
    int rank = x->type.rank;
    b->dtype = node->inputs[1]->type.dtype;
    if (!ir_dtype_is_float(b->dtype)) b->dtype = MDOT_DTYPE_F32;
    ir_value *scale = ir_build_cast(b, along_axis(b, node->inputs[1], rank, axis), b->dtype);
    ir_value *zero = along_axis(b, ir_node_input(node, 2), rank, axis);
    ir_replace(b, result, quantised(b, ir_build_cast(b, x, b->dtype), scale, zero, result->type.dtype));
}

/* The maximum or minimum over all elements and zero. */
static ir_value *extreme(ir_builder *b, ir_opcode reduce, ir_opcode choose, ir_value *x)
{
    int64_t axes[MDOT_MAX_RANK];
    for (int d = 0; d < x->type.rank; d++) axes[d] = d;
    ir_value *found = x->type.rank > 0 ? ir_build_reduce(b, reduce, x, axes, x->type.rank) : x;
    ir_value *scalar = ir_build_reshape(b, found, NULL, 0);
    return ir_build_op2(b, choose, scalar, ir_build_scalar(b, 0));
}

/* A tensor of zeros has the scale 0. It is divided by 1 instead, and all the elements stay zero. */
static void quantise_dynamically(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0];
    b->dtype = MDOT_DTYPE_F32;
    ir_value *minimum = extreme(b, IR_OP_ReduceMin, IR_OP_Min, x), *maximum = extreme(b, IR_OP_ReduceMax, IR_OP_Max, x);
    ir_value *width = ir_build_sub(b, maximum, minimum);
    ir_value *scale = ir_build_div(b, width, ir_build_scalar(b, 255));
    ir_value *is_zero = ir_build_op2(b, IR_OP_Equal, scale, ir_build_scalar(b, 0));
    ir_value *divisor = ir_build_where(b, is_zero, ir_build_scalar(b, 1), scale);
    ir_value *zero = quantised(b, ir_build_op1(b, IR_OP_Neg, minimum), divisor, NULL, MDOT_DTYPE_U8);
    ir_value *made[] = {quantised(b, x, divisor, zero, MDOT_DTYPE_U8), scale, zero};
    for (int i = 0; i < node->output_count; i++) {
        ir_value *old = ir_read_output(node, i);
        if (old != NULL) ir_replace(b, old, made[i]);
    }
}

static void multiply(ir_builder *b, ir_node *node)
{
    ir_value *left_zero = ir_node_input(node, 2), *right_zero = ir_node_input(node, 3);
    if (left_zero != NULL && left_zero->type.rank == 1) { /* one zero point for all rows, or one per row */
        ir_dim rows[] = {left_zero->type.dim[0], ir_dim_number(1)};
        left_zero = ir_build_reshape(b, left_zero, rows, ir_dim_is(rows[0], 1) ? 0 : 2);
    }
    ir_value *left = less_zero(b, node->inputs[0], left_zero, MDOT_DTYPE_F32);
    ir_value *right = less_zero(b, node->inputs[1], right_zero, MDOT_DTYPE_F32);
    ir_value *matmul = ir_build_mat_mul(b, left, right), *result = node->outputs[0];
    ir_node *user = ir_value_single_user(result);
    if (user != NULL && user->op == &ir_ops[IR_OP_Cast] && user->outputs[0]->type.dtype == MDOT_DTYPE_F32)
        ir_replace(b, user->outputs[0], matmul); /* the sums are whole numbers */
    ir_replace(b, result, ir_build_cast(b, matmul, MDOT_DTYPE_I32));
}

const ir_rule ir_rules_lower_quantised[IR_OP_COUNT] = {
    [IR_OP_QuantizeLinear] = quantise,
    [IR_OP_DequantizeLinear] = dequantise,
    [IR_OP_DynamicQuantizeLinear] = quantise_dynamically,
    [IR_OP_MatMulInteger] = multiply,
};
