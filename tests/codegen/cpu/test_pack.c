/* test_pack.c — packed constants, compared with a direct implementation of the formula in pack.h. */
#include "codegen/cpu/cpu_target.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ir_tensor tensor_of(mdot_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    ir_tensor tensor = {.dtype = dtype, .rank = rank, .count = ir_count_elements(rank, dims), .data = data};
    for (int i = 0; i < rank; i++) tensor.dims[i] = dims[i];
    return tensor;
}

static void check_panels(int rank, const int64_t *dims, int64_t k_count, int64_t columns)
{
    size_t count = (size_t)(k_count * columns);
    float *data = malloc((count + 1) * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)(i + 1);
    ir_tensor tensor = tensor_of(MDOT_DTYPE_F32, rank, dims, data);
    int64_t panels = (columns + 63) / 64;
    int64_t bytes = cg_packed_bytes(&cg_pack_panels, &tensor, PL_MATRIX);
    assert_int_equal(bytes, panels * 64 * k_count * 4);
    float *out = malloc((size_t)bytes + sizeof *out);
    memset(out, 0xFF, (size_t)bytes + sizeof *out);
    cg_pack(&cg_pack_panels, &tensor, PL_MATRIX, out);
    for (int64_t k = 0; k < k_count; k++)
        for (int64_t c = 0; c < panels * 64; c++) {
            float expected = c < columns ? data[k * columns + c] : 0;
            assert_compare(out[(c / 64 * k_count + k) * 64 + c % 64], ==, expected);
        }
    uint32_t beyond;
    memcpy(&beyond, (char *)out + bytes, sizeof beyond);
    assert_int_equal(beyond, UINT32_MAX); /* unchanged */
    free(out);
    free(data);
}

static void panels_hold_the_matrix_k_major_padded_with_zeros(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {{1, 1}, {3, 63}, {5, 64}, {2, 65}, {7, 128}, {4, 200}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_panels(2, sizes[i], sizes[i][0], sizes[i][1]);
}

static void check_pairs(int64_t k_count, int64_t columns)
{
    size_t count = (size_t)(k_count * columns);
    float *data = malloc((count + 1) * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)(i % 251) + 0.001f;
    ir_tensor tensor = tensor_of(MDOT_DTYPE_F32, 2, (const int64_t[]){k_count, columns}, data);
    int64_t panels = (columns + 63) / 64, rows = (k_count + 31) / 32 * 32, padding = rows - k_count;
    int64_t bytes = cg_packed_bytes(&cg_pack_bf16, &tensor, PL_MATRIX);
    assert_int_equal(bytes, panels * 64 * rows * 2);
    assert_int_equal(cg_bf16_padding(k_count), padding);
    uint16_t *out = malloc((size_t)bytes + sizeof *out);
    memset(out, 0xFF, (size_t)bytes + sizeof *out);
    cg_pack(&cg_pack_bf16, &tensor, PL_MATRIX, out);
    for (int64_t p = 0; p < rows; p++)
        for (int64_t c = 0; c < panels * 64; c++) {
            float value = p >= padding && c < columns ? data[(p - padding) * columns + c] : 0;
            assert_int_equal(out[((c / 64 * rows / 2 + p / 2) * 64 + c % 64) * 2 + p % 2], ir_f32_to_bf16(value));
        }
    assert_int_equal(out[bytes / 2], UINT16_MAX); /* unchanged */
    free(out);
    free(data);
}

static void pairs_pack_two_rows_per_word_padded_at_the_front(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {{1, 1}, {3, 63}, {32, 64}, {33, 65}, {64, 128}, {127, 7}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_pairs(sizes[i][0], sizes[i][1]);
}

/* G g Gᵀ for every channel and column, from the definition of G. */
static void check_taps(int64_t channels, int64_t columns, bool by_two)
{
    static const double by_one_g[][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
    static const double by_two_g[][3] = {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};
    const cg_packing *packing = by_two ? &cg_pack_taps_by_two : &cg_pack_taps;
    const double(*g)[3] = by_two ? by_two_g : by_one_g;
    int64_t side = by_two ? 5 : 4, elements = side * side;
    pl_weight_use use = by_two ? PL_TAPS_BY_TWO : PL_TAPS;
    int64_t dims[] = {3, 3, channels, columns}, panels = (columns + 63) / 64;
    float *data = malloc((size_t)(9 * channels * columns) * sizeof *data);
    for (int64_t i = 0; i < 9 * channels * columns; i++) data[i] = (float)(i * i % 251) - 100;
    ir_tensor tensor = tensor_of(MDOT_DTYPE_F32, 4, dims, data);
    int64_t bytes = cg_packed_bytes(packing, &tensor, use);
    assert_int_equal(bytes, panels * 64 * elements * channels * 4);
    float *out = malloc((size_t)bytes);
    memset(out, 0xFF, (size_t)bytes);
    cg_pack(packing, &tensor, use, out);
    for (int64_t row = 0; row < elements * channels; row++)
        for (int64_t c = 0; c < panels * 64; c++) {
            int64_t element = row / channels, channel = row % channels, y = element / side, x = element % side;
            int64_t place = cg_tap_place(by_two, (int)y, (int)x) * channels + channel;
            double sum = 0;
            for (int t = 0; t < 9 && c < columns; t++)
                sum += g[y][t / 3] * g[x][t % 3] * data[(t * channels + channel) * columns + c];
            assert_compare(out[(c / 64 * elements * channels + place) * 64 + c % 64], ==, (float)sum);
        }
    free(out);
    free(data);
}

static void taps_are_transformed_in_both_dimensions(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        check_taps(1, 1, i == 1);
        check_taps(3, 64, i == 1);
        check_taps(2, 70, i == 1);
    }
}

static void vector_is_a_matrix_of_one_row(void **state)
{
    (void)state;
    check_panels(1, (const int64_t[]){100}, 1, 100);
    check_panels(3, (const int64_t[]){1, 1, 70}, 1, 70);
}

static void dense_copies_any_type(void **state)
{
    (void)state;
    const uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
    const struct {
        mdot_dtype dtype;
        int64_t count;
    } rows[] = {{MDOT_DTYPE_U8, 6}, {MDOT_DTYPE_BF16, 3}, {MDOT_DTYPE_BOOL, 6}, {MDOT_DTYPE_F32, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_tensor tensor = tensor_of(rows[i].dtype, 1, &rows[i].count, bytes);
        size_t size = (size_t)rows[i].count * mdot_dtype_size_bytes(rows[i].dtype);
        uint8_t out[7] = {0, 0, 0, 0, 0, 0, 99};
        assert_int_equal(cg_packed_bytes(&cg_pack_panels, &tensor, PL_ELEMENTS), size);
        cg_pack(&cg_pack_panels, &tensor, PL_ELEMENTS, out);
        assert_memory_equal(out, bytes, size);
        assert_int_equal(out[6], 99);
    }
}

static void empty_constants_take_no_bytes(void **state)
{
    (void)state;
    const int64_t dims[] = {0, 64}, flat[] = {3, 0};
    ir_tensor tall = tensor_of(MDOT_DTYPE_F32, 2, dims, NULL), wide = tensor_of(MDOT_DTYPE_F32, 2, flat, NULL);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &tall, PL_MATRIX), 0);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &wide, PL_MATRIX), 0);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &tall, PL_ELEMENTS), 0);
    cg_pack(&cg_pack_panels, &tall, PL_ELEMENTS, NULL);
    cg_pack(&cg_pack_panels, &tall, PL_MATRIX, NULL);
    assert_int_equal(cg_packed_bytes(&cg_pack_bf16, &tall, PL_MATRIX), 0);
    assert_int_equal(cg_packed_bytes(&cg_pack_bf16, &wide, PL_MATRIX), 0);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    const int64_t huge = INT64_MAX / 2, dims[] = {INT64_MAX / 128, 65};
    ir_tensor vector = tensor_of(MDOT_DTYPE_F32, 1, &huge, NULL), matrix = tensor_of(MDOT_DTYPE_F32, 2, dims, NULL);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &vector, PL_ELEMENTS), -1);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &vector, PL_MATRIX), -1);
    assert_int_equal(cg_packed_bytes(&cg_pack_panels, &matrix, PL_MATRIX), -1);
    assert_int_equal(cg_packed_bytes(&cg_pack_bf16, &matrix, PL_MATRIX), -1);
    const int64_t taps[] = {9, INT64_MAX / 9 / 4 / 2};
    matrix = tensor_of(MDOT_DTYPE_F32, 2, taps, NULL);
    assert_int_equal(cg_packed_bytes(&cg_pack_taps, &matrix, PL_TAPS), -1);
    assert_int_equal(cg_packed_bytes(&cg_pack_taps_by_two, &matrix, PL_TAPS_BY_TWO), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_hold_the_matrix_k_major_padded_with_zeros),
        cmocka_unit_test(pairs_pack_two_rows_per_word_padded_at_the_front),
        cmocka_unit_test(taps_are_transformed_in_both_dimensions),
        cmocka_unit_test(vector_is_a_matrix_of_one_row),
        cmocka_unit_test(dense_copies_any_type),
        cmocka_unit_test(empty_constants_take_no_bytes),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
