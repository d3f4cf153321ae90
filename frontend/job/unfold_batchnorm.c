/* unfold_batchnorm.c — restores BatchNormalizations that an exporter folded into the weights in front of them.
 *
 * In inference BatchNormalization(x · W + b) equals x · W' + b'. Exporters and optimizers write it this way, and
 * PyTorch's dynamo exporter does so even in training mode. A training step normalises nevertheless. Therefore the job
 * gets the node back, with a scale and a shift as parameters.
 *
 * Folding is detected by the traces that the tools leave:
 *   - onnxscript, behind PyTorch's dynamo exporter, names the rule and the ATen operator in the node's metadata. It
 *     names a bias that it makes after the weight: "conv1.weight_bias" (rewriter/rules/common/_fuse_batchnorm.py);
 *   - PyTorch's TorchScript exporter names the constants that it computes "onnx::Conv_123" (until 1.9 "123"), whereas
 *     parameters of the model keep their own names (torch/csrc/jit/passes/onnx/eval_peephole.cpp). ONNX's optimizer
 *     and onnxsim do the same;
 *   - ONNX Runtime uses the name "ConvBnFusion_W_…" (core/optimizer/conv_bn_fusion.cc), and tf2onnx "…_fused_bn"
 *     (tf2onnx/optimizer/back_to_back_optimizer.py).
 * folded_norm_warnings.c warns of networks that look folded but have no trace.
 */
#include "frontend/job/stages.h"

#include "base/text.h"
#include "frontend/job/fe_job.h"
#include "frontend/job/parameters.h"
#include "frontend/onnx/onnx.h"
#include "ir/passes/graph_builder.h"

#include <string.h>

static bool is_number(const char *text) { return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0'; }

/* Do parameters carry module names such as "fc.weight"? Then a number as a name marks a computed constant. */
static bool names_modules(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (value != NULL && value->stored && bs_ends_with(value->name, ".weight")) return true;
        }
    }
    return false;
}

static bool is_computed(const ir_value *value, bool numbers)
{
    return bs_starts_with(value->name, "onnx::Conv") || (numbers && is_number(value->name));
}

static bool has_trace(const ir_node *node, bool numbers)
{
    const ir_value *weight = ir_node_input(node, 1), *bias = ir_node_input(node, 2);
    if (ir_node_int(node, FE_FOLDED_NORMALISATION, 0) != 0) return true;
    if (weight == NULL || bias == NULL) return false;
    size_t length = strlen(weight->name);
    if (strncmp(weight->name, bias->name, length) == 0 && strcmp(bias->name + length, "_bias") == 0) return true;
    if (is_computed(weight, numbers) && is_computed(bias, numbers)) return true;
    return bs_starts_with(weight->name, "ConvBnFusion_") || bs_ends_with(weight->name, "_fused_bn");
}

static bool may_hold_norm(const ir_node *node)
{
    return node->op != NULL && IR_IS_ONE_OF(node, IR_OP_Conv, IR_OP_ConvTranspose, IR_OP_Gemm);
}

/* Must run before constants are folded: exporters share equal initializers through an Identity, and folding it would
 * lose the name that shows the trace. */
void fe_job_mark_folded_norms(fe_job *job)
{
    bool numbers = names_modules(job->graph);
    for (ir_node *node = job->graph->first; node != NULL; node = node->next)
        if (may_hold_norm(node) && has_trace(node, numbers))
            ir_node_set(job->graph, node, IR_INT(FE_FOLDED_NORMALISATION, 1));
}

/* Did the model have the bias before folding? Then bias and weight have matching names. */
static bool is_original_bias(const ir_node *node)
{
    const ir_value *weight = node->inputs[1], *bias = ir_node_input(node, 2);
    return bias != NULL && bs_ends_with(weight->name, "weight") && bs_ends_with(bias->name, "bias") &&
           strlen(weight->name) == strlen(bias->name) + 2 &&
           strncmp(weight->name, bias->name, strlen(bias->name) - strlen("bias")) == 0;
}

/* NULL if memory runs out. */
static ir_value *vector(const ir_builder *b, const ir_node *node, const char *name)
{
    const ir_type *result = &node->outputs[0]->type;
    ir_tensor *tensor = IR_NEW(b->graph->arena, ir_tensor);
    if (tensor == NULL) return NULL;
    *tensor = (ir_tensor){.dtype = result->dtype, .rank = 1, .count = result->dim[1].offset};
    tensor->dims[0] = tensor->count;
    return ir_graph_add_constant(b->graph, name, tensor);
}

static mdot_status unfold(fe_job *job, ir_node *node)
{
    ir_builder b = {.graph = job->graph, .at = node->next, .name = node->name, .err = job->err};
    ir_value *result = node->outputs[0], *bias = ir_node_input(node, 2);
    ir_value *shift = bias != NULL && !is_original_bias(node) ? bias : vector(&b, node, "folded shift");
    ir_value *scale = vector(&b, node, "folded scale"), *mean = vector(&b, node, "folded mean");
    ir_value *variance = vector(&b, node, "folded variance");
    if (ir_arena_failed(job->graph->arena)) return MDOT_OK;
    if (shift == bias) ir_node_set_input(node, 2, NULL);
    b.first_new = job->graph->value_count;
    ir_node *norm =
        ir_build_node(&b, IR_OP_BatchNormalization, (ir_value *[]){result, scale, shift, mean, variance}, 5, 1);
    ir_value *normalised = ir_build_infer(&b, norm);
    if (normalised == NULL) return b.status;
    ir_replace(&b, result, normalised);
    ir_node_set_input(norm, 0, result);
    fe_parameters_add(job->parameters, scale);
    fe_parameters_add(job->parameters, shift);
    ir_node_set(job->graph, node, IR_INT(FE_FOLDED_NORMALISATION, 0));
    return MDOT_OK;
}

static bool is_folded(const ir_node *node)
{
    if (!may_hold_norm(node) || ir_node_int(node, FE_FOLDED_NORMALISATION, 0) == 0) return false;
    const ir_value *weight = ir_node_input(node, 1), *bias = ir_node_input(node, 2);
    return weight->constant != NULL && (bias == NULL || bias->constant != NULL) && node->outputs[0]->type.rank > 1;
}

void fe_job_unfold_norms(fe_job *job)
{
    int count = 0;
    for (ir_node *node = job->graph->first, *next_node; node != NULL && job->status == MDOT_OK; node = next_node) {
        next_node = node->next;
        if (!is_folded(node)) continue;
        job->status = unfold(job, node);
        count++;
    }
    if (count == 0) return;
    job->notes |= MDOT_JOB_FOLDED;
    fe_job_warn(job,
                "%s: %d BatchNormalization%s folded into the weights by the exporter; the job counts them, as they "
                "are trained",
                job->graph->name, count, count == 1 ? " is" : "s are");
}
