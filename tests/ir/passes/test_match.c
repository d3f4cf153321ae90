/* test_match.c — patterns: backtracking over operand orders and alternatives, slots, numbers. */
#include "ir/passes/match.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { X, Y, SUM };

static ir_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = ir_arena_create(0);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    ir_arena_destroy(arena);
    return 0;
}

/* Returns a graph's only output, with inputs x, y and z. */
static ir_value *value_of(const char *nodes)
{
    char text[1024];
    snprintf(text, sizeof text, "x = input f32[4]\ny = input f32[4]\nz = input f32[4]\n%s\nreturn r\n", nodes);
    return graph_from_notation(text, 1, arena)->outputs[0];
}

static bool matches(const ir_pattern *pattern, const char *nodes)
{
    ir_match m;
    return ir_match_value(pattern, value_of(nodes), &m);
}

static const ir_pattern *const add_of_mul = P(Add, P(Mul, P_ANY(X), P_ANY(Y)), P_ANY(X));

static void commutative_operands_match_in_either_order(void **state)
{
    (void)state;
    assert_true(matches(add_of_mul, "m = Mul(x, y)\nr = Add(m, x)"));
    assert_true(matches(add_of_mul, "m = Mul(x, y)\nr = Add(x, m)"));
}

/* Only the second operand order of Mul leaves y for the sum, therefore the first choice must be undone. */
static void a_choice_is_undone_when_a_later_goal_fails(void **state)
{
    (void)state;
    assert_true(matches(add_of_mul, "m = Mul(x, y)\nr = Add(m, y)"));
    assert_false(matches(add_of_mul, "m = Mul(x, y)\nr = Add(m, z)"));
}

static void operands_of_other_operators_keep_their_order(void **state)
{
    (void)state;
    const ir_pattern *square_less = P(Sub, P(Mul, P_ANY(X), P_ANY(X)), P_ANY(X));
    assert_true(matches(square_less, "m = Mul(x, x)\nr = Sub(m, x)"));
    assert_false(matches(square_less, "m = Mul(x, x)\nr = Sub(x, m)"));
}

static void multiplications_match_in_any_association(void **state)
{
    (void)state;
    const ir_pattern *product = P_PRODUCT(P(Exp, P_ANY(X)), P_ANY(X), P_NUMBER(0.5));
    const char *head = "e = Exp(x)\nh = constant f32[] [0.5]\n";
    static const char *const tails[] = {
        "a = Mul(x, h)\nr = Mul(a, e)", "a = Mul(h, x)\nr = Mul(e, a)", "a = Mul(e, h)\nr = Mul(x, a)",
        "a = Mul(e, x)\nr = Mul(h, a)", "a = Mul(x, e)\nr = Mul(a, h)",
    };
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", head, tails[i]);
        assert_true(matches(product, text));
    }
    assert_false(matches(product, "e = Exp(y)\nh = constant f32[] [0.5]\na = Mul(x, h)\nr = Mul(a, e)"));
    assert_false(matches(product, "e = Exp(x)\na = Mul(x, x)\nr = Mul(a, e)"));
}

static void alternatives_backtrack_when_later_goals_fail(void **state)
{
    (void)state;
    /* Both alternatives match the first operand, but only the second binds x to the value needed by the second
     * operand. */
    const ir_pattern *either = P(Sub, P_EITHER(P_ANY(X), P(Exp, P_ANY(X))), P_ANY(X));
    assert_true(matches(either, "e = Exp(x)\nr = Sub(e, x)"));
    assert_true(matches(either, "e = Exp(x)\nr = Sub(e, e)"));
    assert_false(matches(either, "e = Exp(x)\nr = Sub(e, y)"));
}

static void let_binds_the_value_it_names(void **state)
{
    (void)state;
    ir_match m;
    ir_value *r = value_of("s = Add(x, y)\ne = Exp(s)\nr = Div(e, s)");
    assert_true(ir_match_value(P(Div, P(Exp, P_LET(SUM, P(Add, P_ANY(X), P_ANY(Y)))), P_ANY(SUM)), r, &m));
    assert_string_equal(m.slot[SUM]->name, "s");
    assert_string_equal(m.slot[X]->name, "x");
    assert_string_equal(m.slot[Y]->name, "y");
}

static void numbers_match_up_to_rounding_of_their_type(void **state)
{
    (void)state;
    const ir_pattern *root = P(Mul, P_ANY(X), P_NUMBER(1.4142135623730951));
    assert_true(matches(root, "c = constant f32[] [1.4142135]\nr = Mul(x, c)"));
    assert_true(matches(root, "c = constant f16[] [1.4142135]\nr = Mul(x, c)"));
    assert_true(matches(root, "c = constant f32[2] [1.4142135, 1.4142135]\nr = Mul(x, c)"));
    assert_false(matches(root, "c = constant f32[] [1.4143]\nr = Mul(x, c)"));
    assert_false(matches(root, "c = constant f32[2] [1.4142135, 1.0]\nr = Mul(x, c)"));
    assert_false(matches(root, "r = Mul(x, y)"));
}

static void scalars_are_bound_with_their_value(void **state)
{
    (void)state;
    ir_match m;
    assert_true(
        ir_match_value(P(Mul, P_ANY(X), P_SCALAR(Y)), value_of("c = constant f32[1] [0.25]\nr = Mul(c, x)"), &m));
    assert_compare(ir_match_scalar(&m, Y), ==, 0.25);
    assert_false(matches(P(Mul, P_ANY(X), P_SCALAR(Y)), "c = constant f32[2] [1.0, 2.0]\nr = Mul(c, x)"));
}

static void filled_constants_are_recognised(void **state)
{
    (void)state;
    const ir_node *sum = value_of("c = constant f32[4] [0.0, 0.0, 0.0, -0.0]\nr = Add(x, c)")->def;
    assert_true(ir_value_is_filled(sum->inputs[1], 0, 0));
    assert_false(ir_value_is_filled(sum->inputs[1], 1, 0));
    assert_false(ir_value_is_filled(sum->inputs[0], 0, 0));
    const ir_node *empty = value_of("c = constant f32[0] []\nr = Add(x, c)")->def;
    assert_false(ir_value_is_filled(empty->inputs[1], 0, 0));
    const ir_node *infinite = value_of("c = constant f32[1] [-inf]\nr = Add(x, c)")->def;
    assert_true(ir_value_is_filled(infinite->inputs[1], -INFINITY, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commutative_operands_match_in_either_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_choice_is_undone_when_a_later_goal_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operands_of_other_operators_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(multiplications_match_in_any_association, set_up, tear_down),
        cmocka_unit_test_setup_teardown(alternatives_backtrack_when_later_goals_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(let_binds_the_value_it_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_match_up_to_rounding_of_their_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scalars_are_bound_with_their_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(filled_constants_are_recognised, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
