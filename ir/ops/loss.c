/* loss.c — SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss, which end training graphs. Shapes and costs only. */
#include "ir/ops/operands.h"

#include <string.h>

/* Scores [N, C, d1 …], labels [N, d1 …]. */
static mdot_status read_loss(const ir_operands *args, ir_type *scores, ir_type *labels)
{
    BS_TRY(ir_operand_need(args, 0, "scores", -1, scores));
    BS_TRY(ir_operand_need_floats(args, 0, "scores"));
    if (scores->rank < 2) return ir_malformed(args, "the scores have no classes");
    BS_TRY(ir_operand_need(args, 1, "labels", scores->rank - 1, labels));
    BS_TRY(ir_operand_need_integers(args, 1, "labels"));
    for (int i = 0; i < labels->rank; i++)
        if (!ir_dim_equal(labels->dim[i], scores->dim[i == 0 ? 0 : i + 1]))
            return ir_malformed(args, "dimension %d of the labels differs from that of the scores", i);
    return MDOT_OK;
}

mdot_status ir_outputs_loss(const ir_operands *args, int output, ir_type *out_type)
{
    ir_type labels;
    BS_TRY(read_loss(args, out_type, &labels));
    if (output == 1) return MDOT_OK; /* log probabilities */
    labels.dtype = out_type->dtype;
    *out_type = labels;
    if (strcmp(ir_node_string(args->node, "reduction", "mean"), "none") != 0) out_type->rank = 0;
    return MDOT_OK;
}

/* FLOPs: five per score for the softmax (maximum, difference, exponential, sum, logarithm's difference), and one per
 * label. */
void ir_cost_loss(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    bool softmax = ir_node_opcode(node) == IR_OP_SoftmaxCrossEntropyLoss;
    out_cost->flops = ir_value_elements(node->inputs[1], length);
    if (softmax) out_cost->flops += 5 * ir_value_elements(node->inputs[0], length);
}
