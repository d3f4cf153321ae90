/* norm_channels.c — normalisations of channels and along given axes: GroupNormalization, InstanceNormalization,
 * BatchNormalization, MeanVarianceNormalization, LpNormalization.
 *
 * Their costs are in norm.c.
 */
#include "ir/ops/operands.h"

#include <math.h>

/* Reads an input with channels in axis 1: its type, which is also the output's, and one scale and one bias per
 * channel. */
static mdot_status read_channels(const ir_operands *args, ir_type *out_type, ir_dim *out_channels)
{
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need_floats(args, 0, "input"));
    if (out_type->rank < 2) return ir_malformed(args, "an input of %d dimensions has no channels", out_type->rank);
    *out_channels = out_type->dim[1];
    mdot_status status = ir_norm_need_vector(args, 1, "scale", *out_channels);
    return status != MDOT_OK ? status : ir_norm_need_vector(args, 2, "bias", *out_channels);
}

/* x * scale[channel] + bias[channel] in place. */
static void scale_channels(ir_wide *out, const double *scale, const double *bias)
{
    ir_axis_view view = ir_view_axis(out, 1);
    for (int64_t k = 0; k < out->count; k++) {
        int64_t channel = k / view.inner % view.extent;
        out->f[k] = out->f[k] * scale[channel] + bias[channel];
    }
}

mdot_status ir_result_group_norm(const ir_operands *args, ir_type *out_type)
{
    ir_dim channels, group;
    mdot_status status = read_channels(args, out_type, &channels);
    if (status != MDOT_OK || ir_node_opcode(args->node) == IR_OP_InstanceNormalization) return status;
    int64_t groups = ir_node_int(args->node, "num_groups", 0);
    if (groups > 0 && ir_dim_div_exact(channels, ir_dim_number(groups), &group)) return MDOT_OK;
    char text[IR_DIM_TEXT_BYTES];
    return ir_malformed(args, "%s channels are not divisible into %lld groups",
                        ir_dim_text(channels, args->graph->symbol, text, sizeof text), (long long)groups);
}

mdot_status ir_eval_group_norm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    bool instance = ir_node_opcode(node) == IR_OP_InstanceNormalization;
    int64_t groups = input[0]->dims[0] * (instance ? input[0]->dims[1] : ir_node_int(node, "num_groups", 0));
    double epsilon = ir_node_float(node, "epsilon", 1e-5), mean, inverse;
    for (int64_t g = 0; g < groups; g++) {
        int64_t size = input[0]->count / groups;
        ir_norm_row(input[0]->f + g * size, size, epsilon, out[0]->f + g * size, &mean, &inverse);
    }
    scale_channels(out[0], input[1]->f, input[2]->f);
    return MDOT_OK;
}

mdot_status ir_result_batch_normalization(const ir_operands *args, ir_type *out_type)
{
    ir_dim channels;
    if (ir_node_int(args->node, "training_mode", 0)) return ir_unsupported(args, "training_mode 1 is unsupported");
    mdot_status status = read_channels(args, out_type, &channels);
    if (status == MDOT_OK) status = ir_norm_need_vector(args, 3, "mean", channels);
    return status != MDOT_OK ? status : ir_norm_need_vector(args, 4, "variance", channels);
}

mdot_status ir_eval_batch_normalization(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                        mdot_error *err)
{
    double epsilon = ir_node_float(node, "epsilon", 1e-5);
    ir_axis_view view = ir_view_axis(input[0], 1);
    for (int64_t k = 0; k < input[0]->count; k++) {
        int64_t channel = k / view.inner % view.extent;
        out[0]->f[k] = (input[0]->f[k] - input[3]->f[channel]) / sqrt(input[4]->f[channel] + epsilon);
    }
    scale_channels(out[0], input[1]->f, input[2]->f);
    return MDOT_OK;
}

static mdot_status read_mvn_axes(const ir_operands *args, ir_type *out_type, unsigned *out_mask)
{
    static const int64_t all_but_channels[] = {0, 2, 3}; /* the default, for images */
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need_floats(args, 0, "input"));
    const ir_attr *axes = ir_node_ints(args->node, "axes");
    return ir_axes_mask(args->node, axes != NULL ? axes->ints : all_but_channels, axes != NULL ? axes->count : 3,
                        out_type->rank, out_mask, args->err);
}

mdot_status ir_result_mvn(const ir_operands *args, ir_type *out_type)
{
    unsigned mask;
    return read_mvn_axes(args, out_type, &mask);
}

/* Strides into a tensor with one number per index of the axes that are not normalised. */
static int64_t statistics_strides(const ir_wide *input, unsigned mask, int64_t *out_strides)
{
    int64_t stride = 1;
    for (int i = input->rank - 1; i >= 0; i--) {
        out_strides[i] = mask >> i & 1 ? 0 : stride;
        if (!(mask >> i & 1)) stride *= input->dims[i];
    }
    return stride;
}

mdot_status ir_eval_mvn(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type type;
    unsigned mask = 0;
    BS_TRY(read_mvn_axes(&args, &type, &mask));
    if (input[0]->count == 0) return MDOT_OK;
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    int64_t groups = statistics_strides(input[0], mask, strides);
    double *mean = IR_NEW_ARRAY(arena, double, groups), *variance = IR_NEW_ARRAY(arena, double, groups);
    if (mean == NULL || variance == NULL) return ir_fail_memory(node, err);
    double share = (double)groups / (double)input[0]->count;
    for (int64_t k = 0; k < input[0]->count; k++) {
        mean[ir_dot_index(input[0]->rank, index, strides)] += input[0]->f[k] * share;
        ir_next_index(input[0]->rank, input[0]->dims, index);
    }
    for (int64_t k = 0; k < input[0]->count; k++) {
        int64_t group = ir_dot_index(input[0]->rank, index, strides);
        out[0]->f[k] = input[0]->f[k] - mean[group];
        variance[group] += out[0]->f[k] * out[0]->f[k] * share;
        ir_next_index(input[0]->rank, input[0]->dims, index);
    }
    for (int64_t k = 0; k < input[0]->count; k++) {
        double deviation = sqrt(variance[ir_dot_index(input[0]->rank, index, strides)]);
        out[0]->f[k] /= deviation + 1e-9; /* the constant in ONNX's definition */
        ir_next_index(input[0]->rank, input[0]->dims, index);
    }
    return MDOT_OK;
}

mdot_status ir_result_lp_norm(const ir_operands *args, ir_type *out_type)
{
    int axis;
    int64_t p = ir_node_int(args->node, "p", 2);
    mdot_status status = ir_operand_need(args, 0, "input", -1, out_type);
    if (status == MDOT_OK) status = ir_operand_need_floats(args, 0, "input");
    if (status == MDOT_OK) status = ir_operand_axis(args, "axis", -1, out_type->rank, &axis);
    if (status != MDOT_OK || p == 1 || p == 2) return status;
    return ir_malformed(args, "p is %lld instead of 1 or 2", (long long)p);
}

mdot_status ir_eval_lp_norm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), input[0]->rank, &axis, err));
    bool squares = ir_node_int(node, "p", 2) == 2;
    ir_axis_view view = ir_view_axis(input[0], axis);
    for (int64_t row = 0; row < view.outer * view.inner; row++) {
        int64_t offset = row / view.inner * view.extent * view.inner + row % view.inner;
        const double *x = input[0]->f + offset;
        double sum = 0;
        for (int64_t i = 0; i < view.extent; i++) {
            double value = x[i * view.inner];
            sum += squares ? value * value : fabs(value);
        }
        double norm = squares ? sqrt(sum) : sum;
        for (int64_t i = 0; i < view.extent; i++) { /* ONNX: a row of zeros stays zero */
            out[0]->f[offset + i * view.inner] = norm == 0 ? 0 : x[i * view.inner] / norm;
        }
    }
    return MDOT_OK;
}
