/* metadata.c — reads the metadata_props that PyTorch's dynamo exporter and onnxscript write on a job's nodes. */
#include "frontend/onnx/flat.h"

#include "frontend/onnx/import_context.h"

#include <string.h>

static const char *value_of(const Onnx__NodeProto *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_metadata_props; i++)
        if (strcmp(fe_text(proto->metadata_props[i]->key), key) == 0) return fe_text(proto->metadata_props[i]->value);
    return NULL;
}

bool fe_is_folded_node(const Onnx__NodeProto *proto)
{
    static const struct {
        const char *key, *value;
    } traces[] = {{"pkg.onnxscript.rewriter.rule_name", "FuseBatchNorm"},
                  {"pkg.torch.onnx.class_hierarchy", "torch.nn.modules.batchnorm."},
                  {"namespace", "torch.nn.modules.batchnorm."}};
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        const char *value = value_of(proto, traces[i].key);
        if (value != NULL && strstr(value, traces[i].value) != NULL) return true;
    }
    return false;
}

/* Reads the next string of a list in Python's print format, "['', 'a', 'a.b']", from *at and moves *at behind it.
 * False: the list has ended, or its format differs. */
static bool next_string(const char **cursor, const char **out_start, size_t *out_length)
{
    const char *start = *cursor + strspn(*cursor, "[, ");
    char quote = *start;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(++start, quote);
    if (end == NULL || memchr(start, '\\', (size_t)(end - start)) != NULL) return false;
    *out_start = start;
    *out_length = (size_t)(end - start);
    *cursor = end + 1;
    return true;
}

/* The last scope is the operator's, for example "linear_3". The scope before is the module's full path. */
mdot_status fe_node_module(const fe_context *context, const Onnx__NodeProto *proto, const char **out_module)
{
    const char *scopes = value_of(proto, "pkg.torch.onnx.name_scopes"), *scope, *last_text = NULL, *module = NULL;
    size_t scope_length, last_length = 0, length = 0;
    *out_module = NULL;
    if (scopes == NULL) return MDOT_OK;
    while (next_string(&scopes, &scope, &scope_length)) {
        module = last_text;
        length = last_length;
        last_text = scope;
        last_length = scope_length;
    }
    if (length == 0 || strcmp(scopes, "]") != 0) return MDOT_OK;
    *out_module = ir_arena_strndup(context->scratch, module, length);
    return *out_module != NULL ? MDOT_OK : fe_out_of_memory(context);
}
