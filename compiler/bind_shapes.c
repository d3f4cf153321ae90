/* bind_shapes.c — bind data of a test into its model if an operator's shape depends on it.
 *
 * The compiler needs fixed shapes, so the axes of a reduction or the pads of a Pad must be known at compile time.
 * Conformance tests pass such operands as graph inputs. Inputs that matter only through such operands become
 * constants here, as in exported models. They stay in the schema, but compiled code ignores them.
 */
#include "compiler/compiler.h"
#include "ir/ops.h"

/* Operands, as bits, whose contents determine a shape, or whether a Dropout drops elements. */
static const unsigned char shape_operands[IR_OP_COUNT] = {
    [IR_OP_Reshape] = 1 << 1,
    [IR_OP_Expand] = 1 << 1,
    [IR_OP_Tile] = 1 << 1,
    [IR_OP_Squeeze] = 1 << 1,
    [IR_OP_Unsqueeze] = 1 << 1,
    [IR_OP_Slice] = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,
    [IR_OP_Split] = 1 << 1,
    [IR_OP_Pad] = 1 << 1 | 1 << 3,
    [IR_OP_OneHot] = 1 << 1,
    [IR_OP_Range] = 1 << 0 | 1 << 1 | 1 << 2,
    [IR_OP_ConstantOfShape] = 1 << 0,
    [IR_OP_TopK] = 1 << 1,
    [IR_OP_CumSum] = 1 << 1,
    [IR_OP_Dropout] = 1 << 1 | 1 << 2,
    [IR_OP_ReduceSum] = 1 << 1,
    [IR_OP_ReduceMean] = 1 << 1,
    [IR_OP_ReduceMax] = 1 << 1,
    [IR_OP_ReduceMin] = 1 << 1,
    [IR_OP_ReduceProd] = 1 << 1,
    [IR_OP_ReduceL1] = 1 << 1,
    [IR_OP_ReduceL2] = 1 << 1,
    [IR_OP_ReduceLogSum] = 1 << 1,
    [IR_OP_ReduceLogSumExp] = 1 << 1,
    [IR_OP_ReduceSumSquare] = 1 << 1,
};

/* Marks every input on which `value` depends, except inputs read for the shape only. */
static void mark_sources(const ir_value *value, bool *marked_inputs, bool *visited)
{
    if (value == NULL || visited[value->id]) return;
    visited[value->id] = true;
    if (value->input >= 0) marked_inputs[value->input] = true;
    const ir_node *node = value->def;
    if (node == NULL || node->op == NULL || (node->op->traits & IR_SHAPE_ONLY) != 0) return;
    for (int i = 0; i < node->input_count; i++) mark_sources(node->inputs[i], marked_inputs, visited);
}

bool co_bind_shape_inputs(ir_graph *graph, const ir_tensor *const *values, const char **out_names)
{
    ir_arena *arena = graph->arena;
    bool *marked = IR_NEW_ARRAY(arena, bool, graph->input_count + 1);
    bool *visited = IR_NEW_ARRAY(arena, bool, graph->value_count + 1);
    if (marked == NULL || visited == NULL) return false;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) continue;
        for (int i = 0; i < node->input_count && i < 8; i++)
            if (shape_operands[ir_node_opcode(node)] >> i & 1) mark_sources(node->inputs[i], marked, visited);
    }
    const char *names = NULL;
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *input = graph->inputs[i];
        if (!marked[i] || values[i]->count > IR_MAX_KNOWN) continue;
        ir_value *constant = ir_graph_add_constant(graph, input->name, values[i]);
        if (constant == NULL) return false;
        ir_graph_replace_uses(graph, input, constant);
        names = names == NULL ? input->name : ir_arena_printf(arena, "%s, %s", names, input->name);
    }
    *out_names = names;
    return true;
}
