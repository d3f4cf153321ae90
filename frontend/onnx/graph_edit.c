/* graph_edit.c — small changes to the graph from which upgrades are built (rewrites.h). */
#include "frontend/onnx/graph_edit.h"

#include <string.h>

/* Infers types of the nodes before `end` (NULL: all) until the value has a type. Nodes that a rule refuses stay
 * untyped; the error is reported where types are needed. */
static void type_up_to(fe_upgrader *u, const ir_value *value, const ir_node *end)
{
    while (value->type.rank < 0 && value->def != NULL && u->typed != value->def) {
        ir_node *next_node = u->typed != NULL ? u->typed->next : u->graph->first;
        if (next_node == NULL || next_node == end) break;
        u->typed = next_node;
        if (next_node->op != NULL && ir_node_has_typed_inputs(next_node))
            (void)ir_infer_node(u->graph, next_node, NULL);
    }
}

/* Shape rules may read the nodes before `u->graph->last`, because those are in their final form. */
const ir_type *fe_type_of(fe_upgrader *u, const ir_value *value)
{
    type_up_to(u, value, u->graph->last);
    return &value->type;
}

const ir_type *fe_type_of_upgraded(fe_upgrader *u, const ir_value *value)
{
    type_up_to(u, value, NULL);
    return &value->type;
}

const ir_value *fe_strip_shape(const ir_value *v)
{
    static const ir_opcode kept[] = {IR_OP_Identity, IR_OP_Cast, IR_OP_Squeeze, IR_OP_Unsqueeze, IR_OP_Reshape};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (v == NULL || v->def == NULL || v->def->op != &ir_ops[kept[i]]) continue;
        v = v->def->inputs[0];
        i = (size_t)-1; /* again from the first operator */
    }
    return v;
}

void fe_forget_types(const fe_upgrader *u)
{
    for (ir_node *node = u->graph->first; node != NULL && u->typed != NULL; node = node->next) {
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == NULL) continue;
            node->outputs[i]->type = (ir_type){.rank = -1};
            node->outputs[i]->known = NULL;
        }
        if (node == u->typed) break;
    }
}

ir_value *fe_add_constant(const fe_upgrader *u, const ir_node *node, const char *what, const ir_tensor *tensor)
{
    const char *name = ir_arena_printf(u->graph->arena, "%s.%s", node->name, what);
    return tensor != NULL && name != NULL ? ir_graph_add_constant(u->graph, name, tensor) : NULL;
}

ir_value *fe_add_ints(const fe_upgrader *u, const ir_node *node, const char *what, const int64_t *values, int count)
{
    ir_tensor *tensor = IR_NEW(u->graph->arena, ir_tensor);
    int64_t *data = IR_NEW_ARRAY(u->graph->arena, int64_t, count);
    if (tensor == NULL || data == NULL) return NULL;
    if (count) memcpy(data, values, (size_t)count * sizeof *data);
    *tensor = (ir_tensor){.dtype = MDOT_DTYPE_I64, .rank = 1, .dims = {count}, .count = count, .data = data};
    return fe_add_constant(u, node, what, tensor);
}

ir_value *fe_add_scalar(const fe_upgrader *u, const ir_node *node, const char *what, mdot_dtype dtype, double value)
{
    ir_wide *wide = ir_wide_create(u->graph->arena, dtype, 0, NULL);
    if (wide == NULL) return NULL;
    if (ir_dtype_is_float(dtype))
        wide->f[0] = value;
    else
        wide->i[0] = ir_float_to_integer(dtype, value);
    return fe_add_constant(u, node, what, ir_tensor_from_wide(u->graph->arena, wide));
}

ir_value *fe_add_data(const fe_upgrader *u, const ir_node *node, const char *what, mdot_dtype dtype, int rank,
                      const int64_t *dims, const void *data)
{
    ir_tensor *tensor = IR_NEW(u->graph->arena, ir_tensor);
    if (tensor == NULL || data == NULL) return NULL;
    *tensor = (ir_tensor){.dtype = dtype, .rank = rank, .count = ir_count_elements(rank, dims), .data = data};
    for (int d = 0; d < rank; d++) tensor->dims[d] = dims[d];
    return fe_add_constant(u, node, what, tensor);
}

bool fe_set_input(const fe_upgrader *u, ir_node *node, int index, ir_value *value)
{
    if (value == NULL) return false;
    if (index >= node->input_count && !ir_node_set_input_count(u->graph, node, index + 1)) return false;
    ir_node_set_input(node, index, value);
    return true;
}

bool fe_set_tensor(const fe_upgrader *u, ir_node *node, const char *name, const ir_tensor *tensor)
{
    ir_attr *grown = IR_NEW_ARRAY(u->graph->arena, ir_attr, (size_t)node->attr_count + 1);
    if (tensor == NULL || grown == NULL) return false;
    if (node->attr_count) memcpy(grown, node->attrs, (size_t)node->attr_count * sizeof *grown);
    grown[node->attr_count++] = (ir_attr){.name = name, .kind = IR_ATTR_TENSOR, .tensor = tensor};
    node->attrs = grown;
    return true;
}

static ir_node *insert(const fe_upgrader *u, const ir_node *node, ir_node *before, ir_opcode op,
                       ir_value *const *inputs, int count)
{
    for (int i = 0; i < count; i++)
        if (inputs[i] == NULL) return NULL; /* making an earlier constant or node failed */
    const char *name = ir_arena_printf(u->graph->arena, "%s.%s", node->name, ir_ops[op].name);
    return name != NULL ? ir_graph_add_node(u->graph, before, &ir_ops[op], name, inputs, count, 1) : NULL;
}

ir_value *fe_add(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count,
                 const ir_attr *attrs, int attr_count)
{
    ir_node *made = insert(u, node, node, op, inputs, count);
    for (int i = 0; i < attr_count; i++)
        if (made == NULL || !ir_node_set(u->graph, made, attrs[i])) return NULL;
    return made != NULL ? made->outputs[0] : NULL;
}

ir_node *fe_insert_after(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count)
{
    return insert(u, node, node->next, op, inputs, count);
}

void fe_swap_output(ir_node *node, int i, ir_node *last_node)
{
    ir_value *read_later = node->outputs[i], *inner = last_node->outputs[0];
    node->outputs[i] = inner;
    inner->def = node;
    inner->output = i;
    last_node->outputs[0] = read_later;
    read_later->def = last_node;
    read_later->output = 0;
    for (int k = 0; k < last_node->input_count; k++)
        if (last_node->inputs[k] == read_later) ir_node_set_input(last_node, k, inner);
}

bool fe_give_up(const fe_upgrader *u, ir_node *node, const char *reason)
{
    const char *text = ir_arena_printf(u->graph->arena, "%s (%s)", node->op_type, reason);
    if (text == NULL) return false;
    node->op = NULL;
    node->op_type = text;
    return true;
}
