/* ml_writer.c — see ml_writer.h. */
#include "frontend/onnx/ml_writer.h"

#include "frontend/onnx/import_context.h"

#include <stdarg.h>
#include <stdio.h>

mdot_status fe_ml_fail(const ml_writer *w, mdot_status status, const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return mdot_fail(w->u->context->err, status, "%s: node '%s' (%s): %s", w->u->context->file, w->node->name,
                     w->node->op_type, reason);
}

/* An empty list has no type. */
static mdot_status find_list(const ml_writer *w, const char *name, ir_attr_kind kind, const ir_attr **out_attr)
{
    const ir_attr *attr = ir_node_attr(w->node, name);
    if (attr != NULL && attr->kind == IR_ATTR_INTS && attr->count == 0) attr = NULL;
    if (attr != NULL && attr->kind != kind)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' must be a list of %s", name,
                          kind == IR_ATTR_INTS ? "integers" : "floats");
    *out_attr = attr;
    return MDOT_OK;
}

mdot_status fe_ml_floats(const ml_writer *w, const char *name, const double **out_values, int64_t *out_count)
{
    const ir_attr *attr = NULL;
    BS_TRY(find_list(w, name, IR_ATTR_FLOATS, &attr));
    *out_values = attr != NULL ? attr->floats : NULL;
    *out_count = attr != NULL ? attr->count : 0;
    return MDOT_OK;
}

mdot_status fe_ml_ints(const ml_writer *w, const char *name, const int64_t **out_values, int64_t *out_count)
{
    const ir_attr *attr = NULL;
    BS_TRY(find_list(w, name, IR_ATTR_INTS, &attr));
    *out_values = attr != NULL ? attr->ints : NULL;
    *out_count = attr != NULL ? attr->count : 0;
    return MDOT_OK;
}

ir_value *fe_ml_scalar(const ml_writer *w, const char *what, double value)
{
    return fe_add_scalar(w->u, w->node, what, MDOT_DTYPE_F32, value);
}

ir_value *fe_ml_vector(const ml_writer *w, const char *what, const double *values, int64_t count)
{
    float *data = IR_NEW_ARRAY(w->u->graph->arena, float, count);
    if (data == NULL) return NULL;
    for (int64_t i = 0; i < count; i++) data[i] = (float)values[i];
    return fe_add_data(w->u, w->node, what, MDOT_DTYPE_F32, 1, &count, data);
}

ir_value *fe_ml_cast(const ml_writer *w, ir_value *x, mdot_dtype dtype)
{
    return fe_add(w->u, w->node, IR_OP_Cast, &x, 1, IR_ATTRS(IR_INT("to", dtype)));
}

ir_value *fe_ml_reduce(const ml_writer *w, ir_opcode op, ir_value *x)
{
    const int64_t axis = -1;
    return fe_ml_add2(w, op, x, fe_add_ints(w->u, w->node, "axes", &axis, 1));
}

ir_value *fe_ml_where(const ml_writer *w, ir_value *condition, ir_value *yes, ir_value *no)
{
    return fe_add(w->u, w->node, IR_OP_Where, IR_VALUES(condition, yes, no), IR_NO_ATTRS);
}

/* The last output that is present stays the node's own; Identity nodes take over the others. */
mdot_status fe_ml_finish(const ml_writer *w, ir_value *const *values, int count)
{
    ir_node *node = w->node;
    int last_index = -1;
    if (node->output_count > count)
        return fe_ml_fail(w, MDOT_MALFORMED, "it has %d outputs; the operator produces %d", node->output_count, count);
    for (int i = 0; i < node->output_count; i++) {
        if (values[i] == NULL) return fe_out_of_memory(w->u->context);
        if (node->outputs[i] != NULL) last_index = i;
    }
    if (last_index < 0) return fe_ml_fail(w, MDOT_MALFORMED, "it has no output");
    for (int i = 0; i < last_index; i++) {
        if (node->outputs[i] == NULL) continue;
        ir_value *copy = fe_ml_add1(w, IR_OP_Identity, values[i]);
        if (copy == NULL) return fe_out_of_memory(w->u->context);
        fe_swap_output(node, i, copy->def);
    }
    node->outputs[0] = node->outputs[last_index];
    node->outputs[0]->output = 0;
    node->output_count = 1;
    node->op = &ir_ops[IR_OP_Identity];
    node->attr_count = 0;
    if (!ir_node_set_input_count(w->u->graph, node, 0) || !ir_node_set_input_count(w->u->graph, node, 1))
        return fe_out_of_memory(w->u->context);
    ir_node_set_input(node, 0, values[last_index]);
    return MDOT_OK;
}
