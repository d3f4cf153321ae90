/* infer.c — runs the table's shape rules, which set the type and the known content of every value. */
#include "ir/ops.h"

#include "ir/ops/families.h"

#include <string.h>

mdot_status ir_check_arity(const ir_node *node, mdot_error *err)
{
    const ir_op *op = node->op;
    if (op == NULL) return ir_fail(node, err, MDOT_UNSUPPORTED, "the operator is unknown to mdot");
    if (node->input_count < op->min_inputs || node->input_count > op->max_inputs)
        return ir_fail(node, err, MDOT_MALFORMED, "%d inputs, where the operator takes %d to %d", node->input_count,
                       op->min_inputs, op->max_inputs);
    if (node->output_count < op->min_outputs || node->output_count > op->max_outputs)
        return ir_fail(node, err, MDOT_MALFORMED, "%d outputs, where the operator has %d to %d", node->output_count,
                       op->min_outputs, op->max_outputs);
    int required = op->traits & IR_VARIADIC ? node->input_count : op->min_inputs;
    for (int i = 0; i < required; i++)
        if (node->inputs[i] == NULL) return ir_fail(node, err, MDOT_MALFORMED, "input %d is required, but absent", i);
    return MDOT_OK;
}

static bool is_typed(const ir_value *value) { return value->type.dtype != MDOT_DTYPE_NONE && value->type.rank >= 0; }

/* Content that the rules use as shapes may be arbitrary. A dimension must be non-negative at every length. */
static mdot_status check_dims(const ir_graph *graph, const ir_node *node, int output, mdot_error *err)
{
    const ir_type *type = &node->outputs[output]->type;
    char text[IR_DIM_TEXT_BYTES];
    for (int i = 0; i < type->rank; i++) {
        ir_dim d = type->dim[i], zero = ir_dim_number(0);
        if (ir_dim_always_le(graph, zero, d)) continue;
        mdot_status status = ir_dim_always_lt(graph, d, zero) ? MDOT_MALFORMED : MDOT_UNSUPPORTED;
        return ir_fail(node, err, status, "dimension %d of output %d is %s, which is negative%s", i, output,
                       ir_dim_text(d, graph->symbol, text, sizeof text),
                       ir_dim_is_number(d) ? "" : " for some lengths");
    }
    return MDOT_OK;
}

static mdot_status infer_outputs(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(ir_check_arity(node, err));
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && !is_typed(node->inputs[i]))
            return ir_fail(node, err, MDOT_MALFORMED, "input %d, \"%s\", has no type", i, node->inputs[i]->name);
    BS_TRY(ir_check_types(node, err));
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL) continue;
        node->outputs[i]->type = (ir_type){.dtype = MDOT_DTYPE_NONE, .rank = -1};
        node->outputs[i]->known = NULL;
    }
    BS_TRY(node->op->shape(graph, node, err));
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL) continue;
        if (!is_typed(node->outputs[i]))
            return ir_fail(node, err, MDOT_UNSUPPORTED, "the type of output %d cannot be inferred", i);
        const ir_value *value = node->outputs[i];
        if (value->declared != MDOT_DTYPE_NONE && value->declared != value->type.dtype)
            return ir_fail(node, err, MDOT_MALFORMED, "output %d, \"%s\", is of type %s, but declared to be of type %s",
                           i, value->name, mdot_dtype_name(value->type.dtype), mdot_dtype_name(value->declared));
        BS_TRY(check_dims(graph, node, i, err));
    }
    return MDOT_OK;
}

mdot_status ir_fail_in_file(const ir_graph *graph, mdot_status status, mdot_error *err)
{
    if (err == NULL) return status;
    char reason[sizeof err->message];
    memcpy(reason, err->message, sizeof reason);
    return mdot_fail(err, status, "%s: %s", graph->name, reason);
}

mdot_status ir_infer_node(ir_graph *graph, ir_node *node, mdot_error *err)
{
    mdot_status status = infer_outputs(graph, node, err);
    return status == MDOT_OK ? MDOT_OK : ir_fail_in_file(graph, status, err);
}
