/* forest.c — see ml_writer.h. Each ONNX comparison becomes one to three nodes comparing x, or -x, with <=. */
#include "frontend/onnx/ml_writer.h"

#include "frontend/onnx/import_context.h"
#include "ir/ops/mdot_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Trees with the same kind of target and the same depth stand together, so kernels walk them in one loop. */
typedef struct tree_order {
    int64_t root, depth, target;
    int64_t place; /* in the file; equal trees keep their order */
} tree_order;

/* A record that is still to be written for a node. An equality has several parts. */
typedef struct task {
    int64_t node, record;
    int part; /* of an equality: 0 the test for NaN, 1 x <= t, 2 -x <= -t */
} task;

/* A record that equals another one, because two comparisons lead to the same node. */
typedef struct copy {
    int64_t to, from;
} copy;

typedef struct packer {
    const ml_writer *w;
    const forest *f;
    ir_arena *arena;
    bool is_single; /* f32 */
    int words;      /* per record */
    int64_t *order; /* nodes, each behind its parent */
    int64_t order_count;
    int64_t *height; /* of each node: the most steps to a leaf */
    tree_order *trees;
    int64_t record_count, copy_count, task_count, value_count;
    int32_t *records;
    int64_t *record_of; /* of each node; 0: none yet */
    task *tasks;
    copy *copies;
    double *values;
} packer;

static mdot_status fail_at(const packer *p, const forest_node *node, const char *what)
{
    return fe_ml_fail(p->w, MDOT_MALFORMED, "node %lld of tree %lld %s", (long long)node->id, (long long)node->tree,
                      what);
}

/* Orders the nodes of one tree, each behind its parents. Several tests may lead to one node, as exporters write a set
 * of categories; a walk that comes back to an unfinished node is a circle. Finished nodes have the tree's mark. */
static mdot_status order_tree(packer *p, int64_t mark, int64_t *marks, int64_t *stack)
{
    enum { NEW, OPEN = -1 };
    int64_t depth = 0, first = p->order_count, *order = p->order;
    stack[depth++] = p->f->roots[mark - 1];
    while (depth > 0) {
        int64_t n = stack[depth - 1];
        const forest_node *node = &p->f->nodes[n];
        if (marks[n] != NEW) {
            if (marks[n] == OPEN) {
                marks[n] = mark;
                order[p->order_count++] = n;
            }
            depth--;
            continue;
        }
        marks[n] = OPEN;
        const int64_t next[] = {node->yes, node->no};
        for (int k = 0; k < 2 && node->mode != FOREST_LEAF; k++) {
            if (marks[next[k]] == OPEN) return fail_at(p, &p->f->nodes[next[k]], "is below itself");
            if (marks[next[k]] != NEW && marks[next[k]] != mark)
                return fail_at(p, &p->f->nodes[next[k]], "belongs to two trees");
            stack[depth++] = next[k];
        }
    }
    for (int64_t low = first, high = p->order_count - 1; low < high; low++, high--) {
        int64_t n = order[low];
        order[low] = order[high];
        order[high] = n;
    }
    return MDOT_OK;
}

/* Every node must be reached from exactly one root. Notes the order in which they are. */
static mdot_status check_trees(packer *p)
{
    const forest *f = p->f;
    int64_t *marks = IR_NEW_ARRAY(p->arena, int64_t, f->node_count);
    int64_t *stack = IR_NEW_ARRAY(p->arena, int64_t, 2 * f->node_count + 1);
    if (marks == NULL || stack == NULL) return fe_out_of_memory(p->w->u->context);
    for (int64_t r = 0; r < f->root_count; r++) {
        if (marks[f->roots[r]] != 0) return fail_at(p, &f->nodes[f->roots[r]], "belongs to two trees");
        BS_TRY(order_tree(p, r + 1, marks, stack));
    }
    for (int64_t n = 0; n < f->node_count; n++)
        if (marks[n] == 0) return fail_at(p, &f->nodes[n], "is not reached from the root of its tree");
    return MDOT_OK;
}

static mdot_status check_nodes(const packer *p)
{
    const forest *f = p->f;
    for (int64_t n = 0; n < f->node_count; n++) {
        const forest_node *node = &f->nodes[n];
        if (node->mode == FOREST_LEAF) continue;
        if (isnan(node->value)) return fail_at(p, node, "has the threshold NaN");
        if (node->feature < 0 || node->feature > INT32_MAX / 2)
            return fe_ml_fail(p->w, MDOT_MALFORMED, "node %lld of tree %lld reads feature %lld", (long long)node->id,
                              (long long)node->tree, (long long)node->feature);
    }
    for (int64_t k = 0; k < f->weight_count; k++) {
        const forest_weight *weight = &f->weights[k];
        if (weight->target < 0 || weight->target >= f->target_count)
            return fe_ml_fail(p->w, MDOT_MALFORMED, "node %lld of tree %lld has a weight for target %lld of %lld",
                              (long long)f->nodes[weight->node].id, (long long)f->nodes[weight->node].tree,
                              (long long)weight->target, (long long)f->target_count);
    }
    return MDOT_OK;
}

static double round_to(const packer *p, double value) { return p->is_single ? (float)value : value; }

/* The greatest number below; NaN, to which every comparison is false, below negative infinity. */
static double below(const packer *p, double value)
{
    if (value == -INFINITY) return NAN;
    return p->is_single ? nextafterf((float)value, -INFINITY) : nextafter(value, -INFINITY);
}

static void put_threshold(const packer *p, int32_t *record, double value)
{
    float single = (float)value;
    if (p->is_single)
        memcpy(record, &single, sizeof single);
    else
        memcpy(record, &value, sizeof value);
}

/* The words of a record behind the threshold. */
static int32_t *rest_of(const packer *p, int64_t record)
{
    return &p->records[record * p->words + (p->is_single ? 1 : 2)];
}

/* Writes the comparison x[feature] <= threshold, or -x[feature] <= threshold, and makes room for its children. */
static int64_t put_test(packer *p, int64_t record, int64_t feature, bool negates, double threshold)
{
    int32_t *rest = rest_of(p, record);
    int64_t child = p->record_count;
    p->record_count += 2;
    put_threshold(p, &p->records[record * p->words], threshold);
    rest[0] = (int32_t)(2 * feature + (negates ? 1 : 0));
    rest[1] = (int32_t)child;
    return child;
}

static void put_leaf(packer *p, int64_t record, int64_t value)
{
    int32_t *rest = rest_of(p, record);
    put_threshold(p, &p->records[record * p->words], NAN);
    rest[1] = (int32_t)(record - 1);
    rest[2] = (int32_t)value;
}

static void push(packer *p, int64_t node, int64_t record, int part)
{
    p->tasks[p->task_count++] = (task){node, record, part};
}

/* Turns the record into a node's, or into a copy of the node's existing record. */
static void refer(packer *p, int64_t node, int64_t record)
{
    if (p->record_of[node] != 0) {
        p->copies[p->copy_count++] = (copy){record, p->record_of[node]};
        return;
    }
    p->record_of[node] = record;
    push(p, node, record, 0);
}

/* One comparison of an order. NaN leads to child 1. If the model wants it at `yes`, the opposite comparison decides. */
static void put_ordered(packer *p, const task *position, const forest_node *node)
{
    bool wants_above = node->mode == FOREST_GT || node->mode == FOREST_GTE;
    bool is_strict = node->mode == FOREST_GT || node->mode == FOREST_LT;
    bool is_opposite = node->missing_is_true;
    bool negates = wants_above != is_opposite, excludes = is_strict != is_opposite;
    double side = negates ? -round_to(p, node->value) : round_to(p, node->value);
    int64_t child = put_test(p, position->record, node->feature, negates, excludes ? below(p, side) : side);
    refer(p, is_opposite ? node->no : node->yes, child);
    refer(p, is_opposite ? node->yes : node->no, child + 1);
}

/* Equality: x <= t, and then -x <= -t. */
static void put_equality(packer *p, const task *position, const forest_node *node)
{
    bool is_negated = node->mode == FOREST_NEQ;
    int64_t equal = is_negated ? node->no : node->yes, other_index = is_negated ? node->yes : node->no;
    double t = round_to(p, node->value);
    if (position->part == 0 && node->missing_is_true && !is_negated) {
        int64_t child = put_test(p, position->record, node->feature, false, INFINITY);
        push(p, position->node, child, 1);
        refer(p, equal, child + 1);
    } else if (position->part <= 1) {
        int64_t child = put_test(p, position->record, node->feature, false, t);
        push(p, position->node, child, 2);
        refer(p, other_index, child + 1);
    } else {
        /* Both parts of an equality lead to the same node if it is false: the one next to this record. */
        int64_t child = put_test(p, position->record, node->feature, true, -t);
        refer(p, equal, child);
        p->copies[p->copy_count++] = (copy){child + 1, position->record + 1};
    }
}

/* A node's comparisons with <=, and the most steps through them. */
static int64_t test_count(const forest_node *node, int64_t *out_steps)
{
    int64_t first = node->missing_is_true && node->mode != FOREST_NEQ ? 1 : 0;
    *out_steps = node->mode == FOREST_LEAF ? 0 : 1;
    if (node->mode < FOREST_EQ || node->mode == FOREST_LEAF) return *out_steps;
    *out_steps = first + 2;
    return first + 2;
}

static double absent_value(const forest *f)
{
    if (strcmp(f->aggregate, "SUM") == 0) return 0;
    return strcmp(f->aggregate, "MIN") == 0 ? INFINITY : -INFINITY;
}

/* A leaf's value for a target: the sum over the leaf's weights for it. */
static double leaf_value(const packer *p, const forest_node *leaf, int64_t target)
{
    const forest *f = p->f;
    double value = absent_value(f);
    for (int64_t k = leaf->first; k < leaf->first + leaf->count; k++) {
        double weight = f->weights[k].value;
        if (f->weights[k].target != target) continue;
        if (strcmp(f->aggregate, "SUM") == 0)
            value += weight;
        else if (strcmp(f->aggregate, "MIN") == 0 ? weight < value : weight > value)
            value = weight;
    }
    return value;
}

/* Appends a leaf's values: one, or one per target (-1). */
static int64_t put_values(packer *p, const forest_node *leaf, int64_t target)
{
    int64_t first = p->value_count;
    if (target >= 0) {
        p->values[p->value_count++] = leaf_value(p, leaf, target);
        return first;
    }
    for (int64_t k = 0; k < p->f->target_count; k++) p->values[first + k] = absent_value(p->f);
    for (int64_t k = leaf->first; k < leaf->first + leaf->count; k++) {
        int64_t t = p->f->weights[k].target;
        p->values[first + t] = leaf_value(p, leaf, t);
    }
    p->value_count += p->f->target_count;
    return first;
}

/* The only target of a leaf's weights; -1: several; -2: it has no weights. */
static int64_t only_target(const forest *f, const forest_node *leaf)
{
    int64_t target = -2;
    for (int64_t k = leaf->first; k < leaf->first + leaf->count; k++) {
        if (target != -2 && f->weights[k].target != target) return -1;
        target = f->weights[k].target;
    }
    return target;
}

/* Heights of all nodes, and the targets of all trees. A tree whose leaves have weights for one target contributes to
 * it alone, as in boosting; a tree with several targets contributes to all, as in a forest of several classes. */
static void measure_trees(packer *p)
{
    const forest *f = p->f;
    int64_t offset = p->order_count;
    for (int64_t tree = f->root_count - 1; tree >= 0; tree--) {
        int64_t target = -2;
        for (bool is_root = false; !is_root;) {
            int64_t n = p->order[--offset], steps;
            const forest_node *node = &f->nodes[n];
            (void)test_count(node, &steps);
            is_root = n == f->roots[tree];
            if (node->mode != FOREST_LEAF) {
                int64_t yes = p->height[node->yes], no = p->height[node->no];
                p->height[n] = steps + (yes > no ? yes : no);
                continue;
            }
            int64_t own = only_target(f, node);
            target = target == -2 || own == target ? own : own == -2 ? target : -1;
        }
        p->trees[tree] = (tree_order){f->roots[tree], p->height[f->roots[tree]], target == -2 ? 0 : target, tree};
    }
}

static int compare_trees(const void *a, const void *b)
{
    const tree_order *x = a, *y = b;
    int x_is_row = x->target < 0, y_is_row = y->target < 0;
    if (x_is_row != y_is_row) return x_is_row - y_is_row;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static void write_tree(packer *p, const tree_order *tree)
{
    refer(p, tree->root, p->record_count++);
    while (p->task_count > 0) {
        task position = p->tasks[--p->task_count];
        const forest_node *node = &p->f->nodes[position.node];
        if (node->mode == FOREST_LEAF)
            put_leaf(p, position.record, put_values(p, node, tree->target));
        else if (node->mode < FOREST_EQ)
            put_ordered(p, &position, node);
        else
            put_equality(p, &position, node);
    }
}

/* A copy of a leaf leads to itself, like every leaf. In other records the children are behind the record. */
static void make_copies(packer *p)
{
    for (int64_t k = 0; k < p->copy_count; k++) {
        copy c = p->copies[k];
        memcpy(&p->records[c.to * p->words], &p->records[c.from * p->words], (size_t)p->words * sizeof *p->records);
        if (rest_of(p, c.to)[1] == c.from - 1) rest_of(p, c.to)[1] = (int32_t)(c.to - 1);
    }
}

static bool allocate(packer *p)
{
    const forest *f = p->f;
    int64_t records = 1 + f->root_count, values = 0, steps;
    for (int64_t n = 0; n < f->node_count; n++) records += 2 * test_count(&f->nodes[n], &steps);
    for (int64_t tree = 0, offset = 0; tree < f->root_count; tree++) {
        int64_t width = p->trees[tree].target < 0 ? f->target_count : 1, leaves = 0, size;
        for (bool ends = false; !ends;
             ends = offset == p->order_count || (tree + 1 < f->root_count && p->order[offset] == f->roots[tree + 1]))
            leaves += f->nodes[p->order[offset++]].mode == FOREST_LEAF;
        if (__builtin_mul_overflow(width, leaves, &size) || __builtin_add_overflow(values, size, &values)) return false;
    }
    p->records = IR_NEW_ARRAY(p->arena, int32_t, records * p->words);
    p->record_of = IR_NEW_ARRAY(p->arena, int64_t, f->node_count);
    p->tasks = IR_NEW_ARRAY(p->arena, task, records);
    p->copies = IR_NEW_ARRAY(p->arena, copy, records);
    p->values = IR_NEW_ARRAY(p->arena, double, values);
    return p->records != NULL && p->record_of != NULL && p->tasks != NULL && p->copies != NULL && p->values != NULL;
}

static ir_value *add_values(const packer *p)
{
    int64_t count = p->value_count;
    float *singles = p->is_single ? IR_NEW_ARRAY(p->arena, float, count) : NULL;
    if (p->is_single && singles == NULL) return NULL;
    for (int64_t k = 0; p->is_single && k < count; k++) singles[k] = (float)p->values[k];
    return fe_add_data(p->w->u, p->w->node, "values", p->f->dtype, 1, &count,
                       p->is_single ? (const void *)singles : p->values);
}

static ir_value *add_trees(const packer *p)
{
    int64_t dims[] = {p->f->root_count, IR_TREE_WORDS};
    int32_t *words = IR_NEW_ARRAY(p->arena, int32_t, dims[0] * dims[1]);
    if (words == NULL) return NULL;
    for (int64_t k = 0; k < dims[0]; k++) {
        const tree_order *tree = &p->trees[k];
        words[k * IR_TREE_WORDS + IR_TREE_ROOT] = (int32_t)p->record_of[tree->root];
        words[k * IR_TREE_WORDS + IR_TREE_DEPTH] = (int32_t)tree->depth;
        words[k * IR_TREE_WORDS + IR_TREE_TARGET] = (int32_t)tree->target;
    }
    return fe_add_data(p->w->u, p->w->node, "trees", MDOT_DTYPE_I32, 2, dims, words);
}

static bool may_lack_targets(const packer *p)
{
    for (int64_t k = 0; k < p->value_count; k++)
        if (isinf(p->values[k])) return true;
    for (int64_t target = 0; target < p->f->target_count; target++) {
        bool is_reached = false;
        for (int64_t k = 0; k < p->f->root_count && !is_reached; k++)
            is_reached = p->trees[k].target < 0 || p->trees[k].target == target;
        if (!is_reached) return true;
    }
    return false;
}

mdot_status fe_write_forest(const ml_writer *w, forest *f, ir_value *x, ir_value **out_sums)
{
    packer p = {
        .w = w, .f = f, .arena = w->u->graph->arena, .is_single = f->dtype == MDOT_DTYPE_F32, .record_count = 1};
    p.words = ir_tree_node_words(f->dtype);
    p.order = IR_NEW_ARRAY(p.arena, int64_t, f->node_count);
    p.height = IR_NEW_ARRAY(p.arena, int64_t, f->node_count);
    p.trees = IR_NEW_ARRAY(p.arena, tree_order, f->root_count);
    if (p.order == NULL || p.height == NULL || p.trees == NULL) return fe_out_of_memory(w->u->context);
    if (f->root_count == 0) return fe_ml_fail(w, MDOT_MALFORMED, "it has no trees");
    BS_TRY(check_nodes(&p));
    BS_TRY(check_trees(&p));
    measure_trees(&p);
    if (!allocate(&p)) return fe_out_of_memory(w->u->context);
    put_threshold(&p, p.records, NAN); /* record 0 is unused, so every leaf has a record before it */
    qsort(p.trees, (size_t)f->root_count, sizeof *p.trees, compare_trees);
    for (int64_t k = 0; k < f->root_count; k++) write_tree(&p, &p.trees[k]);
    make_copies(&p);
    if (p.record_count > INT32_MAX / p.words || p.value_count > INT32_MAX)
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "its trees are too large: %lld nodes and %lld values",
                          (long long)p.record_count, (long long)p.value_count);
    f->lacks_targets = may_lack_targets(&p);
    const int64_t dims[] = {p.record_count, p.words};
    ir_value *records = fe_add_data(w->u, w->node, "nodes", MDOT_DTYPE_I32, 2, dims, p.records);
    ir_value *inputs[] = {x, records, add_trees(&p), add_values(&p)};
    const ir_attr attrs[] = {IR_INT("targets", f->target_count), IR_STRING("aggregate", f->aggregate)};
    *out_sums = fe_add(w->u, w->node, IR_OP_Trees, inputs, 4, attrs, 2);
    return *out_sums != NULL ? MDOT_OK : fe_out_of_memory(w->u->context);
}
