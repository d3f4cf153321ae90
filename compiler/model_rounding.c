/* model_rounding.c — see compiler.h. */
#include "compiler/compiler.h"
#include "ir/ops.h"

#include <math.h>

/* Spacings of rounding error that may add up on the way to an output. */
static const double roundings = 8;

double co_rounding(const ir_graph *typed, double *out_quantised)
{
    double spacing = 0, quantised = 0;
    for (const ir_node *node = typed->first; node != NULL; node = node->next) {
        bool quantises = node->op != NULL && (ir_node_opcode(node) == IR_OP_QuantizeLinear ||
                                              ir_node_opcode(node) == IR_OP_DynamicQuantizeLinear);
        if (quantises) quantised = 0x1p-8; /* one step of 8 bits */
        for (int i = 0; i < node->output_count; i++) {
            mdot_dtype dtype = node->outputs[i] != NULL ? node->outputs[i]->type.dtype : MDOT_DTYPE_NONE;
            if (dtype == MDOT_DTYPE_F16) spacing = fmax(spacing, 0x1p-10);
            if (dtype == MDOT_DTYPE_BF16) spacing = fmax(spacing, 0x1p-7);
        }
    }
    *out_quantised = roundings * fmax(spacing, quantised);
    return roundings * spacing;
}

/* A result moves at most `slope` times as far as the operand that moves most. Attributes have usual values, for example
 * an alpha of at most 1. */
static const struct {
    ir_opcode opcode;
    double slope;
} slopes[] = {
    {IR_OP_Relu, 1},        {IR_OP_Clip, 1},        {IR_OP_Max, 1},         {IR_OP_Min, 1},
    {IR_OP_ReduceMax, 1},   {IR_OP_ReduceMin, 1},   {IR_OP_ReduceMean, 1},  {IR_OP_MaxPool, 1},
    {IR_OP_AveragePool, 1}, {IR_OP_Neg, 1},         {IR_OP_Abs, 1},         {IR_OP_LeakyRelu, 1},
    {IR_OP_Elu, 1},         {IR_OP_Celu, 1},        {IR_OP_Tanh, 1},        {IR_OP_Atan, 1},
    {IR_OP_Softsign, 1},    {IR_OP_Softplus, 1},    {IR_OP_Sigmoid, 0.25},  {IR_OP_HardSigmoid, 0.25},
    {IR_OP_Softmax, 0.5},   {IR_OP_HardSwish, 1.5}, {IR_OP_Erf, 1.13},      {IR_OP_Gelu, 1.13},
    {IR_OP_FastGelu, 1.13}, {IR_OP_MSGelu, 1.13},   {IR_OP_QuickGelu, 1.1}, {IR_OP_Swish, 1.1},
    {IR_OP_Mish, 1.09},     {IR_OP_Selu, 1.76},
};

static double find_slope(const ir_node *node)
{
    if (node->op == NULL) return 0;
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++)
        if (slopes[i].opcode == ir_node_opcode(node)) return slopes[i].slope;
    return node->op->lowering == IR_LOWER_MOVE || node->op->lowering == IR_LOWER_ALIAS ? 1 : 0;
}

bool co_find_steps(const ir_graph *typed, ir_arena *arena, double *out_steps)
{
    double *steps = IR_NEW_ARRAY(arena, double, typed->value_count);
    for (const ir_node *node = steps != NULL ? typed->first : NULL; node != NULL; node = node->next) {
        ir_opcode opcode = node->op != NULL ? ir_node_opcode(node) : IR_OP_COUNT;
        double slope = find_slope(node), step = 0;
        if (opcode == IR_OP_QuantizeLinear) {
            step = 1;
        } else if (opcode == IR_OP_DequantizeLinear && node->inputs[0]->def != NULL &&
                   node->inputs[1]->constant != NULL) {
            const ir_wide *scales = ir_wide_from_tensor(arena, node->inputs[1]->constant);
            if (scales == NULL) return false;
            for (int64_t i = 0; i < scales->count; i++) step = fmax(step, fabs(scales->f[i]));
        } else if (opcode == IR_OP_Add || opcode == IR_OP_Sub) {
            step = steps[node->inputs[0]->id] + steps[node->inputs[1]->id];
        }
        for (int i = 0; slope > 0 && i < node->input_count; i++)
            if (node->inputs[i] != NULL) step = fmax(step, slope * steps[node->inputs[i]->id]);
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL) steps[node->outputs[i]->id] = step;
    }
    for (int i = 0; steps != NULL && i < typed->output_count; i++) out_steps[i] = steps[typed->outputs[i]->id];
    return steps != NULL;
}
