/* literal.c — see cuda_text.h. */
#include "codegen/cuda/cuda_text.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Nine digits distinguish any two f32. But nine digits of a double may round to a different f32 if the double is
 * near the midpoint of two. */
static void print_digits(double value, char out[BS_NUMBER_BYTES])
{
    const char *end;
    float rounded = (float)value;
    bs_number_print(value, 9, out);
    if (rounded == 0 || bs_number_read_f32(out, &end) != rounded) bs_number_print((double)rounded, 9, out);
}

const char *cu_float_text(ir_arena *arena, double value)
{
    float rounded = (float)value;
    if (isnan(rounded)) return "NOT_A_NUMBER";
    if (isinf(rounded)) return rounded > 0 ? "INFINITE" : "-INFINITE";
    char digits[BS_NUMBER_BYTES];
    print_digits(fabs(value), digits);
    /* A suffix is invalid after digits without point or exponent. */
    const char *point = strpbrk(digits, ".e") == NULL ? ".0" : "";
    return ir_arena_printf(arena, signbit(rounded) ? "(-%s%sf)" : "%s%sf", digits, point);
}

const char *cu_integer_text(ir_arena *arena, int64_t value)
{
    /* Literals are unsigned, because a type's minimum has no positive counterpart. */
    if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
    if (value == INT32_MIN) return "(-2147483647 - 1)";
    bool is_long = value > INT32_MAX || value < INT32_MIN;
    return ir_arena_printf(arena, value < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s", value, is_long ? "LL" : "");
}
