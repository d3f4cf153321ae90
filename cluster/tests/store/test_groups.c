/* test_groups.c — repeated measurements: robust means, outlier weights, and updates from new rows only. */
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
#include "tests/support/process.h"

#include <math.h>

typedef struct groups {
    mdot_store_group item[32];
    size_t count;
} groups;

static bool take_group(void *user, const mdot_store_group *g)
{
    groups *all = user;
    all->item[all->count++] = *g; /* its texts end with the call */
    return true;
}

static groups groups_of(store_fixture *f, const char *predictor)
{
    groups all = {0};
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, predictor, take_group, &all, &f->err), &f->err);
    return all;
}

static mdot_store_refresh_report refresh(store_fixture *f)
{
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    store_expect_ok(mdot_store_refresh(f->store, &report, &f->err), &f->err);
    return report;
}

static void add_times(store_fixture *f, mdot_store_row row, const double *ms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        row.ms = ms[i];
        store_fixture_add(f, row);
    }
}

static bool take_id(void *user, const mdot_store_row *r)
{
    int64_t *id = user;
    *id = *id == 0 ? r->id : -1;
    return true;
}

static void a_throttled_row_is_listed_and_hardly_counts(void **state)
{
    store_fixture *f = *state;
    static const double ms[] = {100, 101, 99, 140, 100.5};
    add_times(f, store_fixture_row(f, 0), ms, 5);
    refresh(f);
    groups all = groups_of(f, NULL);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.item[0].row_count, 5);
    assert_int_equal(all.item[0].outlier_count, 1);
    assert_true(fabs(all.item[0].ms - 100.2) < 0.5);
    int64_t id = 0;
    mdot_store_filter outliers = {.struct_size = sizeof outliers, .below_weight = MDOT_STORE_OUTLIER_WEIGHT};
    store_expect_ok(mdot_store_visit_rows(f->store, &outliers, take_id, &id, &f->err), &f->err);
    assert_int_equal(id, 4);
}

static void groups_differ_by_job_gpu_batch_settings_and_software(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 5);
    store_fixture_add(f, row);
    store_fixture_add(f, row);
    row.settings = "dim=seq=128\nprecision=amp"; /* how the job was read belongs to the job */
    row.host = "other";
    store_fixture_add(f, row);
    assert_int_equal(refresh(f).group_count, 1);
    row.settings = "precision=bf16";
    store_fixture_add(f, row);
    row.software = "torch 2.5";
    store_fixture_add(f, row);
    row.batch = 64;
    store_fixture_add(f, row);
    row.gpu = "V100";
    store_fixture_add(f, row);
    row.digest = f->other_digest;
    store_fixture_add(f, row);
    assert_int_equal(refresh(f).group_count, 6);
}

static void names_of_one_gpu_model_share_a_group(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 5);
    store_fixture_add(f, row);
    row.gpu = "NVIDIA A100-SXM4-40GB";
    store_fixture_add(f, row);
    assert_int_equal(refresh(f).group_count, 1);
}

static void a_refresh_reads_only_groups_with_new_rows(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 5);
    for (int batch = 1; batch <= 20; batch++) {
        row.batch = batch;
        for (int k = 0; k < 3; k++) store_fixture_add(f, row);
    }
    mdot_store_refresh_report report = refresh(f);
    assert_int_equal(report.new_row_count, 60);
    assert_int_equal(report.read_row_count, 60);
    assert_int_equal(report.changed_group_count, 20);
    report = refresh(f);
    assert_int_equal(report.new_row_count, 0);
    assert_int_equal(report.read_row_count, 0);
    store_fixture_add(f, row);
    report = refresh(f);
    assert_int_equal(report.new_row_count, 1);
    assert_int_equal(report.read_row_count, 4);
    assert_int_equal(report.changed_group_count, 1);
    assert_int_equal(report.group_count, 20);
}

/* The order of refreshes leaves no trace in the result. */
/* A refresh reads the rows of the groups that got new ones, absurd rows too, and changes these groups alone. */
static void a_refresh_counts_what_it_reads(void **state)
{
    store_fixture *f = *state;
    enum { GROUPS = 9 };
    static const double times[] = {100, 101, 99.5, 1e300, 1e-9};
    size_t rows_of[GROUPS] = {0};
    mdot_store_row row = store_fixture_row(f, 5);
    for (int round = 0; round < 30; round++) {
        size_t added = (size_t)(rand() % 6), read = 0, changed = 0;
        bool is_new[GROUPS] = {false};
        for (size_t i = 0; i < added; i++) {
            int group = rand() % GROUPS;
            row.batch = group + 1;
            row.ms = times[rand() % 5];
            store_fixture_add(f, row);
            rows_of[group]++;
            is_new[group] = true;
        }
        for (int group = 0; group < GROUPS; group++) {
            read += is_new[group] ? rows_of[group] : 0;
            changed += is_new[group];
        }
        mdot_store_refresh_report report = refresh(f);
        assert_int_equal(report.new_row_count, added);
        assert_int_equal(report.read_row_count, read);
        assert_int_equal(report.changed_group_count, changed);
    }
}

static void refreshes_one_by_one_and_at_once_agree(void **state)
{
    store_fixture *f = *state;
    static const double ms[] = {100, 130, 99, 101, 100.5, 70, 100.2};
    mdot_store_row row = store_fixture_row(f, 0);
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        add_times(f, row, &ms[i], 1);
        refresh(f);
    }
    row.batch = 64;
    add_times(f, row, ms, sizeof ms / sizeof *ms);
    refresh(f);
    groups all = groups_of(f, NULL);
    assert_int_equal(all.count, 2);
    assert_true(all.item[0].ms == all.item[1].ms);
    assert_true(all.item[0].spread == all.item[1].spread);
    assert_int_equal(all.item[0].outlier_count, all.item[1].outlier_count);
}

/* However long a group is, a new row costs at most a thousand. */
static void a_long_group_is_read_in_part(void **state)
{
    store_fixture *f = *state;
    enum { MANY = 1500 };
    mdot_store_row *rows = calloc(MANY, sizeof *rows);
    for (int i = 0; i < MANY; i++) rows[i] = store_fixture_row(f, 100 + i % 3);
    store_expect_ok(mdot_store_add_rows(f->store, rows, MANY, NULL, &f->err), &f->err);
    free(rows);
    assert_int_equal(refresh(f).read_row_count, 1000);
    assert_int_equal(groups_of(f, NULL).item[0].row_count, MANY);
}

static void memory_and_dates_of_a_group_span_its_rows(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 5);
    store_fixture_add(f, row);
    row.memory_gib = 9.5;
    row.measured_at = 300;
    store_fixture_add(f, row);
    row.memory_gib = 8.5;
    row.measured_at = 200;
    store_fixture_add(f, row);
    refresh(f);
    mdot_store_group g = groups_of(f, NULL).item[0];
    assert_true(g.memory_gib == 9.5);
    assert_int_equal(g.first_at, 200);
    assert_int_equal(g.last_at, 300);
}

static void predictions_belong_to_their_predictor(void **state)
{
    store_fixture *f = *state;
    store_fixture_add(f, store_fixture_row(f, 5));
    refresh(f);
    mdot_store_prediction p = {
        .struct_size = sizeof p, .group = groups_of(f, NULL).item[0].id, .ms = 4, .lower_ms = 3, .upper_ms = 6};
    store_expect_ok(mdot_store_set_predictions(f->store, "shipped", &p, 1, &f->err), &f->err);
    mdot_store_group g = groups_of(f, "shipped").item[0];
    assert_true(g.predicted_ms == 4 && g.lower_ms == 3 && g.upper_ms == 6);
    assert_true(groups_of(f, "other").item[0].predicted_ms == 0);
    p.ms = 5;
    store_expect_ok(mdot_store_set_predictions(f->store, "shipped", &p, 1, &f->err), &f->err);
    assert_true(groups_of(f, "shipped").item[0].predicted_ms == 5);
    store_expect_ok(mdot_store_set_predictions(f->store, "", &p, 1, &f->err), &f->err);
    assert_true(groups_of(f, "").item[0].predicted_ms == 5);
    assert_true(groups_of(f, NULL).item[0].predicted_ms == 0); /* no predictor is not the one without a name */
    p.lower_ms = 7;
    assert_int_equal(mdot_store_set_predictions(f->store, "shipped", &p, 1, &f->err), MDOT_INVALID_ARGUMENT);
}

/* Rows that disappeared from under their group: the store is damaged, and says so. */
static void a_group_without_rows_is_damage(void **state)
{
    store_fixture *f = *state;
    store_fixture_add(f, store_fixture_row(f, 5));
    refresh(f);
    static const char sql[] = "DELETE FROM members; DELETE FROM rows; UPDATE groups SET row_count = -1";
    assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(mdot_store_refresh(f->store, NULL, &f->err), MDOT_CORRUPT);
    expect_contains(f->err.message, "a group without rows");
}

static void a_table_of_groups_has_their_means(void **state)
{
    store_fixture *f = *state;
    static const double ms[] = {100, 100, 100, 900};
    add_times(f, store_fixture_row(f, 0), ms, 4);
    refresh(f);
    mdot_store_export options = {
        .struct_size = sizeof options, .flags = MDOT_STORE_EXPORT_GROUPS, .job_folder = "/jobs"};
    char *text = NULL, wanted[128];
    size_t size;
    store_expect_ok(mdot_store_export_csv(f->store, &options, &text, &size, &f->err), &f->err);
    snprintf(wanted, sizeof wanted, "job,gpu,batch,precision,ms\n/jobs/%s.job,A100-SXM-40GB,32,amp,10", f->digest);
    expect_contains(text, wanted);
    mdot_store_free(text);
}

/* A table may have only the groups that a predictor has not predicted yet. */
static void predicted_groups_are_left_out_of_a_table(void **state)
{
    store_fixture *f = *state;
    for (int64_t batch = 1; batch <= 4; batch++) {
        mdot_store_row row = store_fixture_row(f, 5);
        row.batch = batch;
        store_fixture_add(f, row);
    }
    refresh(f);
    for (int predicted = 0; predicted <= 4; predicted++) {
        static const char *const predictors[] = {NULL, "p", "q"};
        for (int i = 0; i < 3; i++) {
            mdot_store_export options = {.struct_size = sizeof options,
                                         .flags = MDOT_STORE_EXPORT_GROUPS,
                                         .job_folder = "j",
                                         .unpredicted_by = predictors[i]};
            char *text = NULL;
            size_t size, lines = 0;
            store_expect_ok(mdot_store_export_csv(f->store, &options, &text, &size, &f->err), &f->err);
            for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
            assert_int_equal(lines, 1 + (i == 1 ? 4 - predicted : 4));
            mdot_store_free(text);
        }
        mdot_store_prediction p = {.struct_size = sizeof p, .ms = 2, .lower_ms = 1, .upper_ms = 3};
        p.group = groups_of(f, NULL).item[predicted % 4].id;
        store_expect_ok(mdot_store_set_predictions(f->store, "p", &p, 1, &f->err), &f->err);
    }
}

/* An interval may be empty but not turned around, and its end may not be infinite. */
static void predictions_lie_within_their_interval(void **state)
{
    store_fixture *f = *state;
    static const double values[] = {-1, 0, 1, 2, 3, INFINITY, NAN};
    store_fixture_add(f, store_fixture_row(f, 5));
    refresh(f);
    mdot_store_prediction p = {.struct_size = sizeof p, .group = groups_of(f, NULL).item[0].id};
    for (int i = 0; i < 343; i++) {
        p.lower_ms = values[i % 7];
        p.ms = values[i / 7 % 7];
        p.upper_ms = values[i / 49];
        bool is_ok = i % 7 >= 2 && i / 7 % 7 >= i % 7 && i / 49 >= i / 7 % 7 && i / 49 < 5;
        mdot_status status = mdot_store_set_predictions(f->store, "p", &p, 1, &f->err);
        assert_int_equal(status, is_ok ? MDOT_OK : MDOT_INVALID_ARGUMENT);
        if (is_ok) assert_true(groups_of(f, "p").item[0].lower_ms == p.lower_ms);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

static bool count_group(void *user, const mdot_store_group *group)
{
    double *found = user;
    found[0]++;
    found[1] = group->ms;
    found[2] = (double)group->outlier_count;
    found[3] = group->memory_gib;
    return true;
}

/* Each filter selects the groups with its GPU and software, and both together their intersection. */
static void filters_select_groups(void **state)
{
    store_fixture *f = *state;
    static const char *const gpus[] = {NULL, "A100", "T4", "V100"}, *const software[] = {NULL, "torch 2.1",
                                                                                         "torch 2.9"};
    for (int gpu = 1; gpu < 4; gpu++)
        for (int version = 1; version < 3; version++)
            for (int batch = 1; batch <= gpu + 3 * version; batch++) {
                mdot_store_row row = store_fixture_row(f, 5);
                row.gpu = gpus[gpu];
                row.software = software[version];
                row.batch = batch;
                store_fixture_add(f, row);
            }
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    for (int gpu = 0; gpu < 4; gpu++)
        for (int version = 0; version < 3; version++) {
            const mdot_store_filter filter = {
                .struct_size = sizeof filter, .gpu = gpus[gpu], .software = software[version]};
            double found[4] = {0}, wanted = 0;
            for (int g = 1; g < 4; g++)
                for (int v = 1; v < 3; v++)
                    wanted += (gpu == 0 || g == gpu) && (version == 0 || v == version) ? g + 3 * v : 0;
            store_expect_ok(mdot_store_visit_groups(f->store, &filter, NULL, count_group, found, &f->err), &f->err);
            assert_true(found[0] == wanted);
        }
}

static void absurd_rows_count_nowhere(void **state)
{
    store_fixture *f = *state;
    const double absurd[] = {1e300, 1.01e9, 9e-5, 1e-300};
    double found[4] = {0};
    for (size_t i = 0; i < 4; i++) store_fixture_add(f, store_fixture_row(f, absurd[i]));
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, count_group, found, &f->err), &f->err);
    assert_true(found[0] == 0); /* a group of such rows only */
    store_fixture_add(f, store_fixture_row(f, 5));
    mdot_store_row large = store_fixture_row(f, 5);
    large.memory_gib = 1e6;
    store_fixture_add(f, large);
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, count_group, found, &f->err), &f->err);
    assert_true(found[0] == 1 && fabs(found[1] - 5) < 1e-9 && found[2] == 5 && found[3] < 1e5);
    const double longest[] = {MDOT_STORE_SHORTEST_MS, MDOT_STORE_LONGEST_MS}; /* they are believed */
    for (size_t i = 0; i < 2; i++) {
        mdot_store_row row = store_fixture_row(f, longest[i]);
        row.batch = 64 + (int64_t)i;
        store_fixture_add(f, row);
    }
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    found[0] = 0;
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, count_group, found, &f->err), &f->err);
    assert_true(found[0] == 3);
}

static bool take_first(void *user, const mdot_store_group *g)
{
    *(mdot_store_group *)user = *g;
    assert_string_equal(g->job, "two.onnx");
    assert_string_equal(g->gpu_name, "A100-SXM-40GB");
    assert_string_equal(g->settings, "precision=amp");
    return false;
}

static void groups_and_predictions_come_back_and_arguments_are_named(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    mdot_store_group g = {0};
    for (int batch = 1; batch <= 2; batch++) {
        mdot_store_row row = store_fixture_row(f, 5);
        row.batch = batch;
        store_fixture_add(f, row);
    }
    refresh(f);
    mdot_store_prediction p = {.struct_size = sizeof p, .group = 1, .ms = 3, .lower_ms = 2, .upper_ms = 4};
    store_expect_ok(mdot_store_set_predictions(f->store, "p", &p, 1, e), e);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, "p", take_first, &g, e), e);
    assert_true(g.id == 1 && g.batch == 1 && g.row_count == 1 && g.outlier_count == 0 && fabs(g.ms - 5) < 1e-9);
    assert_true(g.predicted_ms == 3 && g.lower_ms == 2 && g.upper_ms == 4 && g.struct_size == sizeof g);
    p.ms = p.lower_ms = p.upper_ms; /* an interval may be a point */
    store_expect_ok(mdot_store_set_predictions(f->store, "p", &p, 1, e), e);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, "p", take_first, &g, e), e);
    assert_true(g.predicted_ms == 4 && g.lower_ms == 4 && g.upper_ms == 4);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, take_first, &g, e), e);
    assert_true(g.predicted_ms == 0 && g.lower_ms == 0 && g.upper_ms == 0);
    store_expect_missing(mdot_store_visit_groups(NULL, NULL, NULL, take_first, &g, e), e);
    store_expect_missing(mdot_store_visit_groups(f->store, NULL, NULL, NULL, &g, e), e);
    store_expect_missing(mdot_store_refresh(NULL, NULL, e), e);
    store_expect_missing(mdot_store_set_predictions(NULL, "p", &p, 1, e), e);
    store_expect_missing(mdot_store_set_predictions(f->store, NULL, &p, 1, e), e);
    store_expect_missing(mdot_store_set_predictions(f->store, "p", NULL, 1, e), e);
    store_expect_ok(mdot_store_set_predictions(f->store, "p", NULL, 0, e), e);
    mdot_store_refresh_report small = {.struct_size = 1};
    assert_int_equal(mdot_store_refresh(f->store, &small, e), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_throttled_row_is_listed_and_hardly_counts),
        CASE(groups_differ_by_job_gpu_batch_settings_and_software),
        CASE(names_of_one_gpu_model_share_a_group),
        CASE(a_refresh_reads_only_groups_with_new_rows),
        CASE(a_refresh_counts_what_it_reads),
        CASE(refreshes_one_by_one_and_at_once_agree),
        CASE(a_long_group_is_read_in_part),
        CASE(memory_and_dates_of_a_group_span_its_rows),
        CASE(predictions_belong_to_their_predictor),
        CASE(a_group_without_rows_is_damage),
        CASE(a_table_of_groups_has_their_means),
        CASE(absurd_rows_count_nowhere),
        CASE(filters_select_groups),
        CASE(predictions_lie_within_their_interval),
        CASE(predicted_groups_are_left_out_of_a_table),
        CASE(groups_and_predictions_come_back_and_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
