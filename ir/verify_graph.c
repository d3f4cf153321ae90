/* verify_graph.c — the rules that every graph must satisfy between passes, as a list.
 *
 * They are checked after each pass in builds with MDOT_VERIFY, by the tests, and on graphs parsed from text. A
 * violation is a bug in the preceding pass (or in the text), and the message names the rule, the node and the value.
 */
#include "ir/ops.h"

#include "ir/ops/families.h"

typedef struct checker {
    const ir_graph *graph;
    ir_arena *arena;
    const ir_value **known; /* by id: the values defined so far, which may be used */
    int *uses;              /* by id */
    mdot_error *err;
} checker;

/* A rule walks the whole graph in order and reports a violation. Later rules rely on earlier ones. */
typedef struct rule {
    const char *text;
    mdot_status (*check)(checker *c);
} rule;

static mdot_status broken(const checker *c, const ir_node *node, const char *what, const ir_value *value)
{
    const char *name = value != NULL && value->name != NULL ? value->name : "";
    int id = value != NULL ? value->id : -1;
    if (node == NULL) return mdot_fail(c->err, MDOT_MALFORMED, "%s (value %%%d \"%s\")", what, id, name);
    return ir_fail(node, c->err, MDOT_MALFORMED, "%s (value %%%d \"%s\")", what, id, name);
}

static mdot_status check_list(checker *c)
{
    const ir_node *prev = NULL;
    for (const ir_node *node = c->graph->first; node != NULL; prev = node, node = node->next)
        if (node->prev != prev) return broken(c, node, "the link back does not match the link forward", NULL);
    return c->graph->last == prev ? MDOT_OK : broken(c, prev, "the last node differs from the end of the list", NULL);
}

/* Registers a value at its definition. */
static mdot_status define(checker *c, const ir_node *node, const ir_value *value)
{
    if (value->name == NULL) return broken(c, node, "a value has no name", value);
    if (value->id < 0 || value->id >= c->graph->value_count)
        return broken(c, node, "an id is outside of the range of allocated ids", value);
    if (c->known[value->id] != NULL) return broken(c, node, "an id or a value is defined twice", value);
    c->known[value->id] = value;
    return MDOT_OK;
}

/* Checks a use of a value. A constant is defined by the first use. */
static mdot_status use(checker *c, const ir_node *node, const ir_value *value)
{
    if (value->constant != NULL &&
        (value->id < 0 || value->id >= c->graph->value_count || c->known[value->id] == NULL)) {
        if (value->def != NULL || value->input >= 0)
            return broken(c, node, "a constant is computed or an input", value);
        BS_TRY(define(c, node, value));
    }
    if (value->id < 0 || value->id >= c->graph->value_count || c->known[value->id] != value)
        return broken(c, node, "a value is used before its definition", value);
    c->uses[value->id]++;
    return MDOT_OK;
}

static mdot_status define_inputs(checker *c)
{
    for (int i = 0; i < c->graph->input_count; i++) {
        const ir_value *value = c->graph->inputs[i];
        BS_TRY(define(c, NULL, value));
        if (value->input != i) return broken(c, NULL, "an input has a wrong index", value);
        if (value->def != NULL || value->constant != NULL)
            return broken(c, NULL, "an input is computed or a constant", value);
    }
    return MDOT_OK;
}

static mdot_status check_definitions(checker *c)
{
    mdot_status status = define_inputs(c);
    for (const ir_node *node = c->graph->first; node != NULL && status == MDOT_OK; node = node->next) {
        for (int i = 0; i < node->input_count && status == MDOT_OK; i++)
            if (node->inputs[i] != NULL) status = use(c, node, node->inputs[i]);
        for (int i = 0; i < node->output_count && status == MDOT_OK; i++) {
            const ir_value *value = node->outputs[i];
            if (value == NULL) continue;
            status = define(c, node, value);
            if (status != MDOT_OK) break;
            if (value->def != node || value->output != i)
                status = broken(c, node, "an output has a wrong pointer to its node", value);
            else if (value->constant != NULL || value->input >= 0)
                status = broken(c, node, "an output is a constant or an input", value);
        }
    }
    for (int i = 0; i < c->graph->output_count && status == MDOT_OK; i++)
        status = c->graph->outputs[i] != NULL ? use(c, NULL, c->graph->outputs[i])
                                              : broken(c, NULL, "an output is missing", NULL);
    return status;
}

static mdot_status check_use_counts(checker *c)
{
    for (int id = 0; id < c->graph->value_count; id++) {
        const ir_value *value = c->known[id];
        if (value != NULL && value->use_count != c->uses[id])
            return broken(c, value->def, "the use count is wrong", value);
    }
    return MDOT_OK;
}

static mdot_status check_nodes(checker *c)
{
    for (const ir_node *node = c->graph->first; node != NULL; node = node->next) {
        if (node->name == NULL || node->op_type == NULL) return broken(c, NULL, "a node has no name", NULL);
        if (node->op == NULL) continue; /* kept from the file for the report of unsupported operators */
        BS_TRY(ir_check_arity(node, c->err));
        for (int i = 0; i < node->attr_count; i++)
            if (&node->attrs[i] != ir_node_attr(node, node->attrs[i].name))
                return broken(c, node, "an attribute occurs twice", NULL);
    }
    return MDOT_OK;
}

static mdot_status check_types(checker *c)
{
    const ir_graph *graph = c->graph;
    if (graph->max_length < 1) return broken(c, NULL, "the greatest length is below 1", NULL);
    for (int id = 0; id < graph->value_count; id++) {
        const ir_value *value = c->known[id];
        if (value == NULL || value->type.rank == -1) continue;
        const ir_type *type = &value->type;
        if (type->rank < 0 || type->rank > MDOT_MAX_RANK)
            return broken(c, value->def, "the rank is out of bounds", value);
        for (int i = 0; i < type->rank; i++) {
            if (graph->symbol == NULL && !ir_dim_is_number(type->dim[i]))
                return broken(c, value->def, "a dimension is symbolic, but the graph lacks a symbol", value);
            if (!ir_dim_always_le(graph, ir_dim_number(0), type->dim[i]))
                return broken(c, value->def, "a dimension is negative for some length", value);
        }
    }
    return MDOT_OK;
}

static mdot_status check_constants(checker *c)
{
    for (int id = 0; id < c->graph->value_count; id++) {
        const ir_value *value = c->known[id];
        const ir_tensor *tensor = value != NULL ? value->constant : NULL;
        if (tensor == NULL) continue;
        if (tensor->count < 0 || ir_count_elements(tensor->rank, tensor->dims) != tensor->count)
            return broken(c, NULL, "a constant's count is not the product of its dimensions", value);
        bool same = value->type.dtype == tensor->dtype && value->type.rank == tensor->rank;
        for (int i = 0; i < tensor->rank && same; i++) same = ir_dim_is(value->type.dim[i], tensor->dims[i]);
        if (!same) return broken(c, NULL, "the type of a constant differs from that of its content", value);
    }
    return MDOT_OK;
}

static mdot_status check_known(checker *c)
{
    for (int id = 0; id < c->graph->value_count; id++) {
        const ir_value *value = c->known[id];
        if (value == NULL || value->known == NULL) continue;
        if (ir_type_count_at(&value->type, 1) != value->known->count)
            return broken(c, value->def, "the size of known content differs from that of its value", value);
    }
    return MDOT_OK;
}

static bool is_fully_typed(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) return false;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL && node->outputs[i]->type.rank < 0) return false;
    }
    return true;
}

static mdot_status check_inference(checker *c)
{
    if (!is_fully_typed(c->graph)) return MDOT_OK;
    ir_graph *fresh = ir_graph_clone(c->graph, c->arena);
    if (fresh == NULL) return mdot_fail(c->err, MDOT_OUT_OF_MEMORY, NULL);
    const ir_node *old = c->graph->first;
    for (ir_node *node = fresh->first; node != NULL; node = node->next, old = old->next) {
        BS_TRY(ir_infer_node(fresh, node, c->err));
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL && !ir_type_equal(&node->outputs[i]->type, &old->outputs[i]->type))
                return broken(c, old, "a type differs from the result of its operator's shape rule", old->outputs[i]);
    }
    return MDOT_OK;
}

/* Values of a body differ from step to step, so other nodes may read the results of the LoopEnd only. */
static mdot_status check_loops(checker *c)
{
    bool *inside = IR_NEW_ARRAY(c->arena, bool, c->graph->value_count);
    if (inside == NULL) return mdot_fail(c->err, MDOT_OUT_OF_MEMORY, NULL);
    for (const ir_node *begin = c->graph->first; begin != NULL; begin = begin->next) {
        if (!ir_is_loop_begin(begin)) continue;
        const ir_node *end = ir_loop_end_of(begin);
        if (end == NULL) return broken(c, begin, "a loop has no end", NULL);
        ir_loop_mark(c->graph, begin, inside);
        for (const ir_node *node = end->next; node != NULL; node = node->next)
            for (int i = 0; i < node->input_count; i++)
                if (node->inputs[i] != NULL && node->inputs[i]->constant == NULL && inside[node->inputs[i]->id])
                    return broken(c, node, "a value of a loop's body is read outside", node->inputs[i]);
        for (int i = 0; i < c->graph->output_count; i++)
            if (c->graph->outputs[i]->constant == NULL && inside[c->graph->outputs[i]->id])
                return broken(c, NULL, "a value of a loop's body is an output", c->graph->outputs[i]);
    }
    return MDOT_OK;
}

static const rule rules[] = {
    {"nodes form one list that is linked both ways", check_list},
    {"every value is defined once, before its uses, and points to its definition", check_definitions},
    {"use counts are the numbers of node inputs and graph outputs", check_use_counts},
    {"nodes have the inputs, outputs and attributes that their operators allow", check_nodes},
    {"ranks are in bounds and dimensions not negative at any length", check_types},
    {"constants have the type and the size of their content", check_constants},
    {"known content has an element for each of its value", check_known},
    {"types equal the results of the shape rules", check_inference},
    {"only the body and the LoopEnd of a loop read values of the body", check_loops},
};

mdot_status ir_graph_verify(const ir_graph *graph, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    mdot_error reason = {.status = MDOT_OK};
    checker c = {.graph = graph, .arena = ir_arena_create(0), .err = &reason};
    if (c.arena != NULL) {
        c.known = IR_NEW_ARRAY(c.arena, const ir_value *, graph->value_count);
        c.uses = IR_NEW_ARRAY(c.arena, int, graph->value_count);
    }
    if (c.known == NULL || c.uses == NULL) status = BS_OUT_OF_MEMORY(err, "%s", graph->name);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && status == MDOT_OK; i++) {
        status = rules[i].check(&c);
        if (status != MDOT_OK)
            mdot_fail(err, status, "%s: broken rule: %s: %s", graph->name, rules[i].text, reason.message);
    }
    ir_arena_destroy(c.arena);
    return status;
}
