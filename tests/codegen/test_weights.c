/* test_weights.c — the pool of shared bytes, and the weights of several plans packed into one block. */
#include "codegen/artefact.h"
#include "mdot/mdot_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void equal_bytes_are_stored_once(void **state)
{
    (void)state;
    cg_pool pool = {0};
    size_t offsets[1000];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1000; i++) { /* enough to grow the table and the block several times */
            char text[32];
            int length = snprintf(text, sizeof text, "name %d", i) + 1;
            size_t at = cg_pool_share(&pool, text, (size_t)length, 1);
            if (round == 0)
                offsets[i] = at;
            else
                assert_int_equal(at, offsets[i]);
            assert_string_equal((char *)pool.bytes + at, text);
        }
    assert_false(pool.failed);
    cg_pool_done(&pool);
}

static void reserved_bytes_are_zero_and_aligned(void **state)
{
    (void)state;
    cg_pool pool = {0};
    cg_pool_share(&pool, "abc", 3, 1);
    size_t at = cg_pool_reserve(&pool, 10, 64);
    assert_int_equal(at, 64);
    assert_int_equal(pool.size_bytes, 74);
    for (size_t i = 3; i < 74; i++) assert_int_equal(pool.bytes[i], 0);
    cg_pool_done(&pool);
}

static void shared_bytes_keep_the_alignment_asked_for(void **state)
{
    (void)state;
    cg_pool pool = {0};
    cg_pool_share(&pool, "x", 1, 1);
    assert_int_equal(cg_pool_share(&pool, "weights", 7, 1), 1);
    assert_int_equal(cg_pool_share(&pool, "weights", 7, 64), 64); /* the first copy is not aligned */
    assert_int_equal(cg_pool_share(&pool, "weights", 7, 64), 64);
    cg_pool_done(&pool);
}

static void impossible_size_fails_for_good(void **state)
{
    (void)state;
    cg_pool pool = {0};
    cg_pool_reserve(&pool, 8, 8);
    cg_pool_reserve(&pool, SIZE_MAX - 4, 1);
    assert_true(pool.failed);
    cg_pool_share(&pool, "x", 1, 1);
    assert_int_equal(pool.size_bytes, 8);
    cg_pool_done(&pool);
}

/* ---- Weights of plans
 * ------------------------------------------------------------------------------------------------ */

static ir_tensor matrix(const float *data, int64_t rows, int64_t columns)
{
    return (ir_tensor){
        .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = {rows, columns}, .count = rows * columns, .data = data};
}

static pl_buffer weight(const ir_tensor *tensor, pl_weight_layout layout)
{
    return (pl_buffer){.kind = PL_WEIGHT, .name = "w", .constant = tensor, .layout = layout, .offset_bytes = -1};
}

static void plans_share_equal_weights(void **state)
{
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, copy_of_a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {6, 5, 4, 3, 2, 1};
    ir_tensor ta = matrix(a, 2, 3), tcopy = matrix(copy_of_a, 2, 3), tb = matrix(b, 2, 3), reshaped = matrix(a, 3, 2);
    pl_buffer first[] = {weight(&ta, PL_DENSE), weight(&ta, PL_PANELS), {.kind = PL_SCRATCH, .offset_bytes = 7}};
    pl_buffer second[] = {weight(&tb, PL_DENSE), weight(&tcopy, PL_DENSE), weight(&tcopy, PL_PANELS),
                          weight(&reshaped, PL_PANELS), weight(&reshaped, PL_DENSE)};
    pl_plan plans[] = {{.buffer_count = 3, .buffers = first}, {.buffer_count = 5, .buffers = second}};
    pl_plan *one[] = {&plans[0]}, *two[] = {&plans[1]};
    cg_entry entries[] = {{.name = "encode", .plan_count = 1, .plans = one},
                          {.name = "price", .plan_count = 1, .plans = two}};
    cg_pool weights = {0};
    assert_int_equal(cg_pack_weights(entries, 2, &weights, NULL), MDOT_OK);
    assert_int_equal(first[2].offset_bytes, 7);                          /* not a weight */
    assert_int_equal(second[1].offset_bytes, first[0].offset_bytes);     /* equal bytes */
    assert_int_equal(second[2].offset_bytes, first[1].offset_bytes);     /* equal panels */
    assert_int_equal(second[4].offset_bytes, first[0].offset_bytes);     /* another shape of the same bytes */
    assert_int_not_equal(second[3].offset_bytes, first[1].offset_bytes); /* panels of another matrix */
    assert_int_not_equal(second[0].offset_bytes, first[0].offset_bytes);
    const pl_buffer *all[] = {&first[0], &first[1], &second[0], &second[3]};
    for (int i = 0; i < 4; i++) assert_int_equal(all[i]->offset_bytes % MDOT_ABI_ALIGNMENT, 0);
    assert_memory_equal(weights.bytes + first[0].offset_bytes, a, sizeof a);
    assert_memory_equal(weights.bytes + second[0].offset_bytes, b, sizeof b);
    const float *panel = (const float *)(weights.bytes + first[1].offset_bytes);
    assert_true(panel[2] == 3 && panel[3] == 0 && panel[64] == 4);
    assert_int_equal(weights.size_bytes % MDOT_ABI_ALIGNMENT, 0);
    cg_pool_done(&weights);
}

static void plans_without_weights_make_a_section_all_the_same(void **state)
{
    (void)state;
    ir_tensor none = matrix(NULL, 0, 3);
    pl_buffer buffers[] = {weight(&none, PL_DENSE)};
    pl_plan plan = {.buffer_count = 1, .buffers = buffers};
    pl_plan *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    cg_pool weights = {0};
    assert_int_equal(cg_pack_weights(&entry, 1, &weights, NULL), MDOT_OK);
    assert_int_equal(buffers[0].offset_bytes, 0);
    assert_int_equal(weights.size_bytes, MDOT_ABI_ALIGNMENT);
    cg_pool_done(&weights);
}

static void oversized_weight_is_reported_by_name(void **state)
{
    (void)state;
    ir_tensor huge = {.dtype = MDOT_DTYPE_F64, .rank = 1, .dims = {INT64_MAX / 2}, .count = INT64_MAX / 2};
    pl_buffer buffers[] = {weight(&huge, PL_DENSE)};
    buffers[0].name = "embedding";
    pl_plan plan = {.buffer_count = 1, .buffers = buffers};
    pl_plan *plans[] = {&plan};
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = plans};
    cg_pool weights = {0};
    mdot_error err;
    assert_int_equal(cg_pack_weights(&entry, 1, &weights, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "embedding"));
    cg_pool_done(&weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_are_stored_once),
        cmocka_unit_test(reserved_bytes_are_zero_and_aligned),
        cmocka_unit_test(shared_bytes_keep_the_alignment_asked_for),
        cmocka_unit_test(impossible_size_fails_for_good),
        cmocka_unit_test(plans_share_equal_weights),
        cmocka_unit_test(plans_without_weights_make_a_section_all_the_same),
        cmocka_unit_test(oversized_weight_is_reported_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
