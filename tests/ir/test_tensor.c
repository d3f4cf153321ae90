/* test_tensor.c — half-precision formats, wrapping, and both constant data forms. */
#include "ir/tensor.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The definition in doubles, which represent all values exactly: round to a multiple of the last place, then extract
 * the fields. (The compilers' _Float16 would do the same, but some versions of Clang lack it on some x86-64 CPUs.) */
static uint16_t reference_f16(float value)
{
    unsigned sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    int exponent = 0;
    frexp((double)value, &exponent);
    int place = (exponent - 1 < -14 ? -14 : exponent - 1) - 10;
    double rounded = isinf(value) ? INFINITY : ldexp(nearbyint(ldexp(fabs((double)value), -place)), place);
    if (rounded >= 0x1p16) return (uint16_t)(sign | 0x7c00);
    if (rounded < 0x1p-14) return (uint16_t)(sign | (unsigned)(rounded * 0x1p24));
    double fraction = frexp(rounded, &exponent) * 2 - 1; /* rounded = (1 + fraction) * 2^(exponent - 1) */
    return (uint16_t)(sign | (unsigned)(exponent - 1 + 15) << 10 | (unsigned)(fraction * 0x1p10));
}

static void every_16_bit_float_round_trips_through_f32(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float f16 = ir_f16_to_f32((uint16_t)bits), bf16 = ir_bf16_to_f32((uint16_t)bits);
        if (isnan(f16))
            assert_compare(ir_f32_to_f16(f16) & 0x7fff, >, 0x7c00);
        else
            assert_int_equal(ir_f32_to_f16(f16), bits);
        if (isnan(bf16))
            assert_compare(ir_f32_to_bf16(bf16) & 0x7fff, >, 0x7f80);
        else
            assert_int_equal(ir_f32_to_bf16(bf16), bits);
    }
}

static void floats_round_to_the_nearest_f16(void **state)
{
    (void)state;
    /* All exponents, and fractions near ties in both formats. */
    static const uint32_t fractions[] = {0,      1,      0xfff,    0x1000,   0x1001,  0x2fff,
                                         0x3000, 0x3001, 0x7fffff, 0x7ff000, 0x7fefff};
    for (uint32_t exponent = 0; exponent < 0x1ff; exponent++) {
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
            uint32_t bits = exponent << 23 | fractions[i];
            float value;
            memcpy(&value, &bits, sizeof value);
            if (!isnan(value)) assert_int_equal(ir_f32_to_f16(value), reference_f16(value));
        }
    }
}

static void bfloat16_rounds_ties_to_even(void **state)
{
    (void)state;
    assert_int_equal(ir_f32_to_bf16(1.0f), 0x3f80);
    assert_int_equal(ir_f32_to_bf16(1.00390625f), 0x3f80); /* half way to the next value (odd) */
    assert_int_equal(ir_f32_to_bf16(1.01171875f), 0x3f82);
    assert_int_equal(ir_f32_to_bf16(3.4e38f), 0x7f80);
    assert_int_equal(ir_f32_to_bf16(-INFINITY), 0xff80);
}

static void doubles_round_to_f16_once(void **state)
{
    (void)state;
    /* Just above the middle between 1 and the next half. A float rounds it to the middle, and the tie would then go
     * down. */
    double above = 1 + 0x1p-11 + 0x1p-40;
    assert_int_equal(ir_f64_to_f16(above), 0x3c01);
    assert_int_equal(ir_f64_to_f16(1 + 0x1p-11), 0x3c00);
    assert_int_equal(ir_f64_to_f16(1 + 0x1p-11 - 0x1p-40), 0x3c00);
    assert_int_equal(ir_f64_to_f16(-above), 0xbc01);
    assert_int_equal(ir_f64_to_bf16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(ir_f64_to_f16(1e300), 0x7c00);
    assert_int_equal(ir_f64_to_f16(1e-300), 0);
    assert_int_equal(ir_f64_to_f16(0x1p-25 + 0x1p-60), 1); /* above half the smallest subnormal */
}

static void integers_wrap_to_their_width(void **state)
{
    (void)state;
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_I8, 128), -128);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_U8, -1), 255);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_I16, 65535), -1);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_U16, 65536), 0);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_I32, INT64_C(1) << 31), INT32_MIN);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_U32, -1), UINT32_MAX);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_I64, INT64_MIN), INT64_MIN);
    assert_int_equal(ir_wrap_integer(MDOT_DTYPE_BOOL, 256), 1);
}

static void values_beyond_integer_types_saturate(void **state)
{
    (void)state;
    static const struct {
        mdot_dtype dtype;
        int64_t least, greatest;
    } types[] = {{MDOT_DTYPE_I8, INT8_MIN, INT8_MAX},
                 {MDOT_DTYPE_U8, 0, UINT8_MAX},
                 {MDOT_DTYPE_I16, INT16_MIN, INT16_MAX},
                 {MDOT_DTYPE_U16, 0, UINT16_MAX},
                 {MDOT_DTYPE_I32, INT32_MIN, INT32_MAX},
                 {MDOT_DTYPE_U32, 0, UINT32_MAX},
                 {MDOT_DTYPE_I64, INT64_MIN, INT64_MAX},
                 {MDOT_DTYPE_U64, 0, -1 /* the bits of -1 */},
                 {MDOT_DTYPE_BOOL, 1, 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(ir_float_to_integer(types[i].dtype, -1e300), types[i].least);
        assert_int_equal(ir_float_to_integer(types[i].dtype, 1e300), types[i].greatest);
        assert_int_equal(ir_float_to_integer(types[i].dtype, INFINITY), types[i].greatest);
        assert_int_equal(ir_float_to_integer(types[i].dtype, 1.75), 1);
    }
    assert_int_equal(ir_float_to_integer(MDOT_DTYPE_I64, 0x1p63), INT64_MAX);
    assert_int_equal(ir_float_to_integer(MDOT_DTYPE_I32, NAN), 0);
    assert_int_equal(ir_float_to_integer(MDOT_DTYPE_I8, -1.75), -1);
}

static void counting_elements_checks_overflow(void **state)
{
    (void)state;
    assert_int_equal(ir_count_elements(0, NULL), 1);
    assert_int_equal(ir_count_elements(2, (const int64_t[]){3, 4}), 12);
    assert_int_equal(ir_count_elements(2, (const int64_t[]){3, -1}), -1);
    assert_int_equal(ir_count_elements(2, (const int64_t[]){INT64_MAX, 2}), -1);
    assert_int_equal(ir_count_elements(3, (const int64_t[]){INT64_MAX, 0, INT64_MAX}), 0);
}

/* Stored elements in every type, unaligned as in a mapped file, survive the conversion to the wide form and back. */
static void stored_elements_round_trip_through_wide_elements(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    static const unsigned char bytes[] = {0xff, 0x01, 0x00, 0x3c, 0x80, 0x7f, 0x40, 0xc1, 0x05, 0x10, 0x20, 0x30, 0x3f,
                                          0x41, 0x42, 0x43, 0x44, 0x01, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x02};
    for (int dtype = MDOT_DTYPE_F32; dtype <= MDOT_DTYPE_BF16; dtype++) {
        size_t size = mdot_dtype_size_bytes((mdot_dtype)dtype);
        if (size == 0) continue;
        const unsigned char *data = dtype == MDOT_DTYPE_BOOL ? bytes + 17 : bytes + 1;
        ir_tensor tensor = {.dtype = (mdot_dtype)dtype, .rank = 1, .dims = {2}, .count = 2, .data = data};
        const ir_wide *wide = ir_wide_from_tensor(arena, &tensor);
        assert_non_null(wide);
        assert_int_equal(wide->f != NULL, ir_dtype_is_float((mdot_dtype)dtype));
        const ir_tensor *back = ir_tensor_from_wide(arena, wide);
        assert_non_null(back);
        assert_int_equal(back->count, 2);
        assert_memory_equal(back->data, data, 2 * size);
    }
    ir_arena_destroy(arena);
}

static void unsigned_64_bits_read_as_large_doubles(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_wide *wide = ir_wide_create(arena, MDOT_DTYPE_U64, 1, (const int64_t[]){1});
    wide->i[0] = -1;
    assert_float_equal(ir_wide_get(wide, 0), 0x1p64, 0);
    ir_arena_destroy(arena);
}

static void unavailable_content_is_refused(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_tensor unread = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dims = {2}, .count = 2};
    ir_tensor strings = {.dtype = MDOT_DTYPE_STRING, .rank = 1, .dims = {1}, .count = 1, .data = "x"};
    assert_null(ir_wide_from_tensor(arena, &unread));
    assert_null(ir_wide_from_tensor(arena, &strings));
    assert_null(ir_wide_create(arena, MDOT_DTYPE_F32, 2, (const int64_t[]){INT64_MAX, 2}));
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_float_round_trips_through_f32),
        cmocka_unit_test(floats_round_to_the_nearest_f16),
        cmocka_unit_test(bfloat16_rounds_ties_to_even),
        cmocka_unit_test(doubles_round_to_f16_once),
        cmocka_unit_test(integers_wrap_to_their_width),
        cmocka_unit_test(values_beyond_integer_types_saturate),
        cmocka_unit_test(counting_elements_checks_overflow),
        cmocka_unit_test(stored_elements_round_trip_through_wide_elements),
        cmocka_unit_test(unsigned_64_bits_read_as_large_doubles),
        cmocka_unit_test(unavailable_content_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
