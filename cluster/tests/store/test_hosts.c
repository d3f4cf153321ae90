/* test_hosts.c — a slow host is named by its rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/records.h"
#include "tests/store/support/store_fixture.h"

#include <math.h>

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

typedef struct findings {
    size_t count, unusual; /* hosts, and those with a difference of 5 % at p < 0.01 */
    char host[16], gpu_name[64];
    double ratio, p;
    uint64_t rows, groups;
} findings;

static bool take_host(void *user, const mdot_store_host *h)
{
    findings *f = user;
    f->count++;
    assert_true(h->p >= 0 && h->p <= 1);
    if (h->p >= 0.01 || fabs(log(h->ratio)) < log(1.05)) return true;
    f->unusual++;
    snprintf(f->host, sizeof f->host, "%s", h->host);
    snprintf(f->gpu_name, sizeof f->gpu_name, "%s", h->gpu_name);
    f->ratio = h->ratio;
    f->p = h->p;
    f->rows = h->row_count;
    f->groups = h->group_count;
    return true;
}

static findings find(store_fixture *f)
{
    findings found = {0};
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_find_hosts(f->store, take_host, &found, &f->err), &f->err);
    return found;
}

static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += rand() / (double)RAND_MAX;
    return sum;
}

/* Adds `rows` rows of a group, which differ by 1 %. */
static void add(store_fixture *f, const char *host, int64_t batch, int rows, double factor)
{
    mdot_store_row row[64];
    for (int i = 0; i < rows; i++) {
        row[i] = store_fixture_row(f, (double)batch * factor * exp(0.01 * normal()));
        row[i].batch = batch;
        row[i].host = host;
    }
    store_expect_ok(mdot_store_add_rows(f->store, row, (size_t)rows, NULL, &f->err), &f->err);
}

static void a_slow_host_is_named(void **state)
{
    store_fixture *f = *state;
    srand(1);
    for (int64_t batch = 1; batch <= 5; batch++)
        for (int host = 0; host < 5; host++) {
            char name[8];
            snprintf(name, sizeof name, "n%d", host);
            add(f, name, batch, 5, host == 3 ? 1.2 : 1);
        }
    add(f, "alone", 9, 20, 5); /* nothing to compare with */
    add(f, "", 1, 20, 3);      /* unknown hosts */
    store_fixture_add(f, (mdot_store_row){.struct_size = sizeof(mdot_store_row),
                                          .digest = f->digest,
                                          .gpu = "A100",
                                          .batch = 1,
                                          .ms = 1e300,
                                          .settings = "precision=amp",
                                          .host = "n1"});
    findings found = find(f);
    assert_int_equal(found.count, 5);
    assert_int_equal(found.unusual, 1);
    assert_string_equal(found.host, "n3");
    assert_true(fabs(found.ratio - 1.2) < 0.01);
    assert_int_equal(found.rows, 25);
    assert_int_equal(found.groups, 5);
    assert_string_equal(found.gpu_name, "A100-SXM-40GB");
}

static void equal_hosts_and_slow_groups_are_not_named(void **state)
{
    store_fixture *f = *state;
    srand(2);
    for (int64_t batch = 1; batch <= 20; batch++)
        for (int host = 0; host < 10; host++) {
            char name[8];
            snprintf(name, sizeof name, "n%d", host);
            add(f, name, batch, 1 + host % 4, batch == 7 ? 1.5 : 1);
        }
    findings found = find(f);
    assert_int_equal(found.count, 10);
    assert_int_equal(found.unusual, 0);
}

static void a_difference_of_4_percent_is_not_named(void **state)
{
    store_fixture *f = *state;
    srand(3);
    for (int64_t batch = 1; batch <= 5; batch++) {
        add(f, "a", batch, 40, 1);
        add(f, "b", batch, 40, 1.04);
        add(f, "c", batch, 40, 1);
    }
    assert_int_equal(find(f).unusual, 0);
    for (int64_t batch = 1; batch <= 5; batch++) add(f, "d", batch, 40, .9);
    findings found = find(f);
    assert_int_equal(found.unusual, 1);
    assert_string_equal(found.host, "d");
    assert_int_equal(mdot_store_find_hosts(NULL, take_host, &found, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_store_find_hosts(f->store, NULL, &found, NULL), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_slow_host_is_named),
        CASE(equal_hosts_and_slow_groups_are_not_named),
        CASE(a_difference_of_4_percent_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
