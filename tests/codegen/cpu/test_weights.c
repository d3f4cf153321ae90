/* test_weights.c — several plans' weights packed into one block. */
#include "codegen/cpu/cpu_images.h"
#include "mdot/mdot_abi.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ir_tensor matrix(const float *data, int64_t rows, int64_t columns)
{
    return (ir_tensor){
        .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = {rows, columns}, .count = rows * columns, .data = data};
}

static pl_buffer weight(const ir_tensor *tensor, pl_weight_use use)
{
    return (pl_buffer){.kind = PL_WEIGHT, .name = "w", .constant = tensor, .use = use};
}

/* A second packing layout: the plain matrix, with the first element moved to the end. */
static int64_t dense_bytes(const ir_tensor *tensor) { return tensor->count * 4; }

static void pack_rotated(const ir_tensor *tensor, void *out)
{
    float *to = out;
    const float *from = tensor->data;
    for (int64_t i = 0; i < tensor->count; i++) to[i] = from[(i + 1) % tensor->count];
}

static const cg_packing rotated = {.name = "rotated", .matrix_bytes = dense_bytes, .pack_matrix = pack_rotated};
static const cg_layout rotated_layout = {.f32 = &rotated, .bf16 = &rotated};
static const cg_layout *const panels_only[] = {&cg_layout_f32};

static void plans_share_equal_weights(void **state)
{
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, copy_of_a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {6, 5, 4, 3, 2, 1};
    ir_tensor ta = matrix(a, 2, 3), tcopy = matrix(copy_of_a, 2, 3), tb = matrix(b, 2, 3), reshaped = matrix(a, 3, 2);
    pl_buffer first[] = {weight(&ta, PL_ELEMENTS), weight(&ta, PL_MATRIX), {.kind = PL_SCRATCH, .offset_bytes = 7}};
    pl_buffer second[] = {weight(&tb, PL_ELEMENTS), weight(&tcopy, PL_ELEMENTS), weight(&tcopy, PL_MATRIX),
                          weight(&reshaped, PL_MATRIX), weight(&reshaped, PL_ELEMENTS)};
    pl_plan plans[] = {{.buffer_count = 3, .buffers = first}, {.buffer_count = 5, .buffers = second}};
    pl_plan *one[] = {&plans[0]}, *two[] = {&plans[1]};
    cg_entry entries[] = {{.name = "encode", .plan_count = 1, .plans = one},
                          {.name = "evaluate", .plan_count = 1, .plans = two}};
    cg_pool weights = {0};
    cg_placement placement;
    ir_arena *arena = ir_arena_create(0);
    assert_int_equal(cg_lay_out_weights(entries, 2, panels_only, 1, &weights, &placement, arena, NULL), MDOT_OK);
    const int64_t *at = placement.offset[0], *at_second = placement.offset[1];
    assert_int_equal(first[2].offset_bytes, 7); /* a buffer other than a weight */
    assert_int_equal(at_second[1], at[0]);      /* equal bytes */
    assert_int_equal(at_second[2], at[1]);      /* the same panels */
    assert_int_equal(at_second[4], at[0]);      /* the same bytes in another shape */
    assert_int_not_equal(at_second[3], at[1]);  /* another matrix's panels */
    assert_int_not_equal(at_second[0], at[0]);
    const int64_t all[] = {at[0], at[1], at_second[0], at_second[3]};
    for (int i = 0; i < 4; i++) assert_int_equal(all[i] % MDOT_ABI_ALIGNMENT, 0);
    assert_memory_equal(weights.bytes + at[0], a, sizeof a);
    assert_memory_equal(weights.bytes + at_second[0], b, sizeof b);
    const float *panel = (const float *)(weights.bytes + at[1]);
    assert_compare(panel[2], ==, 3);
    assert_compare(panel[3], ==, 0);
    assert_compare(panel[64], ==, 4);
    assert_int_equal(weights.size_bytes % MDOT_ABI_ALIGNMENT, 0);
    assert_int_equal(placement.first, 0);
    assert_compare(placement.end, <=, weights.size_bytes);
    cg_pool_done(&weights);
    ir_arena_destroy(arena);
}

static void layouts_share_all_weights_except_matrices(void **state)
{
    (void)state;
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    ir_tensor ta = matrix(a, 2, 2), tb = matrix(b, 2, 2);
    pl_buffer buffers[] = {weight(&ta, PL_MATRIX), weight(&tb, PL_ELEMENTS)};
    pl_plan plan = {.buffer_count = 2, .buffers = buffers}, *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    const cg_layout *const both[] = {&cg_layout_f32, &rotated_layout};
    cg_pool weights = {0};
    cg_placement placement[2];
    ir_arena *arena = ir_arena_create(0);
    assert_int_equal(cg_lay_out_weights(&entry, 1, both, 2, &weights, placement, arena, NULL), MDOT_OK);
    size_t at[2][2];
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 2; k++) {
            at[p][k] = placement[p].first + (size_t)placement[p].offset[0][k];
            assert_compare(at[p][k], >=, placement[p].first);
            assert_compare(at[p][k] + 16, <=, placement[p].end);
        }
    assert_int_equal(at[0][1], at[1][1]);
    assert_int_not_equal(at[0][0], at[1][0]);
    assert_memory_equal(weights.bytes + at[0][1], b, sizeof b);
    assert_memory_equal(weights.bytes + at[1][0], ((const float[]){2, 3, 4, 1}), sizeof a);
    assert_int_equal(placement[1].first % MDOT_ABI_ALIGNMENT, 0);
    assert_int_not_equal(placement[1].first, 0); /* these panels are excluded */
    cg_pool_done(&weights);
    ir_arena_destroy(arena);
}

/* Each image has separate copies of the 16-bit weights, and both images share the 32-bit weights. */
static void bf16_shares_32_bit_weights_with_fp32(void **state)
{
    (void)state;
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    ir_tensor ta = matrix(a, 2, 2), tb = matrix(b, 2, 2);
    pl_buffer buffers[] = {weight(&ta, PL_MATRIX), weight(&tb, PL_MATRIX)};
    buffers[0].reads = PL_READ_HALF;
    buffers[1].reads = PL_READ_HALF | PL_READ_WHOLE;
    pl_plan plan = {.buffer_count = 2, .buffers = buffers}, *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    const cg_layout *const both[] = {&cg_layout_f32, &cg_layout_bf16};
    cg_pool weights = {0};
    cg_placement placement[2];
    ir_arena *arena = ir_arena_create(0);
    assert_int_equal(cg_lay_out_weights(&entry, 1, both, 2, &weights, placement, arena, NULL), MDOT_OK);
    size_t at[2][2];
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 2; k++) at[p][k] = placement[p].first + (size_t)placement[p].offset[0][k];
    assert_int_equal(at[0][1], at[1][1]);
    assert_int_not_equal(at[0][0], at[1][0]);
    const uint16_t *pair = (const uint16_t *)(weights.bytes + at[1][0]) + 15 * CG_PANEL_COLUMNS * 2;
    assert_int_equal(pair[0], ir_f32_to_bf16(1));
    assert_int_equal(pair[1], ir_f32_to_bf16(3));
    assert_int_equal(pair[2], ir_f32_to_bf16(2));
    cg_pool_done(&weights);
    ir_arena_destroy(arena);
}

static void plans_without_weights_still_make_a_section(void **state)
{
    (void)state;
    ir_tensor none = matrix(NULL, 0, 3);
    pl_buffer buffers[] = {weight(&none, PL_ELEMENTS)};
    pl_plan plan = {.buffer_count = 1, .buffers = buffers}, *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    cg_pool weights = {0};
    cg_placement placement;
    ir_arena *arena = ir_arena_create(0);
    assert_int_equal(cg_lay_out_weights(&entry, 1, panels_only, 1, &weights, &placement, arena, NULL), MDOT_OK);
    assert_int_equal(placement.offset[0][0], 0);
    assert_int_equal(placement.first, 0);
    assert_int_equal(placement.end, 0);
    assert_int_equal(weights.size_bytes, MDOT_ABI_ALIGNMENT);
    cg_pool_done(&weights);
    ir_arena_destroy(arena);
}

static void oversized_weight_is_reported_by_name(void **state)
{
    (void)state;
    ir_tensor huge = {.dtype = MDOT_DTYPE_F64, .rank = 1, .dims = {INT64_MAX / 2}, .count = INT64_MAX / 2};
    pl_buffer buffers[] = {weight(&huge, PL_ELEMENTS)};
    buffers[0].name = "embedding";
    pl_plan plan = {.buffer_count = 1, .buffers = buffers}, *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    cg_pool weights = {0};
    cg_placement placement;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    assert_int_equal(cg_lay_out_weights(&entry, 1, panels_only, 1, &weights, &placement, arena, &err),
                     MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "embedding"));
    cg_pool_done(&weights);
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_share_equal_weights),
        cmocka_unit_test(layouts_share_all_weights_except_matrices),
        cmocka_unit_test(bf16_shares_32_bit_weights_with_fp32),
        cmocka_unit_test(plans_without_weights_still_make_a_section),
        cmocka_unit_test(oversized_weight_is_reported_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
