/* norms.c — recognises normalisations that exporters have written out: LayerNormalization (PyTorch up to opset 16,
 * TensorFlow), RMSNormalization and Softmax.
 *
 * First the core, with a scale of ones; then a following product with a vector becomes the scale and a following sum
 * the bias. Affine parts that are themselves written in an odd way then still leave the core recognised.
 */
#include "ir/ops.h"
#include "ir/passes/builder.h"
#include "ir/passes/match.h"
#include "ir/passes/passes.h"

enum { X, CENTRED, MEAN, VARIANCE, EPSILON, MAXIMUM, TOTAL };

/* ---- Patterns --------------------------------------------------------------------------------------------------- */

#define MEAN_OF(...) P(ReduceMean, __VA_ARGS__)
/* y / √(v + ε) in the ways in which it is written. */
#define OVER_ROOT(y, v)                                                                                                \
    P_EITHER(P(Div, y, P_ROOT(P(Add, v, P_SCALAR(EPSILON)))),                                                          \
             P(Mul, y, P(Reciprocal, P_ROOT(P(Add, v, P_SCALAR(EPSILON))))),                                           \
             P(Mul, y, P(Div, P_NUMBER(1), P_ROOT(P(Add, v, P_SCALAR(EPSILON))))),                                     \
             P(Mul, y, P(Pow, P(Add, v, P_SCALAR(EPSILON)), P_NUMBER(-0.5))))

/* (x - mean) / √(mean of squares + ε); the variance also as E[x²] - E[x]², as ONNX defines the operator. */
static const ir_pattern *const layer_norm =
    OVER_ROOT(P_LET(CENTRED, P(Sub, P_ANY(X), P_LET(MEAN, MEAN_OF(P_ANY(X))))),
              P_EITHER(P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(CENTRED)))),
                       P(Sub, P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(X)))), P_SQUARE(P_ANY(MEAN)))));

static const ir_pattern *const rms_norm = OVER_ROOT(P_ANY(X), P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(X)))));

#define SHIFTED_EXP P(Exp, P(Sub, P_ANY(X), P_LET(MAXIMUM, P(ReduceMax, P_ANY(X)))))
static const ir_pattern *const softmax =
    P(Div, P_LET(CENTRED, SHIFTED_EXP), P_LET(TOTAL, P(ReduceSum, P_ANY(CENTRED))));

/* ---- Cores ------------------------------------------------------------------------------------------------------ */

/* The first of the trailing axes that a reduction with kept dimensions covers; -1 where it is none such. */
static int trailing_axis(const ir_value *reduced)
{
    const ir_node *node = reduced->def;
    int rank = node->inputs[0]->type.rank, count = 0;
    int64_t axes[IR_MAX_KNOWN];
    const ir_value *operand = ir_node_input(node, 1);
    if (!ir_node_int(node, "keepdims", 1) || !operand || !ir_value_ints(operand, axes, &count) || count < 1) return -1;
    if (count > rank) return -1;
    unsigned covered = 0;
    for (int i = 0; i < count; i++) covered |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    unsigned trailing = ((1u << count) - 1) << (rank - count);
    return covered == trailing ? rank - count : -1;
}

static ir_value *norm_without_scale(ir_builder *b, ir_opcode op, ir_value *x, int axis, double epsilon)
{
    int64_t dims[MDOT_MAX_RANK];
    int count = x->type.rank - axis;
    for (int i = 0; i < count; i++) {
        if (!ir_dim_is_number(x->type.dim[axis + i])) return NULL; /* no constant of ones has such a shape */
        dims[i] = x->type.dim[axis + i].offset;
    }
    ir_value *inputs[] = {x, b_filled(b, dims, count, 1)};
    ir_node *node = b_node(b, op, inputs, 2, 1);
    b_set_int(b, node, "axis", axis);
    b_set_float(b, node, "epsilon", epsilon);
    return b_infer(b, node);
}

static bool recognise_layer_norm(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(layer_norm, result, &m)) return false;
    int axis = trailing_axis(m.slot[MEAN]);
    if (axis < 0 || trailing_axis(m.slot[VARIANCE]) != axis) return false;
    double epsilon = ir_match_scalar(&m, EPSILON);
    return b_replace(b, result, norm_without_scale(b, IR_OP_LayerNormalization, m.slot[X], axis, epsilon));
}

static bool recognise_rms_norm(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(rms_norm, result, &m)) return false;
    int axis = trailing_axis(m.slot[VARIANCE]);
    if (axis < 0) return false;
    double epsilon = ir_match_scalar(&m, EPSILON);
    return b_replace(b, result, norm_without_scale(b, IR_OP_RMSNormalization, m.slot[X], axis, epsilon));
}

static bool recognise_softmax(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(softmax, result, &m)) return false;
    int axis = trailing_axis(m.slot[MAXIMUM]);
    if (axis != m.slot[X]->type.rank - 1 || trailing_axis(m.slot[TOTAL]) != axis) return false;
    ir_node *node = b_node(b, IR_OP_Softmax, &m.slot[X], 1, 1);
    b_set_int(b, node, "axis", axis);
    return b_replace(b, result, b_infer(b, node));
}

/* ---- Scale and bias --------------------------------------------------------------------------------------------- */

/* `value` as a tensor of the dimensions that the norm covers: itself, or with leading ones taken off; NULL: it is no
 * such tensor. */
static ir_value *as_parameter(ir_builder *b, const ir_node *norm, ir_value *value)
{
    const ir_type *scale = &norm->inputs[1]->type;
    int extra = value->type.rank - scale->rank;
    if (extra < 0 || value->type.dtype != scale->dtype) return NULL;
    for (int i = 0; i < value->type.rank; i++) {
        ir_dim want = i < extra ? ir_dim_number(1) : scale->dim[i - extra];
        if (!ir_dim_equal(value->type.dim[i], want)) return NULL;
    }
    return b_reshape(b, value, scale->dim, scale->rank);
}

/* The norm that makes `value`, when nobody else reads it and only its first output is used. */
static ir_node *norm_of(const ir_value *value)
{
    ir_node *node = value->def;
    if (!node || value->use_count != 1 || node->output_count != 1) return NULL;
    bool is_norm = node->op == &ir_ops[IR_OP_LayerNormalization] || node->op == &ir_ops[IR_OP_RMSNormalization];
    return is_norm ? node : NULL;
}

static ir_value *norm_like(ir_builder *b, const ir_node *norm, ir_value *scale, ir_value *bias)
{
    ir_value *inputs[] = {norm->inputs[0], scale, bias};
    if (!scale) return NULL;
    ir_node *node = b_node(b, ir_node_opcode(norm), inputs, bias ? 3 : 2, 1);
    b_set_int(b, node, "axis", ir_node_int(norm, "axis", -1));
    b_set_float(b, node, "epsilon", ir_node_float(norm, "epsilon", 1e-5));
    return b_infer(b, node);
}

static bool absorb_scale(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        ir_node *norm = norm_of(node->inputs[i]);
        if (!norm || norm->input_count > 2 || !ir_value_is_filled(norm->inputs[1], 1, 0)) continue;
        ir_value *scale = as_parameter(b, norm, node->inputs[1 - i]);
        if (b_replace(b, node->outputs[0], norm_like(b, norm, scale, NULL))) return true;
    }
    return false;
}

static void absorb_bias(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        ir_node *norm = norm_of(node->inputs[i]);
        if (!norm || norm->op != &ir_ops[IR_OP_LayerNormalization] || norm->input_count > 2) continue;
        ir_value *bias = as_parameter(b, norm, node->inputs[1 - i]);
        if (bias && b_replace(b, node->outputs[0], norm_like(b, norm, norm->inputs[1], bias))) return;
    }
}

/* ---- The pass --------------------------------------------------------------------------------------------------- */

static void quotient(ir_builder *b, ir_node *node)
{
    ir_value *result = node->outputs[0];
    if (!recognise_layer_norm(b, result) && !recognise_rms_norm(b, result)) recognise_softmax(b, result);
}

static void product(ir_builder *b, ir_node *node)
{
    ir_value *result = node->outputs[0];
    if (!recognise_layer_norm(b, result) && !recognise_rms_norm(b, result)) absorb_scale(b, node);
}

static const ir_rule rule_of[IR_OP_COUNT] = {
    [IR_OP_Div] = quotient,
    [IR_OP_Mul] = product,
    [IR_OP_Add] = absorb_bias,
};

static void recognise(ir_builder *b, ir_node *node)
{
    ir_rule rule = rule_of[ir_node_opcode(node)];
    if (rule) rule(b, node);
}

mdot_status pass_norms(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    return ir_rewrite(graph, recognise, out_changed, err);
}
