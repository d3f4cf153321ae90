/* loops.c — see loops.h. */
#include "frontend/onnx/loops.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *reduction, *op_type;
} kinds[] = {{"ReduceSum", "Loop (sums of embeddings)"},
             {"ReduceMean", "Loop (means of embeddings)"},
             {"ReduceMax", "Loop (maxima of embeddings)"}};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static bool is(const Onnx__NodeProto *node, const char *op_type)
{
    return node != NULL && node->op_type != NULL && strcmp(node->op_type, op_type) == 0;
}

static const Onnx__NodeProto *definer(const Onnx__GraphProto *body, const char *name)
{
    for (size_t i = 0; i < body->n_node; i++) {
        for (size_t k = 0; k < body->node[i]->n_output; k++)
            if (strcmp(body->node[i]->output[k], name) == 0) return body->node[i];
    }
    return NULL;
}

static bool is_around(const Onnx__GraphProto *body, const char *name)
{
    for (size_t i = 0; i < body->n_input; i++)
        if (body->input[i]->name != NULL && strcmp(body->input[i]->name, name) == 0) return false;
    for (size_t i = 0; i < body->n_initializer; i++)
        if (body->initializer[i]->name != NULL && strcmp(body->initializer[i]->name, name) == 0) return false;
    return *name && definer(body, name) == NULL;
}

/* The rows that the value is: of a table around the loop, by indices cut out of a list there. */
static bool is_pick(const Onnx__GraphProto *body, const char *name, fe_bags *out)
{
    const Onnx__NodeProto *gather = definer(body, name);
    if (!is(gather, "Gather") || gather->n_input != 2 || !is_around(body, gather->input[0])) return false;
    for (size_t i = 0; i < gather->n_attribute; i++)
        if (gather->attribute[i]->i != 0) return false; /* its axis */
    const Onnx__NodeProto *slice = definer(body, gather->input[1]);
    if (!is(slice, "Slice") || slice->n_input < 3 || !is_around(body, slice->input[0])) return false;
    out->table = gather->input[0];
    out->indices = slice->input[0];
    return true;
}

bool fe_find_bags(const Onnx__GraphProto *body, fe_bags *out_bags)
{
    if (body->n_output != 2 || body->output[1]->name == NULL) return false; /* whether to go on, and the bag */
    const Onnx__NodeProto *reduction = definer(body, body->output[1]->name);
    for (int i = 0; i < KIND_COUNT; i++) {
        if (!is(reduction, kinds[i].reduction) || reduction->n_input < 1) continue;
        out_bags->op_type = kinds[i].op_type;
        return is_pick(body, reduction->input[0], out_bags);
    }
    return false;
}
