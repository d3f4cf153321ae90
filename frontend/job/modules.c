/* modules.c — the module that an operator was exported from, for example "encoder.layer.3.output". The names are kept
 * on request, and layers.c finds blocks among the modules.
 *
 * The best source is a parameter's name, which PyTorch's exporters keep: "encoder.layer.3.output.dense.weight". If an
 * operator has no parameters, the name of its node contains the module: "/encoder/layer.3/output/Add". The
 * TorchScript exporter writes such names, and the import builds them from the metadata of the dynamo exporter.
 */
#include "frontend/job/operator_sequence.h"
#include "frontend/job/parameters.h"

#include <string.h>

/* Constants that the exporter computed have names such as "onnx::MatMul_123", without a module. */
static bool has_module_name(const ir_value *value)
{
    return strrchr(value->name, '.') != NULL && strstr(value->name, "::") == NULL;
}

static const char *parameter_name(const fe_job *job, const fe_operator *op)
{
    const ir_node *node = op->node;
    for (int i = 0; i < node->input_count; i++)
        if (fe_is_parameter_operand(job, node, i) && has_module_name(node->inputs[i])) return node->inputs[i]->name;
    return op->bias != NULL && has_module_name(op->bias) ? op->bias->name : NULL;
}

const char *fe_operator_parameter_module(const fe_job *job, const fe_operator *op)
{
    const char *name = parameter_name(job, op);
    if (name == NULL) return NULL;
    return ir_arena_strndup(job->graph->arena, name, (size_t)(strrchr(name, '.') - name));
}

const char *fe_operator_scope(const fe_job *job, const fe_operator *op)
{
    const char *name = op->node->name, *slash = strrchr(name, '/');
    if (name[0] != '/' || slash == name) return NULL;
    char *module = ir_arena_strndup(job->graph->arena, name + 1, (size_t)(slash - name) - 1);
    for (char *cursor = module; cursor != NULL && *cursor != '\0'; cursor++)
        if (*cursor == '/') *cursor = '.';
    return module;
}

const char *fe_operator_module(const fe_job *job, const fe_operator *op)
{
    const char *module = fe_operator_parameter_module(job, op);
    return module != NULL ? module : fe_operator_scope(job, op);
}
