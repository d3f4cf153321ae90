/* ml_tree_ensemble.c — TreeEnsemble, which replaced ai.onnx.ml's two older operators in version 5 (ml_writer.h).
 *
 * Inner nodes and leaves have separate lists, and nodes name branch positions. A set membership test becomes a chain of
 * comparisons, each with a copy of the subtree behind a match. */
#include "frontend/onnx/ml_writer.h"

#include "frontend/onnx/import_context.h"

#include <math.h>

/* Limit for the copies that sets need. */
enum { MOST_COPIED_NODES = 1 << 20 };
enum { MODE_MEMBER = 6 };

typedef struct node_list {
    const char *name;
    const int64_t *at;
    int64_t count;
} node_list;

/* An unwritten branch: where the position belongs, and the file's node or leaf. */
typedef struct branch {
    int64_t *place;
    int64_t at;
    int64_t depth;
    bool is_leaf;
} branch;

typedef struct builder {
    const ml_writer *w;
    forest *f;
    node_list features, yes, no, yes_is_leaf, no_is_leaf, missing, targets, roots;
    ml_reals splits, weights, members;
    const unsigned char *modes;
    int64_t *first_member; /* for each set-testing node: position in `members`, where NaN ends a set */
    int64_t node_count, capacity;
    branch *stack; /* one branch for each node that is not yet written, at most */
    int64_t waiting;
} builder;

static mdot_status read_lists(builder *b)
{
    const ml_writer *w = b->w;
    node_list *lists[] = {&b->features,   &b->yes,     &b->no,      &b->yes_is_leaf,
                          &b->no_is_leaf, &b->missing, &b->targets, &b->roots};
    static const char *const names[] = {"nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids",
                                        "nodes_trueleafs",  "nodes_falseleafs",  "nodes_missing_value_tracks_true",
                                        "leaf_targetids",   "tree_roots"};
    BS_TRY(fe_ml_read_tensor(w, "nodes_splits", &b->splits));
    BS_TRY(fe_ml_read_tensor(w, "leaf_weights", &b->weights));
    BS_TRY(fe_ml_read_tensor(w, "membership_values", &b->members));
    b->node_count = b->splits.count;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        lists[k]->name = names[k];
        BS_TRY(fe_ml_ints(w, names[k], &lists[k]->at, &lists[k]->count));
        int64_t wanted = lists[k] == &b->targets ? b->weights.count : b->node_count;
        bool may_differ = lists[k] == &b->roots || (lists[k] == &b->missing && lists[k]->count == 0);
        if (!may_differ && lists[k]->count != wanted)
            return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' has %lld elements, but '%s' has %lld", names[k],
                              (long long)lists[k]->count, lists[k] == &b->targets ? "leaf_weights" : "nodes_splits",
                              (long long)wanted);
    }
    const ir_attr *modes = ir_node_attr(w->node, "nodes_modes");
    bool has_modes = modes != NULL && modes->kind == IR_ATTR_TENSOR && modes->tensor->data != NULL &&
                     modes->tensor->dtype == MDOT_DTYPE_U8;
    if (!has_modes || modes->tensor->count != b->node_count)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'nodes_modes' must be a tensor of %lld numbers of type uint8",
                          (long long)b->node_count);
    b->modes = modes->tensor->data;
    return MDOT_OK;
}

/* Finds each set's members, listed in node order. */
static mdot_status find_members(builder *b)
{
    int64_t offset = 0;
    b->first_member = IR_NEW_ARRAY(b->w->u->graph->arena, int64_t, b->node_count + 1);
    if (b->first_member == NULL) return fe_out_of_memory(b->w->u->context);
    b->capacity = 3 * b->node_count;
    for (int64_t n = 0; n < b->node_count; n++) {
        if (b->modes[n] > MODE_MEMBER)
            return fe_ml_fail(b->w, MDOT_UNSUPPORTED, "mode %d of node %lld is unknown; known are 0 to 6", b->modes[n],
                              (long long)n);
        if (b->modes[n] != MODE_MEMBER) continue;
        b->capacity = MOST_COPIED_NODES;
        b->first_member[n] = offset;
        while (offset < b->members.count && !isnan(b->members.at[offset])) offset++;
        if (offset == b->first_member[n])
            return fe_ml_fail(b->w, MDOT_MALFORMED, "node %lld tests a set, but 'membership_values' has none for it",
                              (long long)n);
        offset++;
    }
    return MDOT_OK;
}

static mdot_status fail_not_trees(const builder *b)
{
    return fe_ml_fail(b->w, MDOT_MALFORMED,
                      "its nodes are not trees, because a node is reached twice, or tests of sets need more than %d "
                      "copies of nodes",
                      MOST_COPIED_NODES);
}

static mdot_status push(builder *b, int64_t *place, int64_t offset, int64_t is_leaf, int64_t depth)
{
    int64_t count = is_leaf ? b->weights.count : b->node_count;
    if (offset < 0 || offset >= count)
        return fe_ml_fail(b->w, MDOT_MALFORMED, "a branch leads to %s %lld of %lld", is_leaf ? "leaf" : "node",
                          (long long)offset, (long long)count);
    if (b->waiting == b->capacity || depth > b->node_count) return fail_not_trees(b);
    b->stack[b->waiting++] = (branch){place, offset, depth, is_leaf != 0};
    return MDOT_OK;
}

/* The next node in the current tree. NULL: there are too many. */
static forest_node *add_node(builder *b, int64_t source)
{
    forest *f = b->f;
    if (f->node_count == b->capacity) return NULL;
    forest_node *node = &f->nodes[f->node_count++];
    *node = (forest_node){.mode = FOREST_LEAF, .tree = f->root_count, .id = source};
    return node;
}

static void add_leaf(builder *b, forest_node *node, int64_t leaf)
{
    node->first = b->f->weight_count;
    node->count = 1;
    b->f->weights[b->f->weight_count++] = (forest_weight){node - b->f->nodes, b->targets.at[leaf], b->weights.at[leaf]};
}

static bool is_only_leaf(const builder *b, int64_t n)
{
    return b->yes_is_leaf.at[n] != 0 && b->no_is_leaf.at[n] != 0 && b->yes.at[n] == b->no.at[n] && b->yes.at[n] >= 0 &&
           b->yes.at[n] < b->weights.count;
}

static mdot_status add_tests(builder *b, const branch *position, forest_node *node)
{
    static const forest_mode modes[] = {FOREST_LEQ, FOREST_LT, FOREST_GTE, FOREST_GT, FOREST_EQ, FOREST_NEQ, FOREST_EQ};
    int64_t n = position->at;
    bool is_set = b->modes[n] == MODE_MEMBER;
    const double *value = is_set ? &b->members.at[b->first_member[n]] : &b->splits.at[n];
    const double *end = is_set ? &b->members.at[b->members.count] : value + 1;
    mdot_status status = MDOT_OK;
    for (; status == MDOT_OK; value++) {
        node->mode = modes[b->modes[n]];
        node->feature = b->features.at[n];
        node->value = *value;
        node->missing_is_true = b->missing.count > 0 && b->missing.at[n] != 0;
        status = push(b, &node->yes, b->yes.at[n], b->yes_is_leaf.at[n], position->depth + 1);
        if (value + 1 == end || !is_set || isnan(value[1])) break;
        forest_node *successor = add_node(b, n);
        if (successor == NULL) return fail_not_trees(b);
        node->no = successor - b->f->nodes;
        node = successor;
    }
    return status == MDOT_OK ? push(b, &node->no, b->no.at[n], b->no_is_leaf.at[n], position->depth + 1) : status;
}

static mdot_status add_tree(builder *b, int64_t root, int64_t *place)
{
    mdot_status status = push(b, place, root, 0, 0);
    while (status == MDOT_OK && b->waiting > 0) {
        branch position = b->stack[--b->waiting];
        forest_node *node = add_node(b, position.at);
        if (node == NULL) return fail_not_trees(b);
        *position.place = node - b->f->nodes;
        if (position.is_leaf || is_only_leaf(b, position.at))
            add_leaf(b, node, position.is_leaf ? position.at : b->yes.at[position.at]);
        else
            status = add_tests(b, &position, node);
    }
    return status;
}

static mdot_status build(builder *b)
{
    ir_arena *arena = b->w->u->graph->arena;
    int64_t *roots = IR_NEW_ARRAY(arena, int64_t, b->roots.count);
    b->f->nodes = IR_NEW_ARRAY(arena, forest_node, b->capacity);
    b->f->weights = IR_NEW_ARRAY(arena, forest_weight, b->capacity);
    b->stack = IR_NEW_ARRAY(arena, branch, b->capacity);
    if (roots == NULL || b->f->nodes == NULL || b->f->weights == NULL || b->stack == NULL)
        return fe_out_of_memory(b->w->u->context);
    b->f->roots = roots;
    for (; b->f->root_count < b->roots.count; b->f->root_count++)
        BS_TRY(add_tree(b, b->roots.at[b->f->root_count], &roots[b->f->root_count]));
    return MDOT_OK;
}

mdot_status fe_ml_write_tree_ensemble(const ml_writer *w)
{
    static const char *const aggregates[] = {"SUM", "SUM", "MIN", "MAX"}; /* 0 is the average */
    int64_t aggregate = ir_node_int(w->node, "aggregate_function", 1);
    int64_t number = ir_node_int(w->node, "post_transform", ML_NONE);
    forest f = {.target_count = ir_node_int(w->node, "n_targets", 1)};
    builder b = {.w = w, .f = &f};
    const ml_reals no_base = {.name = "base_values"};
    ir_value *sums = NULL;
    if (aggregate < 0 || aggregate > 3 || number < ML_NONE || number > ML_PROBIT)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "aggregate_function %lld or post_transform %lld is unknown; known are 0 to 3, and 0 to 4",
                          (long long)aggregate, (long long)number);
    ml_transform transform = (ml_transform)number;
    BS_TRY(fe_ml_check_target_count(w, f.target_count));
    BS_TRY(fe_ml_check_tree_transform(w, &f, transform));
    BS_TRY(read_lists(&b));
    if (b.weights.count == 0) return fe_ml_fail(w, MDOT_MALFORMED, "it has no leaf_weights");
    BS_TRY(find_members(&b));
    BS_TRY(build(&b));
    f.aggregate = aggregates[aggregate];
    f.dtype = b.splits.is_double || b.weights.is_double ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32;
    BS_TRY(fe_ml_write_tree_sums(w, &f, aggregate == 0, &no_base, f.dtype, &sums));
    if (f.dtype == MDOT_DTYPE_F64 && (transform == ML_SOFTMAX_ZERO || transform == ML_PROBIT))
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "post_transform %lld is supported for f32 only", (long long)number);
    ir_value *result = fe_ml_transform_scores(w, transform, sums);
    /* The schema gives the tensors the input's type, and the result has it, too. */
    if (ir_node_attr(w->node, "leaf_weights")->tensor->dtype == MDOT_DTYPE_F16)
        result = fe_ml_cast(w, result, MDOT_DTYPE_F16);
    return fe_ml_finish(w, &result, 1);
}
