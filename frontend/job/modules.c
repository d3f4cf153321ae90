/* modules.c — the module that an operator was exported from, for users who want names kept: "encoder.layer.3.output".
 *
 * A parameter's name says it best, "encoder.layer.3.output.dense.weight", as PyTorch's exporters keep it; an operator
 * without one has it in its node's, "/encoder/layer.3/output/Add", as the TorchScript exporter writes it.
 */
#include "frontend/job/job.h"

#include <string.h>

/* What the exporter computed itself it calls "onnx::MatMul_123". */
static const char *parameter_name(const fe_job *job, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (!fe_learns(job, node, i)) continue;
        const char *name = node->inputs[i]->name;
        if (strrchr(name, '.') != NULL && strstr(name, "::") == NULL) return name;
    }
    return NULL;
}

mdot_status fe_token_module(const fe_job *job, const ir_node *node, const char **out_module)
{
    ir_arena *arena = job->graph->arena;
    const char *name = parameter_name(job, node);
    const char *slash = strrchr(node->name, '/');
    *out_module = NULL;
    if (name == NULL && (node->name[0] != '/' || slash == node->name)) return MDOT_OK;
    char *module = name != NULL ? ir_arena_strndup(arena, name, (size_t)(strrchr(name, '.') - name))
                                : ir_arena_strndup(arena, node->name + 1, (size_t)(slash - node->name) - 1);
    if (module == NULL) return fe_job_out_of_memory(job);
    for (char *at = module; name == NULL && *at != '\0'; at++) {
        if (*at == '/') *at = '.';
    }
    *out_module = module;
    return MDOT_OK;
}
