/* test_dims.c — dimensions with a floor of the length: every operation is held to the values at all lengths. */
#include "ir/ops/families.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const ir_dim L = {.scale = 1};

static ir_dim number(int64_t n) { return ir_dim_number(n); }

static int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static ir_graph graph_up_to(int64_t first, int64_t last) { return (ir_graph){.min_length = first, .max_length = last}; }

/* A dimension as text. */
static ir_dim dim_of(const char *text)
{
    char line[256];
    ir_graph *graph = NULL;
    mdot_error err;
    ir_arena *arena = ir_arena_create(0);
    snprintf(line, sizeof line, "graph \"m\" {\nlength \"L\" <= 64\n%%0 \"x\" : f32[%s] = input\nreturn %%0\n}\n",
             text);
    if (ir_graph_parse(line, NULL, arena, &graph, &err) != MDOT_OK) fail_msg("%s: %s", text, err.message);
    ir_dim d = graph->inputs[0]->type.dim[0];
    ir_arena_destroy(arena);
    return d;
}

static void expect_text(ir_dim d, const char *want)
{
    char text[IR_DIM_TEXT_BYTES];
    assert_string_equal(ir_dim_text(d, NULL, text, sizeof text), want);
    assert_true(ir_dim_equal(dim_of(want), d));
}

static uint64_t draw_state = 5;

static int64_t draw(int64_t least, int64_t most)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)(draw_state >> 33) % (most - least + 1);
}

/* floor((a * L + b) / c) * m + p * L + q, in normal form */
static ir_dim draw_dim(void)
{
    ir_dim d = ir_dim_affine(draw(-3, 6), draw(-9, 9));
    if (draw(0, 5) == 0) return d;
    assert_true(ir_dim_quotient_form(d, draw(1, 7), &d));
    if (draw(0, 1)) assert_true(ir_dim_mul(d, number(draw(-4, 4)), &d));
    if (draw(0, 1)) assert_true(ir_dim_add(d, ir_dim_affine(draw(-2, 2), draw(-5, 5)), &d));
    return d;
}

static void assert_normal(ir_dim d)
{
    if (d.times == 0) {
        assert_compare(d.step, ==, 0);
        assert_compare(d.start, ==, 0);
        assert_compare(d.divisor, ==, 0);
        return;
    }
    assert_compare(d.times, >, 0);
    assert_compare(d.step, >, 0);
    assert_compare(d.step, <, d.divisor);
    assert_compare(d.start, >=, 0);
    assert_compare(d.start, <, d.divisor);
    for (int32_t k = 2; k <= d.step; k++) assert_false(d.step % k == 0 && d.divisor % k == 0);
}

enum { ROUNDS = 20000, LONGEST = 90 };

static void sums_and_products_have_the_values_of_their_operands(void **state)
{
    (void)state;
    int found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ir_dim a = draw_dim(), b = draw_dim(), sum = a, difference = a, product = a;
        int64_t factor = draw(-5, 5);
        bool adds = ir_dim_add(a, b, &sum), subtracts = ir_dim_sub(a, b, &difference);
        assert_int_equal(adds, subtracts);
        assert_true(ir_dim_mul(a, number(factor), &product));
        assert_normal(sum);
        assert_normal(difference);
        assert_normal(product);
        found += adds && a.times && b.times;
        for (int64_t n = 1; n <= LONGEST; n++) {
            if (adds) assert_int_equal(ir_dim_at(sum, n), ir_dim_at(a, n) + ir_dim_at(b, n));
            if (subtracts) assert_int_equal(ir_dim_at(difference, n), ir_dim_at(a, n) - ir_dim_at(b, n));
            assert_int_equal(ir_dim_at(product, n), ir_dim_at(a, n) * factor);
        }
    }
    assert_compare(found, >, ROUNDS / 100);
}

static void quotients_round_down_at_every_length(void **state)
{
    (void)state;
    int found = 0, nested = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ir_graph graph = graph_up_to(draw(1, 3), draw(3, LONGEST));
        ir_dim a = draw_dim(), down = a, up = a, rest = a;
        int64_t divisor = draw(1, 9);
        if (!ir_dim_div_floor(&graph, a, divisor, &down)) continue;
        bool has_up = ir_dim_div_ceil(&graph, a, divisor, &up);
        bool has_rest = ir_dim_mod_floor(&graph, a, divisor, &rest);
        assert_normal(down);
        found++;
        nested += a.times == 1 && down.times > 0;
        for (int64_t n = graph.min_length; n <= graph.max_length; n++) {
            int64_t value = ir_dim_at(a, n), quotient = floor_quotient(value, divisor);
            assert_int_equal(ir_dim_at(down, n), quotient);
            if (has_up) assert_int_equal(ir_dim_at(up, n), -floor_quotient(-value, divisor));
            if (has_rest) assert_int_equal(ir_dim_at(rest, n), value - quotient * divisor);
        }
    }
    assert_compare(found, >, ROUNDS / 2);
    assert_compare(nested, >, ROUNDS / 20);
}

static void comparisons_hold_at_every_length_or_are_undecided(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        ir_graph graph = graph_up_to(draw(1, 5), draw(5, LONGEST));
        ir_dim a = draw_dim(), b = draw_dim(), d = a;
        int64_t least, most, first = graph.min_length, low = ir_dim_at(a, first), high = low;
        bool le = true, lt = true, equal = true;
        for (int64_t n = first; n <= graph.max_length; n++) {
            int64_t x = ir_dim_at(a, n), y = ir_dim_at(b, n);
            low = x < low ? x : low;
            high = x > high ? x : high;
            le = le && x <= y;
            lt = lt && x < y;
            equal = equal && x == y;
        }
        ir_dim_bounds(&graph, a, &least, &most);
        assert_int_equal(least, low);
        assert_int_equal(most, high);
        assert_int_equal(ir_dim_most(a, first, graph.max_length), high);
        assert_int_equal(ir_dim_always_le(&graph, a, b), le);
        assert_int_equal(ir_dim_always_lt(&graph, a, b), lt);
        if (graph.max_length - first > 50) assert_int_equal(ir_dim_equal(a, b), equal); /* the form is unique */
        if (ir_dim_min(&graph, a, b, &d))
            for (int64_t n = first; n <= graph.max_length; n++) {
                assert_compare(ir_dim_at(d, n), <=, ir_dim_at(a, n));
                assert_compare(ir_dim_at(d, n), <=, ir_dim_at(b, n));
            }
    }
}

static void texts_are_read_back(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char text[IR_DIM_TEXT_BYTES];
        ir_dim d = draw_dim();
        expect_text(d, ir_dim_text(d, NULL, text, sizeof text));
    }
}

/* The extent behind a window `kernel` with `pad` on both sides. */
static ir_dim slide(ir_dim in, int64_t kernel, int64_t stride, int64_t pad)
{
    const ir_graph graph = {.max_length = 1 << 20};
    ir_dim out = {0};
    assert_true(ir_dim_add(in, number(2 * pad - kernel), &out));
    assert_true(ir_dim_div_floor(&graph, out, stride, &out));
    assert_true(ir_dim_add(out, number(1), &out));
    return out;
}

static void strides_nest(void **state)
{
    (void)state;
    expect_text(slide(L, 3, 2, 1), "(L+1)/2");
    expect_text(slide(slide(L, 3, 2, 1), 3, 2, 1), "(L+3)/4");
    static const int64_t kernels[] = {10, 3, 3, 3, 3, 2, 2}, strides[] = {5, 2, 2, 2, 2, 2, 2};
    ir_dim d = L; /* wav2vec 2.0's feature extractor */
    for (int i = 0; i < 7; i++) d = slide(d, kernels[i], strides[i], 0);
    expect_text(d, "(L+240)/320-1");
    assert_int_equal(ir_dim_at(d, 16000), 49);
    assert_int_equal(ir_dim_at(d, 400), 1);
}

static void texts_are_short(void **state)
{
    (void)state;
    ir_dim half, d = {0};
    assert_true(ir_dim_quotient_form(L, 2, &half));
    expect_text(half, "L/2");
    assert_true(ir_dim_add(half, L, &d));
    expect_text(d, "3L/2");
    assert_true(ir_dim_mul(half, number(2), &d));
    expect_text(d, "2*(L/2)");
    assert_true(ir_dim_sub(L, d, &d));
    expect_text(d, "2*((L+1)/2)-L"); /* L modulo 2 */
    assert_int_equal(ir_dim_at(d, 7), 1);
    assert_true(ir_dim_quotient_form(ir_dim_affine(1, -7), 4, &d));
    expect_text(d, "(L+1)/4-2");
}

/* Twice the half of L is L only for even lengths. */
static void rounding_is_not_undone(void **state)
{
    (void)state;
    const ir_graph graph = {.max_length = 64};
    ir_dim half, even, d = number(7), ceiling;
    bool truth;
    assert_true(ir_dim_quotient_form(L, 2, &half));
    assert_true(ir_dim_mul(half, number(2), &even));
    assert_false(ir_dim_equal(even, L));
    assert_false(ir_dim_decide_equal(&graph, even, L, &truth));
    assert_true(ir_dim_always_le(&graph, even, L));
    assert_false(ir_dim_products_equal((const ir_dim[]){half, number(2)}, 2, (const ir_dim[]){L}, 1));
    assert_true(ir_dim_products_equal((const ir_dim[]){half, number(2)}, 2, (const ir_dim[]){even}, 1));
    assert_false(ir_dim_quotient((const ir_dim[]){L, number(8)}, 2, (const ir_dim[]){number(16)}, 1, &d));
    assert_true(ir_dim_quotient((const ir_dim[]){half, number(8)}, 2, (const ir_dim[]){number(4)}, 1, &d));
    expect_text(d, "2*(L/2)");
    assert_true(ir_dim_div_exact(even, half, &d));
    assert_true(ir_dim_is(d, 2));
    assert_false(ir_dim_div_exact(L, half, &d));
    assert_true(ir_dim_div_ceil(&graph, L, 2, &ceiling));
    assert_true(ir_dim_add(half, ceiling, &d)); /* both halves together are L */
    assert_true(ir_dim_equal(d, L));
}

static void different_floors_have_no_sum(void **state)
{
    (void)state;
    const ir_graph graph = {.max_length = 64};
    ir_dim half, third, d = number(7);
    assert_true(ir_dim_div_floor(&graph, L, 2, &half));
    assert_true(ir_dim_div_floor(&graph, L, 3, &third));
    assert_false(ir_dim_add(half, third, &d));
    assert_false(ir_dim_quotient_form(L, (1 << 16) + 1, &d));     /* the divisor is too large */
    assert_false(ir_dim_mul(half, number(INT64_C(1) << 40), &d)); /* so is the factor */
    assert_true(ir_dim_is(d, 7));                                 /* a failure leaves the result unchanged */
    assert_true(ir_dim_div_floor(&graph, L, 1 << 17, &d));
    assert_true(ir_dim_is(d, 0));
    assert_false(ir_dim_div_floor(&graph, ir_dim_affine(1, INT64_MAX), INT64_C(1) << 40, &d)); /* beyond 64 bits */
    assert_true(ir_dim_max(&graph, third, half, &d));
    assert_true(ir_dim_equal(d, half));
    assert_true(ir_dim_always_le(&graph, third, half));
}

static void counts_of_elements_follow_the_floor(void **state)
{
    (void)state;
    ir_type type = {.dtype = MDOT_DTYPE_F32, .rank = 2, .dim = {ir_dim_number(3), ir_dim_number(0)}};
    type.dim[1] = dim_of("2*((L+1)/4)+L-1");
    for (int64_t n = 1; n < 40; n++) assert_int_equal(ir_type_count_at(&type, n), 3 * ((n + 1) / 4 * 2 + n - 1));
    assert_int_equal(ir_type_count_at(&type, INT64_MAX / 2), -1);
}

static void malformed_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"L/0", "L/-2", "(L+1", "2*(L", "L/2+L/3*L", "2*L"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        char line[160];
        ir_graph *graph = NULL;
        ir_arena *arena = ir_arena_create(0);
        snprintf(line, sizeof line, "graph \"m\" {\nlength \"L\" <= 64\n%%0 \"x\" : f32[%s] = input\nreturn %%0\n}\n",
                 texts[k]);
        assert_int_not_equal(ir_graph_parse(line, NULL, arena, &graph, NULL), MDOT_OK);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_have_the_values_of_their_operands),
        cmocka_unit_test(quotients_round_down_at_every_length),
        cmocka_unit_test(comparisons_hold_at_every_length_or_are_undecided),
        cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(strides_nest),
        cmocka_unit_test(texts_are_short),
        cmocka_unit_test(rounding_is_not_undone),
        cmocka_unit_test(different_floors_have_no_sum),
        cmocka_unit_test(counts_of_elements_follow_the_floor),
        cmocka_unit_test(malformed_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
