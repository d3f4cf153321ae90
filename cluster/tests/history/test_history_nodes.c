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
    assert_int_equal(hs_nodes_count(nodes), MOST);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_keeps_the_most_recently_used),
        cmocka_unit_test(an_entry_that_makes_room_starts_empty),
        cmocka_unit_test(earlier_durations_are_never_later_than_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
