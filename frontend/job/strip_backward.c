/* strip_backward.c — reduces a training graph to its forward graph.
 *
 * A node belongs to the backward pass or the optimizer if its operator occurs only there, or if it reads the result
 * of such a node. The remaining nodes form the forward graph, which equals an export for inference. Gradients and
 * updates are counted with the operator that they belong to (operator_costs.c), in the same way for every export. A
 * graph that contains only such nodes, for example an optimizer alone, stays as it is.
 *
 * job_only_ops.def lists the operators.
 */
#include "frontend/job/stages.h"

#include "frontend/job/job_tables.h"
#include "frontend/onnx/names.h"

static bool starts_backward(const ir_node *node)
{
    fe_job_op_role role = fe_job_op_role_of(node);
    return role >= FE_JOB_OP_BACKWARD && role <= FE_JOB_OP_ADAMW;
}

static void note_optimizer(fe_job *job, const ir_node *node)
{
    fe_job_op_role role = fe_job_op_role_of(node);
    if (role != FE_JOB_OP_SGD && role != FE_JOB_OP_ADAM && role != FE_JOB_OP_ADAMW) return;
    job->has_optimizer = true;
    job->optimizer = role == FE_JOB_OP_SGD    ? MDOT_OPTIMIZER_SGD
                     : role == FE_JOB_OP_ADAM ? MDOT_OPTIMIZER_ADAM
                                              : MDOT_OPTIMIZER_ADAMW;
}

/* Marks the values of the backward pass by id and returns the number of forward nodes. */
static int mark(fe_job *job, bool *is_backward)
{
    int forward = 0;
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        bool tainted = starts_backward(node);
        if (tainted) note_optimizer(job, node);
        for (int i = 0; i < node->input_count && !tainted; i++)
            tainted = node->inputs[i] != NULL && is_backward[node->inputs[i]->id];
        forward += !tainted;
        for (int i = 0; i < node->output_count && tainted; i++)
            if (node->outputs[i] != NULL) is_backward[node->outputs[i]->id] = true;
    }
    return forward;
}

static bool is_marked(const ir_node *node, const bool *is_backward)
{
    if (starts_backward(node)) return true;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && is_backward[node->inputs[i]->id]) return true;
    return false;
}

static bool is_forward(void *is_backward, const ir_value *output) { return !((const bool *)is_backward)[output->id]; }

/* Forward outputs are outputs other than gradients, and values returned by YieldOp (ORTModule's). Without either, the
 * output is the last value read by the backward pass. */
static void choose_outputs(const fe_job *job, const bool *is_backward)
{
    ir_graph *graph = job->graph;
    ir_graph_keep_outputs(graph, is_forward, (void *)is_backward);
    ir_value *last_value = NULL;
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        if (!is_marked(node, is_backward)) continue;
        bool yields = fe_job_op_role_of(node) == FE_JOB_OP_YIELD;
        for (int i = 0; i < node->input_count; i++) {
            ir_value *value = node->inputs[i];
            if (value == NULL || value->def == NULL || is_backward[value->id]) continue;
            last_value = value;
            if (yields && value->output_uses == 0) ir_graph_add_output(graph, value);
        }
    }
    if (graph->output_count == 0 && last_value != NULL) ir_graph_add_output(graph, last_value);
}

static void remove_marked(ir_graph *graph, const bool *is_backward)
{
    for (ir_node *node = graph->last, *prev; node != NULL; node = prev) {
        prev = node->prev;
        if (is_marked(node, is_backward)) ir_graph_remove_node(graph, node);
    }
    ir_graph_remove_dead(graph);
}

/* Adds the names of all backward values. */
static void add_gradient_names(const fe_job *job, const bool *is_backward, fe_names *names)
{
    for (const ir_node *node = job->graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->output_count; i++) {
            const ir_value *value = node->outputs[i];
            if (value == NULL || !is_backward[value->id] || fe_names_find(names, value->name) >= 0) continue;
            fe_names_add(names, value->name, 0);
        }
    }
}

/* ONNX Runtime names the gradient of X "X_grad". Therefore an input with such a gradient is a parameter. */
static void find_parameters(const fe_job *job, const bool *is_backward, fe_names *gradients)
{
    ir_graph *graph = job->graph;
    add_gradient_names(job, is_backward, gradients);
    int kept = 0;
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *value = graph->inputs[i];
        const char *gradient = ir_arena_printf(graph->arena, "%s_grad", value->name);
        bool has_gradient = gradient != NULL && fe_names_find(gradients, gradient) >= 0;
        if (has_gradient && ir_dtype_is_float(value->type.dtype)) {
            fe_make_parameter(graph, value);
        } else {
            value->input = kept;
            graph->inputs[kept++] = value;
        }
    }
    graph->input_count = kept;
}

static void truncate_inputs(const fe_job *job, ir_node *node, int count)
{
    /* Shortening the list allocates no memory. */
    if (node->input_count > count) ir_node_set_input_count(job->graph, node, count);
}

/* Removes the outputs from `count` on. False: one of them is read. */
static bool truncate_outputs(ir_node *node, int count)
{
    for (int i = count; i < node->output_count; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->use_count > 0) return false;
    if (node->output_count > count) node->output_count = count;
    return true;
}

static bool has_required_operands(const ir_node *node, const ir_op *op)
{
    for (int i = 0; i < op->min_inputs; i++)
        if (ir_node_input(node, i) == NULL) return false;
    return node->output_count >= op->min_outputs && node->outputs[0] != NULL;
}

/* Rewrites forward operators that equal an operator of ops.def with more outputs or inputs. Most occur in training
 * graphs. */
static void apply_alias(const fe_job *job, ir_node *node)
{
    const fe_job_op *row = fe_job_op_of(node);
    if (row == NULL || row->role != FE_JOB_OP_ALIAS) return;
    if (!has_required_operands(node, &ir_ops[row->op]) || !truncate_outputs(node, row->outputs)) return;
    truncate_inputs(job, node, row->inputs);
    node->op = &ir_ops[row->op];
    node->op_type = node->op->name;
}

/* Returning the running statistics of a model costs no computation, so these outputs are removed. */
static bool is_first_or_of_other_node(void *node, const ir_value *output)
{
    return output->def != node || output->output == 0;
}

/* An export for inference has neither Dropout nor batch statistics, so the sequence uses the inference form.
 * operator_costs.c accounts for normalisation by the batch's statistics in training. */
static void use_inference_form(const fe_job *job, ir_node *node)
{
    if (node->op == &ir_ops[IR_OP_Dropout]) truncate_inputs(job, node, 1);
    if (node->op != &ir_ops[IR_OP_BatchNormalization]) return;
    if (node->output_count > 1) ir_graph_keep_outputs(job->graph, is_first_or_of_other_node, node);
    truncate_outputs(node, 1);
    ir_node_set(job->graph, node, IR_INT("training_mode", 0));
}

void fe_job_strip_backward(fe_job *job)
{
    ir_graph *graph = job->graph;
    bool *is_backward = IR_NEW_ARRAY(graph->arena, bool, graph->value_count);
    fe_names *gradients = fe_names_create(graph->arena);
    if (ir_arena_failed(graph->arena)) return;
    if (mark(job, is_backward) > 0) {
        find_parameters(job, is_backward, gradients);
        choose_outputs(job, is_backward);
        remove_marked(graph, is_backward);
    }
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) apply_alias(job, node);
        use_inference_form(job, node);
    }
}
