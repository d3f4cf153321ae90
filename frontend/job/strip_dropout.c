/* strip_dropout.c — removes stochastic depth and dropout that an exporter wrote as random numbers.
 *
 * A Bernoulli mask is a uniform random tensor that is compared or rounded, and perhaps scaled by the keep
 * probability. The data that it multiplies bypasses the mask, as in an export for inference. Other random numbers,
 * for example the noise of a diffusion model or a sampled latent, are data and stay.
 *
 * Sources: Huang et al., "Deep Networks with Stochastic Depth", 2016; the output of PyTorch's exporter for
 * torch.rand, Tensor.bernoulli_ and Tensor.floor_.
 */
#include "frontend/job/job_tables.h"
#include "frontend/job/stages.h"

typedef enum content {
    DATA = 0,
    NUMBERS, /* depends on constants alone */
    UNIFORM, /* uniformly distributed numbers, shifted by a constant */
    MASK     /* zeros and one other number */
} content;

/* The results' content, indexed by value id. */
typedef struct reader {
    const ir_graph *graph;
    content *of;
} reader;

static content content_of(const reader *r, const ir_value *value)
{
    return value->constant != NULL ? NUMBERS : r->of[value->id];
}

/* An operator's result for one random operand and otherwise numbers. */
static content through(const ir_node *node, content random)
{
    if (IR_IS_ONE_OF(node, IR_OP_Add, IR_OP_Sub)) return random == UNIFORM ? UNIFORM : DATA;
    if (IR_IS_ONE_OF(node, IR_OP_Less, IR_OP_LessOrEqual, IR_OP_Greater, IR_OP_GreaterOrEqual, IR_OP_Floor, IR_OP_Ceil,
                     IR_OP_Round))
        return MASK;
    if (IR_IS_ONE_OF(node, IR_OP_Cast, IR_OP_CastLike, IR_OP_Identity, IR_OP_Reshape, IR_OP_Unsqueeze, IR_OP_Expand,
                     IR_OP_Mul, IR_OP_Div))
        return random;
    return node->op == &ir_ops[IR_OP_Not] && random == MASK ? MASK : DATA;
}

/* Operands behind the first that give a shape or type rather than data. */
static bool is_shape_operand(const ir_node *node, int i)
{
    if (i == 0) return false;
    ir_opcode op = ir_node_opcode(node);
    return op == IR_OP_Reshape || op == IR_OP_Unsqueeze || op == IR_OP_Expand || op == IR_OP_CastLike;
}

static content read_node(const reader *r, const ir_node *node)
{
    fe_job_op_role role = fe_job_op_role_of(node);
    if (role == FE_JOB_OP_UNIFORM) return UNIFORM;
    if (role == FE_JOB_OP_MASK) return MASK;
    if (node->op == NULL || !(node->op->traits & IR_STATELESS)) return DATA;
    content random = NUMBERS;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL || is_shape_operand(node, i)) continue;
        content c = content_of(r, node->inputs[i]);
        if (c == DATA || (c != NUMBERS && random != NUMBERS)) return DATA;
        if (c != NUMBERS) random = c;
    }
    return random == NUMBERS ? NUMBERS : through(node, random);
}

/* The keep probability may divide the data rather than the mask; this skips that division. */
static ir_value *without_keep_probability(const reader *r, ir_value *data)
{
    const ir_node *node = data->def;
    bool scaled = node != NULL && node->op == &ir_ops[IR_OP_Div] && content_of(r, node->inputs[1]) == NUMBERS;
    return scaled && data->use_count == 1 ? node->inputs[0] : data;
}

/* The data that a mask multiplies or selects. NULL: the node applies no mask. */
static ir_value *unmasked(const reader *r, const ir_node *node)
{
    ir_opcode op = ir_node_opcode(node);
    if (op == IR_OP_Mul)
        for (int i = 0; i < 2; i++)
            if (content_of(r, node->inputs[i]) == DATA && content_of(r, node->inputs[1 - i]) == MASK)
                return without_keep_probability(r, node->inputs[i]);
    if (op == IR_OP_Where && content_of(r, node->inputs[0]) == MASK)
        for (int i = 1; i <= 2; i++)
            if (content_of(r, node->inputs[i]) == DATA && content_of(r, node->inputs[3 - i]) == NUMBERS)
                return node->inputs[i];
    return NULL;
}

void fe_job_strip_dropout(fe_job *job)
{
    ir_graph *graph = job->graph;
    reader r = {graph, IR_NEW_ARRAY(graph->arena, content, graph->value_count)};
    if (ir_arena_failed(graph->arena)) return;
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        ir_value *data = node->op != NULL ? unmasked(&r, node) : NULL;
        if (data != NULL) ir_graph_replace_uses(graph, node->outputs[0], data);
        content c = data != NULL ? DATA : read_node(&r, node);
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL) r.of[node->outputs[i]->id] = c;
    }
    ir_graph_remove_dead(graph);
}
