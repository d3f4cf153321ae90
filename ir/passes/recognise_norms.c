/* recognise_norms.c — recognises decomposed normalisations: LayerNormalization (PyTorch up to opset 16, TensorFlow),
 * RMSNormalization and Softmax.
 *
 * First the core is recognised, with a scale of ones. Then a following product with a vector becomes the scale, and a
 * following sum the bias. If the affine part has an unknown pattern, the core is still recognised.
 */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

enum { X, CENTRED, MEAN, VARIANCE, EPSILON, FACTOR, SCALE, BIAS, MAXIMUM, TOTAL };

#define MEAN_OF(...) P(ReduceMean, __VA_ARGS__)
/* y / √(v + ε) in its usual patterns. */
#define OVER_ROOT(y, v)                                                                                                \
    P_EITHER(P(Div, y, P_ROOT(P(Add, v, P_SCALAR(EPSILON)))),                                                          \
             P(Mul, y, P(Reciprocal, P_ROOT(P(Add, v, P_SCALAR(EPSILON))))),                                           \
             P(Mul, y, P(Div, P_NUMBER(1), P_ROOT(P(Add, v, P_SCALAR(EPSILON))))),                                     \
             P(Mul, y, P(Pow, P(Add, v, P_SCALAR(EPSILON)), P_NUMBER(-0.5))))

/* (x - mean) / √(mean of squares + ε). The variance may also be E[x²] - E[x]², as in ONNX's definition. */
static const ir_pattern *const layer_norm =
    OVER_ROOT(P_LET(CENTRED, P(Sub, P_ANY(X), P_LET(MEAN, MEAN_OF(P_ANY(X))))),
              P_EITHER(P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(CENTRED)))),
                       P(Sub, P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(X)))), P_SQUARE(P_ANY(MEAN)))));

/* x f + (β - mean f) with f = γ / √(variance + ε): TensorFlow's batch normalisation used as a layer norm. */
static const ir_pattern *const factored_layer_norm =
    P(Add,
      P(Mul, P_ANY(X),
        P_LET(FACTOR,
              P(Mul,
                P(Reciprocal,
                  P_ROOT(P(Add, P_LET(VARIANCE, MEAN_OF(P_SQUARE(P(Sub, P_ANY(X), P_LET(MEAN, MEAN_OF(P_ANY(X))))))),
                           P_SCALAR(EPSILON)))),
                P_ANY(SCALE)))),
      P(Sub, P_ANY(BIAS), P(Mul, P_ANY(MEAN), P_ANY(FACTOR))));

static const ir_pattern *const rms_norm = OVER_ROOT(P_ANY(X), P_LET(VARIANCE, MEAN_OF(P_SQUARE(P_ANY(X)))));

#define SHIFTED_EXP P(Exp, P(Sub, P_ANY(X), P_LET(MAXIMUM, P(ReduceMax, P_ANY(X)))))
static const ir_pattern *const softmax =
    P(Div, P_LET(CENTRED, SHIFTED_EXP), P_LET(TOTAL, P(ReduceSum, P_ANY(CENTRED))));

/* The first of the trailing axes that a reduction with kept dimensions covers; -1: it covers other axes. */
static int trailing_axis(const ir_value *reduced)
{
    const ir_node *node = reduced->def;
    int rank = node->inputs[0]->type.rank, count = 0;
    int64_t axes[IR_MAX_KNOWN];
    const ir_value *operand = ir_node_input(node, 1);
    if (!ir_node_int(node, "keepdims", 1) || operand == NULL || !ir_value_ints(operand, axes, &count) || count < 1)
        return -1;
    if (count > rank) return -1;
    unsigned covered = 0;
    for (int i = 0; i < count; i++) covered |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    unsigned trailing = ((1u << count) - 1) << (rank - count);
    return covered == trailing ? rank - count : -1;
}

static ir_value *norm_without_scale(ir_builder *b, ir_opcode op, const ir_match *m, int axis)
{
    ir_value *x = m->slot[X];
    int64_t dims[MDOT_MAX_RANK];
    int count = x->type.rank - axis;
    for (int i = 0; i < count; i++) {
        if (!ir_dim_is_number(x->type.dim[axis + i])) return NULL; /* a constant of ones needs a numeric shape */
        dims[i] = x->type.dim[axis + i].offset;
    }
    return ir_build_norm(b, op, x, ir_build_filled(b, dims, count, 1), NULL, axis, ir_match_scalar(m, EPSILON));
}

static bool recognise_layer_norm(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(layer_norm, result, &m)) return false;
    int axis = trailing_axis(m.slot[MEAN]);
    if (axis < 0 || trailing_axis(m.slot[VARIANCE]) != axis) return false;
    return ir_replace(b, result, norm_without_scale(b, IR_OP_LayerNormalization, &m, axis));
}

static bool recognise_rms_norm(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(rms_norm, result, &m)) return false;
    int axis = trailing_axis(m.slot[VARIANCE]);
    if (axis < 0) return false;
    return ir_replace(b, result, norm_without_scale(b, IR_OP_RMSNormalization, &m, axis));
}

static bool recognise_softmax(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(softmax, result, &m)) return false;
    int axis = trailing_axis(m.slot[MAXIMUM]);
    if (axis != m.slot[X]->type.rank - 1 || trailing_axis(m.slot[TOTAL]) != axis) return false;
    return ir_replace(b, result, ir_build_with(b, IR_OP_Softmax, &m.slot[X], 1, IR_ATTRS(IR_INT("axis", axis))));
}

/* `value` as a tensor of x's dimensions from `axis` on, with leading ones removed. NULL: its shape differs. */
static ir_value *as_parameter(ir_builder *b, const ir_type *x, int axis, ir_value *value)
{
    int rank = x->rank - axis, extra = value->type.rank - rank;
    if (extra < 0 || value->type.dtype != x->dtype) return NULL;
    for (int i = 0; i < value->type.rank; i++) {
        ir_dim want = i < extra ? ir_dim_number(1) : x->dim[axis + i - extra];
        if (!ir_dim_equal(value->type.dim[i], want)) return NULL;
    }
    return ir_build_reshape(b, value, x->dim + axis, rank);
}

/* The norm that produces `value` if it has a single reader and a single result. */
static ir_node *norm_of(const ir_value *value)
{
    ir_node *node = value->def;
    if (node == NULL || value->use_count != 1 || node->output_count != 1) return NULL;
    bool is_norm = node->op == &ir_ops[IR_OP_LayerNormalization] || node->op == &ir_ops[IR_OP_RMSNormalization];
    return is_norm ? node : NULL;
}

static ir_value *parameter_of(ir_builder *b, const ir_node *made, ir_value *value)
{
    const ir_type *x = &made->inputs[0]->type;
    return as_parameter(b, x, ir_node_axis(made, -1, x->rank), value);
}

static ir_value *norm_like(ir_builder *b, const ir_node *node, ir_value *scale, ir_value *bias)
{
    return ir_build_norm(b, ir_node_opcode(node), node->inputs[0], scale, bias, ir_node_int(node, "axis", -1),
                         ir_node_float(node, "epsilon", 1e-5));
}

static bool absorb_scale(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        ir_node *made = norm_of(node->inputs[i]);
        if (made == NULL || made->input_count > 2 || !ir_value_is_filled(made->inputs[1], 1, 0)) continue;
        ir_value *scale = parameter_of(b, made, node->inputs[1 - i]);
        if (ir_replace(b, node->outputs[0], norm_like(b, made, scale, NULL))) return true;
    }
    return false;
}

static bool recognise_factored(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (!ir_match_value(factored_layer_norm, result, &m)) return false;
    int axis = trailing_axis(m.slot[MEAN]);
    if (axis < 0 || trailing_axis(m.slot[VARIANCE]) != axis) return false;
    const ir_type *x = &m.slot[X]->type;
    ir_value *scale = as_parameter(b, x, axis, m.slot[SCALE]), *bias = as_parameter(b, x, axis, m.slot[BIAS]);
    return scale != NULL && bias != NULL &&
           ir_replace(
               b, result,
               ir_build_norm(b, IR_OP_LayerNormalization, m.slot[X], scale, bias, axis, ir_match_scalar(&m, EPSILON)));
}

static void absorb_bias(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        ir_node *made = norm_of(node->inputs[i]);
        if (made == NULL || made->op != &ir_ops[IR_OP_LayerNormalization] || made->input_count > 2) continue;
        ir_value *bias = parameter_of(b, made, node->inputs[1 - i]);
        if (bias != NULL && ir_replace(b, node->outputs[0], norm_like(b, made, made->inputs[1], bias))) return;
    }
}

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

static void sum(ir_builder *b, ir_node *node)
{
    if (!recognise_factored(b, node->outputs[0])) absorb_bias(b, node);
}

const ir_rule ir_rules_recognise_norms[IR_OP_COUNT] = {
    [IR_OP_Div] = quotient,
    [IR_OP_Mul] = product,
    [IR_OP_Add] = sum,
};
