/* quantise.c — QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and MatMulInteger (ONNX opset 25). This file
 * defines their semantics; compiled models compute them in f32 (ir/passes/lower_quantised.c).
 *
 * A scale and a zero point are one number each, or one per index along `axis`. Quotients are rounded to f32 before
 * they are rounded to integers, as in every implementation.
 */
#include "ir/ops/operands.h"

#include <math.h>

/* By default, the zero point has type u8. */
static mdot_dtype quantised_type(const ir_operands *args)
{
    if (ir_operand_given(args, 2)) return ir_operand_type(args, 2).dtype;
    int64_t wanted = ir_node_int(args->node, "output_dtype", 0);
    return wanted != 0 ? (mdot_dtype)wanted : MDOT_DTYPE_U8;
}

/* Blocks of elements along the axis share a scale: only in dequantisation, as weights of few bits are stored. */
static bool is_blocked(const ir_node *node)
{
    return ir_node_int(node, "block_size", 0) > 0 && ir_node_opcode(node) == IR_OP_DequantizeLinear;
}

static mdot_status check_blocks(const ir_operands *args, const char *what, const ir_type *type, const ir_type *data)
{
    int axis;
    int64_t block = ir_node_int(args->node, "block_size", 0);
    BS_TRY(ir_operand_axis(args, "axis", 1, data->rank, &axis));
    for (int d = 0; d < data->rank; d++) {
        ir_dim wanted = data->dim[d];
        if (d == axis) wanted = ir_dim_number((wanted.offset + block - 1) / block);
        if (ir_dim_equal(type->dim[d], wanted) && (d != axis || ir_dim_is_number(data->dim[d]))) continue;
        return ir_unsupported(args, "dimension %d of the %s does not fit blocks of %lld elements of a fixed number", d,
                              what, (long long)block);
    }
    return MDOT_OK;
}

/* Checks a scale or zero point: MALFORMED if it is a vector that does not fit the data's axis. */
static mdot_status check_along_axis(const ir_operands *args, int i, const char *what, const ir_type *data)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type type = ir_operand_type(args, i);
    int axis;
    if (is_blocked(args->node) && type.rank == data->rank) return check_blocks(args, what, &type, data);
    if (ir_node_int(args->node, "block_size", 0) != 0 || type.rank > 1)
        return ir_unsupported(args, "the %s has blocks of elements, which are unsupported; use one per axis", what);
    if (type.rank == 0 || ir_dim_is(type.dim[0], 1)) return MDOT_OK;
    mdot_status status = ir_operand_axis(args, "axis", 1, data->rank, &axis);
    if (status != MDOT_OK || ir_dim_equal(type.dim[0], data->dim[axis])) return status;
    char own_text[IR_SHAPE_TEXT_BYTES], wanted[IR_SHAPE_TEXT_BYTES];
    return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){type.dim[0], data->dim[axis]}),
                     "the %s has %s elements, but axis %d has %s", what, ir_shape_text(args, 1, type.dim, own_text),
                     axis, ir_shape_text(args, 1, &data->dim[axis], wanted));
}

mdot_status ir_result_quantise_linear(const ir_operands *args, ir_type *out_type)
{
    ir_type data;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &data));
    BS_TRY(check_along_axis(args, 1, "scale", &data));
    BS_TRY(check_along_axis(args, 2, "zero point", &data));
    bool dequantises = ir_node_opcode(args->node) == IR_OP_DequantizeLinear;
    data.dtype = dequantises ? ir_operand_type(args, 1).dtype : quantised_type(args);
    if (!dequantises && data.dtype != MDOT_DTYPE_U8 && data.dtype != MDOT_DTYPE_I8 && data.dtype != MDOT_DTYPE_U16 &&
        data.dtype != MDOT_DTYPE_I16)
        return ir_unsupported(args, "quantisation to %s is unsupported; supported are u8, i8, u16 and i16",
                              mdot_dtype_name(data.dtype));
    *out_type = data;
    return MDOT_OK;
}

mdot_status ir_outputs_dynamic_quantise(const ir_operands *args, int output, ir_type *out_type)
{
    BS_TRY(ir_operand_need(args, 0, "data", -1, out_type));
    if (output > 0) out_type->rank = 0;
    out_type->dtype = output == 1 ? MDOT_DTYPE_F32 : MDOT_DTYPE_U8;
    return MDOT_OK;
}

static double saturated(mdot_dtype dtype, double value)
{
    int bits = 8 * (int)mdot_dtype_size_bytes(dtype);
    bool is_unsigned = ir_dtype_is_unsigned(dtype);
    double minimum = is_unsigned ? 0 : -ldexp(1, bits - 1), maximum = ldexp(1, is_unsigned ? bits : bits - 1) - 1;
    return fmin(fmax(value, minimum), maximum); /* NaN becomes the minimum, as in ONNX Runtime and ONNX's reference */
}

static double quantised(mdot_dtype dtype, double value, double scale, double zero)
{
    return saturated(dtype, nearbyint(ir_nearest_float(MDOT_DTYPE_F32, value / scale)) + zero);
}

/* The scale's or zero point's element for data element `offset`. */
static double along_axis(const ir_wide *operand, const ir_axis_view *view, int64_t block, int64_t offset)
{
    if (operand == NULL) return 0;
    if (block > 0) {
        int64_t blocks = (view->extent + block - 1) / block, row = offset / view->inner;
        int64_t first = (row / view->extent * blocks + row % view->extent / block) * view->inner;
        return ir_wide_get(operand, first + offset % view->inner);
    }
    return ir_wide_get(operand, operand->count > 1 ? offset / view->inner % view->extent : 0);
}

mdot_status ir_eval_quantise_linear(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                    mdot_error *err)
{
    const ir_wide *x = input[0], *scale = input[1], *zero = ir_tensor_input(node, input, 2);
    ir_operands args = ir_operands_of_tensors(node, input, err);
    bool dequantises = ir_node_opcode(node) == IR_OP_DequantizeLinear;
    int64_t block = is_blocked(node) && scale->rank == x->rank ? ir_node_int(node, "block_size", 0) : 0;
    bool has_axis = block > 0 || scale->count > 1 || (zero != NULL && zero->count > 1);
    int axis = 0;
    if (has_axis) BS_TRY(ir_operand_axis(&args, "axis", 1, x->rank, &axis));
    ir_axis_view view = has_axis ? ir_view_axis(x, axis) : (ir_axis_view){1, 1, 1};
    for (int64_t k = 0; k < x->count; k++) {
        double s = along_axis(scale, &view, block, k), z = along_axis(zero, &view, block, k);
        if (dequantises)
            out[0]->f[k] = (ir_wide_get(x, k) - z) * s;
        else
            out[0]->i[k] = (int64_t)quantised(out[0]->dtype, ir_wide_get(x, k), s, z);
    }
    return MDOT_OK;
}

/* y_scale = (max(0, x) - min(0, x)) / 255; the zero point is the position of the minimum. */
mdot_status ir_eval_dynamic_quantise(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = in[0];
    double minimum = 0, maximum = 0;
    for (int64_t k = 0; k < x->count; k++) {
        double element = ir_wide_get(x, k); /* NaN passes through both */
        minimum = isnan(element) || element < minimum ? element : minimum;
        maximum = isnan(element) || element > maximum ? element : maximum;
    }
    double scale = ir_nearest_float(MDOT_DTYPE_F32, (maximum - minimum) / 255);
    double zero = scale > 0 ? quantised(MDOT_DTYPE_U8, -minimum, scale, 0) : 0;
    if (ir_node_wants(node, 1)) out[1]->f[0] = scale;
    if (ir_node_wants(node, 2)) out[2]->i[0] = (int64_t)zero;
    for (int64_t k = 0; k < x->count; k++)
        out[0]->i[k] = (int64_t)(scale > 0 ? quantised(MDOT_DTYPE_U8, ir_wide_get(x, k), scale, zero) : zero);
    return MDOT_OK;
}

/* A zero point is one number, or one per row of the left factor or column of the right; a vector factor takes one
 * number. */
static mdot_status check_zero_point(const ir_node *node, int i, const ir_type *factor, int from_end, mdot_error *err)
{
    const ir_value *zero = ir_node_input(node, i);
    if (zero == NULL || zero->type.rank == 0) return MDOT_OK;
    if (zero->type.rank > 1)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "a zero point of more than one dimension is unsupported");
    ir_dim count = zero->type.dim[0];
    bool fits = factor->rank >= 2 && ir_dim_equal(count, factor->dim[factor->rank - from_end]);
    if (fits || ir_dim_is(count, 1)) return MDOT_OK;
    return ir_fail(node, err, ir_dims_fault(1, &count), "\"%s\" must have one element for each of the factor's %s",
                   zero->name, from_end == 1 ? "columns" : "rows");
}

/* The node's MatMul of integers as wide as the sums. It reads the two factors, which are copies. */
static ir_node wide_mat_mul(const ir_node *node, ir_value copies[2], ir_value *factors[2])
{
    ir_node like = *node;
    for (int i = 0; i < 2; i++) {
        copies[i] = *node->inputs[i];
        copies[i].type.dtype = MDOT_DTYPE_I32;
        copies[i].constant = NULL;
        factors[i] = &copies[i];
    }
    like.inputs = factors;
    like.input_count = 2;
    like.attr_count = 0; /* those of FusedMatMul have no meaning here */
    return like;
}

mdot_status ir_shape_mat_mul_integer(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(check_zero_point(node, 2, &node->inputs[0]->type, 2, err));
    BS_TRY(check_zero_point(node, 3, &node->inputs[1]->type, 1, err));
    ir_value copies[2], *factors[2];
    ir_node like = wide_mat_mul(node, copies, factors);
    return ir_shape_by(graph, &like, ir_result_mat_mul, err);
}

/* The factor minus its zero point: one number, or a vector along the rows (left) or columns (right). */
static ir_wide *shifted(ir_arena *arena, const ir_wide *factor, const ir_wide *zero, bool is_left)
{
    ir_wide *copy = ir_wide_create(arena, MDOT_DTYPE_I32, factor->rank, factor->dims);
    int64_t columns = factor->rank > 0 ? factor->dims[factor->rank - 1] : 1;
    int64_t zeros = zero != NULL ? zero->count : 0;
    for (int64_t k = 0; copy != NULL && k < factor->count; k++) {
        int64_t offset = zeros > 1 ? (is_left ? k / columns : k % columns) % zeros : 0;
        copy->i[k] = (int64_t)ir_wide_get(factor, k) - (zeros > 0 ? (int64_t)ir_wide_get(zero, offset) : 0);
    }
    return copy;
}

mdot_status ir_eval_mat_mul_integer(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                    mdot_error *err)
{
    const ir_wide *factors[] = {shifted(arena, input[0], ir_tensor_input(node, input, 2), true),
                                shifted(arena, input[1], ir_tensor_input(node, input, 3), false)};
    if (factors[0] == NULL || factors[1] == NULL) return ir_fail_memory(node, err);
    ir_node like = *node;
    like.input_count = 2;
    like.attr_count = 0;
    BS_TRY(ir_make_by(arena, &like, factors, ir_result_mat_mul, &out[0], err));
    return ir_eval_mat_mul(arena, &like, factors, out, err);
}

void ir_cost_mat_mul_integer(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_value copies[2], *factors[2];
    ir_node like = wide_mat_mul(node, copies, factors);
    ir_cost_mat_mul(&like, length, out_cost);
}
