/* test_literal.c — numbers as CUDA C. A literal reads back as the same f32 or integer, has the type for the right
 * overload, and is accepted by every compiler. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cuda/cuda_text.h"
#include "tests/support/assertions.h"
#include "tests/support/cuda_plan_fixture.h"
#include "tests/support/decimal_point.h"

static void assert_float(double value, const char *wanted)
{
    assert_string_equal(cu_float_text(cuda_arena, value), wanted);
}

static void whole_literals_have_a_decimal_point(void **state)
{
    (void)state;
    assert_float(1, "1.0f");
    assert_float(0, "0.0f");
    assert_float(128, "128.0f");
    assert_float(16777216, "16777216.0f");
    assert_float(1e9, "1e+09f");
    assert_float(1e12, "1e+12f");
}

static void a_fraction_has_as_many_digits_as_it_needs(void **state)
{
    (void)state;
    assert_float(0.5, "0.5f");
    assert_float(1e-5, "1e-05f");
    assert_float(1.0 / 3, "0.333333333f");
    assert_float(0.1f, "0.100000001f");
}

static void negative_literals_are_in_parentheses(void **state)
{
    (void)state;
    assert_float(-1, "(-1.0f)");
    assert_float(-0.25, "(-0.25f)");
    assert_float(-0.0, "(-0.0f)");
    assert_float(-1e-300, "(-0.0f)");
}

static void infinities_and_nan_have_names(void **state)
{
    (void)state;
    assert_float(INFINITY, "INFINITE");
    assert_float(-INFINITY, "-INFINITE");
    assert_float(1e300, "INFINITE");
    assert_float(-3.5e38, "-INFINITE");
    assert_float(NAN, "NOT_A_NUMBER");
    assert_float(-NAN, "NOT_A_NUMBER");
    assert_float(FLT_MAX, "3.40282347e+38f");
}

static void denormals_are_kept_and_smaller_values_become_zero(void **state)
{
    (void)state;
    assert_float(FLT_TRUE_MIN, "1.40129846e-45f");
    assert_float(FLT_MIN / 2, "5.87747175e-39f");
    assert_float(1e-46, "0.0f");
    assert_float(1e-300, "0.0f");
}

/* Returns a literal's value as a compiler reads it, without parentheses and suffix. */
static float read_back(const char *text) { return strtof(text + (text[0] == '('), NULL); }

static void every_float_reads_back(void **state)
{
    (void)state;
    uint32_t bits = 1;
    for (int k = 0; k < 200000; k++) {
        bits = bits * 1664525u + 1013904223u;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        const char *text = cu_float_text(cuda_arena, (double)value);
        float back = read_back(text);
        if (memcmp(&back, &value, sizeof back) != 0) fail_msg("%s for %.9g", text, (double)value);
        if (!strpbrk(text, ".e")) fail_msg("%s is no floating literal", text);
    }
}

/* A double between two f32 values: the nine-digit form rounds to one of them, but the double itself is nearer to the
 * other. */
static void a_double_becomes_the_nearest_f32(void **state)
{
    (void)state;
    int others = 0;
    uint64_t seed = 1;
    for (int k = 0; k < 200000; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float low = 1.0f + (float)(seed >> 41) * 0x1p-23f;
        double value = (double)low + 0x1p-24 * (1 + ((double)(seed >> 11 & 0xff) - 127.5) * 0x1p-30);
        char nine[40];
        snprintf(nine, sizeof nine, "%.9g", value);
        others += strtof(nine, NULL) != (float)value;
        if (read_back(cu_float_text(cuda_arena, value)) != (float)value) fail_msg("%.17g", value);
    }
    assert_compare(others, >, 1000); /* otherwise the digit test would be vacuous */
}

static void the_locale_is_ignored(void **state)
{
    (void)state;
    decimal_point_begin("<U066B>");
    const char *texts[] = {cu_float_text(cuda_arena, 0.5), cu_float_text(cuda_arena, -1.25e-9),
                           cu_float_text(cuda_arena, 3), cu_float_text(cuda_arena, 1e20),
                           cu_float_text(cuda_arena, 1.0 / 3)};
    decimal_point_end();
    assert_string_equal(texts[0], "0.5f");
    assert_string_equal(texts[1], "(-1.25e-09f)");
    assert_string_equal(texts[2], "3.0f");
    assert_string_equal(texts[3], "1e+20f");
    assert_string_equal(texts[4], "0.333333333f");
}

static void an_integer_is_an_int_if_it_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {7, "7"},
        {-7, "(-7)"},
        {INT32_MAX, "2147483647"},
        {INT32_MIN, "(-2147483647 - 1)"},
        {INT64_C(2147483648), "2147483648LL"},
        {INT64_C(-2147483649), "(-2147483649LL)"},
        {INT64_MAX, "9223372036854775807LL"},
        {INT64_MIN + 1, "(-9223372036854775807LL)"},
        {INT64_MIN, "(-9223372036854775807LL - 1)"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        assert_string_equal(cu_integer_text(cuda_arena, cases[k].value), cases[k].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_literals_have_a_decimal_point),
        cmocka_unit_test(a_fraction_has_as_many_digits_as_it_needs),
        cmocka_unit_test(negative_literals_are_in_parentheses),
        cmocka_unit_test(infinities_and_nan_have_names),
        cmocka_unit_test(denormals_are_kept_and_smaller_values_become_zero),
        cmocka_unit_test(every_float_reads_back),
        cmocka_unit_test(a_double_becomes_the_nearest_f32),
        cmocka_unit_test(the_locale_is_ignored),
        cmocka_unit_test(an_integer_is_an_int_if_it_fits),
    };
    return cmocka_run_group_tests(tests, cuda_arena_begin, cuda_arena_end);
}
