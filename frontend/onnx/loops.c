/* loops.c — see flatten.h. */
#include "frontend/onnx/flatten.h"

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
    for (size_t i = 0; i < body->n_node; i++)
        for (size_t k = 0; k < body->node[i]->n_output; k++)
            if (strcmp(body->node[i]->output[k], name) == 0) return body->node[i];
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

/* Is the value a Gather of rows from a table outside the loop, by indices sliced from a list outside the loop? */
static bool is_selection(const Onnx__GraphProto *body, const char *name, fe_embedding_bags *out)
{
    const Onnx__NodeProto *gather = definer(body, name);
    if (!is(gather, "Gather") || gather->n_input != 2 || !is_around(body, gather->input[0])) return false;
    for (size_t i = 0; i < gather->n_attribute; i++)
        if (gather->attribute[i]->i != 0) return false; /* the axis of the Gather */
    const Onnx__NodeProto *slice = definer(body, gather->input[1]);
    if (!is(slice, "Slice") || slice->n_input < 3 || !is_around(body, slice->input[0])) return false;
    out->table = gather->input[0];
    out->indices = slice->input[0];
    return true;
}

static bool find_kind(const Onnx__NodeProto *reduction, fe_embedding_bags *out)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        if (!is(reduction, kinds[i].reduction) || reduction->n_input < 1) continue;
        out->op_type = kinds[i].op_type;
        return true;
    }
    return false;
}

enum { MOST_BRANCHES = 8 }; /* limit on nesting; the exporter writes four */

static bool read_number(const Onnx__GraphProto *graph, const char *name, int64_t *out)
{
    const Onnx__NodeProto *constant = definer(graph, name);
    if (!is(constant, "Constant") || constant->n_attribute != 1) return false;
    const Onnx__AttributeProto *value = constant->attribute[0];
    *out = value->i;
    if (value->t == NULL) return value->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (value->t->n_int64_data == 1) *out = value->t->int64_data[0];
    if (value->t->raw_data.len == sizeof *out) memcpy(out, value->t->raw_data.data, sizeof *out);
    return value->t->n_int64_data == 1 || value->t->raw_data.len == sizeof *out;
}

/* Does an If's condition compare two constants? *out is the result. */
static bool is_decided(const Onnx__GraphProto *graph, const Onnx__NodeProto *branches, bool *out)
{
    int64_t left, right;
    const Onnx__NodeProto *equal = branches->n_input > 0 ? definer(graph, branches->input[0]) : NULL;
    if (!is(equal, "Equal") || equal->n_input != 2) return false;
    if (!read_number(graph, equal->input[0], &left) || !read_number(graph, equal->input[1], &right)) return false;
    *out = left == right;
    return true;
}

/* Finds the reduction of a row slice from outside the loop, in the graph or in branches that may be taken. */
static bool find_slice(const Onnx__GraphProto *body, const Onnx__GraphProto *graph, int depth, fe_embedding_bags *out)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (find_kind(node, out)) {
            const Onnx__NodeProto *slice = definer(graph, node->input[0]);
            if (!is(slice, "Slice") || slice->n_input < 3 || !is_around(graph, slice->input[0])) continue;
            out->rows = slice->input[0];
            return is_around(body, out->rows);
        }
        bool taken = false, decided = is(node, "If") && is_decided(graph, node, &taken);
        for (size_t k = 0; is(node, "If") && depth < MOST_BRANCHES && k < node->n_attribute; k++) {
            const Onnx__AttributeProto *branch = node->attribute[k];
            if (branch->g == NULL || branch->name == NULL) continue;
            if (decided && taken != (strcmp(branch->name, "then_branch") == 0)) continue;
            if (find_slice(body, branch->g, depth + 1, out)) return true;
        }
    }
    return false;
}

/* Finds the bound of the loop's iteration number. */
static bool find_count(const Onnx__GraphProto *body, fe_embedding_bags *out)
{
    const Onnx__NodeProto *less = definer(body, body->output[0]->name);
    if (is(less, "Identity") && less->n_input == 1) less = definer(body, less->input[0]);
    if (!is(less, "Less") || less->n_input != 2 || !is_around(body, less->input[1])) return false;
    out->count = less->input[1];
    return true;
}

bool fe_find_embedding_bags(const Onnx__GraphProto *body, fe_embedding_bags *out_bags)
{
    *out_bags = (fe_embedding_bags){0};
    for (size_t i = 0; i < body->n_output; i++)
        if (body->output[i]->name == NULL) return false;
    if (body->n_output == 3) /* the condition, a number, the bags */
        return is(definer(body, body->output[2]->name), "SequenceInsert") && find_count(body, out_bags) &&
               find_slice(body, body, 0, out_bags);
    if (body->n_output != 2) return false; /* the condition and the bag */
    const Onnx__NodeProto *reduction = definer(body, body->output[1]->name);
    return find_kind(reduction, out_bags) && is_selection(body, reduction->input[0], out_bags);
}
