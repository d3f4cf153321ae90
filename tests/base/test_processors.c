/* test_processors.c — processors by the quotas of control groups. */
#include "base/processors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <sched.h>

static char folder[] = "/tmp/mdot_processors_XXXXXX", membership[64];

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void make(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)mkdir(path, 0700);
}

static void the_least_quota_of_a_group_and_its_parents_holds(void **state)
{
    (void)state;
    static const struct {
        const char *groups, *parent, *child;
        long wanted;
    } cases[] = {
        {"0::/a/b\n", "max 100000", "150000 100000", 2},     {"0::/a/b\n", "100000 100000", "400000 100000", 1},
        {"0::/a/b\n", "max 100000", "max 100000", 0},        {"0::/a\n", "300000 100000", "100000 100000", 3},
        {"0::/\n", "300000 100000", "100000 100000", 0},     {"4:cpu:/a/b\n", "100000 100000", "100000 100000", 0},
        {"4:cpu:/x\n0::/a/b\n", "50000 100000", "max 1", 1}, {"", "100000 100000", "100000 100000", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("groups", cases[i].groups);
        put("a/cpu.max", cases[i].parent);
        put("a/b/cpu.max", cases[i].child);
        assert_int_equal(bs_cgroup_processors(membership, folder), cases[i].wanted);
    }
    assert_int_equal(bs_cgroup_processors("/nonexistent", folder), 0);
}

static void affinity_limits_the_number(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(bs_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_true(bs_processors() >= 1 && bs_processors() <= CPU_COUNT(&before));
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(membership, sizeof membership, "%s/groups", folder);
    make("a");
    make("a/b");
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"groups", "a/b/cpu.max", "a/cpu.max", "a/b", "a", ""};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_quota_of_a_group_and_its_parents_holds),
        cmocka_unit_test(affinity_limits_the_number),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
