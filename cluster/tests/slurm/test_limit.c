/* test_limit.c — limits that Slurm accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "slurm/decision.h"

static sl_cluster cluster = {.partition_count = 3,
                             .partitions = {{.name = "long", .most_minutes = SL_UNLIMITED, .default_minutes = 60},
                                            {.name = "short", .most_minutes = 30, .default_minutes = 7},
                                            {.name = "day", .most_minutes = 1440, .default_minutes = 1440}}};
static sl_site site = {
    .places = {{"long", "", "T4", 0, INFINITY}, {"short", "", "T4", 0, INFINITY}, {"day", "", "T4", 0, INFINITY}},
    .place_count = 3};

static uint32_t limit(const char *list, uint32_t wanted, sl_submission s)
{
    s.cluster = &cluster;
    return sl_limit_minutes(&site, &s, list, wanted);
}

static void limits_stay_within_every_partition(void **state)
{
    (void)state;
    const sl_submission plain = {0};
    assert_int_equal(limit("long", 5000, plain), 5000);
    assert_int_equal(limit("short", 20, plain), 20);
    assert_int_equal(limit("short", 5000, plain), 30);
    assert_int_equal(limit("long,short", 5000, plain), 30);
    assert_int_equal(limit("day", 5000, plain), 0); /* Slurm's default is as long */
    assert_int_equal(limit("long,unknown", 5, plain), 0);
    assert_int_equal(limit("lon", 5, plain), 0);
    assert_int_equal(limit("", 5, plain), 0);
    assert_int_equal(limit(NULL, 5, plain), 0);
    cluster.partition_count = 0;
    assert_int_equal(limit("long", 5, plain), 0);
    cluster.partition_count = 3;
}

static void limits_up_to_the_longest_are_set(void **state)
{
    (void)state;
    const sl_submission plain = {0};
    assert_int_equal(limit("short", 30, plain), 30);
    assert_int_equal(limit("day", 1440, plain), 1440); /* the default, which is as long, stays the job's limit */
    assert_int_equal(limit("day", 1441, plain), 0);
    assert_int_equal(limit("long", 60, (sl_submission){.has_deadline = true}), 60);
    assert_int_equal(limit("short", 31, (sl_submission){.least_minutes = 30}), 30);
    site.places[1].most_s = 600; /* of "short" only */
    assert_int_equal(limit("short", 30, plain), 10);
    assert_int_equal(limit("long", 30, plain), 30);
    assert_int_equal(limit("long,short", 30, plain), 10);
    site.places[1].most_s = INFINITY;
}

static void time_min_is_a_lower_bound(void **state)
{
    (void)state;
    assert_int_equal(limit("long", 5, (sl_submission){.least_minutes = 50}), 50);
    assert_int_equal(limit("short", 5, (sl_submission){.least_minutes = 29}), 29);
    assert_int_equal(limit("short", 5, (sl_submission){.least_minutes = 31}), 0);
}

static void unknown_limits_leave_the_default_as_the_longest(void **state)
{
    (void)state;
    assert_int_equal(limit("long", 50, (sl_submission){.has_deadline = true}), 50);
    assert_int_equal(limit("long", 61, (sl_submission){.has_deadline = true}), 0);
    assert_int_equal(limit("long", 61, (sl_submission){.has_reservation = true}), 0);
    cluster.enforces_limits = true;
    assert_int_equal(limit("long", 61, (sl_submission){0}), 0);
    assert_int_equal(limit("long", 50, (sl_submission){0}), 50);
    site.places[0].most_s = 6000; /* the site states that this limit is allowed to everybody */
    assert_int_equal(limit("long", 61, (sl_submission){0}), 61);
    assert_int_equal(limit("long", 5000, (sl_submission){0}), 100);
    assert_int_equal(limit("long", 61, (sl_submission){.has_deadline = true}), 0);
    cluster.enforces_limits = false;
    site.places[0].most_s = INFINITY;
}

/* Requirements of Slurm on random requests: where the default is accepted, so is the limit. */
static void random_requests_stay_acceptable(void **state)
{
    (void)state;
    static const char *const lists[] = {"long", "short", "day", "long,short", "day,long", "short,day,long"};
    srand(1);
    for (int i = 0; i < 20000; i++) {
        sl_submission s = {.least_minutes = rand() % 3 == 0 ? (uint32_t)(rand() % 2000) : 0,
                           .has_deadline = rand() % 3 == 0,
                           .has_reservation = rand() % 5 == 0};
        const char *list = lists[(size_t)rand() % (sizeof lists / sizeof *lists)];
        uint32_t deadline = (uint32_t)(rand() % 3000), wanted = 1 + (uint32_t)(rand() % 5000), usual = SL_UNLIMITED;
        uint32_t set = limit(list, wanted, s), maximum = SL_UNLIMITED;
        for (int p = 0; p < 3; p++) {
            if (strstr(list, cluster.partitions[p].name) == NULL) continue;
            if (cluster.partitions[p].most_minutes < maximum) maximum = cluster.partitions[p].most_minutes;
            if (cluster.partitions[p].default_minutes < usual) usual = cluster.partitions[p].default_minutes;
        }
        if (set == 0) continue;
        assert_true(set <= maximum);
        assert_true(set >= s.least_minutes);
        if (s.has_deadline && usual <= deadline) assert_true(set <= deadline);
        if (s.has_reservation) assert_true(set <= usual);
    }
}

static void the_binding_limit_is_the_one_that_ends_the_job(void **state)
{
    (void)state;
    sl_submission s = {.cluster = &cluster};
    assert_int_equal(sl_binding_minutes(&s, "long", 12), 12);
    assert_int_equal(sl_binding_minutes(&s, "long,short", 0), 60);
    assert_int_equal(sl_binding_minutes(&s, "short,long", 0), 60);
    assert_int_equal(sl_binding_minutes(&s, "", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, "long,unknown", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, "unknown", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, NULL, 0), SL_UNLIMITED);
    s.own_minutes = 4000;
    assert_int_equal(sl_binding_minutes(&s, "long", 12), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_stay_within_every_partition),
        cmocka_unit_test(limits_up_to_the_longest_are_set),
        cmocka_unit_test(time_min_is_a_lower_bound),
        cmocka_unit_test(unknown_limits_leave_the_default_as_the_longest),
        cmocka_unit_test(random_requests_stay_acceptable),
        cmocka_unit_test(the_binding_limit_is_the_one_that_ends_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
