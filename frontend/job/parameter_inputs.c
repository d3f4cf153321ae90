/* parameter_inputs.c — parameters stored as graph inputs.
 *
 * PyTorch exports them this way with export_params=False, and training frameworks pass them as inputs. They keep the
 * model's names, for example "layer1.0.conv1.weight". Otherwise the position identifies them: a convolution's kernel or
 * a normalisation's scale is always a parameter. If a file stores no parameters at all, tables and matrices count as
 * well. */
#include "frontend/job/stages.h"

#include "base/text.h"
#include "frontend/job/fe_job.h"
#include "frontend/job/parameters.h"
#include "ir/ops.h"

/* One bit per operand that is a parameter unless it is computed. */
static const unsigned parameter_operands[IR_OP_COUNT] = {
    [IR_OP_Conv] = 1 << 1 | 1 << 2,
    [IR_OP_ConvTranspose] = 1 << 1 | 1 << 2,
    [IR_OP_BatchNormalization] = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,
    [IR_OP_InstanceNormalization] = 1 << 1 | 1 << 2,
    [IR_OP_GroupNormalization] = 1 << 1 | 1 << 2,
    [IR_OP_LayerNormalization] = 1 << 1 | 1 << 2,
    [IR_OP_RMSNormalization] = 1 << 1,
    [IR_OP_PRelu] = 1 << 1,
    [IR_OP_LSTM] = 1 << 1 | 1 << 2 | 1 << 3,
    [IR_OP_GRU] = 1 << 1 | 1 << 2 | 1 << 3,
    [IR_OP_RNN] = 1 << 1 | 1 << 2 | 1 << 3,
};

/* Operands that may also be data. They count if they have two dimensions and the graph stores no parameters. */
static const unsigned matrix_operands[IR_OP_COUNT] = {
    [IR_OP_MatMul] = 1 << 1, [IR_OP_Gemm] = 1 << 1 | 1 << 2, [IR_OP_Gather] = 1 << 0};

static bool is_named(const ir_value *value)
{
    return bs_ends_with(value->name, ".weight") || bs_ends_with(value->name, ".bias");
}

/* The graph input behind the value, directly or through operators that only move data. */
static ir_value *input_behind(ir_value *value)
{
    while (value != NULL && value->def != NULL) {
        const ir_node *node = value->def;
        bool moves = node->op != NULL && (node->op->lowering == IR_LOWER_ALIAS ||
                                          node->op == &ir_ops[IR_OP_Transpose] || node->op == &ir_ops[IR_OP_Cast]);
        if (!moves || node->input_count == 0) return NULL;
        value = node->inputs[0];
    }
    return value != NULL && value->input >= 0 && ir_dtype_is_float(value->type.dtype) ? value : NULL;
}

static bool stores_parameters(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (value != NULL && value->stored && value->constant->count > 1 && !fe_is_buffer(value->name) &&
                ir_dtype_is_float(value->type.dtype))
                return true;
        }
    }
    return false;
}

static void mark(const ir_graph *graph, bool stores_none, bool *is_parameter)
{
    for (int i = 0; i < graph->input_count; i++) {
        const ir_value *value = graph->inputs[i];
        is_parameter[i] = is_named(value) && ir_dtype_is_float(value->type.dtype);
    }
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) continue;
        for (int i = 0; i < node->input_count && i < 8; i++) {
            const ir_value *input = input_behind(node->inputs[i]);
            if (input == NULL || input->input == 0) continue; /* the first input is data */
            bool is_certain = (parameter_operands[ir_node_opcode(node)] >> i & 1) != 0;
            bool is_matrix =
                stores_none && input->type.rank <= 2 && (matrix_operands[ir_node_opcode(node)] >> i & 1) != 0;
            if (is_certain || is_matrix) is_parameter[input->input] = true;
        }
    }
}

void fe_make_parameter(const ir_graph *graph, ir_value *value)
{
    ir_tensor *tensor = IR_NEW(graph->arena, ir_tensor);
    if (tensor == NULL) return;
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.rank;
    for (int i = 0; i < tensor->rank; i++) tensor->dims[i] = value->type.dim[i].offset;
    tensor->count = ir_count_elements(tensor->rank, tensor->dims);
    value->constant = tensor;
    value->stored = true;
    value->input = -1;
}

void fe_job_find_parameter_inputs(fe_job *job)
{
    ir_graph *graph = job->graph;
    bool *is_parameter = IR_NEW_ARRAY(graph->arena, bool, graph->input_count);
    if (ir_arena_failed(graph->arena)) return;
    mark(graph, !stores_parameters(graph), is_parameter);
    int kept = 0, found = 0;
    const char *first_name = NULL;
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *value = graph->inputs[i];
        if (is_parameter[i]) {
            if (found++ == 0) first_name = value->name;
            fe_make_parameter(graph, value);
        } else {
            value->input = kept;
            graph->inputs[kept++] = value;
        }
    }
    graph->input_count = kept;
    if (found == 0) return;
    fe_job_warn(job, "%s: %d input%s of the graph, '%s'%s, %s treated as parameters", graph->name, found,
                found == 1 ? "" : "s", first_name, found == 1 ? "" : " first", found == 1 ? "is" : "are");
}
