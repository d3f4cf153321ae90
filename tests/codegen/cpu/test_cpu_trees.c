/* test_cpu_trees.c — trees from mdot.Trees to code: the plan and both methods against the reference evaluator, on
 * random ensembles. */
#include "tests/support/graph_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths around a block's rows (eight or sixteen lanes), with rests that walk and rests that fill a block. */
static const int64_t lengths[] = {1, 3, 4, 8, 11, 16, 19, 21, 40, 0};

enum { MAX_RECORDS = 4096, MAX_TREES = 64, FEATURES = 3 };

typedef struct table {
    bool is_double;
    int words, count, values, trees, depth;
    int32_t records[MAX_RECORDS * 6];
    int32_t tree[MAX_TREES * 3];
    int width; /* values per leaf */
} table;

static void put(table *t, int record, double threshold, int feature, int child, int value)
{
    int32_t *words = &t->records[record * t->words];
    float single = (float)threshold;
    if (t->is_double)
        memcpy(words, &threshold, sizeof threshold);
    else
        memcpy(words, &single, sizeof single);
    words += t->is_double ? 2 : 1;
    words[0] = feature;
    words[1] = child;
    words[2] = value;
}

/* Fills a record with a node, and returns the depth below it. A chain has a leaf on every level. */
static int grow(table *t, int record, int depth, bool is_chain)
{
    if (depth == 0) {
        put(t, record, NAN, 0, record - 1, t->values);
        t->values += t->width;
        return 0;
    }
    int child = t->count;
    t->count += 2;
    put(t, record, (double)(rand() % 2000 - 1000) / 1000, rand() % (2 * FEATURES), child, 0);
    int first = grow(t, child, is_chain ? 0 : depth - 1 - (rand() % 4 == 0 && depth > 1), is_chain);
    int second = grow(t, child + 1, depth - 1, is_chain);
    return 1 + (first > second ? first : second);
}

/* Trees for targets 0, 1 …, or for all of them (-1). */
static void add_trees(table *t, int count, int depth, int targets, bool is_chain)
{
    for (int k = 0; k < count; k++) {
        int root = t->count++;
        int32_t *tree = &t->tree[3 * t->trees++];
        tree[0] = root;
        tree[1] = grow(t, root, depth, is_chain);
        tree[2] = targets < 0 ? -1 : k % targets;
    }
}

static table *begin(bool is_double, int width)
{
    table *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->is_double = is_double;
    t->words = is_double ? 6 : 4;
    t->count = 1;
    t->width = width;
    put(t, 0, NAN, 0, 0, 0);
    return t;
}

static int put_ints(char *text, const char *name, const int32_t *values, int rows, int columns)
{
    int used = sprintf(text, "%s = constant i32[%d,%d] [", name, rows, columns);
    for (int k = 0; k < rows * columns; k++) used += sprintf(text + used, "%s%d", k > 0 ? ", " : "", (int)values[k]);
    return used + sprintf(text + used, "]\n");
}

/* x is the input's square root, so about half the features are NaN. Frees the table. */
static void check(table *t, const char *attributes)
{
    const char *type = t->is_double ? "f64" : "f32";
    char *text = malloc((size_t)1 << 20);
    assert_non_null(text);
    int used = sprintf(text, "x = input %s[L,%d]\nroot = Sqrt(x)\nrows = Concat(x, root) {axis=0}\n", type, FEATURES);
    used += put_ints(text + used, "nodes", t->records, t->count, t->words);
    used += put_ints(text + used, "trees", t->tree, t->trees, 3);
    used += sprintf(text + used, "values = constant %s[%d] [", type, t->values);
    for (int k = 0; k < t->values; k++) used += sprintf(text + used, "%s%d", k > 0 ? ", " : "", rand() % 200 - 100);
    sprintf(text + used,
            "]\ny = mdot.Trees(x, nodes, trees, values) {%s}\nz = mdot.Trees(rows, nodes, trees, values) {%s}\n"
            "return y, z\n",
            attributes, attributes);
    assert_code_agrees(text, lengths);
    assert_kernels(text, "nest trees2");
    free(text);
    free(t);
}

static void trees_of_several_depths_match(void **state)
{
    (void)state;
    for (int is_double = 0; is_double <= 1; is_double++) {
        srand(3);
        table *t = begin(is_double, 1);
        add_trees(t, 3, 0, 1, false);
        add_trees(t, 5, 2, 1, false);
        add_trees(t, 7, 5, 1, false);
        check(t, "targets=1");
    }
}

/* More than 32 leaves take two masks, and more than 64 rule out comparing all nodes. */
static void large_trees_match(void **state)
{
    (void)state;
    for (int depth = 6; depth <= 8; depth++) {
        srand((unsigned)depth);
        table *t = begin(depth == 7, 1);
        add_trees(t, 4, depth, 1, false);
        check(t, "targets=1");
    }
}

/* Depths beyond the unrolled ones, and the most leaves that fit into two masks. */
static void chains_match(void **state)
{
    (void)state;
    static const int depths[] = {17, 31, 32, 63, 64, 100};
    for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
        srand((unsigned)k);
        table *t = begin(k % 2 != 0, 1);
        add_trees(t, 2, depths[k], 1, true);
        check(t, "targets=1");
    }
}

static void every_target_gets_its_trees(void **state)
{
    (void)state;
    static const char *const attributes[] = {"targets=4", "targets=4, aggregate=\"MIN\"",
                                             "targets=4, aggregate=\"MAX\""};
    for (int k = 0; k < 3; k++) {
        srand((unsigned)k);
        table *t = begin(false, 1);
        add_trees(t, 9, 4, 4, false);
        check(t, attributes[k]);
        t = begin(k == 1, 4);
        add_trees(t, 5, 3, 4, false);
        add_trees(t, 5, 3, -1, false);
        check(t, attributes[k]);
    }
}

static void one_target_takes_the_least_or_greatest_value(void **state)
{
    (void)state;
    srand(8);
    table *t = begin(false, 1);
    add_trees(t, 9, 3, 1, false);
    check(t, "targets=1, aggregate=\"MIN\"");
    t = begin(false, 1);
    add_trees(t, 9, 3, 1, false);
    check(t, "targets=1, aggregate=\"MAX\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_of_several_depths_match),
        cmocka_unit_test(large_trees_match),
        cmocka_unit_test(chains_match),
        cmocka_unit_test(every_target_gets_its_trees),
        cmocka_unit_test(one_target_takes_the_least_or_greatest_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
