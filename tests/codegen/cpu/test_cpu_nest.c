/* Loop nests against the plan interpreter: element access, vector remainders, reductions, arg-reductions, matmuls. */
#include "tests/support/plan_fixture.h"
#include "tests/support/shard.h"

#include "codegen/cpu/cpu_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static const int64_t lengths[] = {1, 2, 5, 8, 15, 16, 17, 31, 33, 64, 67, 0};
static const int64_t no_length[] = {1, 0};

static const pl_expr *number(plan_fixture *f, int64_t n) { return pl_const_i(f->arena, MDOT_DTYPE_I64, n); }

static const pl_expr *loop(plan_fixture *f, int number_of) { return pl_index(f->arena, number_of); }

static const pl_expr *plus(plan_fixture *f, const pl_expr *a, const pl_expr *b)
{
    return pl_binary(f->arena, PL_ADD, a, b);
}

static const pl_expr *times(plan_fixture *f, const pl_expr *a, const pl_expr *b)
{
    return pl_binary(f->arena, PL_MUL, a, b);
}

/* (i * columns + j), row-major */
static const pl_expr *at2(plan_fixture *f, const pl_expr *i, const pl_expr *columns, const pl_expr *j)
{
    return plus(f, times(f, i, columns), j);
}

static const pl_expr *load(plan_fixture *f, int buffer, const pl_expr *index)
{
    return pl_load(f->arena, buffer, f->buffers[buffer].type.dtype, index);
}

static const pl_expr *length(plan_fixture *f) { return pl_dim(f->arena, (ir_dim)PLAN_L); }

static void copy_by(plan_fixture *f, ir_dim rows, ir_dim columns, int in, const pl_expr *from)
{
    int out = plan_output(f, f->buffers[in].type.dtype, PLAN_SHAPE(rows, columns));
    const pl_expr *to = at2(f, loop(f, 0), pl_dim(f->arena, columns), loop(f, 1));
    plan_nest(f, (pl_nest){.loop_count = 2,
                           .extent = {rows, columns},
                           .store_count = 1,
                           .store = {{.buffer = out, .index = to, .value = load(f, in, from)}}});
}

static void data_movement_reads_the_right_elements(void **state)
{
    (void)state;
    static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_F16, MDOT_DTYPE_I8, MDOT_DTYPE_BOOL};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        plan_fixture f;
        plan_begin(&f, 67);
        ir_dim rows = PLAN_L, columns = PLAN_N(37);
        const pl_expr *i = loop(&f, 0), *j = loop(&f, 1);
        int in = plan_input(&f, dtypes[d], PLAN_SHAPE(PLAN_L, PLAN_N(80)));
        int transposed = plan_input(&f, dtypes[d], PLAN_SHAPE(PLAN_N(37), PLAN_L));
        copy_by(&f, rows, columns, in, at2(&f, i, number(&f, 80), plus(&f, j, number(&f, 3))));  /* slice */
        copy_by(&f, rows, columns, in, at2(&f, i, number(&f, 80), times(&f, j, number(&f, 2)))); /* step 2 */
        copy_by(&f, rows, columns, in,
                at2(&f, i, number(&f, 80), plus(&f, times(&f, j, number(&f, -1)), number(&f, 40)))); /* reversed */
        copy_by(&f, rows, columns, in, times(&f, i, number(&f, 80)));      /* column broadcast */
        copy_by(&f, rows, columns, in, j);                                 /* row broadcast */
        copy_by(&f, rows, columns, in, number(&f, 5));                     /* scalar */
        copy_by(&f, rows, columns, transposed, at2(&f, j, length(&f), i)); /* transpose */
        copy_by(&f, rows, columns, in,
                pl_binary(f.arena, PL_PYMOD, times(&f, plus(&f, i, j), number(&f, 7)), number(&f, 80)));
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

/* out[i, j] = table[ids[i], j] and table[ids[j], i]: gathers rows by a loaded index, and single elements. */
static void gathers_follow_loaded_indices(void **state)
{
    (void)state;
    for (int wide = 0; wide <= 1; wide++) {
        plan_fixture f;
        mdot_dtype id_dtype = wide ? MDOT_DTYPE_I64 : MDOT_DTYPE_I32;
        plan_begin(&f, 67);
        int ids = plan_input_between(&f, id_dtype, 0, 9, PLAN_SHAPE(PLAN_L));
        int table = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(10), PLAN_N(72)));
        const pl_expr *by_row = pl_cast(f.arena, load(&f, ids, loop(&f, 0)), MDOT_DTYPE_I64);
        const pl_expr *by_column = pl_cast(f.arena, load(&f, ids, loop(&f, 1)), MDOT_DTYPE_I64);
        copy_by(&f, (ir_dim)PLAN_L, (ir_dim)PLAN_N(72), table, at2(&f, by_row, number(&f, 72), loop(&f, 1)));
        copy_by(&f, (ir_dim)PLAN_N(40), (ir_dim)PLAN_L, table, at2(&f, by_column, number(&f, 72), loop(&f, 0)));
        srand(3);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void several_stores_share_one_nest(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 67);
    int in = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
    int sum = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L)),
        flag = plan_output(&f, MDOT_DTYPE_BOOL, PLAN_SHAPE(PLAN_L));
    int spread = plan_output(&f, MDOT_DTYPE_I64, PLAN_SHAPE({.scale = 3}));
    const pl_expr *x = load(&f, in, loop(&f, 0)), *zero = pl_const_f(f.arena, MDOT_DTYPE_F32, 0);
    const pl_expr *triple = times(&f, loop(&f, 0), number(&f, 3));
    pl_nest nest = {.loop_count = 1,
                    .extent = {PLAN_L},
                    .store_count = 3,
                    .store = {{sum, loop(&f, 0), plus(&f, x, x)},
                              {flag, loop(&f, 0), pl_binary(f.arena, PL_LT, zero, x)},
                              {spread, triple, loop(&f, 0)}}};
    plan_nest(&f, nest);
    for (int offset = 1; offset < 3; offset++) { /* the interpreter compares every element, so the gaps are filled,
                                                  * too */
        nest.store_count = 1;
        nest.store[0] = (pl_store){spread, plus(&f, triple, number(&f, offset)), number(&f, offset)};
        plan_nest(&f, nest);
    }
    srand(4);
    plan_check(&f, lengths);
    plan_end(&f);
}

/* The second nest adds to the first nest's results, so a point computed twice is detected. */
static void nests_in_place_compute_each_point_once(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 67);
    int in = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L)),
        out = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
    const pl_expr *sum = plus(&f, load(&f, out, loop(&f, 0)), load(&f, in, loop(&f, 0)));
    pl_nest nest = {.loop_count = 1,
                    .extent = {PLAN_L},
                    .store_count = 1,
                    .store = {{out, loop(&f, 0), load(&f, in, loop(&f, 0))}}};
    plan_nest(&f, nest);
    nest.store[0].value = sum;
    plan_nest(&f, nest);
    srand(5);
    plan_check(&f, lengths);
    plan_end(&f);
}

/* Over axis 0, 1, 2 and (0, 2) in a × b × c. */
static void reduce_axes(plan_fixture *f, pl_reducer reducer, int in, const ir_dim *dims)
{
    static const struct {
        int outer, outer_axis[2], inner, inner_axis[2];
    } shapes[] = {{2, {1, 2}, 1, {0}}, {2, {0, 2}, 1, {1}}, {2, {0, 1}, 1, {2}}, {1, {1}, 2, {0, 2}}};
    bool arg = reducer >= PL_REDUCE_ARGMAX_FIRST;
    mdot_dtype dtype = f->buffers[in].type.dtype;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        pl_nest nest = {.loop_count = shapes[s].outer, .reduce_count = shapes[s].inner, .reducer = reducer};
        const pl_expr *index[3], *to = number(f, 0);
        ir_dim out_dims[2];
        for (int o = 0; o < shapes[s].outer; o++) {
            int axis = shapes[s].outer_axis[o];
            nest.extent[o] = out_dims[o] = dims[axis];
            index[axis] = loop(f, o);
            to = plus(f, times(f, to, pl_dim(f->arena, dims[axis])), loop(f, o));
        }
        for (int r = 0; r < shapes[s].inner; r++) {
            int axis = shapes[s].inner_axis[r], number_of = shapes[s].outer + r;
            nest.extent[number_of] = dims[axis];
            index[axis] = loop(f, number_of);
        }
        const pl_expr *from =
            at2(f, at2(f, index[0], pl_dim(f->arena, dims[1]), index[1]), pl_dim(f->arena, dims[2]), index[2]);
        mdot_dtype acc_dtype = arg ? MDOT_DTYPE_I64 : dtype;
        int out = plan_output(f, acc_dtype, shapes[s].outer, out_dims);
        nest.body = load(f, in, from);
        nest.store_count = 1;
        nest.store[0] = (pl_store){out, to, pl_acc(f->arena, 0, acc_dtype)};
        plan_nest(f, nest);
    }
}

static void reductions_over_any_axes_match(void **state)
{
    (void)state;
    static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_F16, MDOT_DTYPE_I32,
                                        MDOT_DTYPE_I64, MDOT_DTYPE_U8,  MDOT_DTYPE_I8};
    static const int64_t few_lengths[] = {1, 7, 16, 70, 131, 0};
    ir_dim shapes[][3] = {
        {PLAN_N(3), PLAN_L, PLAN_N(37)}, {PLAN_L, PLAN_N(5), PLAN_N(64)}, {PLAN_N(2), PLAN_N(3), PLAN_L}};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        plan_fixture f;
        plan_begin(&f, 131);
        bool real = ir_dtype_is_float(dtypes[d]);
        const ir_dim *dims = shapes[d % 3];
        int in = plan_input(&f, dtypes[d], 3, dims);
        int near_one = plan_input_between(&f, dtypes[d], real ? 0.96875 : 1, real ? 1.03125 : 3, 3, dims);
        for (pl_reducer r = PL_REDUCE_SUM; r <= PL_REDUCE_ARGMIN_LAST; r++)
            if (d == 0 || (r + d) % 2) /* all reducers for f32, every other one for other types to save time */
                reduce_axes(&f, r, r == PL_REDUCE_PROD ? near_one : in, dims);
        srand((unsigned)d);
        plan_check(&f, few_lengths);
        plan_end(&f);
    }
}

static void empty_reductions_give_the_identity(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 0);
    ir_dim dims[] = {PLAN_N(20), PLAN_N(0), PLAN_N(3)};
    int in = plan_input(&f, MDOT_DTYPE_F32, 3, dims);
    for (pl_reducer r = PL_REDUCE_SUM; r <= PL_REDUCE_MIN; r++) {
        int out = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(20)));
        plan_nest(&f, (pl_nest){.loop_count = 1,
                                .reduce_count = 2,
                                .extent = {dims[0], dims[1], dims[2]},
                                .reducer = r,
                                .body = load(&f, in, at2(&f, loop(&f, 1), number(&f, 3), loop(&f, 2))),
                                .store_count = 1,
                                .store = {{out, loop(&f, 0), pl_acc(f.arena, 0, MDOT_DTYPE_F32)}}});
    }
    plan_check(&f, no_length);
    plan_end(&f);
}

/* out[b, i, j] = sum_k x[b, i, k] y[b, k, j], or y[b, j, k] */
static void matmul(plan_fixture *f, mdot_dtype dtype, ir_dim batch, ir_dim m, ir_dim k, ir_dim n, bool transposed)
{
    const pl_expr *b = loop(f, 0), *i = loop(f, 1), *j = loop(f, 2), *t = loop(f, 3);
    const pl_expr *rows = pl_dim(f->arena, m), *inner = pl_dim(f->arena, k), *columns = pl_dim(f->arena, n);
    int x = plan_input(f, dtype, PLAN_SHAPE(batch, m, k));
    int y = transposed ? plan_input(f, dtype, PLAN_SHAPE(batch, n, k)) : plan_input(f, dtype, PLAN_SHAPE(batch, k, n));
    int out = plan_output(f, dtype, PLAN_SHAPE(batch, m, n));
    const pl_expr *from_x = at2(f, at2(f, b, rows, i), inner, t);
    const pl_expr *from_y =
        transposed ? at2(f, at2(f, b, columns, j), inner, t) : at2(f, at2(f, b, inner, t), columns, j);
    plan_nest(f, (pl_nest){.loop_count = 3,
                           .reduce_count = 1,
                           .extent = {batch, m, n, k},
                           .reducer = PL_REDUCE_SUM,
                           .body = times(f, load(f, x, from_x), load(f, y, from_y)),
                           .store_count = 1,
                           .store = {{out, at2(f, at2(f, b, rows, i), columns, j), pl_acc(f->arena, 0, dtype)}}});
}

static void matmuls_without_packed_weights_match(void **state)
{
    (void)state;
    /* f16 is left out, because the interpreter rounds each product. */
    static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_I32, MDOT_DTYPE_U8};
    static const int64_t few_lengths[] = {1, 9, 32, 65, 0};
    ir_dim l = PLAN_L, two = PLAN_N(2), one = PLAN_N(1), few = PLAN_N(5), many = PLAN_N(70);
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        plan_fixture f;
        plan_begin(&f, 65);
        for (int transposed = 0; transposed <= 1; transposed++) {
            matmul(&f, dtypes[d], two, l, few, l, transposed);
            matmul(&f, dtypes[d], two, few, many, few, transposed);
            matmul(&f, dtypes[d], one, few, l, many, transposed);
            matmul(&f, dtypes[d], two, one, l, two, transposed);
        }
        srand((unsigned)d);
        plan_check(&f, few_lengths);
        plan_end(&f);
    }
}

static void adjacent_elements_become_vectors(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 67);
    const cg_cpu_target *target = cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32);
    matmul(&f, MDOT_DTYPE_F32, (ir_dim)PLAN_N(2), (ir_dim)PLAN_L, (ir_dim)PLAN_N(70), (ir_dim)PLAN_L, false);
    matmul(&f, MDOT_DTYPE_F32, (ir_dim)PLAN_N(2), (ir_dim)PLAN_L, (ir_dim)PLAN_N(70), (ir_dim)PLAN_L, true);
    cg_vectorisation outputs = cg_choose_vectorisation(&f.plan, &f.kernels[0].nest, target);
    assert_int_equal(outputs.loop, 2); /* result columns */
    assert_int_equal(outputs.lanes, 16);
    cg_vectorisation reduced = cg_choose_vectorisation(&f.plan, &f.kernels[1].nest, target);
    assert_int_equal(reduced.loop, 3); /* the summation loop */
    plan_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_movement_reads_the_right_elements),
        cmocka_unit_test(gathers_follow_loaded_indices),
        cmocka_unit_test(several_stores_share_one_nest),
        cmocka_unit_test(nests_in_place_compute_each_point_once),
        cmocka_unit_test(reductions_over_any_axes_match),
        cmocka_unit_test(empty_reductions_give_the_identity),
        cmocka_unit_test(matmuls_without_packed_weights_match),
        cmocka_unit_test(adjacent_elements_become_vectors),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
