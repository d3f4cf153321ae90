/* recognise_activations.c — recognises decomposed activation functions: GELU by erf and by tanh, SiLU and its
 * sigmoid approximation of GELU, Mish, HardSigmoid and HardSwish.
 *
 * Products match in any association and order, so one line covers the patterns of PyTorch, TensorFlow and ONNX
 * Runtime. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

#include <math.h>

enum { X, SLOPE, GATE };

#define HALF P_NUMBER(0.5)
#define ONE P_NUMBER(1)
#define SQRT_2 1.4142135623730951
#define SQRT_2_OVER_PI 0.7978845608028654

/* x/2 (1 + erf(x/√2)): Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. */
#define ERF_TERM                                                                                                       \
    P(Add, P(Erf, P_EITHER(P(Div, P_ANY(X), P_NUMBER(SQRT_2)), P(Mul, P_ANY(X), P_NUMBER(1 / SQRT_2)))), ONE)
static const ir_pattern *const erf_gelu =
    P_EITHER(P_PRODUCT(P_ANY(X), HALF, ERF_TERM), P(Mul, P(Div, P_ANY(X), P_NUMBER(2)), ERF_TERM),
             P(Div, P(Mul, P_ANY(X), ERF_TERM), P_NUMBER(2)));

/* x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), and the same with √(2/π) x factored out: √(2/π) x (1 + 0.044715 x²). */
#define CUBE P_EITHER(P(Pow, P_ANY(X), P_NUMBER(3)), P_PRODUCT(P_ANY(X), P_ANY(X), P_ANY(X)))
#define CUBIC_TERM                                                                                                     \
    P_EITHER(P(Mul, CUBE, P_NUMBER(0.044715)), P_PRODUCT(P_ANY(X), P_ANY(X), P_ANY(X), P_NUMBER(0.044715)))
#define TANH_ARGUMENT                                                                                                  \
    P_EITHER(P(Mul, P(Add, P_ANY(X), CUBIC_TERM), P_NUMBER(SQRT_2_OVER_PI)),                                           \
             P_PRODUCT(P_ANY(X), P_NUMBER(SQRT_2_OVER_PI),                                                             \
                       P(Add,                                                                                          \
                         P_EITHER(P(Mul, P_SQUARE(P_ANY(X)), P_NUMBER(0.044715)),                                      \
                                  P_PRODUCT(P_ANY(X), P_ANY(X), P_NUMBER(0.044715))),                                  \
                         ONE)))
#define TANH_TERM P(Add, P(Tanh, TANH_ARGUMENT), ONE)
static const ir_pattern *const tanh_gelu =
    P_EITHER(P_PRODUCT(P_ANY(X), HALF, TANH_TERM), P(Mul, P(Div, P_ANY(X), P_NUMBER(2)), TANH_TERM));

/* x σ(x), and x σ(αx): Ramachandran et al., "Searching for Activation Functions", 2017. */
static const ir_pattern *const silu = P(Mul, P_ANY(X), P(Sigmoid, P_ANY(X)));
static const ir_pattern *const swish = P(Mul, P_ANY(X), P(Sigmoid, P(Mul, P_ANY(X), P_SCALAR(SLOPE))));

/* x tanh(softplus(x)): Misra, "Mish", 2019. */
static const ir_pattern *const mish = P(Mul, P_ANY(X), P(Tanh, P(Softplus, P_ANY(X))));

/* relu6(x + 3) / 6, and its product with x: Howard et al., "Searching for MobileNetV3", 2019. */
#define SHIFTED_RELU6 P(Clip, P(Add, P_ANY(X), P_NUMBER(3)), P_NUMBER(0), P_NUMBER(6))
#define SIXTH P_NUMBER(1.0 / 6)
static const ir_pattern *const hard_sigmoid =
    P_EITHER(P(Div, SHIFTED_RELU6, P_NUMBER(6)), P(Mul, SHIFTED_RELU6, SIXTH));
static const ir_pattern *const hard_swish =
    P_EITHER(P(Div, P(Mul, P_ANY(X), SHIFTED_RELU6), P_NUMBER(6)), P_PRODUCT(P_ANY(X), SHIFTED_RELU6, SIXTH));
static const ir_pattern *const gated_swish = P(Mul, P_ANY(X), P_LET(GATE, P(HardSigmoid, P_ANY(X))));

/* Does the gate have the slope of HardSwish rather than ONNX's default slope of HardSigmoid? */
static bool is_sixth(const ir_value *gate)
{
    return fabs(ir_node_float(gate->def, "alpha", 0.2) - 1.0 / 6) < 1e-6 &&
           fabs(ir_node_float(gate->def, "beta", 0.5) - 0.5) < 1e-6;
}

static void replace(ir_builder *b, ir_value *result, ir_opcode op, const ir_match *m, const ir_attr *attrs, int count)
{
    ir_replace(b, result, ir_build_with(b, op, &m->slot[X], 1, attrs, count));
}

static void recognise_hard(ir_builder *b, ir_value *result)
{
    ir_match m;
    if (ir_match_value(hard_swish, result, &m) || (ir_match_value(gated_swish, result, &m) && is_sixth(m.slot[GATE])))
        replace(b, result, IR_OP_HardSwish, &m, IR_NO_ATTRS);
    else if (ir_match_value(hard_sigmoid, result, &m))
        replace(b, result, IR_OP_HardSigmoid, &m, IR_ATTRS(IR_FLOAT("alpha", 1.0 / 6), IR_FLOAT("beta", 0.5)));
}

void ir_rule_recognise_activations(ir_builder *b, ir_node *node)
{
    ir_value *result = node->outputs[0];
    ir_match m;
    if ((node->op != &ir_ops[IR_OP_Mul] && node->op != &ir_ops[IR_OP_Div]) || !ir_dtype_is_float(b->dtype)) return;
    if (ir_match_value(erf_gelu, result, &m))
        replace(b, result, IR_OP_Gelu, &m, IR_ATTRS(IR_STRING("approximate", "none")));
    else if (ir_match_value(tanh_gelu, result, &m))
        replace(b, result, IR_OP_Gelu, &m, IR_ATTRS(IR_STRING("approximate", "tanh")));
    else if (ir_match_value(silu, result, &m))
        replace(b, result, IR_OP_Swish, &m, IR_ATTRS(IR_FLOAT("alpha", 1)));
    else if (ir_match_value(swish, result, &m))
        replace(b, result, IR_OP_Swish, &m, IR_ATTRS(IR_FLOAT("alpha", ir_match_scalar(&m, SLOPE))));
    else if (ir_match_value(mish, result, &m))
        replace(b, result, IR_OP_Mish, &m, IR_NO_ATTRS);
    else
        recognise_hard(b, result);
}
