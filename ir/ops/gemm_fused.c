/* gemm_fused.c — FusedGemm (com.microsoft): a Gemm and the activation behind it, as ONNX Runtime's extended
 * optimisations write the layers of a head. Source: docs/ContribOperators.md and
 * core/optimizer/gemm_activation_fusion.cc of onnxruntime, which list the activations. */
#include "ir/ops/families.h"
#include "ir/ops/operands.h"

#include <string.h>

/* The rows that this file needs of the operator table, copied because the table is in a higher layer. */
static const ir_op activations[] = {
    {.opcode = IR_OP_Relu, .name = "Relu"},
    {.opcode = IR_OP_LeakyRelu, .name = "LeakyRelu"},
    {.opcode = IR_OP_Sigmoid, .name = "Sigmoid"},
    {.opcode = IR_OP_Tanh, .name = "Tanh"},
    {.opcode = IR_OP_Elu, .name = "Elu"},
    {.opcode = IR_OP_Selu, .name = "Selu"},
    {.opcode = IR_OP_Softplus, .name = "Softplus"},
    {.opcode = IR_OP_Softsign, .name = "Softsign"},
    {.opcode = IR_OP_HardSigmoid, .name = "HardSigmoid"},
    {.opcode = IR_OP_ThresholdedRelu, .name = "ThresholdedRelu"},
};

static const struct {
    const char *fused, *own;
} parameters[IR_GEMM_PARAMETERS] = {
    {"activation_alpha", "alpha"}, {"activation_beta", "beta"}, {"activation_gamma", "gamma"}};

mdot_status ir_fused_gemm_activation(const ir_node *node, ir_activation *out, mdot_error *err)
{
    const char *name = ir_node_string(node, "activation", "");
    ir_activation found = {.opcode = IR_OP_COUNT};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(name, activations[i].name) == 0) found.opcode = activations[i].opcode;
    if (*name && found.opcode == IR_OP_COUNT)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "activation \"%s\" after a matmul is unsupported", name);
    for (int i = 0; i < IR_GEMM_PARAMETERS; i++) {
        const ir_attr *attr = ir_node_attr(node, parameters[i].fused);
        if (attr == NULL || attr->kind != IR_ATTR_FLOAT) continue;
        found.attrs[found.attr_count] = *attr;
        found.attrs[found.attr_count++].name = parameters[i].own;
    }
    *out = found;
    return MDOT_OK;
}

mdot_status ir_result_fused_gemm(const ir_operands *args, ir_type *out_type)
{
    ir_activation activation;
    BS_TRY(ir_fused_gemm_activation(args->node, &activation, args->err));
    return ir_result_gemm(args, out_type);
}

mdot_status ir_eval_fused_gemm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_activation activation;
    BS_TRY(ir_fused_gemm_activation(node, &activation, err));
    BS_TRY(ir_eval_gemm(arena, node, input, out, err));
    if (activation.opcode == IR_OP_COUNT) return MDOT_OK;
    ir_node behind = *node;
    behind.op = &(const ir_op){.opcode = activation.opcode};
    behind.attrs = activation.attrs;
    behind.attr_count = activation.attr_count;
    behind.input_count = 1;
    return ir_eval_unary(arena, &behind, (const ir_wide *const[]){out[0]}, out, err);
}

void ir_cost_fused_gemm(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_gemm(node, length, out_cost);
    if (*ir_node_string(node, "activation", "")) out_cost->flops += ir_value_elements(node->outputs[0], length);
}
