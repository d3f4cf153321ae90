/* q_operators.c — rewrites operators on bytes with scales and zero points as DequantizeLinear, the operator on
 * floats, and QuantizeLinear. They are QLinearMatMul and QLinearConv of ONNX, and QLinearAdd, QGemm, QAttention and
 * others of com.microsoft (docs/ContribOperators.md of onnxruntime). ONNX Runtime defines them in the same way,
 * except for rounding. MatMulNBits, whose weights are packed, becomes a MatMul (matmul_nbits.c).
 *
 * A triple is three consecutive inputs: bytes, scale, zero point.
 */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/ml_writer.h"

#include <string.h>

enum { NO_AXIS = -128 }; /* one scale for the whole tensor */

/* Dequantises bytes. A scale that is a vector runs along the axis. `zero` may be NULL. */
static ir_value *as_floats(const ml_writer *w, ir_value *bytes, ir_value *scale, ir_value *zero, int axis)
{
    ir_value *inputs[] = {bytes, scale, zero};
    return fe_add(w->u, w->node, IR_OP_DequantizeLinear, inputs, zero != NULL ? 3 : 2, &IR_INT("axis", axis),
                  axis != NO_AXIS ? 1 : 0);
}

static ir_value *floats_of(const ml_writer *w, int triple, int axis)
{
    ir_value *bytes = ir_node_input(w->node, triple), *scale = ir_node_input(w->node, triple + 1);
    return as_floats(w, bytes, scale, ir_node_input(w->node, triple + 2), axis);
}

/* Turns the node itself into the operator. False: out of memory. */
static bool become(const ml_writer *w, ir_opcode op, ir_value *const *inputs, int count)
{
    ir_node *node = w->node;
    ir_value *own_value[5];
    int last_index = 0;
    for (int i = 0; i < count; i++) {
        own_value[i] = inputs[i];
        if (own_value[i] != NULL) last_index = i + 1;
    }
    node->op = &ir_ops[op];
    if (!ir_node_set_input_count(w->u->graph, node, 0) || !ir_node_set_input_count(w->u->graph, node, last_index))
        return false;
    for (int i = 0; i < last_index; i++) ir_node_set_input(node, i, own_value[i]);
    return true;
}

/* Inserts the operator on floats, which takes over the node's attributes. */
static ir_value *insert_inner(const ml_writer *w, ir_opcode op, ir_value *const *inputs, int count)
{
    ir_node *node = w->node;
    ir_value *inner = fe_add(w->u, node, op, inputs, count, node->attrs, node->attr_count);
    node->attrs = NULL;
    node->attr_count = 0;
    return inner;
}

/* Inserts the operator on floats, and turns the node into its quantisation. The scale is input `scale`, and the zero
 * point follows it. If the scale is absent, the node becomes the operator itself. */
static bool finish(const ml_writer *w, ir_opcode op, ir_value *const *inputs, int count, int scale)
{
    ir_node *node = w->node;
    ir_value *operands[] = {NULL, ir_node_input(node, scale), ir_node_input(node, scale + 1)};
    if (operands[1] == NULL) return become(w, op, inputs, count);
    operands[0] = insert_inner(w, op, inputs, count);
    return operands[0] != NULL && become(w, IR_OP_QuantizeLinear, operands, 3);
}

static bool one_operand(const ml_writer *w, ir_opcode op)
{
    ir_value *x = floats_of(w, 0, NO_AXIS);
    /* QLinearSoftmax states its opset, because before opset 13 Softmax flattened all dimensions from the axis on. */
    if (ir_node_int(w->node, "opset", 13) < 13 && ir_node_int(w->node, "axis", -1) != -1)
        return fe_give_up(w->u, w->node, "of an opset below 13, with an axis other than the last");
    ir_node_remove_attr(w->node, "opset");
    return finish(w, op, &x, 1, 3);
}

static bool two_operands(const ml_writer *w, ir_opcode op)
{
    bool multiplies = op == IR_OP_MatMul; /* scales per row and per column */
    ir_value *inputs[] = {floats_of(w, 0, multiplies ? -2 : NO_AXIS), floats_of(w, 3, multiplies ? -1 : NO_AXIS)};
    return finish(w, op, inputs, 2, 6);
}

/* The scale of a dot product and its bias. */
static ir_value *matmul_scale(const ml_writer *w, int left, int right)
{
    return fe_ml_add2(w, IR_OP_Mul, ir_node_input(w->node, left), ir_node_input(w->node, right));
}

/* Inputs: x, weights, result and a bias of 32 bits. */
static bool convolution(const ml_writer *w, ir_opcode op)
{
    ir_value *inputs[] = {floats_of(w, 0, NO_AXIS), floats_of(w, 3, 0), NULL}, *bias = ir_node_input(w->node, 8);
    if (bias != NULL) inputs[2] = as_floats(w, bias, matmul_scale(w, 1, 4), NULL, 0);
    return (bias == NULL || inputs[2] != NULL) && finish(w, op, inputs, bias != NULL ? 3 : 2, 6);
}

/* Inputs: x, weights and both zero points. The dot products are whole numbers and become i32. */
static bool integer_convolution(const ml_writer *w, ir_opcode op)
{
    ir_value *one = fe_add_scalar(w->u, w->node, "one", MDOT_DTYPE_F32, 1);
    ir_value *inputs[] = {as_floats(w, w->node->inputs[0], one, ir_node_input(w->node, 2), NO_AXIS),
                          as_floats(w, w->node->inputs[1], one, ir_node_input(w->node, 3), 0)};
    ir_value *sums = insert_inner(w, op, inputs, 2);
    return sums != NULL && become(w, IR_OP_Cast, &sums, 1) &&
           ir_node_set(w->u->graph, w->node, IR_INT("to", MDOT_DTYPE_I32));
}

static bool pool(const ml_writer *w, ir_opcode op)
{
    bool channels_last = ir_node_int(w->node, "channels_last", 0) != 0;
    ir_node_remove_attr(w->node, "channels_last");
    if (channels_last) return fe_give_up(w->u, w->node, "with channels last; transpose the channels to the front");
    ir_value *x = floats_of(w, 0, NO_AXIS);
    return finish(w, op, &x, 1, 3);
}

/* Inputs: condition, x, y, result. */
static bool selection(const ml_writer *w, ir_opcode op)
{
    ir_value *inputs[] = {w->node->inputs[0], floats_of(w, 1, NO_AXIS), floats_of(w, 4, NO_AXIS)};
    return finish(w, op, inputs, 3, 7);
}

/* Inputs: scale and zero point of the result, then a triple for each part. */
static bool concatenation(const ml_writer *w, ir_opcode op)
{
    int count = w->node->input_count / 3; /* the last zero point may be absent */
    ir_value **inputs = IR_NEW_ARRAY(w->u->context->scratch, ir_value *, count);
    if (inputs == NULL) return false;
    for (int i = 0; i < count; i++) {
        if (ir_node_input(w->node, 2 + 3 * i) == NULL || ir_node_input(w->node, 3 + 3 * i) == NULL)
            return fe_give_up(w->u, w->node, "a part lacks its bytes or its scale");
        inputs[i] = floats_of(w, 2 + 3 * i, NO_AXIS);
    }
    return finish(w, op, inputs, count, 0);
}

/* Inputs: x, scale and zero point, as of the standard operator. */
static bool standard_form(const ml_writer *w, ir_opcode op)
{
    ir_value *inputs[] = {w->node->inputs[0], w->node->inputs[1], ir_node_input(w->node, 2)};
    return become(w, op, inputs, 3);
}

/* Inputs: a, b, a 32-bit bias and, for a quantised result, scale and zero point. */
static bool gemm(const ml_writer *w, ir_opcode op)
{
    int columns = ir_node_int(w->node, "transB", 0) != 0 ? 0 : 1;
    ir_value *inputs[] = {floats_of(w, 0, NO_AXIS), floats_of(w, 3, columns), NULL};
    ir_value *bias = ir_node_input(w->node, 6);
    if (bias != NULL) {
        double alpha = ir_node_float(w->node, "alpha", 1);
        ir_value *scale = matmul_scale(w, 1, 4);
        ir_value *factor = alpha != 1 ? fe_add_scalar(w->u, w->node, "alpha", MDOT_DTYPE_F32, alpha) : NULL;
        if (alpha != 1) scale = fe_ml_add2(w, IR_OP_Mul, scale, factor);
        inputs[2] = as_floats(w, bias, scale, NULL, -1);
        if (inputs[2] == NULL) return false;
    }
    return finish(w, op, inputs, bias != NULL ? 3 : 2, 7);
}

/* Inputs: x, weights, a bias in floats, the scales of x and of the weights, a mask, both zero points, past keys. */
static bool attention(const ml_writer *w, ir_opcode op)
{
    ir_value *const *input = w->node->inputs;
    ir_value *x = as_floats(w, input[0], input[3], ir_node_input(w->node, 6), NO_AXIS);
    ir_value *weights = as_floats(w, input[1], input[4], ir_node_input(w->node, 7), -1);
    ir_value *inputs[] = {x, weights, input[2], ir_node_input(w->node, 5), ir_node_input(w->node, 8)};
    return x != NULL && weights != NULL && become(w, op, inputs, 5);
}

static bool sum_with_bias(const ml_writer *w, ir_value *left, ir_value *right, ir_value *bias)
{
    ir_value *factors[] = {left, right};
    if (left == NULL || right == NULL) return false;
    if (bias == NULL) return become(w, IR_OP_MatMul, factors, 2);
    ir_value *product = fe_ml_add2(w, IR_OP_MatMul, left, right);
    return product != NULL && become(w, IR_OP_Add, (ir_value *[]){product, bias}, 2);
}

/* Inputs: dynamically quantised floats, bytes, their scale and zero point, and a bias. */
static bool dynamic_matmul(const ml_writer *w, ir_opcode op)
{
    ir_value *const *input = w->node->inputs;
    const char *name = ir_arena_printf(w->u->graph->arena, "%s.DynamicQuantizeLinear", w->node->name);
    ir_node *made = name != NULL ? ir_graph_add_node(w->u->graph, w->node, &ir_ops[IR_OP_DynamicQuantizeLinear], name,
                                                     &input[0], 1, 3)
                                 : NULL;
    if (made == NULL) return false;
    ir_value *left = as_floats(w, made->outputs[0], made->outputs[1], made->outputs[2], NO_AXIS);
    ir_value *right = as_floats(w, input[1], input[2], ir_node_input(w->node, 3), -1);
    return sum_with_bias(w, left, right, ir_node_input(w->node, 4));
}

/* Inputs: bytes a and b with scales and zero points, and a bias. */
static bool matmul_to_float(const ml_writer *w, ir_opcode op)
{
    ir_value *const *input = w->node->inputs;
    ir_value *left = as_floats(w, input[0], input[2], ir_node_input(w->node, 4), -2);
    ir_value *right = as_floats(w, input[1], input[3], ir_node_input(w->node, 5), -1);
    return sum_with_bias(w, left, right, ir_node_input(w->node, 6));
}

/* Inputs: floats, packed weights, their scales, zero points and groups (matmul_nbits.c), and a bias. */
static bool matmul_n_bits(const ml_writer *w, ir_opcode op)
{
    ir_node *node = w->node;
    const char *fault;
    const ir_tensor *tensor = fe_unpack_n_bits(w->u, node, &fault);
    if (fault != NULL) return fe_give_up(w->u, node, fault);
    const char *name = ir_arena_printf(w->u->graph->arena, "%s.weights", node->name);
    if (tensor == NULL || name == NULL) return false;
    node->attr_count = 0;
    return sum_with_bias(w, node->inputs[0], ir_graph_add_constant(w->u->graph, name, tensor), ir_node_input(node, 5));
}

/* clang-format off */
static const struct {
    const char *op_type; /* as in ir_node.op_type */
    int least_inputs;    /* number of required inputs, including those in `optional` */
    unsigned optional;   /* bit i: input i may be absent */
    ir_opcode op;
    bool (*write)(const ml_writer *w, ir_opcode op);
} table[] = {
    {"QLinearMatMul",                        8, 0,                     IR_OP_MatMul,            two_operands},
    {"QLinearConv",                          8, 0,                     IR_OP_Conv,              convolution},
    {"ConvInteger",                          2, 0,                     IR_OP_Conv,              integer_convolution},
    {"com.microsoft:QuantizeLinear",         2, 0,                     IR_OP_QuantizeLinear,    standard_form},
    {"com.microsoft:DequantizeLinear",       2, 0,                     IR_OP_DequantizeLinear,  standard_form},
    {"com.microsoft:QLinearAveragePool",     4, 1u << 2,               IR_OP_AveragePool,       pool},
    {"com.microsoft:QLinearGlobalAveragePool", 4, 1u << 2,             IR_OP_GlobalAveragePool, pool},
    {"com.microsoft:QLinearConcat",          4, 1u << 1,               IR_OP_Concat,            concatenation},
    {"com.microsoft:QLinearWhere",           8, 1u << 3 | 1u << 6,     IR_OP_Where,             selection},
    {"com.microsoft:QLinearAdd",             7, 1u << 2 | 1u << 5,     IR_OP_Add,               two_operands},
    {"com.microsoft:QLinearMul",             7, 1u << 2 | 1u << 5,     IR_OP_Mul,               two_operands},
    {"com.microsoft:QLinearSigmoid",         4, 1u << 2,               IR_OP_Sigmoid,           one_operand},
    {"com.microsoft:QLinearLeakyRelu",       4, 1u << 2,               IR_OP_LeakyRelu,         one_operand},
    {"com.microsoft:QLinearSoftmax",         5, 1u << 2,               IR_OP_Softmax,           one_operand},
    {"com.microsoft:QGemm",                  6, 0,                     IR_OP_Gemm,              gemm},
    {"com.microsoft:QAttention",             5, 0,                     IR_OP_MSAttention,       attention},
    {"com.microsoft:DynamicQuantizeMatMul",  3, 0,                     IR_OP_MatMul,            dynamic_matmul},
    {"com.microsoft:MatMulIntegerToFloat",   4, 0,                     IR_OP_MatMul,            matmul_to_float},
    {"com.microsoft:MatMulNBits",            3, 0,                     IR_OP_MatMul,            matmul_n_bits},
};
/* clang-format on */

mdot_status fe_write_q_operator(fe_upgrader *u, ir_node *node)
{
    const ml_writer w = {.u = u, .node = node};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (strcmp(table[k].op_type, node->op_type) != 0) continue;
        for (int i = 0; i < table[k].least_inputs; i++)
            if (ir_node_input(node, i) == NULL && !(table[k].optional >> i & 1))
                return mdot_fail(u->context->err, MDOT_MALFORMED,
                                 "%s: node '%s' (%s): it lacks an input that the operator requires", u->context->file,
                                 node->name, node->op_type);
        return table[k].write(&w, table[k].op) ? MDOT_OK : fe_out_of_memory(u->context);
    }
    return MDOT_OK;
}
