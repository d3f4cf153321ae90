/* modules.c — the module that an operator was exported from, for example "encoder.layer.3.output". The names are kept
 * on request, and layers.c finds blocks among the modules.
 *
 * The best source is a parameter's name, which PyTorch's exporters keep: "encoder.layer.3.output.dense.weight". If an
 * operator has no parameters, the name of its node contains the module: "/encoder/layer.3/output/Add". The
 * TorchScript exporter writes such names, and the import builds them from the metadata of the dynamo exporter.
 */
#include "frontend/job/job_reader.h"

#include <string.h>

/* Constants that the exporter computed have names such as "onnx::MatMul_123", without a module. */
static bool names_module(const ir_value *value)
{
    return strrchr(value->name, '.') != NULL && strstr(value->name, "::") == NULL;
}

static const char *parameter_name(const fe_job *job, const fe_operator *token)
{
    const ir_node *node = token->node;
    for (int i = 0; i < node->input_count; i++) {
        if (fe_learns(job, node, i) && names_module(node->inputs[i])) return node->inputs[i]->name;
    }
    return token->bias != NULL && names_module(token->bias) ? token->bias->name : NULL;
}

mdot_status fe_operator_parameter_module(const fe_job *job, const fe_operator *token, const char **out_module)
{
    const char *name = parameter_name(job, token);
    *out_module = NULL;
    if (name == NULL) return MDOT_OK;
    *out_module = ir_arena_strndup(job->graph->arena, name, (size_t)(strrchr(name, '.') - name));
    return *out_module != NULL ? MDOT_OK : fe_job_out_of_memory(job);
}

mdot_status fe_operator_scope(const fe_job *job, const fe_operator *token, const char **out_module)
{
    const char *name = token->node->name, *slash = strrchr(name, '/');
    *out_module = NULL;
    if (name[0] != '/' || slash == name) return MDOT_OK;
    char *module = ir_arena_strndup(job->graph->arena, name + 1, (size_t)(slash - name) - 1);
    if (module == NULL) return fe_job_out_of_memory(job);
    for (char *at = module; *at != '\0'; at++) {
        if (*at == '/') *at = '.';
    }
    *out_module = module;
    return MDOT_OK;
}

mdot_status fe_operator_module(const fe_job *job, const fe_operator *token, const char **out_module)
{
    mdot_status status = fe_operator_parameter_module(job, token, out_module);
    return status == MDOT_OK && *out_module == NULL ? fe_operator_scope(job, token, out_module) : status;
}
