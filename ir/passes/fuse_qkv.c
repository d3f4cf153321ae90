/* fuse_qkv.c — merges the linears that compute Q, K and V of one attention from the same input into one linear over all
 * their columns, followed by a split.
 *
 * This reads the input once rather than three times. The parts of the split are views with a row stride, which the
 * attention kernel reads in place. Other readers of a part, for example an activation fused into the linear, would
 * become slower. Therefore a linear is merged only if attention is its only reader. */
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

#include <string.h>

enum { MAX_PARTS = 3 }; /* Q, K and V */

typedef struct group {
    ir_node *linears[MAX_PARTS];
    int count;
} group;

static bool is_member(const group *g, const ir_node *linear)
{
    for (int i = 0; i < g->count; i++)
        if (g->linears[i] == linear) return true;
    return false;
}

static int uses_by(const ir_node *node, const ir_value *value)
{
    int uses = 0;
    for (int i = 0; i < node->input_count; i++) uses += node->inputs[i] == value;
    return uses;
}

/* The linear that produces operand i for this attention alone, or NULL. */
static ir_node *linear_of(const ir_node *attention, int i)
{
    const ir_value *operand = attention->inputs[i];
    ir_node *made = operand->def;
    bool is_linear = made != NULL && made->op == &ir_ops[IR_OP_Linear];
    return is_linear && operand->use_count == uses_by(attention, operand) ? made : NULL;
}

/* The attention's linears with the same input as the linear of operand `first`. */
static group linears_of(const ir_node *attention, int first)
{
    group g = {.count = 0};
    for (int i = first; i < MAX_PARTS; i++) {
        ir_node *linear = linear_of(attention, i);
        if (linear == NULL || (g.count && linear->inputs[0] != g.linears[0]->inputs[0])) continue;
        if (!is_member(&g, linear)) g.linears[g.count++] = linear;
    }
    return g;
}

static int64_t columns_of(const ir_node *linear) { return linear->inputs[1]->type.dim[1].offset; }

static const float *data_of(const ir_value *constant) { return constant->constant->data; }

/* Concatenates the weights by columns. */
static ir_value *merged_weight(ir_builder *b, const group *g, int64_t columns)
{
    int64_t depth = g->linears[0]->inputs[1]->type.dim[0].offset;
    float *whole = ir_build_alloc(b, depth * columns, sizeof *whole);
    if (whole == NULL) return NULL;
    int64_t left = 0;
    for (int i = 0; i < g->count; i++) {
        const float *part = data_of(g->linears[i]->inputs[1]);
        int64_t width = columns_of(g->linears[i]);
        for (int64_t k = 0; k < depth; k++)
            memcpy(whole + k * columns + left, part + k * width, (size_t)width * sizeof *whole);
        left += width;
    }
    return ir_build_constant(b, MDOT_DTYPE_F32, (int64_t[]){depth, columns}, 2, whole);
}

/* Concatenates the biases, with zeros for a linear without bias. */
static ir_value *merged_bias(ir_builder *b, const group *g, int64_t columns)
{
    float *whole = ir_build_alloc(b, columns, sizeof *whole); /* zeroed */
    if (whole == NULL) return NULL;
    int64_t left = 0;
    for (int i = 0; i < g->count; i++) {
        const ir_value *bias = ir_node_input(g->linears[i], 2);
        int64_t width = columns_of(g->linears[i]);
        if (bias != NULL) memcpy(whole + left, data_of(bias), (size_t)width * sizeof *whole);
        left += width;
    }
    return ir_build_constant(b, MDOT_DTYPE_F32, &columns, 1, whole);
}

void ir_rule_fuse_qkv(ir_builder *b, ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_Attention] || node->inputs[0]->type.rank != 3) return;
    group g = linears_of(node, 0);
    if (g.count < 2) g = linears_of(node, 1); /* attention over another sequence merges only K and V */
    if (g.count < 2) return;
    b->name = g.linears[0]->name;
    int64_t widths[MAX_PARTS], columns = 0;
    bool biased = false;
    for (int i = 0; i < g.count; i++) {
        widths[i] = columns_of(g.linears[i]);
        columns += widths[i];
        biased = biased || g.linears[i]->input_count > 2;
    }
    ir_value *inputs[] = {g.linears[0]->inputs[0], merged_weight(b, &g, columns), NULL};
    if (biased) inputs[2] = merged_bias(b, &g, columns);
    if (inputs[1] == NULL || (biased && inputs[2] == NULL)) return;
    ir_value *whole = ir_build_with(b, IR_OP_Linear, inputs, 3, IR_NO_ATTRS);
    ir_value *parts[MAX_PARTS];
    if (whole == NULL || !ir_build_split(b, whole, whole->type.rank - 1, widths, g.count, parts)) return;
    for (int i = 0; i < g.count; i++) ir_replace(b, g.linears[i]->outputs[0], parts[i]);
}
