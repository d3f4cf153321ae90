/* test_fragments.c — weights in the lane order of a matrix instruction, compared register by register with the PTX
 * ISA's description of operand B. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_target.h"

enum { LANES = 32, HALVES = 8 };

static float element(int64_t row, int64_t column)
{
    return (float)(row * 3 - column * 5) / 4.0f; /* exact in both 16-bit types */
}

static uint16_t *pack(int64_t k, int64_t columns, cg_compute kernel_precision)
{
    /* The data starts one byte into the block, because constants in a file may be unaligned. */
    unsigned char *bytes = malloc((size_t)(k * columns) * sizeof(float) + 1);
    uint16_t *out = malloc(cu_fragment_bytes(k, columns));
    assert_non_null(bytes);
    assert_non_null(out);
    for (int64_t at = 0; at < k * columns; at++) {
        float value = element(at / columns, at % columns);
        memcpy(bytes + 1 + at * (int64_t)sizeof value, &value, sizeof value);
    }
    ir_tensor matrix = {.dtype = MDOT_DTYPE_F32, .rank = 2, .count = k * columns, .data = bytes + 1};
    cu_pack_fragments(&matrix, k, columns, kernel_precision, out);
    free(bytes);
    return out;
}

/* PTX ISA, mma.m16n8k16, operand B: lane l holds b0, b1 from rows 2 (l % 4) and the next, b2, b3 from the rows 8 below,
 * all in column l / 4. A fragment is two such operands, columns 0 to 7 and 8 to 15. */
static void assert_fragments(int64_t k, int64_t columns, cg_compute kernel_precision)
{
    uint16_t *packed = pack(k, columns, kernel_precision);
    int64_t steps = (k + 15) / 16, groups = (columns + 15) / 16;
    assert_int_equal(cu_fragment_groups(columns), groups);
    assert_int_equal(cu_fragment_bytes(k, columns), groups * steps * LANES * HALVES * 2);
    for (int64_t group = 0; group < groups; group++) {
        for (int64_t step = 0; step < steps; step++) {
            const uint16_t *fragment = packed + (group * steps + step) * LANES * HALVES;
            for (int lane = 0; lane < LANES; lane++) {
                for (int operand = 0; operand < 2; operand++) {
                    for (int b = 0; b < 4; b++) {
                        int64_t row = step * 16 + lane % 4 * 2 + b % 2 + (b >= 2 ? 8 : 0);
                        int64_t column = group * 16 + operand * 8 + lane / 4;
                        float want = row < k && column < columns ? element(row, column) : 0.0f;
                        uint16_t half = fragment[lane * HALVES + operand * 4 + b];
                        float got = kernel_precision == CG_FP16 ? ir_f16_to_f32(half) : ir_bf16_to_f32(half);
                        if (got != want)
                            fail_msg("row %d column %d: %g, not %g", (int)row, (int)column, (double)got, (double)want);
                    }
                }
            }
        }
    }
    free(packed);
}

static void a_whole_fragment_is_packed(void **state)
{
    (void)state;
    assert_fragments(16, 16, CG_BF16);
    assert_fragments(16, 16, CG_FP16);
}

static void steps_of_k_come_before_groups_of_columns(void **state)
{
    (void)state;
    assert_fragments(48, 32, CG_BF16);
    assert_fragments(32, 48, CG_FP16);
}

static void partial_fragments_are_padded_with_zeros(void **state)
{
    (void)state;
    assert_fragments(5, 3, CG_BF16);
    assert_fragments(17, 16, CG_BF16);
    assert_fragments(16, 17, CG_FP16);
    assert_fragments(31, 41, CG_FP16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_fragment_is_packed),
        cmocka_unit_test(steps_of_k_come_before_groups_of_columns),
        cmocka_unit_test(partial_fragments_are_padded_with_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
