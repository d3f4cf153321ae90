/* Products of two run-time matrices against the plan interpreter: extents around the borders of vectors, tiles and
 * strips, loop roles, computed factors, and the nests that keep the general form. */
#include "codegen/cpu/cpu_images.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/tiles.h"
#include "ir/ops.h"
#include "plan/planner.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const int64_t lengths[] = {1, 8, 9, 16, 17, 40, 65, 0};
static const int64_t no_length[] = {1, 0};

/* How a product reads the factors. */
typedef struct form {
    bool left_transposed;               /* x[k, i] */
    bool right_transposed;              /* y[j, k] */
    bool left_shared, right_shared;     /* one matrix for all batches */
    bool left_computed, right_computed; /* two loads added */
    bool adds_row;                      /* an epilogue with a separate vector */
} form;

static const pl_expr *position(plan_fixture *f, const pl_expr *i, ir_dim columns, const pl_expr *j)
{
    return pl_binary(f->arena, PL_ADD, pl_binary(f->arena, PL_MUL, i, pl_dim(f->arena, columns)), j);
}

/* Element (row, column) of a matrix per batch, stored with `columns` columns, as a new input. */
static const pl_expr *factor(plan_fixture *f, ir_dim batch, ir_dim rows, ir_dim columns, const pl_expr *row,
                             const pl_expr *column, bool shared, bool computed)
{
    const pl_expr *value = NULL;
    for (int part = 0; part <= computed; part++) {
        int in = shared ? plan_input(f, MDOT_DTYPE_F32, PLAN_SHAPE(rows, columns))
                        : plan_input(f, MDOT_DTYPE_F32, PLAN_SHAPE(batch, rows, columns));
        const pl_expr *outer = shared ? row : position(f, pl_index(f->arena, 0), rows, row);
        const pl_expr *load = pl_load(f->arena, in, MDOT_DTYPE_F32, position(f, outer, columns, column));
        value = part ? pl_binary(f->arena, PL_ADD, value, load) : load;
    }
    return value;
}

/* out[b, i, j] = sum_k x[b, i, k] y[b, k, j] */
static pl_nest product(plan_fixture *f, ir_dim batch, ir_dim m, ir_dim k, ir_dim n, form s)
{
    const pl_expr *i = pl_index(f->arena, 1), *j = pl_index(f->arena, 2), *t = pl_index(f->arena, 3);
    const pl_expr *x = s.left_transposed ? factor(f, batch, k, m, t, i, s.left_shared, s.left_computed)
                                         : factor(f, batch, m, k, i, t, s.left_shared, s.left_computed);
    const pl_expr *y = s.right_transposed ? factor(f, batch, n, k, j, t, s.right_shared, s.right_computed)
                                          : factor(f, batch, k, n, t, j, s.right_shared, s.right_computed);
    int out = plan_output(f, MDOT_DTYPE_F32, PLAN_SHAPE(batch, m, n));
    const pl_expr *result = pl_acc(f->arena, 0, MDOT_DTYPE_F32);
    if (s.adds_row) {
        int row = plan_input(f, MDOT_DTYPE_F32, PLAN_SHAPE(n));
        result = pl_binary(f->arena, PL_ADD, result, pl_load(f->arena, row, MDOT_DTYPE_F32, j));
    }
    return (pl_nest){.loop_count = 3,
                     .reduce_count = 1,
                     .extent = {batch, m, n, k},
                     .reducer = PL_REDUCE_SUM,
                     .body = pl_binary(f->arena, PL_MUL, x, y),
                     .store_count = 1,
                     .store = {{out, position(f, position(f, pl_index(f->arena, 0), m, i), n, j), result}}};
}

static bool is_product(const plan_fixture *f, const pl_nest *nest, cg_product *out)
{
    return cg_product_find(&f->plan, nest, cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32), out);
}

static void add_product(plan_fixture *f, ir_dim batch, ir_dim m, ir_dim k, ir_dim n, form s)
{
    cg_product found;
    pl_nest nest = product(f, batch, m, k, n, s);
    assert_true(is_product(f, &nest, &found));
    assert_int_equal(found.copies_left, s.left_computed);
    assert_int_equal(found.transposes, s.right_transposed);
    plan_nest(f, nest);
}

static const form forms[] = {
    {0},
    {.right_transposed = true},
    {.left_transposed = true},
    {.left_transposed = true, .right_transposed = true},
    {.left_computed = true, .right_transposed = true, .right_computed = true},
    {.left_transposed = true, .left_computed = true, .right_computed = true, .adds_row = true},
    {.left_shared = true, .right_transposed = true, .adds_row = true},
    {.right_shared = true},
};

/* The length as two of rows, columns and k; two shapes in each form. */
static void products_match_at_every_length(void **state)
{
    (void)state;
    const ir_dim l = PLAN_L, shapes[][3] = {{l, PLAN_N(21), l},
                                            {l, l, PLAN_N(37)},
                                            {PLAN_N(29), l, l},
                                            {l, PLAN_N(16), {.scale = 2, .offset = 1}}};
    for (size_t s = 0; s < sizeof forms / sizeof forms[0]; s++) {
        plan_fixture f;
        plan_begin(&f, 65);
        for (size_t k = 0; k < 2; k++) {
            const ir_dim *shape = shapes[(s + k) % 4];
            add_product(&f, (ir_dim)PLAN_N(2), shape[0], shape[1], shape[2], forms[s]);
        }
        srand((unsigned)s);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

/* Known extents have exact strips: 16 … 32 columns for vectors, 64 for a strip; 6 and 4 rows for tiles. */
static void products_of_known_extents_match(void **state)
{
    (void)state;
    static const int64_t columns[] = {16, 17, 31, 33, 64, 65, 100, 128}, rows[] = {6, 7, 10, 23, 30};
    for (size_t s = 0; s < sizeof forms / sizeof forms[0]; s++) {
        plan_fixture f;
        plan_begin(&f, 0);
        for (size_t c = s % 4; c < sizeof columns / sizeof columns[0]; c += 4)
            add_product(&f, (ir_dim)PLAN_N(2), (ir_dim)PLAN_N(rows[(c + s) % 5]), (ir_dim)PLAN_N(16 + (int64_t)c),
                        (ir_dim)PLAN_N(columns[c]), forms[s]);
        srand((unsigned)s);
        plan_check(&f, no_length);
        plan_end(&f);
    }
}

/* The last loop may be the rows: out[i, j] with j adjacent in memory, although i is the inner loop. */
static void columns_are_the_loop_that_stores_adjacent_elements(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 65);
    const ir_dim l = PLAN_L, k = PLAN_N(40);
    int x = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(l, k)), y = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(l, k));
    int out = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(l, l));
    const pl_expr *j = pl_index(f.arena, 0), *i = pl_index(f.arena, 1), *t = pl_index(f.arena, 2);
    const pl_expr *left = pl_load(f.arena, x, MDOT_DTYPE_F32, position(&f, i, k, t));
    const pl_expr *right = pl_load(f.arena, y, MDOT_DTYPE_F32, position(&f, j, k, t));
    pl_nest nest = {.loop_count = 2,
                    .reduce_count = 1,
                    .extent = {l, l, k},
                    .reducer = PL_REDUCE_SUM,
                    .body = pl_binary(f.arena, PL_MUL, left, right),
                    .store_count = 1,
                    .store = {{out, position(&f, i, l, j), pl_acc(f.arena, 0, MDOT_DTYPE_F32)}}};
    cg_product found;
    assert_true(is_product(&f, &nest, &found));
    assert_int_equal(found.column_loop, 0);
    assert_int_equal(found.row_loop, 1);
    plan_nest(&f, nest);
    plan_check(&f, lengths);
    plan_end(&f);
}

static void other_sums_keep_the_general_form(void **state)
{
    (void)state;
    plan_fixture f;
    cg_product found;
    plan_begin(&f, 65);
    const ir_dim l = PLAN_L, one = PLAN_N(1), few = PLAN_N(5), k = PLAN_N(40);
    const form plain = {.right_transposed = true};
    pl_nest nest = product(&f, one, l, k, l, plain);
    assert_true(is_product(&f, &nest, &found));
    nest.reducer = PL_REDUCE_MAX;
    assert_false(is_product(&f, &nest, &found));
    nest = product(&f, one, few, k, l, plain); /* few rows */
    assert_false(is_product(&f, &nest, &found));
    nest = product(&f, one, l, k, few, plain); /* less than one vector in columns */
    assert_false(is_product(&f, &nest, &found));
    nest = product(&f, one, l, few, l, plain); /* less than one vector in k to transpose */
    assert_false(is_product(&f, &nest, &found));
    nest = product(&f, one, l, k, l, plain); /* in place: columns computed twice would be added twice */
    const pl_expr *old = pl_load(f.arena, nest.store[0].buffer, MDOT_DTYPE_F32, nest.store[0].index);
    nest.store[0].value = pl_binary(f.arena, PL_ADD, nest.store[0].value, old);
    assert_false(is_product(&f, &nest, &found));
    nest = product(&f, one, l, k, l, plain); /* stores apart from each other */
    nest.store[0].index = pl_binary(f.arena, PL_MUL, nest.store[0].index, pl_const_i(f.arena, MDOT_DTYPE_I64, 2));
    assert_false(is_product(&f, &nest, &found));
    plan_end(&f);
}

static void keep_text(void *user, const char *text) { *(char **)user = strdup(text); }

static char *assembly_at(int64_t max_length)
{
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    pl_plan *plan;
    ir_graph *graph = graph_from_notation("x = input f32[L,L]\nz = input f32[L,64]\nu = Neg(x)\ny = MatMul(u, z)\n"
                                          "return y\n",
                                          max_length, arena);
    if (ir_infer(graph, &err) != MDOT_OK || pl_build(graph, arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    char *text = NULL;
    const cg_cpu_target *target = cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32);
    cg_entry entry = {.name = "run", .graph = graph, .plan_count = 1, .plans = &plan};
    cg_options options = {.predictor_name = "product", .dump = "asm", .dump_text = keep_text, .user = &text};
    cg_cpu_images images;
    if (cg_cpu_make_images_for(&target, 1, &entry, 1, &options, arena, &images, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    cg_cpu_images_done(&images);
    ir_arena_destroy(arena);
    assert_non_null(text);
    return text;
}

/* The kernel's part of an assembly: from the first multiplication to the last. */
static size_t multiplications(const char *text, const char **out_first)
{
    const char *last = *out_first = strstr(text, "vfmadd");
    assert_non_null(last);
    for (const char *next = last; next != NULL; next = strstr(next + 1, "vfmadd")) last = next;
    return (size_t)(last - *out_first);
}

/* Kernels with equal signatures are one function in all buckets, so the maximum length must not be in the code. */
static void buckets_share_the_code_of_a_product(void **state)
{
    (void)state;
    char *small = assembly_at(64), *large = assembly_at(1024);
    const char *from_small, *from_large;
    size_t size = multiplications(small, &from_small);
    assert_int_equal(size, multiplications(large, &from_large));
    assert_memory_equal(from_small, from_large, size);
    free(small);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_match_at_every_length),
        cmocka_unit_test(products_of_known_extents_match),
        cmocka_unit_test(columns_are_the_loop_that_stores_adjacent_elements),
        cmocka_unit_test(other_sums_keep_the_general_form),
        cmocka_unit_test(buckets_share_the_code_of_a_product),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
