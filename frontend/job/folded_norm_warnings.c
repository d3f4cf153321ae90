/* folded_norm_warnings.c — warns about a sequence that is suspicious as a whole, although an error is unproven.
 *
 * If the BatchNormalizations of a network were folded without a trace (unfold_batchnorm.c), only convolutions
 * remain. Other networks lack them by design: AlexNet, VGG, SqueezeNet, and networks for super-resolution and
 * speech. They are distinguished by structures that are always trained with a normalisation. In a graph that lacks
 * every kind of normalisation, the signs are
 *
 *   - sums of branches in front of a ReLU, as in ResNets;
 *   - convolutions in front of a Swish, a HardSwish or a ReLU up to 6, as in EfficientNets, MobileNets and YOLO;
 *   - convolutions of one channel each, with more convolutions around them.
 *
 * If one of these signs occurs several times, the reader warns and counts the network as it is.
 */
#include "frontend/job/fe_job.h"
#include "frontend/job/job_tables.h"
#include "frontend/job/operator_sequence.h"

enum { MIN_CONVOLUTIONS = 8, MIN_SIGNS = 3 };

static bool is_convolution(const ir_node *node) { return fe_row_of(node)->settings == FE_SETTINGS_CONVOLUTION; }

static bool normalises(const fe_operator *op)
{
    static const bool no_norm[IR_OP_COUNT] = {
        [IR_OP_Softmax] = true, [IR_OP_LogSoftmax] = true, [IR_OP_FusedGemm] = true};
    fe_gradient gradient = fe_row_of(op->node)->gradient;
    if (op->normalised || gradient == FE_GRADIENT_BATCH_NORM) return true;
    if (op->node->op == &ir_ops[IR_OP_LRN]) return true;
    return gradient == FE_GRADIENT_NORM && !no_norm[ir_node_opcode(op->node)];
}

static bool is_six(const ir_value *value)
{
    double number;
    return value != NULL && ir_value_scalar(value, &number) && number == 6;
}

static bool is_gated(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Swish] || node->op == &ir_ops[IR_OP_HardSwish] ||
           (node->op == &ir_ops[IR_OP_Clip] && is_six(ir_node_input(node, 2)));
}

static bool is_sum_of_branches(const ir_value *value)
{
    const ir_node *sum = value != NULL ? value->def : NULL;
    return sum != NULL && sum->op == &ir_ops[IR_OP_Add] && value->type.rank > 2 && sum->inputs[0]->constant == NULL &&
           sum->inputs[1]->constant == NULL;
}

static bool is_depthwise(const ir_node *node)
{
    return ir_node_int(node, "group", 1) > 1 && ir_node_int(node, "group", 1) == node->inputs[0]->type.dim[1].offset;
}

/* Does the node read a convolution's result? */
static bool reads_convolution(const ir_node *node)
{
    const ir_value *value = ir_node_input(node, 0);
    while (value != NULL && value->def != NULL && value->def->op == &ir_ops[IR_OP_Add] &&
           value->def->inputs[1]->constant != NULL)
        value = value->def->inputs[0]; /* skip a bias that follows the convolution */
    return value != NULL && value->def != NULL && is_convolution(value->def);
}

void fe_job_warn_folded_norms(fe_job *job, const fe_operator *operators, int count)
{
    int convolutions = 0, gates = 0, sums = 0, depthwise = 0;
    for (int i = 0; i < count; i++) {
        const ir_node *node = operators[i].node;
        /* an opaque operator may be a normalisation */
        if (normalises(&operators[i]) || node->op == &ir_ops[IR_OP_Opaque]) return;
        convolutions += is_convolution(node);
        depthwise += is_convolution(node) && node->inputs[0]->type.rank > 2 && is_depthwise(node);
        gates += is_gated(node) && reads_convolution(node);
        sums += node->op == &ir_ops[IR_OP_Relu] && is_sum_of_branches(node->inputs[0]);
    }
    if (convolutions < MIN_CONVOLUTIONS) return;
    if (gates < MIN_SIGNS && sums < MIN_SIGNS && depthwise < MIN_SIGNS) return;
    job->notes |= MDOT_JOB_MAYBE_FOLDED;
    fe_job_warn(
        job,
        "%s: %d convolutions and no normalisation: if the exporter folded BatchNormalizations into the weights, "
        "training takes more time and memory than this graph; export it in training mode, unoptimized",
        job->graph->name, convolutions);
}
