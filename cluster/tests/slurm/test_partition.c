/* test_partition.c — GPUs of nodes, added up by partition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "slurm/partition.h"
#include "tests/simulator/support/numbers.h"

static void gpus_of_nodes_are_added_up_by_type(void **state)
{
    (void)state;
    sl_partition p = {.name = "p"};
    sl_partition_add_node(&p, "gpu:a100:4(S:0,1),nic:2,gpu:H100:2");
    sl_partition_add_node(&p, "gpu:a100:8");
    sl_partition_add_node(&p, "");
    sl_partition_add_node(&p, NULL);
    sl_partition_add_node(&p, "mps:100");
    assert_int_equal(p.usable_nodes, 5);
    assert_int_equal(p.type_count, 2);
    sl_node_gpus a100 = sl_partition_gpus(&p, "a100"), entries = sl_partition_gpus(&p, ""),
                 none = sl_partition_gpus(&p, "t4");
    expect_number(a100.nodes, 2);
    expect_number(a100.per_node, 8);
    expect_number(a100.all, 12);
    expect_number(entries.nodes, 2);
    expect_number(entries.all, 14);
    expect_number(none.nodes, 0);
    expect_number(none.all, 0);
}

static void the_largest_node_counts_in_any_order(void **state)
{
    (void)state;
    for (int largest = 0; largest < 3; largest++) {
        sl_partition p = {.name = "p"};
        for (int i = 0; i < 3; i++) sl_partition_add_node(&p, i == largest ? "gpu:a100:8" : "gpu:a100:4");
        assert_int_equal(sl_partition_gpus(&p, "a100").per_node, 8);
        assert_int_equal(sl_partition_gpus(&p, "a100").all, 16);
    }
}

/* A comma inside parentheses separates socket numbers, for any text behind it. */
static void lists_of_sockets_are_no_resources(void **state)
{
    (void)state;
    sl_partition p = {.name = "p"};
    sl_partition_add_node(&p, "gpu:a100:4(S:0,gpu:t4:8),gpu:h100:2");
    assert_int_equal(p.type_count, 2);
    assert_int_equal(sl_partition_gpus(&p, "a100").all, 4);
    assert_int_equal(sl_partition_gpus(&p, "h100").all, 2);
}

static void many_types_and_long_texts_stay_within_their_arrays(void **state)
{
    (void)state;
    sl_partition p = {.name = "p"};
    char text[4096] = "";
    for (int i = 0; i < 100; i++) {
        char part[32];
        snprintf(part, sizeof part, "gpu:type%d:1,", i);
        strcat(text, part);
    }
    sl_partition_add_node(&p, text);
    assert_int_equal(p.type_count, SL_MAX_NODE_TYPES);
    memset(text, 'g', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sl_partition_add_node(&p, text);
    sl_partition_add_node(&p, "((((((");
    sl_partition_add_node(&p, "gpu:a:1)))),gpu:b:2");
}

static void partitions_are_found_by_their_whole_name(void **state)
{
    (void)state;
    sl_cluster cluster = {.partition_count = 2, .partitions = {{.name = "a10"}, {.name = "a100"}}};
    assert_ptr_equal(sl_partition_find(&cluster, "a100,x", 4), &cluster.partitions[1]);
    assert_ptr_equal(sl_partition_find(&cluster, "a100", 3), &cluster.partitions[0]);
    assert_null(sl_partition_find(&cluster, "a1", 2));
    assert_null(sl_partition_find(&cluster, "", 0));
    assert_null(sl_partition_find(NULL, "a10", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_of_nodes_are_added_up_by_type),
        cmocka_unit_test(the_largest_node_counts_in_any_order),
        cmocka_unit_test(lists_of_sockets_are_no_resources),
        cmocka_unit_test(many_types_and_long_texts_stay_within_their_arrays),
        cmocka_unit_test(partitions_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
