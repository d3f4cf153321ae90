/* unfold_batchnorm.c — BatchNormalizations that an exporter folded into the weights before them stand behind them again.
 *
 * BatchNormalization(x · W + b) is x · W' + b' for inference, and exporters and optimizers write it so, PyTorch's
 * dynamo exporter also in training mode. A step of training normalises nevertheless: the job gets the node back, with a
 * scale and a shift to learn.
 *
 * What was folded is known by the traces that those who fold leave:
 *   - onnxscript, behind PyTorch's dynamo exporter, names the rule and the ATen operator in the node's metadata, and a
 *     bias that it makes after the weight, "conv1.weight_bias" (rewriter/rules/common/_fuse_batchnorm.py);
 *   - PyTorch's TorchScript exporter calls what it computed "onnx::Conv_123", until 1.9 "123", where parameters of the
 *     model keep their own names (torch/csrc/jit/passes/onnx/eval_peephole.cpp); so do ONNX's optimizer and onnxsim;
 *   - ONNX Runtime calls it "ConvBnFusion_W_…" (core/optimizer/conv_bn_fusion.cc), tf2onnx "…_fused_bn"
 *     (tf2onnx/optimizer/back_to_back_optimizer.py).
 * folded_norm_warnings.c warns of what looks like folded without a trace.
 */
#include "frontend/job/job_reader.h"

#include "frontend/onnx/onnx.h"

#include <string.h>

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Whether parameters have names of modules, "fc.weight", so that a number is none. */
static bool names_modules(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (value != NULL && value->stored && ends_with(value->name, ".weight")) return true;
        }
    }
    return false;
}

/* ---- Traces ----------------------------------------------------------------------------------------------------- */

static bool is_computed(const ir_value *value, bool numbers)
{
    return starts_with(value->name, "onnx::Conv") || (numbers && is_number(value->name));
}

static bool has_trace(const ir_node *node, bool numbers)
{
    const ir_value *weight = ir_node_input(node, 1), *bias = ir_node_input(node, 2);
    if (ir_node_int(node, FE_FOLDED_NORMALISATION, 0) != 0) return true;
    if (weight == NULL || bias == NULL) return false;
    size_t length = strlen(weight->name);
    if (strncmp(weight->name, bias->name, length) == 0 && strcmp(bias->name + length, "_bias") == 0) return true;
    if (is_computed(weight, numbers) && is_computed(bias, numbers)) return true;
    return starts_with(weight->name, "ConvBnFusion_") || ends_with(weight->name, "_fused_bn");
}

static bool can_hold_one(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Conv] || node->op == &ir_ops[IR_OP_ConvTranspose] ||
           node->op == &ir_ops[IR_OP_Gemm];
}

/* Exporters let initializers that are equal stand for each other, with an Identity between, so that names tell only
 * here what was folded. */
mdot_status fe_job_find_folded(fe_job *job)
{
    bool numbers = names_modules(job->graph);
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        if (!can_hold_one(node) || !has_trace(node, numbers)) continue;
        if (!ir_node_set_int(job->graph, node, FE_FOLDED_NORMALISATION, 1)) return fe_job_out_of_memory(job);
    }
    return MDOT_OK;
}

/* Whether the model had the bias before: then it has a name of its own, as the weight has. */
static bool is_of_model(const ir_node *node)
{
    const ir_value *weight = node->inputs[1], *bias = ir_node_input(node, 2);
    return bias != NULL && ends_with(weight->name, "weight") && ends_with(bias->name, "bias") &&
           strlen(weight->name) == strlen(bias->name) + 2 &&
           strncmp(weight->name, bias->name, strlen(bias->name) - strlen("bias")) == 0;
}

/* ---- Putting it back -------------------------------------------------------------------------------------------- */

static ir_value *vector(ir_builder *b, const ir_node *node, const char *name)
{
    const ir_type *result = &node->outputs[0]->type;
    ir_tensor *tensor = ir_build_alloc(b, 1, sizeof *tensor);
    if (tensor == NULL) return NULL;
    *tensor = (ir_tensor){.dtype = result->dtype, .rank = 1, .count = result->dim[1].offset};
    tensor->dims[0] = tensor->count;
    ir_value *value = ir_graph_add_constant(b->graph, name, tensor);
    if (value == NULL) b->status = mdot_fail(b->err, MDOT_OUT_OF_MEMORY, "%s: memory ran out", b->graph->name);
    return value;
}

static mdot_status unfold(fe_job *job, ir_node *node)
{
    ir_builder b = {.graph = job->graph, .at = node->next, .name = node->name, .err = job->err};
    ir_value *result = node->outputs[0], *bias = ir_node_input(node, 2);
    ir_value *shift = bias != NULL && !is_of_model(node) ? bias : vector(&b, node, "folded shift");
    ir_value *scale = vector(&b, node, "folded scale"), *mean = vector(&b, node, "folded mean");
    ir_value *variance = vector(&b, node, "folded variance");
    if (b.status != MDOT_OK) return b.status;
    if (shift == bias) ir_node_set_input(node, 2, NULL);
    b.first_new = job->graph->value_count;
    ir_node *norm =
        ir_build_node(&b, IR_OP_BatchNormalization, (ir_value *[]){result, scale, shift, mean, variance}, 5, 1);
    ir_value *normalised = ir_build_infer(&b, norm);
    if (normalised == NULL) return b.status;
    ir_replace(&b, result, normalised);
    ir_node_set_input(norm, 0, result);
    if (!fe_parameters_add(job->learnt, scale) || !fe_parameters_add(job->learnt, shift))
        return fe_job_out_of_memory(job);
    return ir_node_set_int(job->graph, node, FE_FOLDED_NORMALISATION, 0) ? MDOT_OK : fe_job_out_of_memory(job);
}

static bool is_folded(const ir_node *node)
{
    if (!can_hold_one(node) || ir_node_int(node, FE_FOLDED_NORMALISATION, 0) == 0) return false;
    const ir_value *weight = ir_node_input(node, 1), *bias = ir_node_input(node, 2);
    return weight->constant != NULL && (bias == NULL || bias->constant != NULL) && node->outputs[0]->type.rank > 1;
}

mdot_status fe_job_unfold(fe_job *job)
{
    mdot_status status = MDOT_OK;
    int count = 0;
    for (ir_node *node = job->graph->first, *next; node != NULL && status == MDOT_OK; node = next) {
        next = node->next;
        if (!is_folded(node)) continue;
        status = unfold(job, node);
        count++;
    }
    if (count > 0) {
        job->notes |= MDOT_JOB_FOLDED;
        fe_job_warn(job,
                    "%s: %d BatchNormalization%s folded into the weights by the exporter; the job counts them, as they "
                    "are trained",
                    job->graph->name, count, count == 1 ? " is" : "s are");
    }
    return status;
}
