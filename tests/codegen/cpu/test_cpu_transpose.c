/* Transposes in registers against the plan interpreter: extents around vector borders, several loads, and the nests
 * that keep the general form. */
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/tiles.h"
#include "tests/support/plan_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static const int64_t lengths[] = {1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 0};

static const pl_expr *position(plan_fixture *f, const pl_expr *i, ir_dim columns, const pl_expr *j)
{
    return pl_binary(f->arena, PL_ADD, pl_binary(f->arena, PL_MUL, i, pl_dim(f->arena, columns)), j);
}

/* An element of x (batch × n × m) at the transposed position in the loops batch × m × n. */
static const pl_expr *transposed_load(plan_fixture *f, mdot_dtype dtype, ir_dim batch, ir_dim m, ir_dim n)
{
    int in = plan_input(f, dtype, PLAN_SHAPE(batch, n, m));
    const pl_expr *outer = position(f, pl_index(f->arena, 0), n, pl_index(f->arena, 2));
    return pl_load(f->arena, in, dtype, position(f, outer, m, pl_index(f->arena, 1)));
}

static const pl_expr *own_position(plan_fixture *f, ir_dim m, ir_dim n)
{
    return position(f, position(f, pl_index(f->arena, 0), m, pl_index(f->arena, 1)), n, pl_index(f->arena, 2));
}

static pl_nest nest_of(plan_fixture *f, ir_dim batch, ir_dim m, ir_dim n, const pl_expr *value)
{
    int out = plan_output(f, value->dtype, PLAN_SHAPE(batch, m, n));
    return (pl_nest){
        .loop_count = 3, .extent = {batch, m, n}, .store_count = 1, .store = {{out, own_position(f, m, n), value}}};
}

static bool is_transposition(const plan_fixture *f, const pl_nest *nest, cg_transposition *out)
{
    return cg_transposition_find(&f->plan, nest, cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32), out);
}

/* The transpose alone; with two transposed loads and one along the columns; with a store of another type. */
static void add_transposes(plan_fixture *f, ir_dim batch, ir_dim m, ir_dim n)
{
    cg_transposition found;
    pl_nest nest = nest_of(f, batch, m, n, transposed_load(f, MDOT_DTYPE_F32, batch, m, n));
    assert_true(is_transposition(f, &nest, &found));
    assert_int_equal(found.load_count, 1);
    assert_int_equal(found.row_loop, 1);
    assert_int_equal(found.column_loop, 2);
    plan_nest(f, nest);

    int in = plan_input(f, MDOT_DTYPE_F32, PLAN_SHAPE(batch, m, n));
    const pl_expr *a = transposed_load(f, MDOT_DTYPE_F32, batch, m, n);
    const pl_expr *b = transposed_load(f, MDOT_DTYPE_F32, batch, m, n);
    const pl_expr *c = pl_load(f->arena, in, MDOT_DTYPE_F32, own_position(f, m, n));
    nest = nest_of(f, batch, m, n, pl_binary(f->arena, PL_ADD, pl_binary(f->arena, PL_MUL, a, b), c));
    assert_true(is_transposition(f, &nest, &found));
    assert_int_equal(found.load_count, 2);
    plan_nest(f, nest);

    const pl_expr *d = transposed_load(f, MDOT_DTYPE_F32, batch, m, n);
    nest = nest_of(f, batch, m, n, pl_cast(f->arena, d, MDOT_DTYPE_I64));
    assert_true(is_transposition(f, &nest, &found));
    plan_nest(f, nest);
}

static void transposes_match_at_every_length(void **state)
{
    (void)state;
    const ir_dim l = PLAN_L, shapes[][2] = {{l, PLAN_N(37)}, {PLAN_N(16), l}, {l, l}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        plan_fixture f;
        plan_begin(&f, 67);
        add_transposes(&f, (ir_dim)PLAN_N(2), shapes[s][0], shapes[s][1]);
        srand((unsigned)s);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void other_moves_keep_the_general_form(void **state)
{
    (void)state;
    plan_fixture f;
    cg_transposition found;
    plan_begin(&f, 67);
    const ir_dim one = PLAN_N(1), l = PLAN_L, few = PLAN_N(5);
    pl_nest nest = nest_of(&f, one, l, few, transposed_load(&f, MDOT_DTYPE_F32, one, l, few)); /* short columns */
    assert_false(is_transposition(&f, &nest, &found));
    nest = nest_of(&f, one, few, l, transposed_load(&f, MDOT_DTYPE_F32, one, few, l)); /* short rows */
    assert_false(is_transposition(&f, &nest, &found));
    nest = nest_of(&f, one, l, l, transposed_load(&f, MDOT_DTYPE_F64, one, l, l)); /* another element */
    assert_false(is_transposition(&f, &nest, &found));
    int in = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(one, l, l)); /* no transpose */
    nest = nest_of(&f, one, l, l, pl_load(f.arena, in, MDOT_DTYPE_F32, own_position(&f, l, l)));
    assert_false(is_transposition(&f, &nest, &found));
    nest = nest_of(&f, one, l, l, transposed_load(&f, MDOT_DTYPE_F32, one, l, l)); /* in place */
    const pl_expr *old = pl_load(f.arena, nest.store[0].buffer, MDOT_DTYPE_F32, nest.store[0].index);
    nest.store[0].value = pl_binary(f.arena, PL_ADD, nest.store[0].value, old);
    assert_false(is_transposition(&f, &nest, &found));
    plan_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes_match_at_every_length),
        cmocka_unit_test(other_moves_keep_the_general_form),
    };
    return cmocka_run_group_tests_name("cg_transposition", tests, NULL, NULL);
}
