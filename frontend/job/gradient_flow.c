/* gradient_flow.c — see operator_sequence.h. */
#include "frontend/job/operator_sequence.h"

#include "frontend/job/parameters.h"
#include "frontend/job/traced_program.h"

bool fe_receives_gradient(const ir_node *node, const bool *reaches)
{
    for (int i = 0; i < node->output_count; i++) {
        const ir_value *value = node->outputs[i]; /* indices have no gradient */
        if (value != NULL && reaches[value->id] && ir_dtype_is_float(value->type.dtype)) return true;
    }
    return false;
}

/* Marks parameters of nodes receiving a gradient. Returns false if there are none. */
static bool mark_parameters(const fe_job *job, const bool *reaches)
{
    bool found = false;
    for (const ir_node *node = job->graph->first; node != NULL; node = node->next) {
        if (!fe_receives_gradient(node, reaches)) continue;
        for (int i = 0; i < node->input_count; i++) {
            if (!fe_is_trained_operand(job, node, i)) continue;
            fe_parameter_receives(job->parameters, node->inputs[i]);
            found = true;
        }
    }
    return found;
}

void fe_find_gradient_flow(const fe_job *job, bool *out_reaches)
{
    const ir_graph *graph = job->graph;
    for (int i = 0; i < graph->value_count; i++) out_reaches[i] = false;
    for (int i = 0; i < graph->output_count; i++) out_reaches[graph->outputs[i]->id] = true;
    for (const ir_node *node = graph->last; node != NULL; node = node->prev) {
        if (fe_stops_gradient(node) || !fe_receives_gradient(node, out_reaches)) continue;
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL) out_reaches[node->inputs[i]->id] = true;
    }
    if (mark_parameters(job, out_reaches)) {
        fe_freeze_unreached(job->parameters);
        return;
    }
    for (int i = 0; i < graph->value_count; i++) out_reaches[i] = true;
}
