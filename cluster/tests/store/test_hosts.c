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
#include "store/statistics.h"
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

typedef struct measured {
    size_t group, host; /* host 0: no name */
    double value;       /* logarithm; NAN: of absurd size */
} measured;

enum { HOSTS = 6, GROUPS = 8, MOST = 150 };

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Mean of a host's values in a group, and how many they are. */
static double mean_of(const measured *m, size_t count, size_t group, size_t host, double *out_rows)
{
    double sum = 0;
    *out_rows = 0;
    for (size_t i = 0; i < count; i++)
        if (m[i].group == group && m[i].host == host && !isnan(m[i].value)) sum += m[i].value, ++*out_rows;
    return sum / *out_rows;
}

/* Adds a host's difference from the others' median in a group, and its variance; false if there are no others. */
static bool add_difference(const measured *m, size_t count, size_t group, size_t host, double *io_sum,
                           double *io_variance, double *io_rows)
{
    double others[HOSTS], own_rows, all = 0, squares = 0, named = 0, rows,
                                    own = mean_of(m, count, group, host, &own_rows);
    size_t n = 0;
    for (size_t h = 1; h < HOSTS; h++) {
        double mean = mean_of(m, count, group, h, &rows);
        if (rows == 0) continue;
        if (h != host) others[n++] = mean;
        all += rows, named++;
        for (size_t i = 0; i < count; i++)
            if (m[i].group == group && m[i].host == h && !isnan(m[i].value)) squares += pow(m[i].value - mean, 2);
    }
    if (own_rows == 0 || n == 0) return false;
    qsort(others, n, sizeof *others, by_size);
    double variance = fmax(all > named ? squares / (all - named) : 0, 1e-4);
    *io_sum += own - (n % 2 == 1 ? others[n / 2] : (others[n / 2 - 1] + others[n / 2]) / 2);
    *io_variance += variance * (1 / own_rows + 1 / (all - own_rows));
    *io_rows += own_rows;
    return true;
}

typedef struct listed {
    mdot_store_host host[2 * HOSTS];
    char name[2 * HOSTS][8], gpu[2 * HOSTS][32];
    size_t count, stop_after;
} listed;

static bool list_host(void *user, const mdot_store_host *h)
{
    listed *l = user;
    snprintf(l->name[l->count], sizeof *l->name, "%s", h->host);
    snprintf(l->gpu[l->count], sizeof *l->gpu, "%s", h->gpu_name);
    l->host[l->count++] = *h;
    return l->count != l->stop_after;
}

/* Every number of the reports equals its definition (mdot_store.h). */
static void reports_equal_their_definitions(void **state)
{
    static const char *const gpus[] = {"A100-SXM-40GB", "V100-SXM-16GB"}, *const hosts[HOSTS] = {"",  "a", "b",
                                                                                                 "c", "d", "e"};
    for (int trial = 0; trial < 30; trial++) {
        if (trial > 0) assert_int_equal(store_fixture_set_up(state), 0);
        store_fixture *f = *state;
        measured m[MOST];
        mdot_store_row rows[MOST];
        size_t count = 1 + (size_t)rand() % MOST, used = 1 + (size_t)rand() % HOSTS;
        for (size_t i = 0; i < count; i++) {
            bool is_absurd = rand() % 20 == 0;
            m[i] = (measured){(size_t)rand() % GROUPS, (size_t)rand() % used, 0};
            rows[i] = store_fixture_row(f, exp((trial % 3 == 0 ? .001 : .1) * normal() + .05 * (double)m[i].host));
            if (is_absurd && rand() % 2 == 0)
                rows[i].ms = 2 * MDOT_STORE_LONGEST_MS;
            else if (is_absurd)
                rows[i].memory_gib = 2 * MDOT_STORE_MOST_GIB;
            m[i].value = is_absurd ? NAN : log(rows[i].ms);
            rows[i].gpu = gpus[m[i].group % 2];
            rows[i].batch = 1 + (int64_t)m[i].group;
            rows[i].host = hosts[m[i].host];
        }
        store_expect_ok(mdot_store_add_rows(f->store, rows, count, NULL, &f->err), &f->err);
        store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
        listed all = {.count = 0}, part = {.stop_after = 1};
        store_expect_ok(mdot_store_find_hosts(f->store, list_host, &all, &f->err), &f->err);
        double p[2 * HOSTS];
        size_t n = 0;
        for (size_t g = 0; g < 2; g++)
            for (size_t h = 1; h < HOSTS; h++) {
                double sum = 0, variance = 0, host_rows = 0, groups = 0;
                for (size_t k = g; k < GROUPS; k += 2)
                    groups += add_difference(m, count, k, h, &sum, &variance, &host_rows);
                if (groups == 0) continue;
                assert_true(n < all.count);
                assert_string_equal(all.name[n], hosts[h]);
                assert_string_equal(all.gpu[n], gpus[g]);
                assert_int_equal(all.host[n].row_count, (int)host_rows);
                assert_int_equal(all.host[n].group_count, (int)groups);
                assert_true(fabs(log(all.host[n].ratio) - sum / groups) < 1e-9);
                p[n++] = st_normal_p(sum / sqrt(variance));
            }
        assert_int_equal(all.count, n);
        assert_true(st_holm(p, n));
        for (size_t i = 0; i < n; i++) assert_true(fabs(all.host[i].p - p[i]) < 1e-9);
        store_expect_ok(mdot_store_find_hosts(f->store, list_host, &part, &f->err), &f->err);
        assert_int_equal(part.count, n > 0);
        if (trial < 29) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_slow_host_is_named),
        CASE(equal_hosts_and_slow_groups_are_not_named),
        CASE(a_difference_of_4_percent_is_not_named),
        CASE(reports_equal_their_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
