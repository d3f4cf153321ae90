/* test_history_nodes.c — the table of keys. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history/history_nodes.h"
#include "tests/simulator/support/numbers.h"

static void the_table_keeps_the_most_recently_used(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    hs_nodes *nodes = hs_nodes_create(MOST);
    for (uint64_t i = 0; i < 5 * MOST; i++) {
        hs_node *node = hs_nodes_use(nodes, 2 * i + 1);
        node->ends = (double)i;
        hs_nodes_use(nodes, 1); /* the first key stays in use */
    }
    assert_non_null(hs_nodes_find(nodes, 1));
    for (uint64_t i = 1; i < 5 * MOST; i++) {
        const hs_node *node = hs_nodes_find(nodes, 2 * i + 1);
        assert_true((node != NULL) == (i >= 4 * MOST + 1));
        assert_true(node == NULL || node->ends == (double)i);
    }
    size_t listed = 0;
    for (const hs_node *n = hs_nodes_next(nodes, NULL); n != NULL; n = hs_nodes_next(nodes, n)) listed++;
    assert_int_equal(listed, MOST);
    hs_nodes_destroy(nodes);
}

static void an_entry_that_makes_room_starts_empty(void **state)
{
    (void)state;
    hs_nodes *nodes = hs_nodes_create(64);
    for (uint64_t i = 0; i < 64; i++) hs_nodes_use(nodes, 2 * i + 1)->now.weight = 7;
    expect_number(hs_nodes_use(nodes, 999)->now.weight, 0);
    assert_null(hs_nodes_find(nodes, 1));
    hs_nodes_destroy(nodes);
}

static void earlier_durations_are_never_later_than_asked(void **state)
{
    (void)state;
    hs_node node = {.hash = 1};
    for (double t = 1000; t < 3e6; t += 97) {
        hs_node_keep(&node, t);
        node.now = (hs_durations){.at_s = t, .weight = 1, .mean = t};
        for (double ago = 0; ago < 1e6; ago = 2 * ago + 50) {
            const hs_durations *then = hs_node_at(&node, t - ago);
            assert_true(then == NULL || then->at_s <= t - ago);
            assert_true(ago > 0 || then == &node.now);
        }
    }
    const hs_durations *then = hs_node_at(&node, node.now.at_s - 3600);
    assert_non_null(then);
    assert_true(node.now.at_s - then->at_s < 10 * 86400.);
    assert_null(hs_node_at(&node, 0));
}

static uint64_t next_of(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A list in an array, moved at each use, is the table: in its order, its contents and its count. */
static void any_sequence_of_uses_is_that_of_a_list(void **state)
{
    (void)state;
    enum { MOST_HASHES = 400 };
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 100, 128, 129, 257, 390};
    uint64_t seed = 1;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t list[MOST_HASHES], serial[MOST_HASHES] = {0};
        size_t count = 0, range = sizes[k] + 10 < MOST_HASHES ? sizes[k] + 10 : MOST_HASHES;
        hs_nodes *nodes = hs_nodes_create(sizes[k]);
        assert_null(hs_nodes_next(nodes, NULL));
        for (uint64_t i = 1; i < 4000; i++) {
            uint64_t which = next_of(&seed) % range, hash = which << 40 | which % 7 << 1 | 1;
            size_t at = 0;
            while (at < count && list[at] != hash) at++;
            assert_true((hs_nodes_find(nodes, hash) != NULL) == (at < count));
            if (at == count) {
                serial[which] = 0;
                if (count < sizes[k])
                    count++;
                else
                    at = 0;
            }
            memmove(list + at, list + at + 1, (count - at - 1) * sizeof *list);
            list[count - 1] = hash;
            hs_node *node = hs_nodes_use(nodes, hash);
            expect_number(node->hash, hash);
            expect_number(node->ends, serial[which]);
            node->ends = (double)(serial[which] = i);
            if (i % 50 != 0) continue;
            size_t listed = 0;
            for (const hs_node *n = hs_nodes_next(nodes, NULL); n != NULL; n = hs_nodes_next(nodes, n), listed++) {
                assert_true(listed < count && n->hash == list[listed]);
                assert_ptr_equal(n, hs_nodes_find(nodes, n->hash));
            }
            assert_int_equal(listed, count);
        }
        hs_nodes_destroy(nodes);
    }
}

/* Each place takes what the place before it held, or the present durations, when it is empty or its own period old:
 * a minute, and six times as long for each later place. Empty places may lie between others. */
static void places_pass_durations_on_by_their_periods(void **state)
{
    (void)state;
    uint64_t seed = 2;
    hs_node node = {.hash = 1};
    for (int i = 0; i < 40000; i++) {
        if (i % 500 == 0) node = (hs_node){.hash = 1};
        if (i % 500 == 250) node.earlier[next_of(&seed) % HS_EARLIER].weight = 0;
        hs_node before = node;
        double time_s = node.now.at_s + (double)(next_of(&seed) % 5) * (i % 3 != 0 ? 12 : 36. * (double)(i % 700));
        double period_s = 60;
        hs_node_keep(&node, time_s);
        for (int k = 0; k < HS_EARLIER; k++, period_s *= 6) {
            const hs_durations *old = &before.earlier[k], *source = k > 0 ? old - 1 : &before.now;
            bool passes = before.now.weight > 0 && (old->weight == 0 || time_s - old->at_s >= period_s);
            assert_memory_equal(&node.earlier[k], passes ? source : old, sizeof *old);
        }
        for (int k = 0; k < 20; k++) {
            double asked_s = time_s - (double)(next_of(&seed) % 100000) * (k % 2 != 0 ? 60 : 1);
            const hs_durations *wanted = NULL;
            for (int j = HS_EARLIER - 1; j >= -1; j--) {
                const hs_durations *one = j < 0 ? &node.now : &node.earlier[j];
                if (one->weight > 0 && one->at_s <= asked_s) wanted = one;
            }
            assert_ptr_equal(hs_node_at(&node, asked_s), wanted);
        }
        node.now = (hs_durations){.at_s = time_s, .weight = i % 20 != 0, .mean = i, .recent = i};
        assert_true(node.now.weight == 0 || hs_node_at(&node, time_s) == &node.now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_keeps_the_most_recently_used),
        cmocka_unit_test(an_entry_that_makes_room_starts_empty),
        cmocka_unit_test(earlier_durations_are_never_later_than_asked),
        cmocka_unit_test(any_sequence_of_uses_is_that_of_a_list),
        cmocka_unit_test(places_pass_durations_on_by_their_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
