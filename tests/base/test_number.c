/* test_number.c — numbers as text, in any locale of the program. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tests/support/assertions.h"
#include "tests/support/decimal_point.h"

static void assert_printed(double value, int digits, const char *text)
{
    char out[BS_NUMBER_BYTES];
    assert_string_equal(bs_number_print(value, digits, out), text);
}

static void assert_read(const char *text, double value, const char *rest)
{
    const char *end;
    double got = bs_number_read(text, &end);
    assert_memory_equal(&got, &value, sizeof got);
    assert_string_equal(end, rest);
    float single = bs_number_read_f32(text, &end);
    assert_compare(single, ==, (float)value);
    assert_string_equal(end, rest);
}

static void check_all(void)
{
    assert_printed(0.5, 9, "0.5");
    assert_printed(-1.25e-9, 9, "-1.25e-09");
    assert_printed(3, 9, "3");
    assert_printed(-0.0, 9, "-0");
    assert_printed(1e20, 9, "1e+20");
    assert_printed(1e300, 3, "1e+300");
    assert_printed(123.456, 17, "123.456");
    assert_printed(-0x1p-1022, 17, "-2.2250738585072014e-308");
    assert_printed(INFINITY, 9, "inf");
    assert_printed(-INFINITY, 9, "-inf");
    assert_read("0.5,1", 0.5, ",1");
    assert_read("-1.25e-9f", -1.25e-9, "f");
    assert_read("-0.0", -0.0, "");
    assert_read("3", 3, "");
    assert_read("1,5", 1, ",5");
    assert_read("", 0, "");
    assert_read("inf]", INFINITY, "]");
    assert_read("none", 0, "none");
    const char *end;
    assert_true(isnan(bs_number_read("nan", &end)));
    assert_compare(*end, ==, '\0');
}

static void numbers_use_a_decimal_point(void **state)
{
    (void)state;
    check_all();
}

static void the_locale_is_ignored(void **state)
{
    (void)state;
    static const char *const points[] = {"<U002C>", "<U066B>"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        decimal_point_begin(points[i]);
        check_all();
        decimal_point_end();
    }
}

/* One grammar for all tables, options and files: of a hexadecimal number, the 0 is read. */
static void numbers_are_decimal(void **state)
{
    (void)state;
    static const char *const forms[] = {"0x1", "0X1", "0x", "0x.8", "0x1p3", "0xinf", "0x_1"};
    static const char *const signs[] = {"", "+", "-", " ", "\n -", "\t+"};
    uint64_t random = 1;
    for (int i = 0; i < 2000; i++) {
        char number[64], text[80];
        random = random * UINT64_C(6364136223846793005) + 1;
        if (i < 7)
            snprintf(number, sizeof number, "%s", forms[i]);
        else
            snprintf(number, sizeof number, i % 2 == 0 ? "%a" : "%A",
                     ldexp((double)(random >> 12), (int)(random % 99)));
        snprintf(text, sizeof text, "%s%s", signs[(random >> 40) % 6], number);
        const char *end, *x = strpbrk(text, "xX");
        assert_true(bs_number_read(text, &end) == 0);
        assert_ptr_equal(end, x);
        assert_true(bs_number_read_f32(text, &end) == 0);
        assert_ptr_equal(end, x);
    }
}

/* The quick form prints what printf prints: random numbers of all sizes, numbers of few digits, and ties. */
static void numbers_are_those_of_printf(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int digits = 1 + (int)(random % 17);
        double value = ldexp((double)(random >> 11), (int)(random % 140) - 110);
        if (i % 4 == 1) value = (double)(random % 100000) / 1000;
        if (i % 4 == 2) value = ((double)(random % 2000000) + 0.5) / pow(10, (double)(random % 9));
        if (i % 4 == 3) value = pow(10, (double)(random % 20) - 6) * (1 + ((double)(random % 5) - 2) * 0x1p-52);
        char expected[BS_NUMBER_BYTES];
        snprintf(expected, sizeof expected, "%.*g", digits, value);
        assert_printed(value, digits, expected);
    }
}

/* Rounded first to f64 and then to f32, the result would be the even number below. */
static void f32_is_rounded_once(void **state)
{
    (void)state;
    const char *end;
    static const char text[] = "1.000000059604644775390626"; /* slightly more than half a step above 1 */
    assert_compare((float)bs_number_read(text, &end), ==, 1);
    assert_compare(bs_number_read_f32(text, &end), >, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_use_a_decimal_point), cmocka_unit_test(the_locale_is_ignored),
        cmocka_unit_test(numbers_are_decimal),         cmocka_unit_test(numbers_are_those_of_printf),
        cmocka_unit_test(f32_is_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
