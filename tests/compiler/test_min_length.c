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

/* Positions read or written by a loop unrolled at the traced length. */
static void constant_indices_need_their_positions(void **state)
{
    (void)state;
    expect_least("x = input f32[1,L,2]\ni = constant i64[] [9]\ny = Gather(x, i) {axis=1}\nreturn y\n", 10,
                 "--min-length 10 makes the model compile");
    expect_least("x = input f32[1,L,2]\ni = constant i64[2] [0, -5]\ny = Gather(x, i) {axis=1}\nreturn y\n", 5,
                 "--min-length 5 makes the model compile");
    expect_least("x = input f32[L,2]\ni = constant i64[1,2] [3, 0]\ny = GatherElements(x, i) {axis=0}\nreturn y\n", 4,
                 "--min-length 4 makes the model compile");
    expect_least("x = input f32[2,L]\ni = constant i64[2,2] [1, 3, 0, 6]\ny = GatherND(x, i)\nreturn y\n", 7,
                 "--min-length 7 makes the model compile");
    expect_least("x = input f32[L,2]\ni = constant i64[1,2] [3, 0]\nu = input f32[1,2]\n"
                 "y = ScatterElements(x, i, u) {axis=0}\nreturn y\n",
                 4, "--min-length 4 makes the model compile");
    expect_least("x = input f32[L,2]\ni = constant i64[1,1] [6]\nu = input f32[1,2]\n"
                 "y = ScatterND(x, i, u)\nreturn y\n",
                 7, "--min-length 7 makes the model compile");
}

static void the_last_position_may_be_indexed_at_every_length(void **state)
{
    (void)state;
    mdot_error err = {0};
    assert_int_equal(plan("x = input f32[1,L,2]\ns = Shape(x)\none = constant i64[1] [1]\nn = Gather(s, one)\n"
                          "i = Sub(n, one)\ny = Gather(x, i) {axis=1}\nreturn y\n",
                          0, &err),
                     MDOT_OK);
    assert_int_equal(
        plan("x = input f32[1,L,2]\ni = constant i64[2] [0, -1]\ny = Gather(x, i) {axis=1}\nreturn y\n", 0, &err),
        MDOT_OK);
}

static void a_bucket_that_is_too_short_names_the_least_length(void **state)
{
    (void)state;
    static const co_hooks silent;
    static const int64_t buckets[] = {8, 32};
    mdot_error err = {0};
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(
        "x = input f32[L,2]\ni = constant i64[] [19]\ny = Gather(x, i) {axis=0}\nreturn y\n", INT64_MAX, arena);
    cg_entry entry;
    assert_int_equal(co_plan_entry("predict", graph, buckets, 2, false, &silent, arena, &entry, &err),
                     MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "--min-length 20 and buckets of that length or more"));
    ir_arena_destroy(arena);
}

/* From the second bucket on, a table of 19 positions is too short. */
static void refused_buckets_are_an_error_unless_they_may_be_dropped(void **state)
{
    (void)state;
    static const co_hooks silent;
    static const int64_t buckets[] = {8, 16, 32, 64};
    for (int allowed = 0; allowed < 2; allowed++) {
        mdot_error err = {0};
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = graph_from_notation("x = input f32[L,2]\nt = weights f32[19,2]\nn = Shape(x) {end=1}\n"
                                              "z = constant i64[1] [0]\np = Slice(t, z, n)\ny = Add(x, p)\nreturn y\n",
                                              INT64_MAX, arena);
        cg_entry entry;
        mdot_status status = co_plan_entry("predict", graph, buckets, 4, allowed, &silent, arena, &entry, &err);
        if (allowed) {
            assert_int_equal(status, MDOT_OK);
            assert_int_equal(entry.plan_count, 2);
        } else {
            assert_int_equal(status, MDOT_UNSUPPORTED);
            if (strstr(err.message, "buckets up to 16 compile") == NULL) fail_msg("%s", err.message);
            assert_non_null(strstr(err.message, "--allow-dropped"));
        }
        ir_arena_destroy(arena);
    }
}

/* A remedy must leave more than one length, and must concern the reason. */
static void false_remedies_are_withheld(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "x = input f32[L,8]\nw = weights f32[16,8]\ny = Add(x, w)\nreturn y\n",
        "x = input f32[L,8]\nr = constant f32[] [0.5]\nt = constant bool[] [1]\ny, m = Dropout(x, r, t)\nreturn y\n",
        "x = input f32[1,1,L,8]\nr = constant f32[0] []\ns = constant f32[4] [1.0, 1.0, 2.0, 2.0]\n"
        "y = Resize(x, r, s) {coordinate_transformation_mode=\"align_corners\"}\nreturn y\n",
        /* TopK compiles from four elements on; training-mode Dropout never does */
        "x = input f32[L,8]\nk = constant i64[1] [4]\nv, i = TopK(x, k) {axis=0}\nr = constant f32[] [0.5]\n"
        "t = constant bool[] [1]\ny, m = Dropout(v, r, t)\nreturn y\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_error err = {0};
        assert_int_equal(plan(cases[i], 0, &err), MDOT_UNSUPPORTED);
        if (strstr(err.message, "--min-length") != NULL) fail_msg("%s", err.message);
    }
}

static void huge_strides_of_transposed_convolutions_are_refused(void **state)
{
    (void)state;
    mdot_error err = {0};
    assert_int_equal(plan("x = input f32[1,1,L]\nw = weights f32[1,1,1]\ny = ConvTranspose(x, w) {strides=[16777216]}\n"
                          "return y\n",
                          0, &err),
                     MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "product above 4096"));
    assert_null(strstr(err.message, "--min-length"));
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
        cmocka_unit_test(constant_indices_need_their_positions),
        cmocka_unit_test(the_last_position_may_be_indexed_at_every_length),
        cmocka_unit_test(a_bucket_that_is_too_short_names_the_least_length),
        cmocka_unit_test(refused_buckets_are_an_error_unless_they_may_be_dropped),
        cmocka_unit_test(false_remedies_are_withheld),
        cmocka_unit_test(huge_strides_of_transposed_convolutions_are_refused),
        cmocka_unit_test(no_minimum_is_suggested_if_none_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
