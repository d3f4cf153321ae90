/* graph.c — builds, changes and clones graphs. It maintains the rules listed in verify_graph.c.
 *
 * Nodes hold pointers to values, and values hold a list of their uses. An input change must update both, which
 * happens only in this file. Therefore a pass that replaces a value of every node takes time in proportion to the
 * graph, wherever the readers are.
 */
#include "ir/graph.h"

#include "ir/op.h"

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

static void link_use(ir_use *use, ir_value *value)
{
    if (value == NULL) return;
    use->next = value->uses;
    use->link = &value->uses;
    if (use->next != NULL) use->next->link = &use->next;
    value->uses = use;
    value->use_count++;
    value->output_uses += use->node == NULL;
}

static void unlink_use(ir_use *use, ir_value *value)
{
    if (value == NULL) return;
    *use->link = use->next;
    if (use->next != NULL) use->next->link = use->link;
    value->use_count--;
    value->output_uses -= use->node == NULL;
}

static void link_inputs(ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        node->uses[i] = (ir_use){.node = node, .index = i};
        link_use(&node->uses[i], node->inputs[i]);
    }
}

/* Appends to a pointer array in the arena. Capacities are powers of two, which follow from the count. */
static bool append(ir_arena *arena, void ***array, int *count, void *element)
{
    bool full = (*count & (*count - 1)) == 0;
    if (full) {
        void **grown = IR_NEW_ARRAY(arena, void *, *count ? 2 * (size_t)*count : 1);
        if (grown == NULL) return false;
        if (*count) memcpy(grown, *array, (size_t)*count * sizeof *grown);
        *array = grown;
    }
    (*array)[(*count)++] = element;
    return true;
}

ir_value *ir_graph_add_input(ir_graph *graph, const char *name, const ir_type *type)
{
    const char *copy = ir_arena_strdup(graph->arena, name);
    ir_value *value = copy != NULL ? add_value(graph, copy) : NULL;
    if (value == NULL) return NULL;
    value->type = *type;
    value->input = graph->input_count;
    return append(graph->arena, (void ***)&graph->inputs, &graph->input_count, value) ? value : NULL;
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
    ir_use *use = IR_NEW(graph->arena, ir_use);
    int use_count = graph->output_count;
    if (use == NULL || !append(graph->arena, (void ***)&graph->output_uses, &use_count, use)) return false;
    use->index = graph->output_count;
    if (!append(graph->arena, (void ***)&graph->outputs, &graph->output_count, value)) return false;
    link_use(use, value);
    return true;
}

void ir_graph_set_output(ir_graph *graph, int index, ir_value *value)
{
    assert(index >= 0 && index < graph->output_count);
    unlink_use(graph->output_uses[index], graph->outputs[index]);
    link_use(graph->output_uses[index], value);
    graph->outputs[index] = value;
}

void ir_graph_keep_outputs(ir_graph *graph, bool (*keeps)(void *user, const ir_value *output), void *user)
{
    int kept = 0;
    for (int i = 0; i < graph->output_count; i++) {
        ir_use *use = graph->output_uses[i];
        if (!keeps(user, graph->outputs[i])) {
            unlink_use(use, graph->outputs[i]);
            continue;
        }
        use->index = kept;
        graph->output_uses[kept] = use;
        graph->outputs[kept++] = graph->outputs[i];
    }
    graph->output_count = kept;
}

/* Links `node` before `before`, or at the end. */
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
    node->uses = IR_NEW_ARRAY(arena, ir_use, input_count);
    node->outputs = IR_NEW_ARRAY(arena, ir_value *, output_count);
    if (node->name == NULL || node->op_type == NULL) return NULL;
    if (node->inputs == NULL || node->uses == NULL || node->outputs == NULL) return NULL;
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
    /* From here on all steps succeed, because a node outside the list must not count as a user. */
    if (input_count) memcpy(node->inputs, inputs, (size_t)input_count * sizeof *inputs);
    link_inputs(node);
    link_node(graph, node, before);
    return node;
}

void ir_node_set_input(ir_node *node, int index, ir_value *value)
{
    assert(index >= 0 && index < node->input_count);
    unlink_use(&node->uses[index], node->inputs[index]);
    link_use(&node->uses[index], value);
    node->inputs[index] = value;
}

bool ir_node_set_input_count(ir_graph *graph, ir_node *node, int count)
{
    int kept = count < node->input_count ? count : node->input_count;
    ir_value **inputs = node->inputs;
    ir_use *uses = node->uses;
    if (count > kept) {
        inputs = IR_NEW_ARRAY(graph->arena, ir_value *, count);
        uses = IR_NEW_ARRAY(graph->arena, ir_use, count);
        if (inputs == NULL || uses == NULL) return false;
        if (kept) memcpy(inputs, node->inputs, (size_t)kept * sizeof *inputs);
    }
    for (int i = 0; i < node->input_count; i++) unlink_use(&node->uses[i], node->inputs[i]);
    node->inputs = inputs;
    node->uses = uses;
    node->input_count = count;
    link_inputs(node);
    return true;
}

void ir_graph_replace_uses(ir_graph *graph, ir_value *old, ir_value *replacement)
{
    if (old == replacement) return;
    while (old->uses != NULL) {
        const ir_use *use = old->uses;
        if (use->node != NULL)
            ir_node_set_input(use->node, use->index, replacement);
        else
            ir_graph_set_output(graph, use->index, replacement);
    }
}

bool ir_node_is_dead(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->use_count) return false;
    return true;
}

bool ir_node_has_typed_inputs(const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->type.rank < 0) return false;
    return true;
}

void ir_graph_remove_node(ir_graph *graph, ir_node *node)
{
    assert(ir_node_is_dead(node));
    for (int i = 0; i < node->input_count; i++) ir_node_set_input(node, i, NULL);
    *(node->prev != NULL ? &node->prev->next : &graph->first) = node->next;
    *(node->next != NULL ? &node->next->prev : &graph->last) = node->prev;
}

int ir_graph_remove_dead(ir_graph *graph)
{
    int removed = 0;
    for (ir_node *node = graph->last; node != NULL;) {
        ir_node *prev = node->prev;
        if (ir_node_is_dead(node)) {
            ir_graph_remove_node(graph, node);
            removed++;
        }
        node = prev;
    }
    return removed;
}

bool ir_node_reads_before(const ir_node *node, int index)
{
    const ir_value *value = node->inputs[index];
    if (value == NULL) return false;
    /* A node may have thousands of inputs, and a value thousands of readers. The shorter list is searched. */
    if (index <= value->use_count) {
        for (int i = 0; i < index; i++)
            if (node->inputs[i] == value) return true;
    } else {
        for (const ir_use *use = value->uses; use != NULL; use = use->next)
            if (use->node == node && use->index < index) return true;
    }
    return false;
}

ir_node *ir_value_single_user(const ir_value *value)
{
    ir_node *user = value->uses != NULL ? value->uses->node : NULL;
    for (const ir_use *use = value->uses; use != NULL; use = use->next)
        if (use->node == NULL || use->node != user) return NULL;
    return user;
}

/* The copy of `value`, created when first requested. Parts that never change in place (names, tensors, known content)
 * are shared. */
static ir_value *clone_value(ir_arena *arena, ir_value **copies, const ir_value *value)
{
    ir_value **copy = &copies[value->id];
    if (*copy != NULL) return *copy;
    *copy = IR_NEW(arena, ir_value);
    if (*copy == NULL) return NULL;
    **copy = *value; /* a definition is replaced when its node is cloned */
    (*copy)->uses = NULL;
    (*copy)->use_count = (*copy)->output_uses = 0;
    return *copy;
}

static bool clone_values(ir_arena *arena, ir_value **copies, ir_value *const *values, int count, ir_value ***out)
{
    /* The same capacity that append() would have reached. */
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
    ir_use *uses = IR_NEW_ARRAY(arena, ir_use, node->input_count);
    if (copy == NULL || attrs == NULL || uses == NULL) return NULL;
    *copy = *node;
    copy->uses = uses;
    if (node->attr_count) memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof *attrs);
    copy->attrs = attrs;
    if (!clone_values(arena, copies, node->inputs, node->input_count, &copy->inputs)) return NULL;
    if (!clone_values(arena, copies, node->outputs, node->output_count, &copy->outputs)) return NULL;
    for (int i = 0; i < copy->output_count; i++)
        if (copy->outputs[i] != NULL) copy->outputs[i]->def = copy;
    link_inputs(copy);
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
    clone->output_count = 0;
    clone->outputs = NULL;
    clone->output_uses = NULL;
    for (int i = 0; i < graph->output_count; i++) {
        ir_value *copy = clone_value(arena, copies, graph->outputs[i]);
        if (copy == NULL || !ir_graph_add_output(clone, copy)) return NULL;
    }
    return clone;
}
