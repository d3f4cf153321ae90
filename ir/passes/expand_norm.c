/* expand_norm.c — decomposes normalisations that the norm kernel cannot express, and those that ONNX defines by
 * others.
 *
 * The kernel takes f32, the trailing dimensions and parameters of exactly their shape, and gives one result. 16-bit
 * types are computed in f32. Other axes are transposed to the end. Norms with means and deviations as outputs,
 * parameters of other shapes, or f64 are decomposed as in the operators' function bodies, with the variance as the
 * mean of squared deviations.
 */
#include "ir/ops.h"
#include "ir/ops/families.h"
#include "ir/passes/pass_rules.h"

static bool is_narrow_float(mdot_dtype dtype) { return dtype == MDOT_DTYPE_F16 || dtype == MDOT_DTYPE_BF16; }

static ir_value *softmax_node(ir_builder *b, ir_opcode op, ir_value *x)
{
    if (x == NULL) return NULL;
    return ir_build_with(b, op, &x, 1, IR_ATTRS(IR_INT("axis", x->type.rank - 1)));
}

static ir_value *decompose_softmax(ir_builder *b, ir_opcode op, ir_value *x, int64_t axis)
{
    ir_value *shifted = ir_build_sub(b, x, ir_build_reduce(b, IR_OP_ReduceMax, x, &axis, 1));
    ir_value *exponential = ir_build_exp(b, shifted);
    ir_value *total = exponential != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, exponential, &axis, 1) : NULL;
    return op == IR_OP_Softmax ? ir_build_div(b, exponential, total) : ir_build_sub(b, shifted, ir_build_log(b, total));
}

void ir_expand_softmax(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    ir_opcode op = ir_node_opcode(node);
    int rank = x->type.rank, axis = ir_node_axis(node, -1, rank);
    if (b->dtype == MDOT_DTYPE_F64) {
        ir_replace(b, result, decompose_softmax(b, op, x, axis));
    } else if (axis != rank - 1) {
        int64_t perm[MDOT_MAX_RANK]; /* its own inverse */
        for (int i = 0; i < rank; i++) perm[i] = i;
        perm[axis] = rank - 1;
        perm[rank - 1] = axis;
        ir_replace(b, result, ir_build_transpose(b, softmax_node(b, op, ir_build_transpose(b, x, perm)), perm));
    } else if (is_narrow_float(b->dtype)) {
        ir_replace(b, result, ir_build_cast(b, softmax_node(b, op, ir_build_cast(b, x, MDOT_DTYPE_F32)), b->dtype));
    }
}

/* log Σ exp x = max + log Σ exp(x - max), with 0 in place of an infinite maximum. */
void ir_expand_log_sum_exp(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    int64_t axes[IR_MAX_KNOWN];
    int count = 0;
    const ir_value *operand = ir_node_input(node, 1);
    if (!ir_dtype_is_float(b->dtype) || (operand != NULL && !ir_value_ints(operand, axes, &count))) return;
    if (count == 0 && ir_node_int(node, "noop_with_empty_axes", 0)) {
        ir_replace(b, result, x);
        return;
    }
    if (count == 0)
        for (; count < x->type.rank; count++) axes[count] = count;
    ir_value *greatest = ir_build_reduce(b, IR_OP_ReduceMax, x, axes, count);
    ir_value *is_infinite = ir_build_op1(b, IR_OP_IsInf, greatest);
    ir_value *shift = ir_build_where(b, is_infinite, ir_build_scalar(b, 0), greatest);
    ir_value *exponential = ir_build_exp(b, ir_build_sub(b, x, shift));
    ir_value *total = exponential != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, exponential, axes, count) : NULL;
    ir_replace(
        b, result,
        ir_build_reshape(b, ir_build_add(b, ir_build_log(b, total), shift), result->type.dim, result->type.rank));
}

/* Does a parameter have exactly the dimensions of x from `axis` on? */
static bool fits(const ir_value *parameter, const ir_type *x, int axis)
{
    if (parameter == NULL) return true;
    if (parameter->type.rank != x->rank - axis) return false;
    for (int i = axis; i < x->rank; i++)
        if (!ir_dim_equal(parameter->type.dim[i - axis], x->dim[i])) return false;
    return true;
}

typedef struct standardised {
    ir_value *result, *mean, *inverse_deviation;
} standardised;

/* (x - mean) / √(variance + ε) over the axes from `axis` on; RMS norms skip the mean. The builder's dtype is that of
 * x. */
static standardised standardise(ir_builder *b, ir_value *x, int axis, double epsilon, bool centred)
{
    int64_t axes[MDOT_MAX_RANK];
    int count = 0;
    standardised s = {NULL, NULL, NULL};
    if (x == NULL) return s;
    for (int i = axis; i < x->type.rank; i++) axes[count++] = i;
    s.mean = centred ? ir_build_reduce(b, IR_OP_ReduceMean, x, axes, count) : NULL;
    ir_value *deviation = centred ? ir_build_sub(b, x, s.mean) : x;
    ir_value *square = ir_build_mul(b, deviation, deviation);
    ir_value *variance = square != NULL ? ir_build_reduce(b, IR_OP_ReduceMean, square, axes, count) : NULL;
    ir_value *root = ir_build_sqrt(b, ir_build_add(b, variance, ir_build_scalar(b, epsilon)));
    s.inverse_deviation = ir_build_op1(b, IR_OP_Reciprocal, root);
    s.result = ir_build_div(b, deviation, root);
    return s;
}

/* Decomposes a norm and connects its result, means and deviations to the node's outputs. */
static void write_out(ir_builder *b, ir_node *node, int axis, double epsilon, bool centred)
{
    mdot_dtype outer = node->inputs[0]->type.dtype, inner = is_narrow_float(outer) ? MDOT_DTYPE_F32 : outer;
    b->dtype = inner;
    standardised s = standardise(b, ir_build_cast(b, node->inputs[0], inner), axis, epsilon, centred);
    ir_value *mean = centred ? ir_read_output(node, 1) : NULL, *inverse = ir_read_output(node, centred ? 2 : 1);
    if (mean != NULL) ir_replace(b, mean, ir_build_cast(b, s.mean, mean->type.dtype));
    if (inverse != NULL) ir_replace(b, inverse, ir_build_cast(b, s.inverse_deviation, inverse->type.dtype));
    ir_value *scale = node->inputs[1];
    ir_value *result = ir_build_mul(b, ir_build_cast(b, s.result, scale->type.dtype), scale);
    ir_value *bias = ir_node_input(node, 2);
    ir_replace(b, node->outputs[0], bias != NULL ? ir_build_add(b, result, bias) : result);
}

static void expand_row_norm(ir_builder *b, ir_node *node, ir_opcode kernel)
{
    ir_value *x = node->inputs[0], *scale = node->inputs[1], *bias = ir_node_input(node, 2);
    int axis = ir_node_axis(node, -1, node->inputs[0]->type.rank);
    double epsilon = ir_node_float(node, "epsilon", 1e-5);
    bool one_result = ir_read_output(node, 1) == NULL && ir_read_output(node, 2) == NULL;
    bool exact = fits(scale, &x->type, axis) && fits(bias, &x->type, axis);
    bool wide = x->type.dtype == MDOT_DTYPE_F64 || scale->type.dtype == MDOT_DTYPE_F64;
    if (!one_result || !exact || wide) {
        write_out(b, node, axis, epsilon, kernel == IR_OP_LayerNormalization);
    } else if (is_narrow_float(x->type.dtype) || is_narrow_float(scale->type.dtype)) {
        ir_value *wide_bias = bias != NULL ? ir_build_cast(b, bias, MDOT_DTYPE_F32) : NULL;
        ir_value *wide_x = ir_build_cast(b, x, MDOT_DTYPE_F32), *wide_scale = ir_build_cast(b, scale, MDOT_DTYPE_F32);
        ir_value *widened = ir_build_norm(b, kernel, wide_x, wide_scale, wide_bias, axis, epsilon);
        ir_replace(b, node->outputs[0], ir_build_cast(b, widened, b->dtype));
    } else if (node->op != &ir_ops[kernel] || node->output_count > 1) {
        ir_replace(b, node->outputs[0], ir_build_norm(b, kernel, x, scale, bias, axis, epsilon));
    }
}

void ir_expand_layer_norm(ir_builder *b, ir_node *node) { expand_row_norm(b, node, IR_OP_LayerNormalization); }

/* Also handles SimplifiedLayerNormalization, ONNX Runtime's older name for it. */
void ir_expand_rms_norm(ir_builder *b, ir_node *node) { expand_row_norm(b, node, IR_OP_RMSNormalization); }

/* Reshapes a parameter of C channels to broadcast against [N, C, …], in the builder's dtype. */
static ir_value *per_channel(ir_builder *b, ir_value *parameter, int rank)
{
    parameter = ir_build_cast(b, parameter, b->dtype);
    if (parameter == NULL) return NULL;
    ir_dim dims[MDOT_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = ir_dim_number(1);
    dims[1] = parameter->type.dim[0];
    return ir_build_reshape(b, parameter, dims, rank);
}

/* [N, C, …] as [N, groups, rest]. False: rest is not affine in the length. */
static bool grouped_shape(const ir_type *x, int64_t groups, ir_dim *out)
{
    ir_dim rest = ir_dim_number(1);
    for (int i = 1; i < x->rank; i++)
        if (!ir_dim_mul(rest, x->dim[i], &rest)) return false;
    out[0] = x->dim[0];
    out[1] = ir_dim_number(groups);
    return ir_dim_div_exact(rest, out[1], &out[2]);
}

/* [N, C, …] as [N, groups, C / groups, …], for extents whose product is not affine, such as pairs of positions. */
static bool split_shape(const ir_type *x, int64_t groups, ir_dim *out)
{
    if (x->rank == MDOT_MAX_RANK || !ir_dim_div_exact(x->dim[1], ir_dim_number(groups), &out[2])) return false;
    out[0] = x->dim[0];
    out[1] = ir_dim_number(groups);
    for (int i = 2; i < x->rank; i++) out[i + 1] = x->dim[i];
    return true;
}

static void finish_group_norm(ir_builder *b, ir_node *node, mdot_dtype outer, ir_value *core)
{
    const ir_type *type = &node->inputs[0]->type;
    b->dtype = outer;
    core = ir_build_cast(b, ir_build_reshape(b, core, type->dim, type->rank), outer);
    ir_value *scaled = ir_build_mul(b, core, per_channel(b, node->inputs[1], type->rank));
    ir_replace(b, node->outputs[0], ir_build_add(b, scaled, per_channel(b, node->inputs[2], type->rank)));
}

static void norm_over_groups(ir_builder *b, ir_node *node, int64_t groups)
{
    ir_value *x = node->inputs[0];
    int rank = x->type.rank;
    ir_dim dims[3];
    mdot_dtype outer = b->dtype;
    bool is_joined = grouped_shape(&x->type, groups, dims);
    double epsilon = ir_node_float(node, "epsilon", 1e-5);
    ir_dim split[MDOT_MAX_RANK];
    if (!is_joined && !split_shape(&x->type, groups, split)) return;
    if (is_narrow_float(outer)) b->dtype = MDOT_DTYPE_F32;
    if (!is_joined) {
        ir_value *parts = ir_build_reshape(b, ir_build_cast(b, x, b->dtype), split, rank + 1);
        ir_value *result_parts = standardise(b, parts, 2, epsilon, true).result;
        finish_group_norm(b, node, outer, result_parts);
        return;
    }
    ir_value *rows = ir_build_reshape(b, ir_build_cast(b, x, b->dtype), dims, 3), *core;
    if (b->dtype == MDOT_DTYPE_F32 && ir_dim_is_number(dims[2]))
        core = ir_build_norm(b, IR_OP_LayerNormalization, rows, ir_build_filled(b, &dims[2].offset, 1, 1), NULL, 2,
                             epsilon);
    else
        core = standardise(b, rows, 2, epsilon, true).result;
    finish_group_norm(b, node, outer, core);
}

void ir_expand_group_norm(ir_builder *b, ir_node *node)
{
    norm_over_groups(b, node, ir_node_int(node, "num_groups", 1));
}

void ir_expand_instance_norm(ir_builder *b, ir_node *node)
{
    ir_dim channels = node->inputs[0]->type.dim[1];
    if (ir_dim_is_number(channels)) norm_over_groups(b, node, channels.offset);
}

/* The computation type for inputs of several types: the common type, else the wider of f32 and theirs. */
static mdot_dtype common_dtype(const ir_node *node)
{
    mdot_dtype common = node->inputs[0]->type.dtype;
    for (int i = 1; i < node->input_count; i++) {
        mdot_dtype dtype = node->inputs[i]->type.dtype;
        if (dtype == common) continue;
        common = dtype == MDOT_DTYPE_F64 || common == MDOT_DTYPE_F64 ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32;
    }
    return common;
}

/* x · s + (bias - mean · s) with s = scale / √(variance + ε), so all but two operations fold (ONNX opset 15). */
void ir_expand_batch_norm(ir_builder *b, ir_node *node)
{
    mdot_dtype outer = b->dtype;
    b->dtype = common_dtype(node);
    ir_value *x = ir_build_cast(b, node->inputs[0], b->dtype);
    int rank = node->inputs[0]->type.rank;
    ir_value *mean = per_channel(b, node->inputs[3], rank), *variance = per_channel(b, node->inputs[4], rank);
    ir_value *root =
        ir_build_sqrt(b, ir_build_add(b, variance, ir_build_scalar(b, ir_node_float(node, "epsilon", 1e-5))));
    ir_value *factor = ir_build_div(b, per_channel(b, node->inputs[1], rank), root);
    ir_value *bias = per_channel(b, node->inputs[2], rank), *at_mean = ir_build_mul(b, mean, factor);
    ir_value *shift = ir_build_sub(b, bias, at_mean);
    ir_value *result = ir_build_add(b, ir_build_mul(b, x, factor), shift);
    ir_replace(b, node->outputs[0], ir_build_cast(b, result, outer));
}

/* (x - mean) / (deviation + 1e-9) over `axes`. */
void ir_expand_mean_variance_norm(ir_builder *b, ir_node *node)
{
    static const int64_t usual[] = {0, 2, 3};
    const ir_attr *attr = ir_node_ints(node, "axes");
    const int64_t *axes = attr != NULL ? attr->ints : usual;
    int count = attr != NULL ? attr->count : 3;
    ir_value *x = node->inputs[0];
    ir_value *deviation = ir_build_sub(b, x, ir_build_reduce(b, IR_OP_ReduceMean, x, axes, count));
    ir_value *square = ir_build_mul(b, deviation, deviation);
    ir_value *variance = square != NULL ? ir_build_reduce(b, IR_OP_ReduceMean, square, axes, count) : NULL;
    ir_value *root = ir_build_sqrt(b, variance);
    ir_value *divisor = ir_build_add(b, root, ir_build_scalar(b, 1e-9));
    ir_replace(b, node->outputs[0], ir_build_div(b, deviation, divisor));
}

/* x / ‖x‖, and zero if the norm is zero. */
void ir_expand_lp_norm(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0];
    int64_t axis = ir_node_axis(node, -1, node->inputs[0]->type.rank);
    ir_opcode op = ir_node_int(node, "p", 2) == 1 ? IR_OP_ReduceL1 : IR_OP_ReduceL2;
    ir_value *length = ir_build_reduce(b, op, x, &axis, 1);
    ir_value *is_zero = ir_build_op2(b, IR_OP_Equal, length, ir_build_scalar(b, 0));
    ir_value *divisor = ir_build_where(b, is_zero, ir_build_scalar(b, 1), length);
    ir_replace(b, node->outputs[0], ir_build_div(b, x, divisor));
}
