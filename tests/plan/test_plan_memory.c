/* test_plan_memory.c — buffer assignment: buffers with overlapping live ranges have separate bytes, other buffers
 * share them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"

enum { MAX_BUFFERS = 64 };

typedef struct fixture {
    pl_plan plan;
    pl_buffer buffers[MAX_BUFFERS];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->plan.arena = ir_arena_create(0);
    f->plan.buffers = f->buffers;
    *state = f;
    return f->plan.arena ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    ir_arena_destroy(f->plan.arena);
    free(f);
    return 0;
}

static int add(fixture *f, int64_t bytes, int first, int last)
{
    f->buffers[f->plan.buffer_count] =
        (pl_buffer){.kind = PL_SCRATCH, .max_bytes = bytes, .first_use = first, .last_use = last, .offset_bytes = -1};
    return f->plan.buffer_count++;
}

static bool share_bytes(const pl_buffer *a, const pl_buffer *b)
{
    return a->offset_bytes < b->offset_bytes + b->max_bytes && b->offset_bytes < a->offset_bytes + a->max_bytes;
}

static void assert_sound(const fixture *f)
{
    for (int i = 0; i < f->plan.buffer_count; i++) {
        const pl_buffer *a = &f->buffers[i];
        assert_int_equal(a->offset_bytes % 64, 0);
        assert_compare(a->offset_bytes, >=, 0);
        assert_compare(a->offset_bytes + a->max_bytes, <=, f->plan.scratch_bytes);
        for (int j = 0; j < i; j++) {
            const pl_buffer *b = &f->buffers[j];
            bool meet = a->first_use <= b->last_use && b->first_use <= a->last_use;
            assert_false(meet && share_bytes(a, b));
        }
    }
}

static void buffers_with_disjoint_lifetimes_share_memory(void **state)
{
    fixture *f = *state;
    int a = add(f, 1024, 0, 1), b = add(f, 1024, 2, 3);
    assert_true(pl_assign_memory(&f->plan));
    assert_int_equal(f->buffers[a].offset_bytes, 0);
    assert_int_equal(f->buffers[b].offset_bytes, 0);
    assert_int_equal(f->plan.scratch_bytes, 1024);
}

static void operands_and_results_of_a_kernel_do_not_overlap(void **state)
{
    fixture *f = *state;
    add(f, 256, 0, 1);
    add(f, 256, 1, 2);
    assert_true(pl_assign_memory(&f->plan));
    assert_sound(f);
    assert_int_equal(f->plan.scratch_bytes, 512);
}

static void offsets_are_aligned_to_cache_lines(void **state)
{
    fixture *f = *state;
    add(f, 3, 0, 5);
    add(f, 65, 0, 5);
    add(f, 1, 0, 5);
    assert_true(pl_assign_memory(&f->plan));
    assert_sound(f);
    assert_int_equal(f->plan.scratch_bytes, 64 + 128 + 64);
}

/* Two gaps are free at this time, and the smaller one is used. */
static void the_smallest_sufficient_gap_is_used(void **state)
{
    fixture *f = *state;
    add(f, 4096, 0, 9);
    int wide = add(f, 2048, 0, 0);
    add(f, 1536, 0, 9);
    int tight = add(f, 1024, 0, 0);
    add(f, 960, 0, 9);
    int late = add(f, 832, 5, 6);
    assert_true(pl_assign_memory(&f->plan));
    assert_sound(f);
    assert_int_not_equal(f->buffers[late].offset_bytes, f->buffers[wide].offset_bytes);
    assert_int_equal(f->buffers[late].offset_bytes, f->buffers[tight].offset_bytes);
}

static void unused_and_external_buffers_get_no_memory(void **state)
{
    fixture *f = *state;
    int unused = add(f, 1024, -1, -1), input = add(f, 1024, 0, 3);
    f->buffers[input].kind = PL_INPUT;
    assert_true(pl_assign_memory(&f->plan));
    assert_int_equal(f->plan.scratch_bytes, 0);
    assert_int_equal(f->buffers[unused].offset_bytes, -1);
    assert_int_equal(f->buffers[input].offset_bytes, -1);
}

static void empty_buffers_are_accepted(void **state)
{
    fixture *f = *state;
    add(f, 0, 0, 3);
    add(f, 128, 0, 3);
    assert_true(pl_assign_memory(&f->plan));
    assert_int_equal(f->plan.scratch_bytes, 128);
}

/* An encoder layer's live ranges. The peak is at the widest moment: two residuals and the hidden layer. */
static void an_encoder_needs_only_its_peak_memory(void **state)
{
    fixture *f = *state;
    const int64_t row = 512;
    for (int layer = 0; layer < 6; layer++) {
        int k = 6 * layer;
        add(f, row, k, k + 1);         /* norm */
        add(f, 3 * row, k + 1, k + 2); /* q, k, v */
        add(f, row, k + 2, k + 3);     /* attention */
        add(f, row, k + 3, k + 6);     /* residual; the second residual is assigned below it */
        add(f, row, k + 4, k + 5);     /* norm */
        add(f, 4 * row, k + 5, k + 6); /* hidden */
        add(f, row, k + 6, k + 9);
    }
    assert_true(pl_assign_memory(&f->plan));
    assert_sound(f);
    assert_int_equal(f->plan.scratch_bytes, (4 + 1 + 1 + 1) * row);
}

static void random_lifetimes_never_overlap(void **state)
{
    fixture *f = *state;
    unsigned random = 12345;
    for (int round = 0; round < 50; round++) {
        f->plan.buffer_count = 0;
        for (int k = 0; k < MAX_BUFFERS; k++) {
            random = random * 1664525u + 1013904223u;
            int first = (int)(random >> 24) % 40, life = (int)(random >> 16) % 12;
            add(f, (int64_t)(random >> 8) % 5000, first, first + life);
        }
        assert_true(pl_assign_memory(&f->plan));
        assert_sound(f);
    }
}

static void exhausted_memory_is_reported(void **state)
{
    fixture *f = *state;
    add(f, 64, 0, 1);
    ir_arena *own = f->plan.arena;
    f->plan.arena = ir_arena_create(1);
    assert_false(pl_assign_memory(&f->plan));
    ir_arena_destroy(f->plan.arena);
    f->plan.arena = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(buffers_with_disjoint_lifetimes_share_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operands_and_results_of_a_kernel_do_not_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(offsets_are_aligned_to_cache_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_smallest_sufficient_gap_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unused_and_external_buffers_get_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_buffers_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_encoder_needs_only_its_peak_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_lifetimes_never_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exhausted_memory_is_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
