/* test_drift.c — drift is found where it was put, by GPU and software, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/statistics.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <math.h>

static uint64_t seed;

/* About normal: the sum of twelve uniform numbers. */
static double noise(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(seed >> 33) / 2147483648.0;
    }
    return sum;
}

static int set_up(void **state)
{
    seed = 1;
    return store_fixture_set_up(state);
}

enum { START = 1790000000, DAY = 86400, BATCHES = 4 };

/* Adds rows of both jobs at several batches, one a day, that repeat within 1 %. From day `from` on, times are
 * multiplied by `factor`. */
static void add_days(store_fixture *f, const char *gpu, const char *software, int first_day, int days, int from,
                     double factor)
{
    enum { MOST = 512 };
    static mdot_store_row rows[MOST];
    size_t count = 0;
    for (int day = first_day; day < first_day + days; day++) {
        for (int k = 0; k < 2; k++) {
            mdot_store_row row = store_fixture_row(f, 0);
            row.digest = k == 0 ? f->digest : f->other_digest;
            row.gpu = gpu;
            row.software = software;
            row.batch = 8 << (day % BATCHES);
            row.measured_at = START + (int64_t)day * DAY;
            row.ms = (double)row.batch * (k + 1) * exp(0.01 * noise()) * (day >= from ? factor : 1);
            rows[count++] = row;
        }
    }
    store_expect_ok(mdot_store_add_rows(f->store, rows, count, NULL, &f->err), &f->err);
}

typedef struct reports {
    mdot_store_drift item[16];
    char software[16][32], gpu[16][32], previous[16][32];
    size_t count;
} reports;

static bool take_report(void *user, const mdot_store_drift *d)
{
    reports *r = user;
    snprintf(r->software[r->count], sizeof *r->software, "%s", d->software);
    snprintf(r->gpu[r->count], sizeof *r->gpu, "%s", d->gpu_name);
    snprintf(r->previous[r->count], sizeof *r->previous, "%s", d->previous_software);
    r->item[r->count++] = *d;
    return true;
}

typedef struct predictions {
    mdot_store_prediction item[64];
    size_t count;
    double factor;
} predictions;

/* Predicts batch * operators - 1 milliseconds times a factor, within 20 %. */
static bool predict_group(void *user, const mdot_store_group *g)
{
    predictions *p = user;
    double ms = (double)g->batch * (strcmp(g->job, "two.onnx") == 0 ? 1 : 2) * p->factor;
    p->item[p->count++] = (mdot_store_prediction){
        .struct_size = sizeof *p->item, .group = g->id, .ms = ms, .lower_ms = ms / 1.2, .upper_ms = ms * 1.2};
    return true;
}

static reports find(store_fixture *f, double factor)
{
    reports r = {0};
    predictions p = {.factor = factor};
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, predict_group, &p, &f->err), &f->err);
    store_expect_ok(mdot_store_set_predictions(f->store, "p", p.item, p.count, &f->err), &f->err);
    store_expect_ok(mdot_store_find_drift(f->store, "p", take_report, &r, &f->err), &f->err);
    return r;
}

static void steady_steps_show_no_drift(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.3", 0, 40, 1000, 1);
    add_days(f, "A100", "torch 2.4", 40, 40, 1000, 1);
    add_days(f, "V100", "torch 2.3", 0, 40, 1000, 1);
    reports r = find(f, 1);
    assert_int_equal(r.count, 3);
    for (size_t i = 0; i < r.count; i++) {
        assert_true(r.item[i].level_p > 0.05);
        assert_true(r.item[i].change_p > 0.05);
        assert_true(r.item[i].software_p > 0.05);
        assert_int_equal(r.item[i].row_count, 80);
        assert_int_equal(r.item[i].dated_row_count, 80);
        assert_int_equal(r.item[i].job_count, 2);
        assert_true(fabs(log(r.item[i].ratio)) < 0.01);
    }
}

static void a_change_in_time_is_dated_for_its_gpu_alone(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.4", 0, 60, 36, 1.08);
    add_days(f, "V100", "torch 2.4", 0, 60, 1000, 1);
    reports r = find(f, 1);
    assert_string_equal(r.gpu[0], "A100-SXM-40GB");
    assert_true(r.item[0].change_p < 0.001);
    int64_t day = (r.item[0].changed_at - START) / DAY;
    if (day < 34 || day > 38) fail_msg("day %lld", (long long)day);
    assert_true(fabs(r.item[0].change_ratio - 1.08) < 0.02);
    assert_true(r.item[1].change_p > 0.05);
}

/* A change is no outlier: it is found although most of the rows are old, and a tenth of them is throttled. */
static void a_late_change_is_found_among_outliers(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.4", 0, 60, 48, 1.08);
    for (int day = 5; day < 60; day += 10) add_days(f, "A100", "torch 2.4", day, 1, 0, 1.7);
    reports r = find(f, 1);
    assert_true(r.item[0].change_p < 0.01);
    int64_t day = (r.item[0].changed_at - START) / DAY;
    if (day < 45 || day > 51) fail_msg("day %lld", (long long)day);
}

static void new_software_is_compared_with_the_previous_one(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.10", 0, 24, 1000, 1);
    add_days(f, "A100", "torch 2.2", 24, 24, 0, 0.9); /* the name sorts behind, but the date counts */
    reports r = find(f, 1);
    size_t later = strcmp(r.software[0], "torch 2.2") == 0 ? 0 : 1;
    assert_string_equal(r.previous[later], "torch 2.10");
    assert_string_equal(r.previous[1 - later], "");
    assert_int_equal(r.item[later].pair_count, 2 * BATCHES);
    assert_true(fabs(r.item[later].software_ratio - 0.9) < 0.01);
    assert_true(r.item[later].software_p < 0.001);
    assert_true(r.item[1 - later].software_p == 1);
}

static void wrong_predictions_show_in_the_level(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.4", 0, 24, 1000, 1);
    reports r = find(f, 0.6);
    assert_true(fabs(r.item[0].ratio - 1 / 0.6) < 0.02);
    assert_true(r.item[0].level_z > 5);
    assert_true(r.item[0].level_p < 1e-6);
    assert_true(r.item[0].change_p > 0.05);
}

/* 100 rows of one job are no 100 witnesses: half the interval is nothing unusual. */
static void rows_of_one_job_count_once(void **state)
{
    store_fixture *f = *state;
    add_days(f, "A100", "torch 2.4", 0, 50, 0, 1.1);
    reports r = find(f, 1);
    assert_int_equal(r.item[0].row_count, 100);
    assert_true(r.item[0].level_p > 0.05);
}

static void pytorch_of_the_settings_names_the_software(void **state)
{
    store_fixture *f = *state;
    static const char *const settings[] = {"torch=2.3", "torch=2.4"};
    for (int version = 0; version < 2; version++) {
        for (int i = 0; i < 4; i++) {
            mdot_store_row row = store_fixture_row(f, 32 * (1 + 0.2 * version) * (1 + 0.001 * i));
            row.settings = settings[version];
            row.measured_at = START + version * DAY + i;
            store_fixture_add(f, row);
        }
    }
    reports r = find(f, 1);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.software[1], "torch 2.4");
    assert_string_equal(r.previous[1], "torch 2.3");
    assert_true(fabs(r.item[1].software_ratio - 1.2) < 0.01);
    assert_true(r.item[1].software_p < 0.001);
}

static void few_rows_and_undated_rows_are_not_tested(void **state)
{
    store_fixture *f = *state;
    store_fixture_add(f, store_fixture_row(f, 32));
    reports r = find(f, 1);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.item[0].dated_row_count, 0);
    assert_true(r.item[0].change_p == 1);
    assert_true(r.item[0].software_p == 1);
    assert_int_equal(mdot_store_find_drift(f->store, NULL, take_report, &r, &f->err), MDOT_INVALID_ARGUMENT);
}

/* Without noise, any factor from any day on is found with its day and its size; another unit of predictions changes the
 * level alone. */
static void an_exact_change_is_found_exactly(void **state)
{
    for (int round = 0; round < 8; round++) {
        if (round > 0) assert_int_equal(set_up(state), 0);
        store_fixture *f = *state;
        int from = 8 + 5 * round;
        double factor = exp((round % 2 == 0 ? .05 : -.05) * (1 + round)), unit = exp(.1 * round - .3);
        for (int day = 0; day < 56; day++)
            for (int k = 0; k < 2; k++) {
                mdot_store_row row = store_fixture_row(f, 0);
                row.job = k == 0 ? "two.onnx" : "three.onnx";
                row.digest = k == 0 ? f->digest : f->other_digest;
                row.batch = 8 << day % BATCHES;
                row.measured_at = START + (int64_t)day * DAY;
                row.ms = (double)row.batch * (k + 1) * (day >= from ? factor : 1);
                store_fixture_add(f, row);
            }
        reports r = find(f, unit);
        mdot_store_drift *d = &r.item[0];
        assert_int_equal(r.count, 1);
        assert_int_equal(d->group_count, 2 * BATCHES);
        assert_true(d->changed_at == START + (int64_t)from * DAY);
        assert_true(fabs(d->change_ratio / factor - 1) < 1e-9);
        assert_true(d->change_p <= .003);
        reports one = find(f, 1);
        assert_true(fabs(d->ratio * unit / one.item[0].ratio - 1) < 1e-9);
        double sigma = log(1.44) / (2 * 1.6448536269514722), per_job = log(d->ratio) / sigma;
        assert_true(fabs(d->level_z - per_job * sqrt(2)) < 1e-6);
        assert_true(d->change_statistic == one.item[0].change_statistic);
        if (round < 7) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

typedef struct means {
    mdot_store_group item[64];
    bool later[64], second[64];
    size_t count;
} means;

static bool take_means(void *user, const mdot_store_group *g)
{
    means *m = user;
    m->later[m->count] = strcmp(g->software, "b") == 0;
    m->second[m->count] = strcmp(g->job, "two.onnx") != 0;
    m->item[m->count++] = *g;
    return true;
}

/* The statistic of two versions is the mean over jobs of the mean difference of their groups, over its noise. Groups
 * that only one version has do not count. */
static void versions_are_compared_by_their_common_groups(void **state)
{
    for (int round = 0; round < 10; round++) {
        if (round > 0) assert_int_equal(set_up(state), 0);
        store_fixture *f = *state;
        seed = 100 + (uint64_t)round;
        for (int i = 0; i < 90; i++) {
            bool later = i >= 40, second = i % 3 == 0;
            mdot_store_row row = store_fixture_row(f, 0);
            row.job = second ? "three.onnx" : "two.onnx";
            row.digest = second ? f->other_digest : f->digest;
            row.software = later ? "b" : "a";
            row.batch = 1 << (i % 4 + (later && i % 5 == 0) + (second ? 1 : 0));
            row.measured_at = START + (int64_t)i * DAY;
            row.ms = exp(.02 * noise() + (later ? .01 * round - .03 : 0)) * (double)row.batch;
            store_fixture_add(f, row);
        }
        reports r = find(f, 1);
        means m = {.count = 0};
        store_expect_ok(mdot_store_visit_groups(f->store, NULL, "p", take_means, &m, &f->err), &f->err);
        double sum[2] = {0}, noise_of[2] = {0}, pairs[2] = {0};
        for (size_t i = 0; i < m.count; i++)
            for (size_t j = 0; j < m.count; j++) {
                const mdot_store_group *a = &m.item[i], *b = &m.item[j];
                if (!m.later[i] || m.later[j] || m.second[i] != m.second[j] || a->batch != b->batch) continue;
                sum[m.second[i]] += log(a->ms / b->ms);
                noise_of[m.second[i]] +=
                    pow(a->spread, 2) / (double)a->row_count + pow(b->spread, 2) / (double)b->row_count;
                pairs[m.second[i]]++;
            }
        double mean = (sum[0] / pairs[0] + sum[1] / pairs[1]) / 2;
        double variance = (noise_of[0] / pow(pairs[0], 2) + noise_of[1] / pow(pairs[1], 2)) / 4;
        mdot_store_drift *d = &r.item[1];
        assert_string_equal(r.software[1], "b");
        assert_string_equal(r.previous[1], "a");
        assert_int_equal(d->pair_count, (int)(pairs[0] + pairs[1]));
        assert_true(fabs(d->software_ratio - exp(mean)) < 1e-9);
        assert_true(fabs(d->software_t - mean / sqrt(variance)) < 1e-6);
        if (round < 9) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(steady_steps_show_no_drift),
        CASE(a_change_in_time_is_dated_for_its_gpu_alone),
        CASE(a_late_change_is_found_among_outliers),
        CASE(new_software_is_compared_with_the_previous_one),
        CASE(wrong_predictions_show_in_the_level),
        CASE(rows_of_one_job_count_once),
        CASE(pytorch_of_the_settings_names_the_software),
        CASE(few_rows_and_undated_rows_are_not_tested),
        CASE(an_exact_change_is_found_exactly),
        CASE(versions_are_compared_by_their_common_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
