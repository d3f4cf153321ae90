/* test_arena.c — the compiler's memory arena. */
#include "ir/arena.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void allocations_are_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    static const size_t sizes[] = {1, 15, 63, 64, 65, 1000, 5000, 100000, 3, 9000000, 64, 7};
    unsigned char *previous = NULL;
    size_t previous_size = 0;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            if (round > 0 && sizes[i] > 200000) continue;
            unsigned char *p = ir_arena_alloc(arena, 1, sizes[i]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % (sizes[i] >= 64 ? 64 : 16), 0);
            for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(p[k], 0);
            memset(p, 0xAA, sizes[i]);
            if (previous) assert_int_equal(previous[previous_size - 1], 0xAA);
            previous = p;
            previous_size = sizes[i];
        }
    }
    ir_arena_destroy(arena);
}

static void an_empty_array_is_allocated(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    assert_non_null(ir_arena_alloc(arena, 0, 8));
    assert_non_null(ir_arena_alloc(arena, 8, 0));
    assert_false(ir_arena_failed(arena));
    ir_arena_destroy(arena);
}

static void overflow_fails_and_is_recorded(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    assert_null(ir_arena_alloc(arena, SIZE_MAX / 2, 3));
    assert_true(ir_arena_failed(arena));
    assert_null(ir_arena_alloc(arena, SIZE_MAX - 32, 1));
    assert_non_null(ir_arena_alloc(arena, 1, 8));
    assert_true(ir_arena_failed(arena));
    ir_arena_destroy(arena);
}

static void arrays_grow_and_keep_their_elements(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(1 << 20);
    int *array = NULL, count = 0, capacity = 0;
    for (int *grown = array; (grown = ir_arena_grow(arena, array, count, &capacity, sizeof *array)) != NULL;) {
        array = grown;
        array[count] = count;
        count++;
    }
    assert_true(ir_arena_is_full(arena));
    assert_int_equal(count, capacity); /* the refused space is not counted */
    assert_true(count >= 1 << 16);
    for (int i = 0; i < count; i++) assert_int_equal(array[i], i);
    int most = INT_MAX;
    assert_ptr_equal(ir_arena_grow(arena, array, INT_MAX - 1, &most, sizeof *array), array);
    assert_null(ir_arena_grow(arena, array, INT_MAX, &most, sizeof *array));
    assert_int_equal(most, INT_MAX);
    ir_arena_destroy(arena);
}

static void the_limit_bounds_allocations(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(100);
    assert_non_null(ir_arena_alloc(arena, 1, 60));
    assert_null(ir_arena_alloc(arena, 1, 41));
    assert_true(ir_arena_failed(arena));
    assert_non_null(ir_arena_alloc(arena, 1, 40));
    assert_int_equal(arena->used_bytes, 100);
    assert_null(ir_arena_alloc(arena, 1, 1));
    ir_arena_destroy(arena);
}

static void strings_are_copied_and_formatted(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    assert_string_equal(ir_arena_strdup(arena, "weight"), "weight");
    assert_string_equal(ir_arena_strndup(arena, "weight", 3), "wei");
    assert_string_equal(ir_arena_strndup(arena, "", 0), "");
    assert_string_equal(ir_arena_printf(arena, "%s:%d", "out", 7), "out:7");
    assert_null(ir_arena_strndup(arena, "x", SIZE_MAX));
    ir_arena_destroy(arena);
}

static int order[3], calls;
static void note(void *object) { order[calls++] = *(int *)object; }

static void deferred_releases_run_newest_first(void **state)
{
    (void)state;
    int one = 1, two = 2, three = 3;
    calls = 0;
    ir_arena *arena = ir_arena_create(0);
    assert_true(ir_arena_defer(arena, note, &one));
    assert_true(ir_arena_defer(arena, note, &two));
    assert_true(ir_arena_defer(arena, note, &three));
    assert_int_equal(calls, 0);
    ir_arena_destroy(arena);
    assert_int_equal(calls, 3);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[2], 1);
    ir_arena_destroy(NULL);
}

static void the_limit_grows_with_the_bytes_read(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    assert_non_null(ir_arena_alloc(arena, 1000, 1));
    ir_arena_allow(arena, 500);
    assert_int_equal(ir_arena_limit_bytes(arena), 1500);
    assert_non_null(ir_arena_alloc(arena, 500, 1));
    assert_false(ir_arena_is_full(arena));
    assert_null(ir_arena_alloc(arena, 1, 1));
    assert_true(ir_arena_is_full(arena));
    ir_arena_allow(arena, 10);
    assert_non_null(ir_arena_alloc(arena, 10, 1));
    assert_null(ir_arena_alloc(arena, 1, 1));
    ir_arena_allow(arena, SIZE_MAX);
    assert_int_equal(ir_arena_limit_bytes(arena), SIZE_MAX);
    assert_non_null(ir_arena_alloc(arena, 1, 1));
    ir_arena_destroy(arena);
}

static void an_explicit_limit_is_kept(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(100);
    ir_arena_allow(arena, 1000);
    assert_int_equal(ir_arena_limit_bytes(arena), 100);
    assert_null(ir_arena_alloc(arena, 101, 1));
    assert_true(ir_arena_is_full(arena));
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_grows_with_the_bytes_read),
        cmocka_unit_test(an_explicit_limit_is_kept),
        cmocka_unit_test(allocations_are_zeroed_aligned_and_disjoint),
        cmocka_unit_test(an_empty_array_is_allocated),
        cmocka_unit_test(overflow_fails_and_is_recorded),
        cmocka_unit_test(arrays_grow_and_keep_their_elements),
        cmocka_unit_test(the_limit_bounds_allocations),
        cmocka_unit_test(strings_are_copied_and_formatted),
        cmocka_unit_test(deferred_releases_run_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
