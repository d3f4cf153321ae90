/* order.c — single assignment and topological order of a flat model.
 *
 * ONNX demands both; some tools write nodes in another order, which is put right here. The order is the file's wherever
 * that is topological: a depth-first walk over the nodes in the file's order that emits a node after its producers.
 */
#include "frontend/flat.h"

/* ---- Definitions ------------------------------------------------------------------------------------------------ */

static const char *describe(const fe_flat *flat, int definer)
{
    if (definer == FE_BY_INPUT) return "a graph input";
    if (definer == FE_BY_INITIALIZER) return "an initializer";
    return flat->nodes[definer].name;
}

static mdot_status define(const fe_context *context, fe_flat *flat, int value, int definer, int output)
{
    fe_value *v = &flat->values[value];
    if (v->definer != FE_UNDEFINED) {
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: value '%s' is defined twice: by %s and by %s",
                         context->file, v->name, describe(flat, v->definer), describe(flat, definer));
    }
    v->definer = definer;
    v->output = output;
    return MDOT_OK;
}

static mdot_status define_name(const fe_context *context, fe_flat *flat, const char *name, int definer, int index)
{
    if (!name || !*name) {
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s has no name", context->file, describe(flat, definer));
    }
    int value;
    mdot_status status = fe_flat_value(context, flat, name, &value);
    return status == MDOT_OK ? define(context, flat, value, definer, index) : status;
}

/* Until IR version 4 every initializer was listed among the inputs too: such an input is a constant. */
static mdot_status define_inputs(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        int value = graph->input[i]->name ? fe_names_find(flat->names, graph->input[i]->name) - 1 : FE_NO_VALUE;
        if (value >= 0 && flat->values[value].definer == FE_BY_INITIALIZER) continue;
        mdot_status status = define_name(context, flat, graph->input[i]->name, FE_BY_INPUT, (int)i);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}

mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        mdot_status status = define_name(context, flat, graph->initializer[i]->name, FE_BY_INITIALIZER, (int)i);
        if (status != MDOT_OK) return status;
    }
    mdot_status status = define_inputs(context, graph, flat);
    for (int i = 0; i < flat->node_count && status == MDOT_OK; i++) {
        const fe_node *node = &flat->nodes[i];
        for (int k = 0; k < node->output_count && status == MDOT_OK; k++) {
            if (node->outputs[k] != FE_NO_VALUE) status = define(context, flat, node->outputs[k], i, k);
        }
    }
    return status;
}

/* ---- Order ------------------------------------------------------------------------------------------------------ */

typedef enum mark { UNSEEN, OPEN, EMITTED } mark;

typedef struct step { /* a node on the walk's stack and its input to look at next */
    int node, input;
} step;

static mdot_status check_inputs(const fe_context *context, const fe_flat *flat)
{
    for (int i = 0; i < flat->node_count; i++) {
        const fe_node *node = &flat->nodes[i];
        for (int k = 0; k < node->input_count; k++) {
            int value = node->inputs[k];
            if (value == FE_NO_VALUE || flat->values[value].definer != FE_UNDEFINED) continue;
            return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s' (%s): input %d, '%s', is defined by nothing",
                             context->file, node->name, node->op_type, k, flat->values[value].name);
        }
    }
    return MDOT_OK;
}

/* The producer of an input that is still to be emitted; -1: none. */
static int pending_producer(const fe_flat *flat, const unsigned char *marks, int value)
{
    if (value == FE_NO_VALUE) return -1;
    int definer = flat->values[value].definer;
    return definer >= 0 && marks[definer] != EMITTED ? definer : -1;
}

static mdot_status emit(const fe_context *context, fe_flat *flat, unsigned char *marks, step *stack, int root, int *at)
{
    int depth = 0;
    stack[0] = (step){root, 0};
    marks[root] = OPEN;
    while (depth >= 0) {
        step *top = &stack[depth];
        const fe_node *node = &flat->nodes[top->node];
        if (top->input == node->input_count) {
            marks[top->node] = EMITTED;
            flat->order[(*at)++] = top->node;
            depth--;
            continue;
        }
        int producer = pending_producer(flat, marks, node->inputs[top->input++]);
        if (producer < 0) continue;
        if (marks[producer] == OPEN) {
            return mdot_fail(context->err, MDOT_MALFORMED,
                             "%s: node '%s' (%s) depends on its own output: the graph has a cycle", context->file,
                             flat->nodes[producer].name, flat->nodes[producer].op_type);
        }
        marks[producer] = OPEN;
        stack[++depth] = (step){producer, 0};
    }
    return MDOT_OK;
}

mdot_status fe_order_nodes(const fe_context *context, fe_flat *flat)
{
    mdot_status status = check_inputs(context, flat);
    if (status != MDOT_OK) return status;
    unsigned char *marks = IR_NEW_ARRAY(context->scratch, unsigned char, flat->node_count);
    step *stack = IR_NEW_ARRAY(context->scratch, step, flat->node_count);
    flat->order = IR_NEW_ARRAY(context->scratch, int, flat->node_count);
    if (!marks || !stack || !flat->order) return fe_out_of_memory(context);
    int at = 0;
    for (int i = 0; i < flat->node_count && status == MDOT_OK; i++) {
        if (marks[i] == UNSEEN) status = emit(context, flat, marks, stack, i, &at);
    }
    return status;
}
