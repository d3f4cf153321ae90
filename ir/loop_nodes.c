/* loop_nodes.c — see ops.h. */
#include "ir/ops.h"

#include <string.h>

ir_node *ir_loop_begin_of(const ir_node *end)
{
    const ir_value *index = ir_node_input(end, IR_LOOP_INDEX);
    return index != NULL && ir_is_loop_begin(index->def) && index->output == 0 ? index->def : NULL;
}

ir_node *ir_loop_end_of(const ir_node *begin)
{
    const ir_value *index = begin->outputs[0];
    for (const ir_use *use = index != NULL ? index->uses : NULL; use != NULL; use = use->next)
        if (ir_is_loop_end(use->node) && use->index == IR_LOOP_INDEX) return use->node;
    return NULL;
}

int ir_loop_states(const ir_node *begin) { return begin->input_count; }

int ir_loop_elements(const ir_node *end)
{
    return end->input_count - IR_LOOP_NEXT - (int)ir_node_int(end, "states", 0);
}

int ir_loop_axis(const ir_node *end, int k, int rank)
{
    const ir_attr *axes = ir_node_ints(end, "axes");
    int64_t axis = axes != NULL && k < axes->count ? axes->ints[k] : 0;
    if (axis < 0) axis += rank + 1;
    return axis >= 0 && axis <= rank ? (int)axis : -1;
}

bool ir_loop_is_reversed(const ir_node *end, int k)
{
    const ir_attr *reverse = ir_node_ints(end, "reverse");
    return reverse != NULL && k < reverse->count && reverse->ints[k] != 0;
}

void ir_loop_mark(const ir_graph *graph, const ir_node *begin, bool *out_inside)
{
    memset(out_inside, 0, (size_t)graph->value_count * sizeof *out_inside);
    const ir_node *end = ir_loop_end_of(begin);
    for (const ir_node *node = begin; node != NULL && node != end; node = node->next) {
        bool depends = node == begin;
        for (int i = 0; i < node->input_count && !depends; i++)
            depends = node->inputs[i] != NULL && out_inside[node->inputs[i]->id];
        for (int i = 0; i < node->output_count && depends; i++)
            if (node->outputs[i] != NULL) out_inside[node->outputs[i]->id] = true;
    }
}

bool ir_loop_holds(const bool *inside, const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && inside[node->outputs[i]->id]) return true;
    return false;
}

/* Moves the nodes of nodes[first … last] outside the loop before it. `moved` has space for all nodes. */
static void separate(ir_node **nodes, int first, int last_index, const bool *inside, ir_node **moved)
{
    int count = 0, kept = 0;
    for (int i = first; i < last_index; i++)
        if (!ir_loop_holds(inside, nodes[i])) moved[count++] = nodes[i];
    for (int i = first; i < last_index; i++)
        if (ir_loop_holds(inside, nodes[i])) moved[count + kept++] = nodes[i];
    memcpy(&nodes[first], moved, (size_t)(count + kept) * sizeof(ir_node *));
}

ir_node **ir_loop_order(const ir_graph *graph, ir_arena *arena, int *out_count)
{
    int count = 0, loops = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next, count++) loops += ir_is_loop_end(node);
    ir_node **nodes = IR_NEW_ARRAY(arena, ir_node *, (size_t)count + 1);
    if (nodes == NULL) return NULL;
    count = 0;
    for (ir_node *node = graph->first; node != NULL; node = node->next) nodes[count++] = node;
    *out_count = count;
    if (loops == 0) return nodes;
    ir_node **moved = IR_NEW_ARRAY(arena, ir_node *, count);
    bool *inside = IR_NEW_ARRAY(arena, bool, graph->value_count);
    if (moved == NULL || inside == NULL) return NULL;
    for (int last_index = count - 1; last_index >= 0;
         last_index--) { /* later loops first, so that values they do not read move on */
        const ir_node *begin = ir_is_loop_end(nodes[last_index]) ? ir_loop_begin_of(nodes[last_index]) : NULL;
        int first = last_index;
        while (begin != NULL && first > 0 && nodes[first] != begin) first--;
        if (begin == NULL || nodes[first] != begin) continue;
        ir_loop_mark(graph, begin, inside);
        separate(nodes, first, last_index, inside, moved);
    }
    return nodes;
}
