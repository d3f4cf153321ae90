/* modules.c — the module that an operator was exported from, for users who want names kept: "encoder.layer.3.output";
 * and for layers.c, which finds the blocks that such modules are.
 *
 * A parameter's name says it best, "encoder.layer.3.output.dense.weight", as PyTorch's exporters keep it; an operator
 * without one has it in its node's, "/encoder/layer.3/output/Add", as the TorchScript exporter writes it and the import
 * what the dynamo exporter has in metadata.
 */
#include "frontend/job/job_reader.h"

#include <string.h>

/* What the exporter computed itself it calls "onnx::MatMul_123". */
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
