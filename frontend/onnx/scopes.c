/* scopes.c — lists of a flat model, and names in scopes. */
#include "frontend/onnx/flatten.h"
#include "frontend/onnx/import_context.h"

#include <limits.h>
#include <string.h>

/* Makes space for one more element in the scratch arena, doubling the capacity. The arena's limit also bounds nested
 * functions, whose expansion can be exponential. */
static bool reserve(const fe_context *context, void **array, int count, int *capacity, size_t element_bytes)
{
    if (count < *capacity) return true;
    if (*capacity > INT_MAX / 2) return false;
    int grown = *capacity ? 2 * *capacity : 64;
    void *copy = ir_arena_alloc(context->scratch, (size_t)grown, element_bytes);
    if (copy == NULL) return false;
    if (count) memcpy(copy, *array, (size_t)count * element_bytes);
    *array = copy;
    *capacity = grown;
    return true;
}

mdot_status fe_add_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value)
{
    if (name == NULL ||
        !reserve(context, (void **)&flat->values, flat->value_count, &flat->value_capacity, sizeof(fe_value)))
        return fe_out_of_memory(context);
    flat->values[flat->value_count] = (fe_value){.name = name, .definer = FE_UNDEFINED};
    *out_value = flat->value_count++;
    return MDOT_OK;
}

mdot_status fe_add_flat_node(const fe_context *context, fe_flat *flat, const fe_node *node)
{
    if (!reserve(context, (void **)&flat->nodes, flat->node_count, &flat->node_capacity, sizeof(fe_node)))
        return fe_out_of_memory(context);
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
