/* test_rows.c — rows and jobs through the library's interface. */
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

typedef struct seen {
    size_t count, most; /* most: number of visits after which the visitor stops; 0: unlimited */
    int64_t id[8];
    double ms[8];
    char gpu_name[64], settings[64], name[64];
} seen;

static bool take(void *user, const mdot_store_row *r)
{
    seen *s = user;
    s->id[s->count] = r->id;
    s->ms[s->count++] = r->ms;
    snprintf(s->gpu_name, sizeof s->gpu_name, "%s", r->gpu_name);
    snprintf(s->settings, sizeof s->settings, "%s", r->settings);
    snprintf(s->name, sizeof s->name, "%s", r->name);
    return s->count != s->most;
}

static seen visit(store_fixture *f, const mdot_store_filter *filter)
{
    seen s = {0};
    store_expect_ok(mdot_store_visit_rows(f->store, filter, take, &s, &f->err), &f->err);
    return s;
}

static void rows_are_kept_with_canonical_settings_and_names(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 161.5);
    row.settings = "precision=amp\ngpus=8\nlink=";
    store_fixture_add(f, row);
    seen s = visit(f, NULL);
    assert_int_equal(s.count, 1);
    assert_true(s.ms[0] == 161.5);
    assert_string_equal(s.settings, "gpus=8\nprecision=amp");
    assert_string_equal(s.gpu_name, "A100-SXM-40GB");
    assert_string_equal(s.name, "two.onnx");
}

static void equal_measurements_are_different_rows(void **state)
{
    store_fixture *f = *state;
    store_fixture_add(f, store_fixture_row(f, 5));
    store_fixture_add(f, store_fixture_row(f, 5));
    assert_int_equal(visit(f, NULL).count, 2);
}

static void a_row_of_known_identity_is_left_out(void **state)
{
    store_fixture *f = *state;
    mdot_store_row rows[2] = {store_fixture_row(f, 5), store_fixture_row(f, 6)};
    rows[0].uid = rows[1].uid = 77;
    size_t added = 0;
    store_expect_ok(mdot_store_add_rows(f->store, rows, 2, &added, &f->err), &f->err);
    assert_int_equal(added, 1);
    assert_true(visit(f, NULL).ms[0] == 5);
}

static void filters_select_rows(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 1);
    row.software = "torch 2.3";
    row.measured_at = 100;
    store_fixture_add(f, row);
    row.ms = 2;
    row.gpu = "V100";
    row.software = "torch 2.4";
    row.measured_at = 200;
    store_fixture_add(f, row);
    row.ms = 3;
    row.digest = f->other_digest;
    store_fixture_add(f, row);
    mdot_store_filter filter = {.struct_size = sizeof filter, .gpu = "a100"};
    assert_int_equal(visit(f, &filter).count, 1);
    filter = (mdot_store_filter){.struct_size = sizeof filter, .software = "torch 2.4"};
    assert_int_equal(visit(f, &filter).count, 2);
    filter = (mdot_store_filter){.struct_size = sizeof filter, .since = 150};
    assert_int_equal(visit(f, &filter).count, 2);
    char digits[7] = {0};
    memcpy(digits, f->other_digest, 6);
    filter = (mdot_store_filter){.struct_size = sizeof filter, .digest = digits};
    assert_true(visit(f, &filter).ms[0] == 3);
    filter = (mdot_store_filter){.struct_size = sizeof filter, .after_id = visit(f, NULL).id[1]};
    assert_true(visit(f, &filter).ms[0] == 3);
    seen s = {.most = 2};
    store_expect_ok(mdot_store_visit_rows(f->store, NULL, take, &s, &f->err), &f->err);
    assert_int_equal(s.count, 2);
}

static void a_wrong_row_is_named_and_no_row_is_added(void **state)
{
    store_fixture *f = *state;
    const struct {
        mdot_store_row row;
        const char *part;
    } cases[] = {
        {{.digest = f->digest, .gpu = "A100", .batch = 1, .ms = 0}, "ms is a time"},
        {{.digest = f->digest, .gpu = "A100", .batch = 0, .ms = 1}, "the batch"},
        {{.digest = f->digest, .gpu = "", .batch = 1, .ms = 1}, "the GPU is missing"},
        {{.digest = NULL, .gpu = "A100", .batch = 1, .ms = 1}, "the digest of its job is missing"},
        {{.digest = "00", .gpu = "A100", .batch = 1, .ms = 1}, "no job with the digest 00"},
        {{.digest = f->digest, .gpu = "A100", .batch = 1, .ms = 1, .host = "a\nb"}, "more than one line"},
        {{.digest = f->digest, .gpu = "A100", .batch = 1, .ms = 1, .settings = "x"}, "name=value"},
        {{.digest = f->digest, .gpu = "A100", .batch = 1, .ms = 1, .memory_gib = -1}, "the memory (gib)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_store_row rows[2] = {store_fixture_row(f, 5), cases[i].row};
        rows[1].struct_size = sizeof rows[1];
        mdot_status status = mdot_store_add_rows(f->store, rows, 2, NULL, &f->err);
        assert_true(status == MDOT_INVALID_ARGUMENT || status == MDOT_NOT_FOUND);
        expect_contains(f->err.message, cases[i].part);
        expect_contains(f->err.message, "row 1 to be added");
        assert_int_equal(store_count(f->store).row_count, 0);
    }
}

static void missing_arguments_are_refused(void **state)
{
    store_fixture *f = *state;
    assert_int_equal(mdot_store_add_rows(NULL, NULL, 0, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_store_add_rows(f->store, NULL, 1, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_store_visit_rows(f->store, NULL, NULL, NULL, NULL), MDOT_INVALID_ARGUMENT);
    mdot_store_row row = store_fixture_row(f, 1);
    row.struct_size = 3;
    assert_int_equal(mdot_store_add_rows(f->store, &row, 1, NULL, NULL), MDOT_INVALID_ARGUMENT);
}

static void a_digest_ignores_the_batch_and_sees_the_operators(void **state)
{
    store_fixture *f = *state;
    char digest[MDOT_STORE_DIGEST_BYTES];
    mdot_job *batched = store_fixture_job(2, 64);
    store_expect_ok(mdot_store_digest(batched, digest, &f->err), &f->err);
    assert_string_equal(digest, f->digest);
    assert_string_not_equal(f->digest, f->other_digest);
    assert_int_equal(strlen(digest), MDOT_STORE_DIGEST_BYTES - 1);
    mdot_job_destroy(batched);
    assert_int_equal(mdot_store_digest(NULL, digest, NULL), MDOT_INVALID_ARGUMENT);
}

/* The test would not end if all letters of a type were read for each operator with this type. */
static void a_digest_reads_the_first_letters_of_a_type(void **state)
{
    (void)state;
    enum { LETTERS = 1 << 22, COUNT = 100000 };
    char *type = malloc(LETTERS + 1), digest[2][MDOT_STORE_DIGEST_BYTES];
    mdot_job_operator *operators = calloc(COUNT, sizeof *operators);
    assert_true(type != NULL && operators != NULL);
    memset(type, 'T', LETTERS);
    type[LETTERS] = '\0';
    for (size_t i = 0; i < COUNT; i++)
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = type, .parameters = 1};
    for (int i = 0; i < 2; i++, type[254] = 'U') {
        const mdot_job_description d = {
            .struct_size = sizeof d, .operators = operators, .operator_count = COUNT, .batch = 1};
        mdot_job *job = NULL;
        assert_int_equal(mdot_job_create(&d, &job, NULL), MDOT_OK);
        assert_int_equal(mdot_store_digest(job, digest[i], NULL), MDOT_OK);
        mdot_job_destroy(job);
    }
    assert_string_not_equal(digest[0], digest[1]);
    free(operators);
    free(type);
}

static void a_job_comes_back_from_its_bytes(void **state)
{
    store_fixture *f = *state;
    void *bytes = NULL;
    size_t size = 0;
    mdot_job *job = NULL;
    char digest[MDOT_STORE_DIGEST_BYTES];
    store_expect_ok(mdot_store_get_job(f->store, f->other_digest, &bytes, &size, &f->err), &f->err);
    store_expect_ok(mdot_job_parse(bytes, size, &job, &f->err), &f->err);
    store_expect_ok(mdot_store_digest(job, digest, &f->err), &f->err);
    assert_string_equal(digest, f->other_digest);
    assert_int_equal(mdot_store_digest(NULL, digest, &f->err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_store_digest(job, NULL, &f->err), MDOT_INVALID_ARGUMENT);
    mdot_job_destroy(job);
    mdot_store_free(bytes);
    store_expect_failure(mdot_store_get_job(f->store, "none", &bytes, &size, &f->err), &f->err, MDOT_NOT_FOUND, "none");
    assert_int_equal(sqlite3_exec(f->store->db, "UPDATE jobs SET name = name || 'x'", NULL, NULL, NULL), SQLITE_OK);
    store_expect_failure(mdot_store_get_job(f->store, f->other_digest, &bytes, &size, &f->err), &f->err, MDOT_CORRUPT,
                         "checksum");
    assert_int_equal(process_count_files(f->folder), 3); /* the store and two WAL files: no temporary file is left */
}

static bool count_job(void *user, const mdot_store_job *j)
{
    size_t *sums = user;
    sums[0]++;
    sums[1] += j->row_count;
    sums[2] += (size_t)j->operator_count;
    return true;
}

static void jobs_are_listed_once_with_their_rows(void **state)
{
    store_fixture *f = *state;
    size_t sums[3] = {0};
    store_fixture_add(f, store_fixture_row(f, 1));
    store_expect_ok(mdot_store_add_job(f->store, f->job, "again.onnx", NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_visit_jobs(f->store, count_job, sums, &f->err), &f->err);
    assert_int_equal(sums[0], 2);
    assert_int_equal(sums[1], 1);
    assert_int_equal(sums[2], 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_are_kept_with_canonical_settings_and_names),
        CASE(equal_measurements_are_different_rows),
        CASE(a_row_of_known_identity_is_left_out),
        CASE(filters_select_rows),
        CASE(a_wrong_row_is_named_and_no_row_is_added),
        CASE(missing_arguments_are_refused),
        CASE(a_digest_ignores_the_batch_and_sees_the_operators),
        CASE(a_digest_reads_the_first_letters_of_a_type),
        CASE(a_job_comes_back_from_its_bytes),
        CASE(jobs_are_listed_once_with_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
