/* test_ml_trees.c — ai.onnx.ml tree ensembles: random trees with every mode against a walk by the definition,
 * classifier scores, and faulty files. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 512, MAX_WEIGHTS = 1024, FEATURES = 3, ROWS = 40, TARGETS = 3, MODES = 6 };

static const char *const mode_names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};

/* An ensemble as node attributes. */
typedef struct ensemble {
    int nodes, weights, trees;
    int64_t tree[MAX_NODES], id[MAX_NODES], feature[MAX_NODES], yes[MAX_NODES], no[MAX_NODES], missing[MAX_NODES];
    int mode[MAX_NODES];
    float value[MAX_NODES];
    int64_t weight_tree[MAX_WEIGHTS], weight_node[MAX_WEIGHTS], target[MAX_WEIGHTS];
    float weight[MAX_WEIGHTS];
} ensemble;

/* Numbers from a short list, so rows often equal thresholds. */
static float number(void)
{
    static const float numbers[] = {-2, -1.5F, -0.25F, 0, 0.5F, 1, 3, -0.0F};
    return numbers[rand() % 8];
}

static void add_weight(ensemble *e, int64_t tree, int64_t node, int64_t target)
{
    int k = e->weights++;
    e->weight_tree[k] = tree;
    e->weight_node[k] = node;
    e->target[k] = target;
    e->weight[k] = (float)(rand() % 64 - 32) / 8;
}

static int64_t shared_node = -1; /* a node of the current tree whose descendants are complete */
static bool shares;              /* some nodes have several parents */

/* Adds a node and the nodes below it, not in numerical order. target -1: all targets. */
static int64_t add_nodes(ensemble *e, int64_t tree, int64_t *next_id, int depth, int target)
{
    int64_t id = (*next_id)++, yes = 0, no = 0;
    bool is_leaf = depth == 0 || rand() % 5 == 0;
    if (!is_leaf) {
        int64_t shared =
            !shares || depth == 1 || rand() % 3 ? -1 : shared_node; /* as exporters write sets of categories */
        yes = shared >= 0 ? shared : add_nodes(e, tree, next_id, depth - 1, target);
        shared_node = yes;
        no = add_nodes(e, tree, next_id, depth - 1, target);
    }
    int n = e->nodes++;
    e->tree[n] = tree;
    e->id[n] = id;
    e->mode[n] = is_leaf ? MODES : rand() % MODES;
    e->feature[n] = is_leaf ? 0 : rand() % FEATURES;
    e->value[n] = is_leaf ? 0 : number();
    e->missing[n] = rand() % 2;
    e->yes[n] = yes;
    e->no[n] = no;
    for (int t = 0; t < TARGETS && is_leaf; t++)
        if (target < 0 || t == target) add_weight(e, tree, id, t);
    return id;
}

static void add_trees(ensemble *e, int count, int depth, bool one_target)
{
    for (int t = 0; t < count; t++) {
        int64_t next_id = 0;
        shared_node = -1;
        add_nodes(e, 10 + e->trees++, &next_id, depth, one_target ? 0 : rand() % (TARGETS + 1) - 1);
    }
}

static void put_texts(onnx_builder *b, const ensemble *e)
{
    char *modes = calloc(1, MAX_NODES * 16);
    assert_non_null(modes);
    for (int n = 0; n < e->nodes; n++) {
        if (n > 0) strcat(modes, ",");
        strcat(modes, mode_names[e->mode[n]]);
    }
    onnx_attr_strings(b, "nodes_modes", modes);
    free(modes);
}

static void put_nodes(onnx_builder *b, const ensemble *e, bool as_doubles)
{
    double values[MAX_NODES];
    char shape[16];
    onnx_attr_ints(b, "nodes_treeids", e->nodes, e->tree);
    onnx_attr_ints(b, "nodes_nodeids", e->nodes, e->id);
    onnx_attr_ints(b, "nodes_featureids", e->nodes, e->feature);
    onnx_attr_ints(b, "nodes_truenodeids", e->nodes, e->yes);
    onnx_attr_ints(b, "nodes_falsenodeids", e->nodes, e->no);
    onnx_attr_ints(b, "nodes_missing_value_tracks_true", e->nodes, e->missing);
    put_texts(b, e);
    for (int n = 0; n < e->nodes; n++) values[n] = e->value[n];
    snprintf(shape, sizeof shape, "%d", e->nodes);
    if (as_doubles)
        onnx_attr_tensor(b, "nodes_values_as_tensor", MDOT_DTYPE_F64, shape, values);
    else
        onnx_attr_floats(b, "nodes_values", e->nodes, e->value);
}

static void put_weights(onnx_builder *b, const ensemble *e, const char *prefix)
{
    char name[32];
    const struct {
        const char *suffix;
        const int64_t *values;
    } lists[] = {{"treeids", e->weight_tree}, {"nodeids", e->weight_node}, {"ids", e->target}};
    for (int k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "%s_%s", prefix, lists[k].suffix);
        onnx_attr_ints(b, name, e->weights, lists[k].values);
    }
    snprintf(name, sizeof name, "%s_weights", prefix);
    onnx_attr_floats(b, name, e->weights, e->weight);
}

static onnx_builder *begin(const char *op_type, const char *outputs, mdot_dtype dtype)
{
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "ai.onnx.ml", 3);
    onnx_input(b, "x", dtype, "N,3");
    onnx_node(b, op_type, "x", outputs);
    return b;
}

/* ---- The definition ---------------------------------------------------------------------------------------------- */

static bool is_true(int mode, float x, float value, bool missing)
{
    if (missing && isnan(x)) return true;
    switch (mode) {
    case 0: return x <= value;
    case 1: return x < value;
    case 2: return x >= value;
    case 3: return x > value;
    case 4: return x == value;
    default: return x != value;
    }
}

static int find(const ensemble *e, int64_t tree, int64_t id)
{
    for (int n = 0; n < e->nodes; n++)
        if (e->tree[n] == tree && e->id[n] == id) return n;
    return -1;
}

static void walk(const ensemble *e, const float *x, const char *aggregate, double out[TARGETS])
{
    bool has[TARGETS] = {false};
    for (int t = 0; t < TARGETS; t++) out[t] = 0;
    for (int tree = 10; tree < 10 + e->trees; tree++) {
        int n = find(e, tree, 0);
        while (e->mode[n] != MODES)
            n = find(e, tree, is_true(e->mode[n], x[e->feature[n]], e->value[n], e->missing[n]) ? e->yes[n] : e->no[n]);
        for (int k = 0; k < e->weights; k++) {
            if (e->weight_tree[k] != tree || e->weight_node[k] != e->id[n]) continue;
            int64_t t = e->target[k];
            double weight = e->weight[k];
            bool sums = strcmp(aggregate, "SUM") == 0 || strcmp(aggregate, "AVERAGE") == 0;
            if (sums)
                out[t] += weight;
            else if (!has[t] || (strcmp(aggregate, "MIN") == 0 ? weight < out[t] : weight > out[t]))
                out[t] = weight;
            has[t] = true;
        }
    }
    for (int t = 0; t < TARGETS && strcmp(aggregate, "AVERAGE") == 0; t++) out[t] /= e->trees;
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef struct results {
    ir_arena *arena;
    ir_wide *out[2];
} results;

static results run(onnx_builder *b, const float *x, int rows, mdot_dtype dtype)
{
    mdot_error err;
    results r = {.arena = ir_arena_create(0)};
    imported model = expect_imported(b, NULL);
    model.graph->max_length = 64;
    if (ir_infer(model.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    ir_wide *input = ir_wide_create(r.arena, dtype, 2, (int64_t[]){rows, FEATURES});
    for (int i = 0; i < rows * FEATURES; i++) input->f[i] = x[i];
    if (ir_evaluate(model.graph, (const ir_wide *const[]){input}, r.arena, r.out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    release(&model);
    return r;
}

static void check_random(const char *aggregate, int depth, bool one_target, bool as_doubles)
{
    ensemble *e = calloc(1, sizeof *e);
    float x[ROWS * FEATURES];
    mdot_dtype dtype = as_doubles ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32;
    int targets = one_target ? 1 : TARGETS;
    assert_non_null(e);
    shares = true;
    add_trees(e, 6, depth, one_target);
    shares = false;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = rand() % 6 == 0 ? NAN : number();
    onnx_builder *b = begin("ai.onnx.ml:TreeEnsembleRegressor", "y", dtype);
    put_nodes(b, e, as_doubles);
    put_weights(b, e, "target");
    onnx_attr_int(b, "n_targets", targets);
    onnx_attr_string(b, "aggregate_function", aggregate);
    onnx_attr_floats(b, "base_values", targets, (float[]){0.5F, -1, 2});
    onnx_output(b, "y");
    results r = run(b, x, ROWS, dtype);
    for (int row = 0; row < ROWS; row++) {
        static const double base[] = {0.5, -1, 2};
        double wanted[TARGETS];
        walk(e, &x[row * FEATURES], aggregate, wanted);
        for (int t = 0; t < targets; t++) {
            double have = r.out[0]->f[row * targets + t];
            if (fabs(have - wanted[t] - base[t]) > 1e-6)
                fail_msg("%s, depth %d: row %d target %d is %g, not %g", aggregate, depth, row, t, have,
                         wanted[t] + base[t]);
        }
    }
    ir_arena_destroy(r.arena);
    free(e);
}

static void every_mode_and_direction_of_nan_follows_the_definition(void **state)
{
    static const char *const aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    srand(1);
    for (int k = 0; k < 160; k++) check_random(aggregates[k % 4], k % 5, k % 3 == 0, k % 7 == 0);
}

/* A tree with one comparison, x[0] <= 0, and weights for a class or two. */
static onnx_builder *small_classifier(int count, const int64_t *nodes, const int64_t *classes, const float *weights,
                                      const char *transform)
{
    static const ensemble tree = {.nodes = 3, .id = {0, 1, 2}, .mode = {0, MODES, MODES}, .yes = {1}, .no = {2}};
    onnx_builder *b = begin("ai.onnx.ml:TreeEnsembleClassifier", "label,scores", MDOT_DTYPE_F32);
    put_nodes(b, &tree, false);
    onnx_attr_ints(b, "class_treeids", count, (int64_t[4]){0});
    onnx_attr_ints(b, "class_nodeids", count, nodes);
    onnx_attr_ints(b, "class_ids", count, classes);
    onnx_attr_floats(b, "class_weights", count, weights);
    onnx_attr_ints(b, "classlabels_int64s", 2, (int64_t[]){3, 5});
    onnx_attr_string(b, "post_transform", transform);
    onnx_output(b, "label");
    onnx_output(b, "scores");
    return b;
}

/* The values are ONNX Runtime 1.31's, for the rows x[0] = -1 and x[0] = 1. */
static void classifiers_score_as_onnx_runtime_does(void **state)
{
    static const int64_t leaves[] = {1, 2, 1, 2}, one[] = {0, 0}, both[] = {0, 0, 1, 1};
    static const struct {
        int count;
        float weights[4];
        const char *transform;
        int64_t labels[2];
        double scores[4];
    } cases[] = {
        {2, {0.3F, 0.8F}, "NONE", {3, 5}, {0.7, 0.3, 0.2, 0.8}},
        {2, {-0.3F, 0.8F}, "NONE", {3, 5}, {0.3, -0.3, -0.8, 0.8}},
        {2, {0.3F, 0.8F}, "LOGISTIC", {3, 5}, {0.425557494, 0.574442506, 0.310025513, 0.689974487}},
        {2, {-0.3F, 0.8F}, "LOGISTIC", {3, 5}, {0.574442506, 0.425557494, 0.310025513, 0.689974487}},
        {4, {0.3F, 0.6F, 0.7F, 0.4F}, "SOFTMAX", {5, 3}, {0.401312321, 0.598687679, 0.549833997, 0.450166003}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        onnx_builder *b = small_classifier(cases[k].count, leaves, cases[k].count == 2 ? one : both, cases[k].weights,
                                           cases[k].transform);
        float x[2 * FEATURES] = {-1, 0, 0, 1, 0, 0};
        results r = run(b, x, 2, MDOT_DTYPE_F32);
        for (int row = 0; row < 2; row++) {
            /* ONNX Runtime gives the label 1 wherever both classes have weights, also if there is no such label. */
            assert_int_equal(r.out[0]->i[row], cases[k].labels[row]);
            for (int c = 0; c < 2; c++)
                if (fabs(r.out[1]->f[row * 2 + c] - cases[k].scores[row * 2 + c]) > 2e-7 + 1e-6)
                    fail_msg("case %d: row %d class %d is %g", (int)k, row, c, r.out[1]->f[row * 2 + c]);
        }
        ir_arena_destroy(r.arena);
    }
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

/* Root 0 with the leaves 1 and 2. */
static ensemble two_leaves(void)
{
    return (ensemble){.nodes = 3,
                      .weights = 2,
                      .trees = 1,
                      .id = {0, 1, 2},
                      .mode = {0, MODES, MODES},
                      .yes = {1},
                      .no = {2},
                      .weight_node = {1, 2},
                      .weight = {1, 2}};
}

static onnx_builder *regressor(const ensemble *e)
{
    onnx_builder *b = begin("ai.onnx.ml:TreeEnsembleRegressor", "y", MDOT_DTYPE_F32);
    put_nodes(b, e, false);
    put_weights(b, e, "target");
    onnx_output(b, "y");
    return b;
}

static void broken_trees_are_refused(void **state)
{
    ensemble e = two_leaves();
    e.no[0] = 7;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "TreeEnsembleRegressor", "nodes_falsenodeids",
                   "node 7 of tree 0", NULL);
    e = two_leaves(); /* a leaf without a parent */
    e.no[0] = 1;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "2 roots", NULL);
    e = two_leaves(); /* the root is a child of itself */
    e.yes[0] = 0;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "node 0 of tree 0 is not reached", NULL);
    e = two_leaves();
    e.id[2] = 1;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "node 1 of tree 0 is there twice", NULL);
    e = two_leaves();
    e.feature[0] = -1;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "reads feature -1", NULL);
    e = two_leaves();
    e.value[0] = NAN;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "threshold NaN", NULL);
    e = two_leaves();
    e.target[1] = 1;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "target 1 of 1", NULL);
    e = two_leaves();
    e.weight_node[1] = 9;
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "target_nodeids", "node 9", NULL);
}

/* A circle beside the root: each node has one parent, and none is reached. */
static void circles_are_refused(void **state)
{
    ensemble e = {.nodes = 7,
                  .weights = 1,
                  .id = {0, 1, 2, 3, 4, 5, 6},
                  .mode = {0, MODES, MODES, 0, 0, MODES, MODES},
                  .yes = {1, 0, 0, 4, 3},
                  .no = {2, 0, 0, 5, 6},
                  .weight_node = {1},
                  .weight = {1}};
    expect_refused(regressor(&e), NULL, MDOT_MALFORMED, "node 3 of tree 0 is not reached", NULL);
}

static void lists_of_other_lengths_are_refused(void **state)
{
    ensemble e = two_leaves();
    onnx_builder *b = begin("ai.onnx.ml:TreeEnsembleRegressor", "y", MDOT_DTYPE_F32);
    put_nodes(b, &e, false);
    onnx_attr_ints(b, "target_treeids", 1, (int64_t[]){0});
    onnx_attr_ints(b, "target_nodeids", 2, (int64_t[]){1, 2});
    onnx_output(b, "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "'target_nodeids' has 2 elements, but 'target_treeids' has 1", NULL);
    b = begin("ai.onnx.ml:TreeEnsembleRegressor", "y", MDOT_DTYPE_F32);
    onnx_output(b, "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "it has no trees", NULL);
}

static void a_feature_that_the_input_lacks_is_refused(void **state)
{
    mdot_error err;
    ensemble e = two_leaves();
    e.feature[0] = 3;
    imported model = expect_imported(regressor(&e), NULL);
    model.graph->max_length = 8;
    assert_int_equal(ir_infer(model.graph, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "reads feature 3, but the input has 3 features"));
    release(&model);
}

static void ambiguous_forms_are_refused(void **state)
{
    ensemble e = two_leaves();
    onnx_builder *b = regressor(&e);
    onnx_attr_string(b, "post_transform", "LOGISTIC");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "post_transform", "Sigmoid", NULL);
    b = small_classifier(2, (int64_t[]){1, 2}, (int64_t[]){1, 1}, (float[]){1, 2}, "NONE");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "second class", NULL);
}

/* ---- TreeEnsemble, of version 5 ---------------------------------------------------------------------------------- */

typedef struct joined { /* the same ensemble in lists of inner nodes and leaves */
    int nodes, leaves, roots;
    int64_t feature[MAX_NODES], yes[MAX_NODES], no[MAX_NODES], yes_leaf[MAX_NODES], no_leaf[MAX_NODES];
    int64_t missing[MAX_NODES], target[MAX_WEIGHTS], root[MAX_NODES];
    unsigned char mode[MAX_NODES];
    double split[MAX_NODES], weight[MAX_WEIGHTS];
} joined;

static int position_of(const ensemble *e, int64_t tree, int64_t id)
{
    int n = 0;
    while (e->tree[n] != tree || e->id[n] != id) n++;
    return n;
}

static int64_t join_leaf(joined *j, const ensemble *e, int n)
{
    int k = 0;
    while (e->weight_tree[k] != e->tree[n] || e->weight_node[k] != e->id[n]) k++;
    j->weight[j->leaves] = e->weight[k];
    j->target[j->leaves] = e->target[k];
    return j->leaves++;
}

/* Returns the position of an inner node or leaf, and whether it is a leaf. */
static int64_t join_node(joined *j, const ensemble *e, int n, int64_t *out_leaf)
{
    *out_leaf = e->mode[n] == MODES;
    if (*out_leaf) return join_leaf(j, e, n);
    int at = j->nodes++;
    j->feature[at] = e->feature[n];
    j->mode[at] = (unsigned char)e->mode[n];
    j->split[at] = e->value[n];
    j->missing[at] = e->missing[n];
    j->yes[at] = join_node(j, e, position_of(e, e->tree[n], e->yes[n]), &j->yes_leaf[at]);
    j->no[at] = join_node(j, e, position_of(e, e->tree[n], e->no[n]), &j->no_leaf[at]);
    return at;
}

static void join_tree(joined *j, const ensemble *e, int64_t tree)
{
    int64_t is_leaf, at = join_node(j, e, position_of(e, tree, 0), &is_leaf);
    if (is_leaf) { /* a node whose branches lead to the same leaf */
        j->yes[j->nodes] = j->no[j->nodes] = at;
        j->yes_leaf[j->nodes] = j->no_leaf[j->nodes] = 1;
        at = j->nodes++;
    }
    j->root[j->roots++] = at;
}

static void put_floats(onnx_builder *b, const char *name, mdot_dtype dtype, int count, const double *values)
{
    char shape[16];
    float singles[MAX_WEIGHTS];
    snprintf(shape, sizeof shape, "%d", count);
    for (int i = 0; i < count; i++) singles[i] = (float)values[i];
    onnx_attr_tensor(b, name, dtype, shape, dtype == MDOT_DTYPE_F64 ? (const void *)values : singles);
}

static onnx_builder *tree_ensemble(const joined *j, mdot_dtype dtype, int64_t aggregate)
{
    char shape[16];
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "ai.onnx.ml", 5);
    onnx_input(b, "x", dtype, "N,3");
    onnx_node(b, "ai.onnx.ml:TreeEnsemble", "x", "y");
    snprintf(shape, sizeof shape, "%d", j->nodes);
    onnx_attr_tensor(b, "nodes_modes", MDOT_DTYPE_U8, shape, j->mode);
    put_floats(b, "nodes_splits", dtype, j->nodes, j->split);
    put_floats(b, "leaf_weights", dtype, j->leaves, j->weight);
    onnx_attr_ints(b, "nodes_featureids", j->nodes, j->feature);
    onnx_attr_ints(b, "nodes_truenodeids", j->nodes, j->yes);
    onnx_attr_ints(b, "nodes_falsenodeids", j->nodes, j->no);
    onnx_attr_ints(b, "nodes_trueleafs", j->nodes, j->yes_leaf);
    onnx_attr_ints(b, "nodes_falseleafs", j->nodes, j->no_leaf);
    onnx_attr_ints(b, "nodes_missing_value_tracks_true", j->nodes, j->missing);
    onnx_attr_ints(b, "leaf_targetids", j->leaves, j->target);
    onnx_attr_ints(b, "tree_roots", j->roots, j->root);
    onnx_attr_int(b, "n_targets", TARGETS);
    onnx_attr_int(b, "aggregate_function", aggregate);
    onnx_output(b, "y");
    return b;
}

static void check_joined(int64_t aggregate, int depth, mdot_dtype dtype)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    ensemble *e = calloc(1, sizeof *e);
    joined *j = calloc(1, sizeof *j);
    float x[ROWS * FEATURES];
    assert_non_null(e);
    assert_non_null(j);
    for (int t = 0; t < 6; t++) {
        int64_t next_id = 1; /* the root is 0, otherwise unused in this tree */
        int first = e->nodes;
        int64_t root = add_nodes(e, 10 + e->trees++, &next_id, depth, t % TARGETS);
        for (int n = first; n < e->nodes; n++) {
            if (e->id[n] != root) continue;
            for (int k = 0; k < e->weights; k++)
                if (e->weight_tree[k] == e->tree[n] && e->weight_node[k] == root) e->weight_node[k] = 0;
            e->id[n] = 0;
        }
        join_tree(j, e, 10 + t);
    }
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = rand() % 6 == 0 ? NAN : number();
    results r = run(tree_ensemble(j, dtype, aggregate), x, ROWS, dtype);
    assert_int_equal(r.out[0]->dtype, dtype);
    for (int row = 0; row < ROWS; row++) {
        double wanted[TARGETS];
        walk(e, &x[row * FEATURES], names[aggregate], wanted);
        for (int t = 0; t < TARGETS; t++) {
            double have = r.out[0]->f[row * TARGETS + t];
            if (fabs(have - wanted[t]) > 1e-6)
                fail_msg("%s: row %d target %d is %g, not %g", names[aggregate], row, t, have, wanted[t]);
        }
    }
    ir_arena_destroy(r.arena);
    free(e);
    free(j);
}

static void ensembles_of_version_5_follow_the_definition(void **state)
{
    srand(2);
    for (int k = 0; k < 60; k++) check_joined(k % 4, k % 5, k % 3 == 0 ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32);
}

/* The root tests x[0] in {1, 3}, and the node behind it x[1] in {2}. NaN takes the branch named by each node. */
static joined sets(void)
{
    return (joined){.nodes = 2,
                    .leaves = 3,
                    .roots = 1,
                    .feature = {0, 1},
                    .mode = {6, 6},
                    .yes = {1, 0},
                    .no = {2, 1},
                    .yes_leaf = {0, 1},
                    .no_leaf = {1, 1},
                    .missing = {1, 0},
                    .weight = {10, 20, 30}};
}

static void members_of_sets_take_the_true_branch(void **state)
{
    const joined j = sets();
    const double members[] = {1, 3, (double)NAN, 2, (double)NAN};
    const float x[] = {1, 2, 0, 3, 2, 0, 3, 5, 0, 2, 2, 0, NAN, 2, 0, 1, NAN, 0};
    const double wanted[] = {10, 10, 20, 30, 10, 20};
    onnx_builder *b = tree_ensemble(&j, MDOT_DTYPE_F32, 1);
    put_floats(b, "membership_values", MDOT_DTYPE_F32, 5, members);
    results r = run(b, x, 6, MDOT_DTYPE_F32);
    for (int row = 0; row < 6; row++) assert_compare(r.out[0]->f[row * TARGETS], ==, wanted[row]);
    ir_arena_destroy(r.arena);
}

static void broken_ensembles_of_version_5_are_refused(void **state)
{
    joined j = sets();
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 1), NULL, MDOT_MALFORMED, "membership_values", NULL);
    j.mode[0] = j.mode[1] = 7;
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 1), NULL, MDOT_UNSUPPORTED, "mode 7 of node 0", NULL);
    j.mode[0] = j.mode[1] = 0;
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 4), NULL, MDOT_UNSUPPORTED, "aggregate_function 4", NULL);
    j.yes[0] = 0; /* a circle */
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 1), NULL, MDOT_MALFORMED, "TreeEnsemble", "not trees", NULL);
    j.yes[0] = 5;
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 1), NULL, MDOT_MALFORMED, "node 5 of 2", NULL);
    j.leaves = 0;
    expect_refused(tree_ensemble(&j, MDOT_DTYPE_F32, 1), NULL, MDOT_MALFORMED, "leaf_weights", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ensembles_of_version_5_follow_the_definition),
        cmocka_unit_test(members_of_sets_take_the_true_branch),
        cmocka_unit_test(broken_ensembles_of_version_5_are_refused),
        cmocka_unit_test(every_mode_and_direction_of_nan_follows_the_definition),
        cmocka_unit_test(classifiers_score_as_onnx_runtime_does),
        cmocka_unit_test(broken_trees_are_refused),
        cmocka_unit_test(circles_are_refused),
        cmocka_unit_test(lists_of_other_lengths_are_refused),
        cmocka_unit_test(a_feature_that_the_input_lacks_is_refused),
        cmocka_unit_test(ambiguous_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
