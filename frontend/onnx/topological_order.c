/* topological_order.c — checks single assignment and sorts a flat model topologically.
 *
 * ONNX requires both, but some tools write nodes in another order, which is corrected here. A topological order in
 * the file is kept, because a depth-first walk visits the nodes in the file's order and emits each node after its
 * producers.
 */
#include "frontend/onnx/flat.h"

#include "frontend/onnx/flatten.h"
#include "frontend/onnx/import_context.h"
#include "frontend/onnx/names.h"

#include <string.h>

static const char *describe(const fe_flat *flat, int definer)
{
    if (definer == FE_BY_INPUT) return "a graph input";
    if (definer == FE_BY_INITIALIZER) return "an initializer";
    return flat->nodes[definer].name;
}

static mdot_status define(const fe_context *context, fe_flat *flat, int value, int definer, int output)
{
    fe_value *v = &flat->values[value];
    if (v->definer != FE_UNDEFINED)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: value '%s' is defined twice: by %s and by %s",
                         context->file, v->name, describe(flat, v->definer), describe(flat, definer));
    v->definer = definer;
    v->output = output;
    return MDOT_OK;
}

static mdot_status define_name(const fe_context *context, fe_flat *flat, const char *name, int definer, int index)
{
    if (name == NULL || !*name)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s has no name", context->file, describe(flat, definer));
    int value;
    mdot_status status = fe_flat_value(context, flat, name, &value);
    return status == MDOT_OK ? define(context, flat, value, definer, index) : status;
}

/* Until IR version 4 every initializer was listed among the inputs, too. Such an input is a constant. */
static mdot_status define_inputs(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        int value = graph->input[i]->name != NULL ? fe_names_find(flat->names, graph->input[i]->name) - 1 : FE_NO_VALUE;
        if (value >= 0 && flat->values[value].definer == FE_BY_INITIALIZER) continue;
        BS_TRY(define_name(context, flat, graph->input[i]->name, FE_BY_INPUT, (int)i));
    }
    return MDOT_OK;
}

static bool is_constant(const fe_node *node)
{
    return !*node->domain && strcmp(node->op_type, "Constant") == 0 && node->output_count == 1;
}

/* Some exporters write several Constants under one name. If they are equal, the later one is dropped with a warning.
 * If they differ, a job uses the last one, like ONNX Runtime, because only sizes matter to a job. */
static mdot_status drop_repetition(const fe_context *context, fe_flat *flat, int index, bool *out_dropped)
{
    fe_node *node = &flat->nodes[index];
    fe_value *value = &flat->values[node->outputs[0]];
    if (value->definer < 0 || !is_constant(node) || !is_constant(&flat->nodes[value->definer])) return MDOT_OK;
    fe_node *earlier = &flat->nodes[value->definer];
    const ir_tensor *first, *second;
    BS_TRY(fe_import_constant(context, earlier, &first));
    BS_TRY(fe_import_constant(context, node, &second));
    bool is_same = ir_tensor_equal(first, second);
    if (!is_same && !context->options->job) return MDOT_OK;
    fe_warn(context, "%s: constant '%s' is defined twice%s", context->file, value->name,
            is_same ? "" : " with different content; the last one is used");
    if (is_same) {
        node->outputs[0] = FE_NO_VALUE;
    } else {
        earlier->outputs[0] = FE_NO_VALUE;
        value->definer = index;
    }
    *out_dropped = true;
    return MDOT_OK;
}

static mdot_status define_output(const fe_context *context, fe_flat *flat, int index, int output)
{
    int value = flat->nodes[index].outputs[output];
    if (value == FE_NO_VALUE) return MDOT_OK;
    bool dropped = false;
    mdot_status status = drop_repetition(context, flat, index, &dropped);
    return status != MDOT_OK || dropped ? status : define(context, flat, value, index, output);
}

mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        BS_TRY(define_name(context, flat, graph->initializer[i]->name, FE_BY_INITIALIZER, (int)i));
    BS_TRY(define_inputs(context, graph, flat));
    for (int i = 0; i < flat->node_count; i++)
        for (int k = 0; k < flat->nodes[i].output_count; k++) BS_TRY(define_output(context, flat, i, k));
    return MDOT_OK;
}

typedef enum mark { UNSEEN, OPEN, EMITTED } mark;

/* A node on the walk's stack, and what it needs next. */
typedef struct step {
    int node, input;
    const fe_branch *branch;
    int body_count;
} step;

static step first_step(const fe_flat *flat, int node)
{
    return (step){node, 0, flat->nodes[node].branch, flat->nodes[node].body_count};
}

static mdot_status check_inputs(const fe_context *context, const fe_flat *flat)
{
    for (int i = 0; i < flat->node_count; i++) {
        const fe_node *node = &flat->nodes[i];
        for (int k = 0; k < node->input_count; k++) {
            int value = node->inputs[k];
            if (value == FE_NO_VALUE || flat->values[value].definer != FE_UNDEFINED) continue;
            /* PyTorch's dynamo exporter writes such files with export_params=False or
             * save(include_initializers=False). */
            return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s' (%s): input %d, '%s', is undefined%s",
                             context->file, node->name, node->op_type, k, flat->values[value].name,
                             context->options->job ? "; if it is a parameter, export the graph with its parameters: "
                                                     "their shapes are required, their data may be omitted"
                                                   : "");
        }
    }
    return MDOT_OK;
}

/* A value's unemitted producer; -1: none. */
static int pending_producer(const fe_flat *flat, const unsigned char *marks, int value)
{
    if (value == FE_NO_VALUE) return -1;
    int definer = flat->values[value].definer;
    return definer >= 0 && marks[definer] != EMITTED ? definer : -1;
}

/* The next node before which the step's node may not be emitted; -1: none is left.
 *
 * A node needs the conditions of the branches around it, because they decide whether it counts. A LoopEnd needs its
 * whole body, even nodes whose results nothing reads, because nodes behind the loop may not read the body. */
static int next_needed(const fe_flat *flat, const unsigned char *marks, step *position)
{
    const fe_node *node = &flat->nodes[position->node];
    while (position->input < node->input_count) {
        int producer = pending_producer(flat, marks, node->inputs[position->input++]);
        if (producer >= 0) return producer;
    }
    while (position->branch != NULL) {
        int producer = pending_producer(flat, marks, position->branch->condition);
        position->branch = position->branch->around;
        if (producer >= 0) return producer;
    }
    while (position->body_count > 0) {
        int part = position->node - position->body_count--;
        if (marks[part] != EMITTED) return part;
    }
    return -1;
}

static mdot_status emit(const fe_context *context, fe_flat *flat, unsigned char *marks, step *stack, int root,
                        int *index)
{
    int depth = 0;
    stack[0] = first_step(flat, root);
    marks[root] = OPEN;
    while (depth >= 0) {
        step *top = &stack[depth];
        int needed = next_needed(flat, marks, top);
        if (needed < 0) {
            marks[top->node] = EMITTED;
            flat->order[(*index)++] = top->node;
            depth--;
            continue;
        }
        if (marks[needed] == OPEN)
            return mdot_fail(context->err, MDOT_MALFORMED,
                             "%s: node '%s' (%s) depends on its own output: the graph has a cycle", context->file,
                             flat->nodes[needed].name, flat->nodes[needed].op_type);
        marks[needed] = OPEN;
        stack[++depth] = first_step(flat, needed);
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
    if (marks == NULL || stack == NULL || flat->order == NULL) return fe_out_of_memory(context);
    int index = 0;
    for (int i = 0; i < flat->node_count && status == MDOT_OK; i++)
        if (marks[i] == UNSEEN) status = emit(context, flat, marks, stack, i, &index);
    return status;
}
