/* test_min_length.c — models that need a minimum length: the message states it, and with it they compile. */
#include "compiler/compiler.h"
#include "tests/support/graph_notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static mdot_status plan(const char *notation, int64_t min_length, mdot_error *err)
{
    static const co_hooks silent;
    const int64_t bucket = 16;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(notation, INT64_MAX, arena);
    cg_entry entry;
    graph->min_length = min_length;
    mdot_status status = co_plan_entry("predict", graph, &bucket, 1, false, &silent, arena, &entry, err);
    ir_arena_destroy(arena);
    return status;
}

static void expect_least(const char *notation, int64_t least, const char *offer)
{
    mdot_error err = {0};
    assert_int_equal(plan(notation, 0, &err), MDOT_UNSUPPORTED);
    if (strstr(err.message, offer) == NULL) fail_msg("\"%s\" does not offer %s", err.message, offer);
    assert_int_equal(plan(notation, least - 1, &err), MDOT_UNSUPPORTED);
    assert_int_equal(plan(notation, least, &err), MDOT_OK);
}

static void top_k_needs_k_elements(void **state)
{
    (void)state;
    expect_least("x = input f32[L,8]\nk = constant i64[1] [4]\nv, i = TopK(x, k) {axis=0}\nreturn v, i\n", 4,
                 "--min-length 4 makes the model compile");
    expect_least("x = input f32[L,8]\nk = constant i64[1] [16]\nv, i = TopK(x, k) {axis=0}\nreturn v\n", 16,
                 "--min-length 16 makes the model compile");
}

static void minimum_length_of_a_convolution_follows_its_kernel(void **state)
{
    (void)state;
    expect_least("x = input f32[1,4,L]\nw = weights f32[8,4,5]\ny = Conv(x, w)\nreturn y\n", 4,
                 "--min-length 4 makes the model compile"); /* an input of 4 gives an empty output, which is allowed */
}

static void no_minimum_is_suggested_if_none_helps(void **state)
{
    (void)state;
    mdot_error err = {0};
    assert_int_equal(
        plan("x = input f32[L,8]\nk = constant i64[1] [17]\nv, i = TopK(x, k) {axis=0}\nreturn v\n", 0, &err),
        MDOT_UNSUPPORTED);
    assert_null(strstr(err.message, "--min-length"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_k_needs_k_elements),
        cmocka_unit_test(minimum_length_of_a_convolution_follows_its_kernel),
        cmocka_unit_test(no_minimum_is_suggested_if_none_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
