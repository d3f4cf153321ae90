/* literal.c — see literal.h. */
#include "codegen/cuda/literal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nine digits tell any two f32 apart, but those of a double may lie on the other side of where rounding turns. */
static void print_digits(double value, char *out, size_t size)
{
    float rounded = (float)value;
    snprintf(out, size, "%.9g", value);
    if (rounded == 0 || strtof(out, NULL) != rounded) snprintf(out, size, "%.9g", (double)rounded);
}

/* Puts "." for the locale's decimal point, which may take several bytes, and behind digits that have neither point nor
 * exponent ".0", without which no suffix may follow. */
static void put_point(char *digits, size_t size)
{
    size_t before = strspn(digits, "0123456789");
    char *rest = digits + before;
    size_t point = strcspn(rest, "0123456789e");
    char behind[32];
    snprintf(behind, sizeof behind, "%s", rest + point);
    if (point > 0 || *rest == 0) snprintf(rest, size - before, ".%s", point > 0 ? behind : "0");
}

const char *cu_float_text(ir_arena *arena, double value)
{
    float rounded = (float)value;
    if (isnan(rounded)) return "NOT_A_NUMBER";
    if (isinf(rounded)) return rounded > 0 ? "INFINITE" : "-INFINITE";
    char digits[40];
    print_digits(fabs(value), digits, sizeof digits);
    put_point(digits, sizeof digits);
    return ir_arena_printf(arena, signbit(rounded) ? "(-%sf)" : "%sf", digits);
}

const char *cu_integer_text(ir_arena *arena, int64_t value)
{
    /* A literal has no sign: the least of a type is no negated literal of it. */
    if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
    if (value == INT32_MIN) return "(-2147483647 - 1)";
    bool is_long = value > INT32_MAX || value < INT32_MIN;
    return ir_arena_printf(arena, value < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s", value, is_long ? "LL" : "");
}
