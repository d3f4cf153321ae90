/* training.c — a training graph → its forward graph.
 *
 * A node is of the backward pass or the optimizer when it is an operator that only those have, or reads what one of
 * them gives. What is left is the forward graph, and equals that of an export for inference: gradients and updates are
 * loads of the operator they serve (loads.c), counted in one way for every export. A graph that holds nothing else,
 * such as an optimizer alone, is left as it is.
 *
 * Operators: ONNX Runtime's training domain (com.microsoft), ai.onnx.preview.training, org.pytorch.aten.
 */
#include "frontend/job/job.h"

#include "frontend/onnx/names.h"

#include <string.h>

/* ---- Operators -------------------------------------------------------------------------------------------------- */

/* Operators of the backward pass and the optimizer whose name does not say "Grad". */
static const char *const backward[] = {
    "YieldOp",
    "InPlaceAccumulator",
    "InPlaceAccumulatorV2",
    "ReduceAllL2",
    "MixedPrecisionScale",
    "LambOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "SGDOptimizer",
    "SGDOptimizerV2",
    "GroupNormBackward",
    "Adagrad",
    "Adam",
    "Momentum",
};

static const struct {
    const char *name;
    mdot_optimizer optimizer;
} optimizers[] = {
    {"AdamOptimizer", MDOT_OPTIMIZER_ADAM}, {"AdamWOptimizer", MDOT_OPTIMIZER_ADAMW}, {"Adam", MDOT_OPTIMIZER_ADAM},
    {"SGDOptimizer", MDOT_OPTIMIZER_SGD},   {"SGDOptimizerV2", MDOT_OPTIMIZER_SGD},   {"Momentum", MDOT_OPTIMIZER_SGD},
};

/* Forward operators, most of training graphs, that are others with more outputs or inputs. The name may be one that the
 * frontend gave up. */
static const struct {
    const char *op_type, *operator_attr; /* the attribute `operator` of an ATen node */
    ir_opcode op;
    int inputs, outputs; /* that are kept */
} aliases[] = {
    {"com.microsoft:ConcatTraining", NULL, IR_OP_Concat, -1, 1},
    {"com.microsoft:SoftmaxCrossEntropyLossInternal", NULL, IR_OP_SoftmaxCrossEntropyLoss, 3, 2},
    {"com.microsoft:NegativeLogLikelihoodLossInternal", NULL, IR_OP_NegativeLogLikelihoodLoss, 3, 1},
    {"com.microsoft:BatchNormInternal", NULL, IR_OP_BatchNormalization, 5, 1},
    {"BatchNormalization (with saved mean and variance)", NULL, IR_OP_BatchNormalization, 5, 1},
    {"org.pytorch.aten:ATen", "embedding", IR_OP_Gather, 2, 1},
    {"pkg.onnxscript.torch_lib:_aten_as_strided_onnx", NULL, IR_OP_Reshape, 2, 1}, /* x, size, strides */
};

/* Without the domain. */
static const char *base_name(const ir_node *node)
{
    const char *colon = strchr(node->op_type, ':');
    return colon != NULL ? colon + 1 : node->op_type;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool starts_backward(const ir_node *node)
{
    if (node->op != NULL || strchr(node->op_type, ':') == NULL) return false; /* all stand in domains of their own */
    const char *name = base_name(node);
    if (strstr(name, "Grad") != NULL) return true;
    if (strcmp(name, "ATen") == 0) return ends_with(ir_node_string(node, "operator", ""), "_backward");
    for (size_t i = 0; i < sizeof backward / sizeof *backward; i++) {
        if (strcmp(name, backward[i]) == 0) return true;
    }
    return false;
}

static void note_optimizer(fe_job *job, const ir_node *node)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        if (strcmp(base_name(node), optimizers[i].name) != 0) continue;
        job->has_optimizer = true;
        job->optimizer = optimizers[i].optimizer;
    }
}

/* ---- Cutting ---------------------------------------------------------------------------------------------------- */

/* Marks the values of the backward pass by id; how many nodes are forward. */
static int mark(fe_job *job, bool *is_backward)
{
    int forward = 0;
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        bool tainted = starts_backward(node);
        if (tainted) note_optimizer(job, node);
        for (int i = 0; i < node->input_count && !tainted; i++) {
            tainted = node->inputs[i] != NULL && is_backward[node->inputs[i]->id];
        }
        forward += !tainted;
        for (int i = 0; i < node->output_count && tainted; i++) {
            if (node->outputs[i] != NULL) is_backward[node->outputs[i]->id] = true;
        }
    }
    return forward;
}

static bool is_marked(const ir_node *node, const bool *is_backward)
{
    if (starts_backward(node)) return true;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NULL && is_backward[node->inputs[i]->id]) return true;
    }
    return false;
}

static bool is_output(const ir_graph *graph, const ir_value *value)
{
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == value) return true;
    }
    return false;
}

/* The forward graph ends in the outputs that are not gradients, in what YieldOp hands out (ORTModule's), or, where
 * there is neither, in the last value that the backward pass reads. */
static mdot_status choose_outputs(const fe_job *job, const bool *is_backward)
{
    ir_graph *graph = job->graph;
    int kept = 0;
    for (int i = 0; i < graph->output_count; i++) {
        ir_value *value = graph->outputs[i];
        if (is_backward[value->id]) {
            value->use_count--;
        } else {
            graph->outputs[kept++] = value;
        }
    }
    graph->output_count = kept;
    ir_value *last = NULL;
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        if (!is_marked(node, is_backward)) continue;
        bool yields = strcmp(base_name(node), "YieldOp") == 0;
        for (int i = 0; i < node->input_count; i++) {
            ir_value *value = node->inputs[i];
            if (value == NULL || value->def == NULL || is_backward[value->id]) continue;
            last = value;
            if (yields && !is_output(graph, value) && !ir_graph_add_output(graph, value)) {
                return fe_job_out_of_memory(job);
            }
        }
    }
    if (graph->output_count == 0 && last != NULL && !ir_graph_add_output(graph, last)) return fe_job_out_of_memory(job);
    return MDOT_OK;
}

static void remove_marked(ir_graph *graph, const bool *is_backward)
{
    for (ir_node *node = graph->last, *prev; node != NULL; node = prev) {
        prev = node->prev;
        if (is_marked(node, is_backward)) ir_graph_remove_node(graph, node);
    }
    ir_graph_remove_dead(graph);
}

/* ---- Parameters ------------------------------------------------------------------------------------------------- */

/* The names of all values of the backward pass. */
static fe_names *gradient_names(const fe_job *job, const bool *is_backward)
{
    fe_names *names = fe_names_create(job->graph->arena);
    for (const ir_node *node = job->graph->first; node != NULL && names != NULL; node = node->next) {
        for (int i = 0; i < node->output_count && names != NULL; i++) {
            const ir_value *value = node->outputs[i];
            if (value == NULL || !is_backward[value->id] || fe_names_find(names, value->name) >= 0) continue;
            if (!fe_names_add(names, value->name, 0)) names = NULL;
        }
    }
    return names;
}

static bool become_constant(const ir_graph *graph, ir_value *value)
{
    ir_tensor *tensor = IR_NEW(graph->arena, ir_tensor);
    if (tensor == NULL) return false;
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.rank;
    for (int i = 0; i < tensor->rank; i++) tensor->dims[i] = value->type.dim[i].offset;
    tensor->count = ir_count_elements(tensor->rank, tensor->dims);
    value->constant = tensor;
    value->stored = true;
    value->input = -1;
    return true;
}

/* ONNX Runtime calls the gradient of X "X_grad": an input with a gradient of its own is a parameter. */
static mdot_status find_parameters(const fe_job *job, const bool *is_backward)
{
    ir_graph *graph = job->graph;
    fe_names *gradients = gradient_names(job, is_backward);
    if (gradients == NULL) return fe_job_out_of_memory(job);
    int kept = 0;
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *value = graph->inputs[i];
        const char *gradient = ir_arena_printf(graph->arena, "%s_grad", value->name);
        if (gradient == NULL) return fe_job_out_of_memory(job);
        if (fe_names_find(gradients, gradient) >= 0 && ir_dtype_is_float(value->type.dtype)) {
            if (!become_constant(graph, value)) return fe_job_out_of_memory(job);
        } else {
            value->input = kept;
            graph->inputs[kept++] = value;
        }
    }
    graph->input_count = kept;
    return MDOT_OK;
}

/* ---- Forward operators of training graphs ----------------------------------------------------------------------- */

static void cut_inputs(ir_node *node, int count)
{
    for (int i = count; i < node->input_count; i++) ir_node_set_input(node, i, NULL);
    if (node->input_count > count) node->input_count = count;
}

/* False: an output that would go is read. */
static bool cut_outputs(ir_node *node, int count)
{
    for (int i = count; i < node->output_count; i++) {
        if (node->outputs[i] != NULL && node->outputs[i]->use_count > 0) return false;
    }
    if (node->output_count > count) node->output_count = count;
    return true;
}

static bool has_what_it_needs(const ir_node *node, const ir_op *op)
{
    for (int i = 0; i < op->min_inputs; i++) {
        if (ir_node_input(node, i) == NULL) return false;
    }
    return node->output_count >= op->min_outputs && node->outputs[0] != NULL;
}

static void take_alias(ir_node *node)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        const char *wanted = aliases[i].operator_attr;
        if (strcmp(node->op_type, aliases[i].op_type) != 0) continue;
        if (wanted != NULL && strcmp(ir_node_string(node, "operator", ""), wanted) != 0) continue;
        if (!has_what_it_needs(node, &ir_ops[aliases[i].op]) || !cut_outputs(node, aliases[i].outputs)) continue;
        if (aliases[i].inputs >= 0) cut_inputs(node, aliases[i].inputs);
        node->op = &ir_ops[aliases[i].op];
        node->op_type = node->op->name;
        return;
    }
}

/* A model that hands out its running statistics does not compute anything for that. */
static void drop_outputs(ir_graph *graph, const ir_node *node, int from)
{
    int kept = 0;
    for (int i = 0; i < graph->output_count; i++) {
        ir_value *value = graph->outputs[i];
        if (value->def == node && value->output >= from) {
            value->use_count--;
        } else {
            graph->outputs[kept++] = value;
        }
    }
    graph->output_count = kept;
}

/* An export for inference has neither Dropout nor batch statistics, so the sequence has them as in inference; that
 * training normalises by the batch's statistics is in the loads. */
static mdot_status use_inference_form(const fe_job *job, ir_node *node)
{
    if (node->op == &ir_ops[IR_OP_Dropout]) cut_inputs(node, 1);
    if (node->op != &ir_ops[IR_OP_BatchNormalization]) return MDOT_OK;
    if (node->output_count > 1) drop_outputs(job->graph, node, 1);
    cut_outputs(node, 1);
    return ir_node_set_int(job->graph, node, "training_mode", 0) ? MDOT_OK : fe_job_out_of_memory(job);
}

mdot_status fe_job_strip(fe_job *job)
{
    ir_graph *graph = job->graph;
    bool *is_backward = IR_NEW_ARRAY(graph->arena, bool, graph->value_count + 1);
    if (is_backward == NULL) return fe_job_out_of_memory(job);
    mdot_status status = MDOT_OK;
    if (mark(job, is_backward) > 0) {
        status = find_parameters(job, is_backward);
        if (status == MDOT_OK) status = choose_outputs(job, is_backward);
        if (status == MDOT_OK) remove_marked(graph, is_backward);
    }
    for (ir_node *node = graph->first; node != NULL && status == MDOT_OK; node = node->next) {
        if (node->op == NULL) take_alias(node);
        status = use_inference_form(job, node);
    }
    return status;
}
