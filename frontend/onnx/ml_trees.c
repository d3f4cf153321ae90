/* ml_trees.c — reads ai.onnx.ml's tree ensembles, and writes the scores (ml_writer.h). */
#include "frontend/onnx/ml_writer.h"

#include "frontend/onnx/import_context.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct int_list {
    const char *name;
    const int64_t *at;
    int64_t count;
} int_list;

static mdot_status read_ints(const ml_writer *w, int_list *list)
{
    return fe_ml_ints(w, list->name, &list->at, &list->count);
}

mdot_status fe_ml_read_tensor(const ml_writer *w, const char *name, ml_reals *list)
{
    const ir_attr *attr = ir_node_attr(w->node, name);
    if (attr == NULL) return MDOT_OK;
    if (attr->kind != IR_ATTR_TENSOR || attr->tensor->data == NULL || !ir_dtype_is_float(attr->tensor->dtype))
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' must be a tensor of floats", name);
    list->count = attr->tensor->count;
    list->is_double = attr->tensor->dtype == MDOT_DTYPE_F64;
    list->at = IR_NEW_ARRAY(w->u->graph->arena, double, list->count);
    if (list->at == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t i = 0; i < list->count; i++) list->at[i] = ir_tensor_real(attr->tensor, i);
    return MDOT_OK;
}

static mdot_status read_reals(const ml_writer *w, ml_reals *list)
{
    const double *values;
    char name[64];
    mdot_status status = fe_ml_floats(w, list->name, &values, &list->count);
    list->at = (double *)values;
    if (status != MDOT_OK || list->count > 0) return status;
    strcpy(name, list->name);
    strcat(name, "_as_tensor");
    return fe_ml_read_tensor(w, name, list);
}

static mdot_status need_count(const ml_writer *w, const char *name, int64_t count, const char *like, int64_t wanted)
{
    if (count == wanted) return MDOT_OK;
    return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' has %lld elements, but '%s' has %lld", name, (long long)count,
                      like, (long long)wanted);
}

typedef struct node_lists {
    int_list trees, ids, features, yes, no, missing;
    ml_reals values;
    const ir_attr *modes;
} node_lists;

static mdot_status read_node_lists(const ml_writer *w, node_lists *l)
{
    *l = (node_lists){{.name = "nodes_treeids"},      {.name = "nodes_nodeids"},
                      {.name = "nodes_featureids"},   {.name = "nodes_truenodeids"},
                      {.name = "nodes_falsenodeids"}, {.name = "nodes_missing_value_tracks_true"},
                      {.name = "nodes_values"},       ir_node_attr(w->node, "nodes_modes")};
    int_list *lists[] = {&l->trees, &l->ids, &l->features, &l->yes, &l->no, &l->missing};
    BS_TRY(read_reals(w, &l->values));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        BS_TRY(read_ints(w, lists[i]));
        if (lists[i] != &l->missing || l->missing.count > 0)
            BS_TRY(need_count(w, lists[i]->name, lists[i]->count, l->trees.name, l->trees.count));
    }
    bool has_modes = l->modes != NULL && l->modes->kind == IR_ATTR_STRINGS;
    BS_TRY(need_count(w, "nodes_modes", has_modes ? l->modes->count : 0, l->trees.name, l->trees.count));
    return need_count(w, l->values.name, l->values.count, l->trees.name, l->trees.count);
}

static mdot_status read_mode(const ml_writer *w, const char *name, forest_mode *out_mode)
{
    static const char *const names[] = {
        [FOREST_LEQ] = "BRANCH_LEQ", [FOREST_LT] = "BRANCH_LT", [FOREST_GTE] = "BRANCH_GTE",
        [FOREST_GT] = "BRANCH_GT",   [FOREST_EQ] = "BRANCH_EQ", [FOREST_NEQ] = "BRANCH_NEQ",
        [FOREST_LEAF] = "LEAF"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i] == NULL || strcmp(name, names[i]) != 0) continue;
        *out_mode = (forest_mode)i;
        return MDOT_OK;
    }
    return fe_ml_fail(w, MDOT_UNSUPPORTED,
                      "mode \"%s\" of a node is unknown; known are BRANCH_LEQ, LT, GTE, GT, EQ, NEQ and LEAF", name);
}

/* A node by tree and number. */
typedef struct node_key {
    int64_t tree, id, node;
} node_key;

static int compare_keys(const void *a, const void *b)
{
    const node_key *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef struct node_map {
    node_key *keys;
    int64_t count;
} node_map;

static mdot_status map_nodes(const ml_writer *w, const node_lists *l, node_map *map)
{
    map->count = l->trees.count;
    map->keys = IR_NEW_ARRAY(w->u->graph->arena, node_key, map->count);
    if (map->keys == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t i = 0; i < map->count; i++) map->keys[i] = (node_key){l->trees.at[i], l->ids.at[i], i};
    qsort(map->keys, (size_t)map->count, sizeof *map->keys, compare_keys);
    for (int64_t i = 1; i < map->count; i++)
        if (compare_keys(&map->keys[i - 1], &map->keys[i]) == 0)
            return fe_ml_fail(w, MDOT_MALFORMED, "node %lld of tree %lld is there twice", (long long)map->keys[i].id,
                              (long long)map->keys[i].tree);
    return MDOT_OK;
}

/* `what` refers to node `id` of a tree. */
static mdot_status find_node(const ml_writer *w, const node_map *map, int64_t tree, int64_t id, const char *what,
                             int64_t *out_node)
{
    node_key wanted = {tree, id, 0};
    const node_key *found = bsearch(&wanted, map->keys, (size_t)map->count, sizeof wanted, compare_keys);
    if (found == NULL)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' refers to node %lld of tree %lld, which does not exist",
                          what, (long long)id, (long long)tree);
    *out_node = found->node;
    return MDOT_OK;
}

static mdot_status read_node(const ml_writer *w, const node_lists *l, const node_map *map, int64_t i, forest_node *node)
{
    *node = (forest_node){.tree = l->trees.at[i],
                          .id = l->ids.at[i],
                          .feature = l->features.at[i],
                          .value = l->values.at[i],
                          .missing_is_true = l->missing.count > 0 && l->missing.at[i] != 0};
    mdot_status status = read_mode(w, l->modes->strings[i], &node->mode);
    if (status != MDOT_OK || node->mode == FOREST_LEAF) return status;
    status = find_node(w, map, node->tree, l->yes.at[i], l->yes.name, &node->yes);
    return status == MDOT_OK ? find_node(w, map, node->tree, l->no.at[i], l->no.name, &node->no) : status;
}

/* A tree's root is the only node that is no child. Nodes are sorted by tree in the map. */
static mdot_status find_roots(const ml_writer *w, const node_map *map, forest *f)
{
    bool *is_child = IR_NEW_ARRAY(w->u->graph->arena, bool, f->node_count);
    int64_t *roots = IR_NEW_ARRAY(w->u->graph->arena, int64_t, f->node_count);
    if (is_child == NULL || roots == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t n = 0; n < f->node_count; n++) {
        if (f->nodes[n].mode == FOREST_LEAF) continue;
        is_child[f->nodes[n].yes] = is_child[f->nodes[n].no] = true;
    }
    for (int64_t i = 0, end; i < map->count; i = end) {
        int64_t found = 0;
        for (end = i; end < map->count && map->keys[end].tree == map->keys[i].tree; end++) {
            if (is_child[map->keys[end].node]) continue;
            roots[f->root_count] = map->keys[end].node;
            found++;
        }
        if (found != 1)
            return fe_ml_fail(w, MDOT_MALFORMED,
                              "tree %lld has %lld roots, which are nodes that are no child; it needs one",
                              (long long)map->keys[i].tree, (long long)found);
        f->root_count++;
    }
    f->roots = roots;
    return MDOT_OK;
}

static int compare_weights(const void *a, const void *b)
{
    const forest_weight *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

/* Reads weights named PREFIX_treeids … and groups them by leaf. */
static mdot_status read_weights(const ml_writer *w, const char *prefix, const node_map *map, forest *f,
                                bool *out_double)
{
    char names[4][32];
    static const char *const suffixes[] = {"_treeids", "_nodeids", "_ids", "_weights"};
    for (int i = 0; i < 4; i++) {
        strcpy(names[i], prefix);
        strcat(names[i], suffixes[i]);
    }
    int_list trees = {.name = names[0]}, nodes = {.name = names[1]}, targets = {.name = names[2]};
    ml_reals weights = {.name = names[3]};
    BS_TRY(read_ints(w, &trees));
    BS_TRY(read_ints(w, &nodes));
    BS_TRY(read_ints(w, &targets));
    BS_TRY(read_reals(w, &weights));
    BS_TRY(need_count(w, nodes.name, nodes.count, trees.name, trees.count));
    BS_TRY(need_count(w, targets.name, targets.count, trees.name, trees.count));
    BS_TRY(need_count(w, weights.name, weights.count, trees.name, trees.count));
    *out_double = weights.is_double;
    f->weight_count = trees.count;
    f->weights = IR_NEW_ARRAY(w->u->graph->arena, forest_weight, f->weight_count);
    if (f->weights == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t k = 0; k < f->weight_count; k++) {
        f->weights[k] = (forest_weight){.target = targets.at[k], .value = weights.at[k]};
        BS_TRY(find_node(w, map, trees.at[k], nodes.at[k], nodes.name, &f->weights[k].node));
    }
    qsort(f->weights, (size_t)f->weight_count, sizeof *f->weights, compare_weights);
    for (int64_t k = 0; k < f->weight_count; k++) {
        forest_node *leaf = &f->nodes[f->weights[k].node];
        if (leaf->count++ == 0) leaf->first = k;
    }
    return MDOT_OK;
}

/* `prefix` is "target" or "class". */
static mdot_status read_forest(const ml_writer *w, const char *prefix, forest *f)
{
    node_lists lists;
    node_map map = {0};
    bool has_double_weights = false;
    BS_TRY(read_node_lists(w, &lists));
    BS_TRY(map_nodes(w, &lists, &map));
    f->aggregate = "SUM";
    f->node_count = lists.trees.count;
    f->nodes = IR_NEW_ARRAY(w->u->graph->arena, forest_node, f->node_count);
    if (f->nodes == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t i = 0; i < f->node_count; i++) BS_TRY(read_node(w, &lists, &map, i, &f->nodes[i]));
    BS_TRY(find_roots(w, &map, f));
    BS_TRY(read_weights(w, prefix, &map, f, &has_double_weights));
    f->dtype = lists.values.is_double || has_double_weights ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32;
    return MDOT_OK;
}

/* Numbers as a vector of the forest's type. */
static ir_value *vector_of(const ml_writer *w, const forest *f, const ml_reals *list)
{
    if (f->dtype == MDOT_DTYPE_F32) return fe_ml_vector(w, list->name, list->at, list->count);
    return fe_add_data(w->u, w->node, list->name, MDOT_DTYPE_F64, 1, &list->count, list->at);
}

mdot_status fe_ml_write_tree_sums(const ml_writer *w, forest *f, bool averages, const ml_reals *base, mdot_dtype result,
                                  ir_value **out_sums)
{
    ir_value *sums = NULL, *x = fe_ml_cast(w, w->node->inputs[0], f->dtype);
    if (base->count != 0 && base->count != f->target_count)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "attribute '%s' has %lld elements for %lld targets; it needs one for each", base->name,
                          (long long)base->count, (long long)f->target_count);
    BS_TRY(x != NULL ? fe_write_forest(w, f, x, &sums) : fe_out_of_memory(w->u->context));
    if (f->lacks_targets && strcmp(f->aggregate, "SUM") != 0)
        sums =
            fe_ml_where(w, fe_ml_add1(w, IR_OP_IsInf, sums), fe_add_scalar(w->u, w->node, "none", f->dtype, 0), sums);
    if (averages)
        sums = fe_ml_add2(w, IR_OP_Div, sums, fe_add_scalar(w->u, w->node, "count", f->dtype, (double)f->root_count));
    if (base->count > 0) sums = fe_ml_add2(w, IR_OP_Add, sums, vector_of(w, f, base));
    if (f->dtype != result) sums = fe_ml_cast(w, sums, result);
    *out_sums = sums;
    return sums != NULL ? MDOT_OK : fe_out_of_memory(w->u->context);
}

/* ONNX Runtime ignores all transforms but PROBIT if there is one target, against the specification. */
mdot_status fe_ml_check_tree_transform(const ml_writer *w, const forest *f, ml_transform transform)
{
    if (f->target_count > 1 || transform == ML_NONE || transform == ML_PROBIT) return MDOT_OK;
    return fe_ml_fail(w, MDOT_UNSUPPORTED,
                      "with one target, runtimes disagree about its post_transform; use NONE, and put an operator, for "
                      "example Sigmoid, behind it");
}

mdot_status fe_ml_check_target_count(const ml_writer *w, int64_t count)
{
    if (count >= 1 && count <= INT_MAX) return MDOT_OK;
    return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'n_targets' must be at least 1, but is %lld", (long long)count);
}

mdot_status fe_ml_write_tree_regressor(const ml_writer *w)
{
    static const char *const aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    const char *aggregate = ir_node_string(w->node, "aggregate_function", "SUM");
    ml_reals base = {.name = "base_values"};
    ml_transform transform = ML_NONE;
    ir_value *sums = NULL;
    forest f = {.target_count = ir_node_int(w->node, "n_targets", 1)};
    size_t k = 0;
    while (k < 4 && strcmp(aggregate, aggregates[k]) != 0) k++;
    if (k == 4)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "aggregate_function \"%s\" is unknown; known are SUM, AVERAGE, MIN and MAX", aggregate);
    BS_TRY(fe_ml_check_target_count(w, f.target_count));
    BS_TRY(fe_ml_read_transform(w, &transform));
    BS_TRY(fe_ml_check_tree_transform(w, &f, transform));
    BS_TRY(read_forest(w, "target", &f));
    BS_TRY(read_reals(w, &base));
    if (k > 1) f.aggregate = aggregates[k];
    BS_TRY(fe_ml_write_tree_sums(w, &f, k == 1, &base, MDOT_DTYPE_F32, &sums));
    ir_value *result = fe_ml_transform_scores(w, transform, sums);
    return fe_ml_finish(w, &result, 1);
}

/* Two classes with weights for only one of them, as exporters write boosting and forests of two classes. The second
 * class wins if its score s exceeds 1/2, or 0 if some weights are negative. */
static mdot_status write_only_score(const ml_writer *w, const forest *f, ml_transform transform, ir_value *s,
                                    const int64_t *labels)
{
    bool all_positive = true;
    for (int64_t k = 0; k < f->weight_count; k++) all_positive = all_positive && f->weights[k].value >= 0;
    ir_value *label = fe_ml_binary_label(w, s, all_positive ? 0.5 : 0, labels), *first, *second = s;
    if (transform == ML_PROBIT)
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "post_transform PROBIT needs weights for both classes");
    if (transform == ML_LOGISTIC) {
        first = fe_ml_add1(w, IR_OP_Sigmoid, fe_ml_add1(w, IR_OP_Neg, s));
        second = fe_ml_add1(w, IR_OP_Sigmoid, s);
    } else if (all_positive) { /* other transforms have no effect in ONNX Runtime */
        first = fe_ml_add2(w, IR_OP_Sub, fe_ml_scalar(w, "one", 1), s);
    } else {
        first = fe_ml_add1(w, IR_OP_Neg, s);
    }
    return fe_ml_finish(w, (ir_value *[]){label, fe_ml_pair(w, first, second)}, 2);
}

/* Bits of the classes with weights, 0 or 1. */
static unsigned weighted_classes(const forest *f)
{
    unsigned classes = 0;
    for (int64_t k = 0; k < f->weight_count; k++)
        if (f->weights[k].target == 0 || f->weights[k].target == 1) classes |= 1u << f->weights[k].target;
    return classes;
}

mdot_status fe_ml_write_tree_classifier(const ml_writer *w)
{
    const int64_t *labels = NULL;
    int64_t label_count = 0;
    ml_reals base = {.name = "base_values"};
    ml_transform transform = ML_NONE;
    ir_value *sums = NULL;
    forest f = {0};
    BS_TRY(fe_ml_read_labels(w, "classlabels_int64s", "classlabels_strings", &labels, &label_count));
    BS_TRY(fe_ml_read_transform(w, &transform));
    BS_TRY(read_forest(w, "class", &f));
    BS_TRY(read_reals(w, &base));
    f.target_count = label_count;
    unsigned classes = label_count == 2 ? weighted_classes(&f) : 0;
    if (classes == 2)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "all its weights are for the second class; export them for class 0, as "
                          "skl2onnx and onnxmltools do, or for both classes");
    if (classes == 1) f.target_count = 1;
    BS_TRY(fe_ml_write_tree_sums(w, &f, false, &base, MDOT_DTYPE_F32, &sums));
    if (classes == 1) return write_only_score(w, &f, transform, sums, labels);
    ir_value *label = fe_ml_best_label(w, sums, labels, label_count);
    return fe_ml_finish(w, (ir_value *[]){label, fe_ml_transform_scores(w, transform, sums)}, 2);
}
