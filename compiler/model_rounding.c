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

bool co_find_steps(const ir_graph *typed, ir_arena *arena, double *out_steps)
{
    double *steps = IR_NEW_ARRAY(arena, double, typed->value_count);
    for (const ir_node *node = steps != NULL ? typed->first : NULL; node != NULL; node = node->next) {
        ir_opcode opcode = node->op != NULL ? ir_node_opcode(node) : IR_OP_COUNT;
        double slope = node->op != NULL ? node->op->slope : 0, step = 0;
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
