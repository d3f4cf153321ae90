/* norm.c — normalisations along rows: Softmax, LogSoftmax, LayerNormalization, RMSNormalization; and the cost of all.
 *
 * stash_type, the type of a kernel's intermediate results, is ignored, because everything is computed in double.
 */
#include "ir/ops/operands.h"

#include <math.h>

/* Mean and variance of `count` adjacent numbers; 0 for an empty row. The variance is the mean of squared deviations. */
static void moments(const double *x, int64_t count, double *out_mean, double *out_variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    double mean = count ? sum / (double)count : 0;
    for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    *out_mean = mean;
    *out_variance = count ? squares / (double)count : 0;
}

void ir_norm_row(const double *x, int64_t count, double epsilon, double *out, double *out_mean, double *out_inverse)
{
    double mean, variance;
    moments(x, count, &mean, &variance);
    double inverse = 1 / sqrt(variance + epsilon);
    for (int64_t i = 0; i < count; i++) out[i] = (x[i] - mean) * inverse;
    *out_mean = mean;
    *out_inverse = inverse;
}

/* out = out * factor + term at every index; a NULL tensor is skipped. */
static void scale_and_shift(ir_wide *out, const ir_wide *factor, const ir_wide *term)
{
    const ir_wide *operand = factor != NULL ? factor : term;
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_broadcast_strides(operand->rank, operand->dims, out->rank, strides);
    for (int64_t k = 0; k < out->count; k++) {
        double value = operand->f[ir_dot_index(out->rank, index, strides)];
        out->f[k] = factor != NULL ? out->f[k] * value : out->f[k] + value;
        ir_next_index(out->rank, out->dims, index);
    }
}

void ir_norm_multiply(ir_wide *out, const ir_wide *factor) { scale_and_shift(out, factor, NULL); }

void ir_norm_add(ir_wide *out, const ir_wide *term) { scale_and_shift(out, NULL, term); }

mdot_status ir_norm_need_parameter(const ir_operands *args, int i, const char *what, const ir_type *type)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type parameter = ir_operand_type(args, i);
    BS_TRY(ir_operand_need_floats(args, i, what));
    bool fits = parameter.rank <= type->rank;
    for (int k = 1; k <= parameter.rank && fits; k++) {
        ir_dim dim = parameter.dim[parameter.rank - k];
        fits = ir_dim_is(dim, 1) || ir_dim_equal(dim, type->dim[type->rank - k]);
    }
    if (fits) return MDOT_OK;
    char text[IR_SHAPE_TEXT_BYTES], type_text[IR_SHAPE_TEXT_BYTES];
    return ir_malformed(args, "the %s of shape %s does not broadcast to %s", what,
                        ir_shape_text(args, parameter.rank, parameter.dim, text),
                        ir_shape_text(args, type->rank, type->dim, type_text));
}

mdot_status ir_norm_need_vector(const ir_operands *args, int i, const char *what, ir_dim count)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type vector;
    BS_TRY(ir_operand_need(args, i, what, 1, &vector));
    BS_TRY(ir_operand_need_floats(args, i, what));
    if (ir_dim_equal(vector.dim[0], count)) return MDOT_OK;
    char text[IR_DIM_TEXT_BYTES], count_text[IR_DIM_TEXT_BYTES];
    return ir_malformed(args, "the %s has %s elements instead of %s", what,
                        ir_dim_text(vector.dim[0], args->graph->symbol, text, sizeof text),
                        ir_dim_text(count, args->graph->symbol, count_text, sizeof count_text));
}

mdot_status ir_result_softmax(const ir_operands *args, ir_type *out_type)
{
    int axis;
    mdot_status status = ir_operand_need(args, 0, "input", -1, out_type);
    if (status == MDOT_OK) status = ir_operand_need_floats(args, 0, "input");
    return status != MDOT_OK ? status : ir_operand_axis(args, "axis", -1, out_type->rank, &axis);
}

/* One row of `count` elements, `stride` apart. */
static void softmax_row(const double *x, double *out, int64_t count, int64_t stride, bool logarithm)
{
    double greatest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) greatest = fmax(greatest, x[i * stride]);
    for (int64_t i = 0; i < count; i++) sum += exp(x[i * stride] - greatest);
    for (int64_t i = 0; i < count; i++) {
        double shifted = x[i * stride] - greatest;
        out[i * stride] = logarithm ? shifted - log(sum) : exp(shifted) / sum;
    }
}

mdot_status ir_eval_softmax(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), input[0]->rank, &axis, err));
    ir_axis_view view = ir_view_axis(input[0], axis);
    for (int64_t row = 0; row < view.outer * view.inner; row++) {
        int64_t offset = row / view.inner * view.extent * view.inner + row % view.inner;
        softmax_row(input[0]->f + offset, out[0]->f + offset, view.extent, view.inner,
                    ir_node_opcode(node) == IR_OP_LogSoftmax);
    }
    return MDOT_OK;
}

/* The output's type and the first jointly normalised axis. The element type is the scale's, which may differ from the
 * input's only for RMSNormalization. */
static mdot_status read_rows(const ir_operands *args, ir_type *out_type, int *out_axis)
{
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need_floats(args, 0, "input"));
    BS_TRY(ir_operand_axis(args, "axis", -1, out_type->rank, out_axis));
    BS_TRY(ir_norm_need_parameter(args, 1, "scale", out_type));
    BS_TRY(ir_norm_need_parameter(args, 2, "bias", out_type));
    out_type->dtype = ir_operand_type(args, 1).dtype;
    return MDOT_OK;
}

/* Type of the statistics: one number per row. ONNX gives them the type of stash_type, f32 by default. */
static ir_type statistics_type(const ir_node *node, const ir_type *type, int axis)
{
    ir_type statistics = *type;
    bool half = ir_node_int(node, "stash_type", MDOT_DTYPE_F32) == MDOT_DTYPE_BF16;
    statistics.dtype = half ? MDOT_DTYPE_BF16 : MDOT_DTYPE_F32;
    for (int i = axis; i < type->rank; i++) statistics.dim[i] = ir_dim_number(1);
    return statistics;
}

mdot_status ir_outputs_layer_norm(const ir_operands *args, int output, ir_type *out_type)
{
    int axis;
    BS_TRY(read_rows(args, out_type, &axis));
    if (output > 0) *out_type = statistics_type(args->node, out_type, axis);
    return MDOT_OK;
}

mdot_status ir_eval_layer_norm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), input[0]->rank, &axis, err));
    double epsilon = ir_node_float(node, "epsilon", 1e-5);
    int64_t rows = ir_product(input[0]->dims, 0, axis), columns = ir_product(input[0]->dims, axis, input[0]->rank);
    for (int64_t r = 0; r < rows; r++) {
        double mean, inverse;
        ir_norm_row(input[0]->f + r * columns, columns, epsilon, out[0]->f + r * columns, &mean, &inverse);
        if (ir_node_wants(node, 1)) out[1]->f[r] = mean;
        if (ir_node_wants(node, 2)) out[2]->f[r] = inverse;
    }
    ir_norm_multiply(out[0], input[1]);
    if (ir_tensor_input(node, input, 2) != NULL) ir_norm_add(out[0], input[2]);
    return MDOT_OK;
}

mdot_status ir_eval_rms_norm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), input[0]->rank, &axis, err));
    double epsilon = ir_node_float(node, "epsilon", 1e-5);
    int64_t rows = ir_product(input[0]->dims, 0, axis), columns = ir_product(input[0]->dims, axis, input[0]->rank);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = input[0]->f + r * columns;
        double squares = 0;
        for (int64_t c = 0; c < columns; c++) squares += x[c] * x[c];
        double inverse = 1 / sqrt(squares / (double)columns + epsilon);
        for (int64_t c = 0; c < columns; c++) out[0]->f[r * columns + c] = x[c] * inverse;
        if (ir_node_wants(node, 1)) out[1]->f[r] = inverse;
    }
    ir_norm_multiply(out[0], input[1]);
    return MDOT_OK;
}

/* FLOPs per element of the output. A root, a division or an exponential counts as one; work done once per row is
 * ignored. */
static double flops_per_element(const ir_node *node)
{
    switch (ir_node_opcode(node)) {
    case IR_OP_Softmax: /* maximum, difference, exponential, sum, quotient */
    case IR_OP_LogSoftmax: return 5;
    case IR_OP_RMSNormalization: /* square, sum, quotient, scale */
    case IR_OP_SimplifiedLayerNormalization: return 4;
    case IR_OP_BatchNormalization: /* one multiply-add: its statistics are constants */ return 2;
    case IR_OP_LpNormalization: /* power, sum, quotient */ return 3;
    case IR_OP_SkipLayerNormalization: /* the sum of input and skip, of the bias if present, and a layer norm */
        return 9 + (ir_node_input(node, 4) != NULL);
    default: /* sum, difference, difference and square, sum, quotient, scale, bias */ return 8;
    }
}

void ir_cost_norm(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    out_cost->flops = flops_per_element(node) * ir_value_elements(node->inputs[0], length);
    if (ir_node_opcode(node) != IR_OP_BatchNormalization) return;
    for (int i = 3; i < 5; i++) { /* running statistics are tracked and not trained */
        if (node->inputs[i]->constant != NULL) out_cost->parameters -= ir_value_elements(node->inputs[i], length);
    }
}
