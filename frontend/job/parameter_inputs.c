/* parameter_inputs.c — parameters that a file stores as inputs of its graph.
 *
 * PyTorch exports them this way with export_params=False, and training frameworks pass them as inputs. They keep the
 * names that the model gives them, for example "layer1.0.conv1.weight". Otherwise their position identifies them: the
 * kernel of a convolution or the scale of a normalisation is always a parameter. If a file stores no parameters at
 * all, tables and matrices count as well.
 */
#include "frontend/job/job_reader.h"

#include <string.h>

/* One bit per operand that is a parameter unless it is computed. */
static const unsigned certain[IR_OP_COUNT] = {
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
static const unsigned likely[IR_OP_COUNT] = {
    [IR_OP_MatMul] = 1 << 1, [IR_OP_Gemm] = 1 << 1 | 1 << 2, [IR_OP_Gather] = 1 << 0};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static bool is_named(const ir_value *value)
{
    return ends_with(value->name, ".weight") || ends_with(value->name, ".bias");
}

/* The graph input behind the value, directly or through operators that only move data. */
static ir_value *input_under(ir_value *value)
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

static void mark(const ir_graph *graph, bool alone, bool *is_parameter)
{
    for (int i = 0; i < graph->input_count; i++) {
        const ir_value *value = graph->inputs[i];
        is_parameter[i] = is_named(value) && ir_dtype_is_float(value->type.dtype);
    }
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) continue;
        for (int i = 0; i < node->input_count && i < 8; i++) {
            const ir_value *input = input_under(node->inputs[i]);
            if (input == NULL || input->input == 0) continue; /* the first input is data */
            bool sure = (certain[ir_node_opcode(node)] >> i & 1) != 0;
            bool matrix = alone && input->type.rank <= 2 && (likely[ir_node_opcode(node)] >> i & 1) != 0;
            if (sure || matrix) is_parameter[input->input] = true;
        }
    }
}

bool fe_become_parameter(const ir_graph *graph, ir_value *value)
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

mdot_status fe_job_take_inputs(fe_job *job)
{
    ir_graph *graph = job->graph;
    bool *is_parameter = IR_NEW_ARRAY(graph->arena, bool, graph->input_count + 1);
    if (is_parameter == NULL) return fe_job_out_of_memory(job);
    mark(graph, !stores_parameters(graph), is_parameter);
    int kept = 0, taken = 0;
    const char *name = NULL;
    for (int i = 0; i < graph->input_count; i++) {
        ir_value *value = graph->inputs[i];
        if (is_parameter[i]) {
            if (taken++ == 0) name = value->name;
            if (!fe_become_parameter(graph, value)) return fe_job_out_of_memory(job);
        } else {
            value->input = kept;
            graph->inputs[kept++] = value;
        }
    }
    graph->input_count = kept;
    if (taken > 0) {
        fe_job_warn(job, "%s: %d input%s of the graph, '%s'%s, %s taken as parameters", graph->name, taken,
                    taken == 1 ? "" : "s", name, taken == 1 ? "" : " first", taken == 1 ? "is" : "are");
    }
    return MDOT_OK;
}
