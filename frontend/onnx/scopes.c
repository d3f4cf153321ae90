/* scopes.c — lists of a flat model, and names in scopes. */
#include "frontend/onnx/flatten.h"
#include "frontend/onnx/import_context.h"

/* The arena's limit also bounds nested functions, whose expansion can be exponential. */
mdot_status fe_add_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value)
{
    fe_value *values =
        ir_arena_grow(context->scratch, flat->values, flat->value_count, &flat->value_capacity, sizeof *values);
    if (name == NULL || values == NULL) return fe_out_of_memory(context);
    flat->values = values;
    flat->values[flat->value_count] = (fe_value){.name = name, .definer = FE_UNDEFINED};
    *out_value = flat->value_count++;
    return MDOT_OK;
}

mdot_status fe_add_flat_node(const fe_context *context, fe_flat *flat, const fe_node *node)
{
    fe_node *nodes =
        ir_arena_grow(context->scratch, flat->nodes, flat->node_count, &flat->node_capacity, sizeof *nodes);
    if (nodes == NULL) return fe_out_of_memory(context);
    flat->nodes = nodes;
    flat->nodes[flat->node_count++] = *node;
    return MDOT_OK;
}

/* A new name belongs to the graph or the function, even if a branch reads it first. Names that a branch defines are
 * added beforehand (fe_add_names). */
mdot_status fe_lookup(const fe_flattener *f, const fe_scope *scope, const char *name, int *out_value)
{
    const fe_context *context = f->context;
    int found = fe_names_find(scope->names, name);
    for (; found < 0 && scope->around != NULL; found = fe_names_find(scope->names, name)) scope = scope->around;
    if (found >= 0) {
        *out_value = found - 1;
        return MDOT_OK;
    }
    const char *full = scope->call != NULL ? ir_arena_printf(context->scratch, "%s/%s", scope->call->name, name) : name;
    int value = FE_NO_VALUE;
    BS_TRY(fe_add_value(context, f->flat, full, &value));
    if (!fe_names_add(scope->names, name, value + 1)) return fe_out_of_memory(context);
    *out_value = value;
    return MDOT_OK;
}

mdot_status fe_flat_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value)
{
    fe_flattener f = {.context = context, .flat = flat};
    fe_scope graph = {.names = flat->names};
    return fe_lookup(&f, &graph, name, out_value);
}

/* A branch's names are local, even if the other branch defines them, too. */
mdot_status fe_add_names(const fe_flattener *f, const fe_scope *scope, const Onnx__GraphProto *branch)
{
    for (size_t i = 0; i < branch->n_node; i++) {
        for (size_t k = 0; k < branch->node[i]->n_output; k++) {
            const char *name = fe_text(branch->node[i]->output[k]);
            int value = FE_NO_VALUE;
            if (!*name || fe_names_find(scope->names, name) >= 0) continue;
            BS_TRY(fe_add_value(f->context, f->flat, name, &value));
            if (!fe_names_add(scope->names, name, value + 1)) return fe_out_of_memory(f->context);
        }
    }
    return MDOT_OK;
}
