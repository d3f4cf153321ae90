/* widen_types.c — gives all floating-point values of a job the type f32.
 *
 * A job's costs do not depend on the file's types, because the configuration or the traced program sets the precision.
 * The passes that recognise attention apply to f32. Therefore a file in half precision, for example of a module in
 * bf16, has the same operators as one in single precision. Casts between these types have no effect afterwards, and
 * `simplify` removes them. */
#include "frontend/job/stages.h"

#include "ir/ops.h"

static const ir_tensor *widened_constant(ir_graph *graph, const ir_tensor *source)
{
    ir_wide *wide = source->data != NULL ? ir_wide_from_tensor(graph->arena, source) : NULL;
    if (wide != NULL) {
        wide->dtype = MDOT_DTYPE_F32;
        return ir_tensor_from_wide(graph->arena, wide);
    }
    ir_tensor *shape = IR_NEW(graph->arena, ir_tensor);
    if (shape == NULL) return NULL;
    *shape = *source;
    shape->dtype = MDOT_DTYPE_F32;
    shape->data = NULL;
    return shape;
}

static void widen(ir_graph *graph, ir_value *value)
{
    if (value == NULL || value->type.dtype == MDOT_DTYPE_F32 || !ir_dtype_is_float(value->type.dtype)) return;
    if (value->constant != NULL) {
        const ir_tensor *constant = widened_constant(graph, value->constant);
        if (constant == NULL) return;
        value->constant = constant;
    }
    value->type.dtype = MDOT_DTYPE_F32;
}

/* Rules that infer a cast's type again find the new one. */
static void retarget(ir_graph *graph, ir_node *node)
{
    if (node->op == &ir_ops[IR_OP_Cast] && ir_dtype_is_float((mdot_dtype)ir_node_int(node, "to", 0)))
        ir_node_set(graph, node, IR_INT("to", MDOT_DTYPE_F32));
}

void fe_job_widen_types(fe_job *job)
{
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) widen(job->graph, node->inputs[i]);
        for (int i = 0; i < node->output_count; i++) widen(job->graph, node->outputs[i]);
        retarget(job->graph, node);
    }
}
