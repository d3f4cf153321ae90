/* graph.c — building, changing and cloning graphs. The rules that it keeps are listed in verify.c.
 *
 * Nodes hold pointers to values and values count their uses; nothing points from a value to its users, so a change
 * touches one place and finding users is a walk. Graphs of Transformers have hundreds of nodes: a walk is cheap.
 */
#include "ir/graph.h"

#include "ir/ops.h"

#include <assert.h>
#include <string.h>

ir_graph *ir_graph_create(ir_arena *arena, const char *name)
{
    ir_graph *graph = IR_NEW(arena, ir_graph);
    const char *copy = ir_arena_strdup(arena, name);
    if (graph == NULL || copy == NULL) return NULL;
    graph->arena = arena;
    graph->name = copy;
    graph->max_length = INT64_MAX;
    return graph;
}

static ir_value *add_value(ir_graph *graph, const char *name)
{
    ir_value *value = IR_NEW(graph->arena, ir_value);
    if (value == NULL) return NULL;
    value->id = graph->value_count++;
    value->name = name;
    value->type.rank = -1;
    value->input = -1;
    return value;
}

/* Appends to an array of value pointers in the arena. Capacities are the powers of two, which the count implies. */
static bool append(ir_arena *arena, ir_value ***array, int *count, ir_value *value)
{
    bool full = (*count & (*count - 1)) == 0;
    if (full) {
        ir_value **grown = IR_NEW_ARRAY(arena, ir_value *, *count ? 2 * (size_t)*count : 1);
        if (grown == NULL) return false;
        if (*count) memcpy(grown, *array, (size_t)*count * sizeof *grown);
        *array = grown;
    }
    (*array)[(*count)++] = value;
    return true;
}

ir_value *ir_graph_add_input(ir_graph *graph, const char *name, const ir_type *type)
{
    const char *copy = ir_arena_strdup(graph->arena, name);
    ir_value *value = copy != NULL ? add_value(graph, copy) : NULL;
    if (value == NULL) return NULL;
    value->type = *type;
    value->input = graph->input_count;
    return append(graph->arena, &graph->inputs, &graph->input_count, value) ? value : NULL;
}

ir_value *ir_graph_add_constant(ir_graph *graph, const char *name, const ir_tensor *tensor)
{
    const char *copy = ir_arena_strdup(graph->arena, name);
    ir_value *value = copy != NULL ? add_value(graph, copy) : NULL;
    if (value == NULL) return NULL;
    value->constant = tensor;
    value->type.dtype = tensor->dtype;
    value->type.rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++) value->type.dim[i] = ir_dim_number(tensor->dims[i]);
    return value;
}

bool ir_graph_add_output(ir_graph *graph, ir_value *value)
{
    if (!append(graph->arena, &graph->outputs, &graph->output_count, value)) return false;
    value->use_count++;
    return true;
}

void ir_graph_set_output(ir_graph *graph, int index, ir_value *value)
{
    assert(index >= 0 && index < graph->output_count);
    value->use_count++;
    graph->outputs[index]->use_count--;
    graph->outputs[index] = value;
}

/* Links `node` in front of `before`, or at the end. */
static void link_node(ir_graph *graph, ir_node *node, ir_node *before)
{
    node->next = before;
    node->prev = before != NULL ? before->prev : graph->last;
    *(node->prev != NULL ? &node->prev->next : &graph->first) = node;
    *(before != NULL ? &before->prev : &graph->last) = node;
}

/* "Add", or "com.microsoft.Gelu". */
static const char *qualified_name(ir_arena *arena, const ir_op *op)
{
    if (op == NULL) return "?";
    return op->domain[0] ? ir_arena_printf(arena, "%s.%s", op->domain, op->name) : op->name;
}

ir_node *ir_graph_add_node(ir_graph *graph, ir_node *before, const struct ir_op *op, const char *name,
                           ir_value *const *inputs, int input_count, int output_count)
{
    ir_arena *arena = graph->arena;
    ir_node *node = IR_NEW(arena, ir_node);
    if (node == NULL) return NULL;
    node->op = op;
    node->name = ir_arena_strdup(arena, name);
    node->op_type = qualified_name(arena, op);
    node->inputs = IR_NEW_ARRAY(arena, ir_value *, input_count);
    node->outputs = IR_NEW_ARRAY(arena, ir_value *, output_count);
    if (node->name == NULL || node->op_type == NULL || node->inputs == NULL || node->outputs == NULL) return NULL;
    node->input_count = input_count;
    node->output_count = output_count;
    for (int i = 0; i < output_count; i++) {
        const char *output_name = i == 0 ? node->name : ir_arena_printf(arena, "%s:%d", name, i);
        ir_value *value = output_name != NULL ? add_value(graph, output_name) : NULL;
        if (value == NULL) return NULL;
        value->def = node;
        value->output = i;
        node->outputs[i] = value;
    }
    /* Nothing fails from here on: a node that is not in the list must not be counted as a user. */
    for (int i = 0; i < input_count; i++) {
        node->inputs[i] = inputs[i];
        if (inputs[i] != NULL) inputs[i]->use_count++;
    }
    link_node(graph, node, before);
    return node;
}

void ir_node_set_input(ir_node *node, int index, ir_value *value)
{
    assert(index >= 0 && index < node->input_count);
    if (value != NULL) value->use_count++;
    if (node->inputs[index] != NULL) node->inputs[index]->use_count--;
    node->inputs[index] = value;
}

void ir_graph_replace_uses(ir_graph *graph, ir_value *old, ir_value *replacement)
{
    if (old == replacement) return;
    /* Uses follow the definition, most of them closely: starting there keeps passes linear in the graph. */
    ir_node *first = old->def != NULL ? old->def->next : graph->first;
    for (ir_node *node = first; node != NULL && old->use_count; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == old) ir_node_set_input(node, i, replacement);
        }
    }
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == old) ir_graph_set_output(graph, i, replacement);
    }
}

static bool is_unused(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL && node->outputs[i]->use_count) return false;
    }
    return true;
}

void ir_graph_remove_node(ir_graph *graph, ir_node *node)
{
    assert(is_unused(node));
    for (int i = 0; i < node->input_count; i++) ir_node_set_input(node, i, NULL);
    *(node->prev != NULL ? &node->prev->next : &graph->first) = node->next;
    *(node->next != NULL ? &node->next->prev : &graph->last) = node->prev;
}

int ir_graph_remove_dead(ir_graph *graph)
{
    int removed = 0;
    for (ir_node *node = graph->last; node != NULL;) {
        ir_node *prev = node->prev;
        if (is_unused(node)) {
            ir_graph_remove_node(graph, node);
            removed++;
        }
        node = prev;
    }
    return removed;
}

ir_node *ir_value_single_user(const ir_graph *graph, const ir_value *value)
{
    ir_node *user = NULL;
    int left = value->use_count;
    for (ir_node *node = value->def != NULL ? value->def->next : graph->first; node != NULL && left;
         node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != value) continue;
            if (user != NULL && user != node) return NULL;
            user = node;
            left--;
        }
    }
    return left == 0 ? user : NULL; /* what is left are graph outputs */
}

/* ---- Cloning --------------------------------------------------------------------------------------------------- */

/* The copy of `value`, made at its first mention. What never changes in place (names, tensors, known content) is
 * shared. */
static ir_value *clone_value(ir_arena *arena, ir_value **copies, const ir_value *value)
{
    ir_value **copy = &copies[value->id];
    if (*copy != NULL) return *copy;
    *copy = IR_NEW(arena, ir_value);
    if (*copy != NULL) **copy = *value; /* a definition is replaced when its node is cloned */
    return *copy;
}

static bool clone_values(ir_arena *arena, ir_value **copies, ir_value *const *values, int count, ir_value ***out)
{
    /* As many as append() would have made room for. */
    size_t capacity = 1;
    while (capacity < (size_t)count) capacity *= 2;
    ir_value **array = IR_NEW_ARRAY(arena, ir_value *, capacity);
    if (array == NULL) return false;
    for (int i = 0; i < count; i++) {
        if (values[i] == NULL) continue;
        array[i] = clone_value(arena, copies, values[i]);
        if (array[i] == NULL) return false;
    }
    *out = array;
    return true;
}

static ir_node *clone_node(ir_arena *arena, ir_value **copies, const ir_node *node)
{
    ir_node *copy = IR_NEW(arena, ir_node);
    ir_attr *attrs = IR_NEW_ARRAY(arena, ir_attr, node->attr_count);
    if (copy == NULL || attrs == NULL) return NULL;
    *copy = *node;
    if (node->attr_count) memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof *attrs);
    copy->attrs = attrs;
    if (!clone_values(arena, copies, node->inputs, node->input_count, &copy->inputs)) return NULL;
    if (!clone_values(arena, copies, node->outputs, node->output_count, &copy->outputs)) return NULL;
    for (int i = 0; i < copy->output_count; i++) {
        if (copy->outputs[i] != NULL) copy->outputs[i]->def = copy;
    }
    return copy;
}

ir_graph *ir_graph_clone(const ir_graph *graph, ir_arena *arena)
{
    ir_graph *clone = IR_NEW(arena, ir_graph);
    ir_value **copies = IR_NEW_ARRAY(arena, ir_value *, graph->value_count);
    if (clone == NULL || copies == NULL) return NULL;
    *clone = *graph;
    clone->arena = arena;
    clone->first = clone->last = NULL;
    if (!clone_values(arena, copies, graph->inputs, graph->input_count, &clone->inputs)) return NULL;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        ir_node *copy = clone_node(arena, copies, node);
        if (copy == NULL) return NULL;
        link_node(clone, copy, NULL);
    }
    if (!clone_values(arena, copies, graph->outputs, graph->output_count, &clone->outputs)) return NULL;
    return clone;
}
