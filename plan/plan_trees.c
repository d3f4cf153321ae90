/* plan_trees.c — plans ensembles of decision trees (ir/ops/mdot_ops.h).
 *
 * A kernel gets the trees in two forms. One is the table of nodes, in which a row walks from node to node. The other
 * lists all comparisons of a tree, with the set of leaves that each leaves possible if it is false; the first leaf that
 * all comparisons leave possible is that of the row (QuickScorer: Lucchese et al., SIGIR 2015). It has no dependent
 * loads, so a backend can make each comparison for many rows at once. It exists if every tree has at most
 * PL_MOST_LEAVES leaves and one target. */
#include "plan/emitters.h"

#include "ir/ops/mdot_ops.h"
#include "plan/plan_builder.h"

#include <string.h>

typedef struct test_table {
    const ir_trees *trees;
    ir_arena *arena;
    int words; /* per test */
    int64_t test_count, test_capacity, leaf_count, most_leaves;
    int64_t first; /* test of the current tree */
    int32_t *tests;
    int64_t *leaves;                  /* positions in the values */
    int64_t *first_leaf, *first_test; /* of each tree, and behind the last */
} test_table;

/* Numbers the leaves below a node from left to right, and appends its comparisons. `steps` are those that remain.
 * Returns the number of leaves, or -1 if the tree has too many. A tree has one test less than leaves, and each level of
 * the recursion a test, so it is shallow. */
static int64_t list_tests(test_table *t, int64_t index, int64_t steps, int64_t leaves_before)
{
    ir_tree_node node = ir_trees_node(t->trees, index);
    if (steps == 0 || node.child + 1 == index) {
        t->leaves[t->leaf_count++] = node.value;
        return 1;
    }
    if (t->test_count - t->first == PL_MOST_LEAVES - 1) return -1;
    int32_t *test = &t->tests[t->test_count++ * t->words];
    int64_t left = list_tests(t, node.child, steps - 1, leaves_before);
    if (left < 0) return -1;
    int64_t right = list_tests(t, node.child + 1, steps - 1, leaves_before + left);
    if (right < 0) return -1;
    uint64_t rest = ~(((UINT64_C(1) << left) - 1) << leaves_before); /* left < 64, because right > 0 */
    int32_t low = (int32_t)(uint32_t)rest, high = (int32_t)(uint32_t)(rest >> 32);
    float single = (float)node.threshold;
    if (t->trees->dtype == MDOT_DTYPE_F32)
        memcpy(test, &single, sizeof single);
    else
        memcpy(test, &node.threshold, sizeof node.threshold);
    int32_t *behind = &test[t->trees->dtype == MDOT_DTYPE_F32 ? 1 : 2];
    behind[0] = (int32_t)node.feature;
    behind[1] = low;
    behind[2] = high;
    return left + right;
}

/* A full table of tests for all trees, which needs room for at most PL_MOST_LEAVES of each. False: there is none, or
 * memory is exhausted (t->tests is NULL). */
static bool list_all_tests(test_table *t)
{
    int64_t trees = t->trees->tree_count;
    t->words = ir_tree_node_words(t->trees->dtype);
    t->tests = IR_NEW_ARRAY(t->arena, int32_t, t->test_capacity * t->words);
    t->leaves = IR_NEW_ARRAY(t->arena, int64_t, t->test_capacity + trees);
    t->first_leaf = IR_NEW_ARRAY(t->arena, int64_t, trees + 1);
    t->first_test = IR_NEW_ARRAY(t->arena, int64_t, trees + 1);
    if (t->leaves == NULL || t->first_leaf == NULL || t->first_test == NULL) t->tests = NULL;
    if (t->tests == NULL) return false;
    for (int64_t k = 0; k < trees; k++) {
        int64_t steps = ir_trees_tree(t->trees, k, IR_TREE_DEPTH);
        t->first_leaf[k] = t->leaf_count;
        t->first_test[k] = t->first = t->test_count;
        int64_t leaves = list_tests(t, ir_trees_tree(t->trees, k, IR_TREE_ROOT), steps, 0);
        if (leaves < 0) return false;
        if (leaves > t->most_leaves) t->most_leaves = leaves;
    }
    t->first_leaf[trees] = t->leaf_count;
    t->first_test[trees] = t->test_count;
    return true;
}

static int constant_buffer(pl_builder *b, const char *name, mdot_dtype dtype, int64_t rows, int64_t columns,
                           const void *data)
{
    ir_tensor *tensor = IR_NEW(b->arena, ir_tensor);
    if (tensor == NULL || data == NULL) return -1;
    *tensor = (ir_tensor){dtype, 2, {rows, columns}, rows * columns, data};
    return pl_constant_buffer(b, tensor, name, PL_ELEMENTS);
}

/* The values of all leaves, in the order in which the tests number them. */
static const void *leaf_values(const test_table *t, const ir_tensor *values)
{
    size_t size_bytes = mdot_dtype_size_bytes(values->dtype);
    char *data = IR_NEW_ARRAY(t->arena, char, t->leaf_count *(int64_t)size_bytes);
    for (int64_t k = 0; data != NULL && k < t->leaf_count; k++)
        memcpy(data + (size_t)k * size_bytes, (const char *)values->data + (size_t)t->leaves[k] * size_bytes,
               size_bytes);
    return data;
}

/* {first test, test behind the last, first leaf, target} of each tree */
static const int32_t *spans_of(const test_table *t)
{
    int64_t trees = t->trees->tree_count;
    int32_t *spans = IR_NEW_ARRAY(t->arena, int32_t, trees * PL_SPAN_WORDS);
    for (int64_t k = 0; spans != NULL && k < trees; k++) {
        int32_t *span = &spans[k * PL_SPAN_WORDS];
        span[0] = (int32_t)t->first_test[k];
        span[1] = (int32_t)t->first_test[k + 1];
        span[2] = (int32_t)t->first_leaf[k];
        span[3] = (int32_t)ir_trees_tree(t->trees, k, IR_TREE_TARGET);
    }
    return spans;
}

/* The most tests of all trees, or -1 if a tree cannot have a list of them. */
static int64_t room_for_tests(const ir_trees *trees)
{
    int64_t room = 0;
    for (int64_t k = 0; k < trees->tree_count; k++) {
        int64_t depth = ir_trees_tree(trees, k, IR_TREE_DEPTH);
        if (ir_trees_tree(trees, k, IR_TREE_TARGET) < 0) return -1;
        room += depth < 6 ? (INT64_C(1) << depth) - 1 : PL_MOST_LEAVES;
    }
    return room <= INT32_MAX / 8 ? room : -1;
}

static bool add_tests(pl_builder *b, const ir_node *node, const ir_trees *trees, pl_trees *k)
{
    test_table t = {.trees = trees, .arena = b->arena, .test_capacity = room_for_tests(trees)};
    k->tests = k->spans = k->leaves = -1;
    if (t.test_capacity < 0) return true;
    if (!list_all_tests(&t)) return t.tests != NULL;
    const ir_tensor *values = node->inputs[3]->constant;
    k->most_leaves = t.most_leaves;
    k->tests = constant_buffer(b, "tests", MDOT_DTYPE_I32, t.test_count, t.words, t.tests);
    k->spans = constant_buffer(b, "spans", MDOT_DTYPE_I32, trees->tree_count, PL_SPAN_WORDS, spans_of(&t));
    k->leaves = constant_buffer(b, "leaves", values->dtype, 1, t.leaf_count, leaf_values(&t, values));
    return k->tests >= 0 && k->spans >= 0 && k->leaves >= 0;
}

/* Runs of trees with the same depth and the same kind of target. */
static bool find_groups(pl_builder *b, const ir_trees *trees, pl_trees *k)
{
    pl_tree_group *groups = IR_NEW_ARRAY(b->arena, pl_tree_group, trees->tree_count + 1);
    if (groups == NULL) return false;
    for (int64_t tree = 0; tree < trees->tree_count; tree++) {
        int64_t depth = ir_trees_tree(trees, tree, IR_TREE_DEPTH);
        bool is_row = ir_trees_tree(trees, tree, IR_TREE_TARGET) < 0;
        pl_tree_group *end = k->group_count > 0 ? &groups[k->group_count - 1] : NULL;
        if (end != NULL && end->depth == depth && end->is_row == is_row)
            end->count++;
        else
            groups[k->group_count++] = (pl_tree_group){tree, 1, depth, is_row};
    }
    k->groups = groups;
    return true;
}

static int operand(pl_builder *b, const ir_value *v)
{
    const pl_placement *placement = pl_placement_of(b, v);
    return placement != NULL ? placement->buffer : -1;
}

mdot_status pl_emit_trees(pl_builder *b, const ir_node *node)
{
    static const pl_reducer reducers[] = {
        [IR_AGGREGATE_SUM] = PL_REDUCE_SUM, [IR_AGGREGATE_MIN] = PL_REDUCE_MIN, [IR_AGGREGATE_MAX] = PL_REDUCE_MAX};
    ir_operands args = ir_operands_of_graph(b->graph, node, b->err);
    ir_trees trees;
    BS_TRY(ir_read_trees(&args, &trees));
    pl_trees k = {
        .rows = trees.rows, .features = trees.features, .targets = trees.targets, .reducer = reducers[trees.aggregate]};
    pl_begin_kernel(b, node);
    if (!find_groups(b, &trees, &k)) return pl_fault(b);
    k.x = operand(b, node->inputs[0]);
    k.nodes = operand(b, node->inputs[1]);
    k.trees = operand(b, node->inputs[2]);
    k.values = operand(b, node->inputs[3]);
    if (k.x < 0 || k.nodes < 0 || k.trees < 0 || k.values < 0) return pl_fault(b);
    if (!add_tests(b, node, &trees, &k)) return pl_fault(b);
    if (!pl_place_output(b, node->outputs[0], PL_PLACEMENT_TYPED)) return pl_fault(b);
    k.out = pl_info(b, node->outputs[0])->placement.buffer;
    return pl_end_kernel(b, PL_TREES, node->name, &(pl_kernel){.trees = k});
}
