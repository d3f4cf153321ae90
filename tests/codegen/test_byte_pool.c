/* test_byte_pool.c — growing byte pools, and equal pieces stored once. */
#include "codegen/byte_pool.h"

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
            size_t at = cg_pool_intern(&pool, text, (size_t)length, 1);
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
    cg_pool_intern(&pool, "abc", 3, 1);
    size_t at = cg_pool_reserve(&pool, 10, 64);
    assert_int_equal(at, 64);
    assert_int_equal(pool.size_bytes, 74);
    for (size_t i = 3; i < 74; i++) assert_int_equal(pool.bytes[i], 0);
    cg_pool_done(&pool);
}

static void shared_bytes_keep_the_requested_alignment(void **state)
{
    (void)state;
    cg_pool pool = {0};
    cg_pool_intern(&pool, "x", 1, 1);
    assert_int_equal(cg_pool_intern(&pool, "weights", 7, 1), 1);
    assert_int_equal(cg_pool_intern(&pool, "weights", 7, 64), 64); /* the first copy is misaligned */
    assert_int_equal(cg_pool_intern(&pool, "weights", 7, 64), 64);
    cg_pool_done(&pool);
}

static void impossible_size_fails_permanently(void **state)
{
    (void)state;
    cg_pool pool = {0};
    cg_pool_reserve(&pool, 8, 8);
    cg_pool_reserve(&pool, SIZE_MAX - 4, 1);
    assert_true(pool.failed);
    cg_pool_intern(&pool, "x", 1, 1);
    assert_int_equal(pool.size_bytes, 8);
    cg_pool_done(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_are_stored_once),
        cmocka_unit_test(reserved_bytes_are_zero_and_aligned),
        cmocka_unit_test(shared_bytes_keep_the_requested_alignment),
        cmocka_unit_test(impossible_size_fails_permanently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
