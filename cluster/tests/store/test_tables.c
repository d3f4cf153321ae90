/* test_tables.c — tables of measured steps go into a store and come out again, with the same bytes. Wrong lines fail
 * the whole import, with their numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

/* Jobs for table rows: the fixture's jobs in turn, from the first. */
static mdot_status import_text(store_fixture *f, mdot_store *store, const char *text, size_t rows,
                               mdot_store_import *out)
{
    const mdot_job *jobs[16];
    for (size_t i = 0; i < 16; i++) jobs[i] = i % 2 == 0 ? f->job : f->other;
    return mdot_store_import_csv(store, text, strlen(text), "steps.csv", jobs, rows, out, &f->err);
}

static char *export_text(store_fixture *f, mdot_store *store, uint32_t flags, const char *job_folder)
{
    mdot_store_export options = {.struct_size = sizeof options, .flags = flags, .job_folder = job_folder};
    char *text = NULL;
    size_t size = 0;
    store_expect_ok(mdot_store_export_csv(store, &options, &text, &size, &f->err), &f->err);
    assert_int_equal(strlen(text), size);
    return text;
}

static const char plain[] = "job,gpu,batch,dim,gpus,parallel,precision,ms,gib,note\n"
                            "two.onnx,A100,32,seq=128,,,amp,161.5,1000.25,\n"
                            "three.onnx,V100,1,,8,\"dp=4,tp=2\",,0.1,,\"a \"\"note\"\", with a comma\"\n"
                            "two.onnx,A100,32,seq=128,,,amp,161.5,1000.25,\n"
                            "three.onnx,V100,16777216,,,,,123456.78901234567,, kept\n";

static void a_plain_table_comes_out_as_it_went_in(void **state)
{
    store_fixture *f = *state;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    store_expect_ok(import_text(f, f->store, plain, 4, &counts), &f->err);
    assert_int_equal(counts.added_count, 4);
    char *text = export_text(f, f->store, MDOT_STORE_EXPORT_PLAIN, NULL);
    char *wanted = strdup(plain);
    char *blank = strstr(wanted, ", kept"); /* blanks around cells are no part of them */
    memmove(blank + 1, blank + 2, strlen(blank + 2) + 1);
    assert_string_equal(text, wanted);
    free(wanted);
    mdot_store_free(text);
}

static void a_table_of_all_columns_makes_an_equal_store(void **state)
{
    store_fixture *f = *state;
    mdot_store_row row = store_fixture_row(f, 0.1 + 0.2);
    row.software = "torch 2.4.1, CUDA 12.4";
    row.host = "node7";
    row.predictor = "shipped 0.3.0";
    row.note = "first";
    row.measured_at = 1790000000;
    store_fixture_add(f, row);
    store_expect_ok(import_text(f, f->store, plain, 4, NULL), &f->err);
    char *first = export_text(f, f->store, 0, "jobs");
    char *path = process_in_folder(f->folder, "second.store");
    mdot_store *second = NULL;
    store_expect_ok(mdot_store_open(path, NULL, &second, &f->err), &f->err);
    const mdot_job *jobs[] = {f->job, f->job, f->other, f->job, f->other};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    store_expect_ok(mdot_store_import_csv(second, first, strlen(first), "all.csv", jobs, 5, &counts, &f->err), &f->err);
    assert_int_equal(counts.added_count, 5);
    assert_int_equal(store_count(second).job_count, 2);
    char *again = export_text(f, second, 0, "jobs");
    assert_string_equal(first, again);
    expect_contains(first, "0.30000000000000004");
    mdot_store_free(first);
    mdot_store_free(again);
    mdot_store_close(second);
    free(path);
}

/* A .job file includes the options used to read the job. */
static void an_export_with_jobs_leaves_reading_options_out(void **state)
{
    store_fixture *f = *state;
    store_expect_ok(import_text(f, f->store, plain, 4, NULL), &f->err);
    char *text = export_text(f, f->store, MDOT_STORE_EXPORT_PLAIN, "jobs");
    assert_null(strstr(text, "dim"));
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\njobs/%s.job,A100", f->digest);
    expect_contains(text, wanted);
    mdot_store_free(text);
}

static void a_table_that_has_grown_adds_its_new_rows_only(void **state)
{
    store_fixture *f = *state;
    char longer[sizeof plain + 64];
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    store_expect_ok(import_text(f, f->store, plain, 4, NULL), &f->err);
    snprintf(longer, sizeof longer, "%stwo.onnx,A100,64,,,,,99,,\n", plain);
    store_expect_ok(import_text(f, f->store, longer, 5, &counts), &f->err);
    assert_int_equal(counts.added_count, 1);
    assert_int_equal(counts.known_count, 4);
    assert_int_equal(store_count(f->store).row_count, 5);
}

/* Lines are the same measurement if each column is equal. A table that was imported before adds nothing, in whatever
 * order its lines are; each repeated line is a measurement of its own. */
static void equal_lines_are_counted_and_others_differ(void **state)
{
    enum { LINES = 1500, KINDS = 40 };
    static const char *const lines[] = {"a,A100,8,5,,,,,,,",    "b,A100,8,5,,,,,,,",    "a,H100,8,5,,,,,,,",
                                        "a,A100,9,5,,,,,,,",    "a,A100,8,6,,,,,,,",    "a,A100,8,5,1,,,,,,",
                                        "a,A100,8,5,,amp,,,,,", "a,A100,8,5,,,2.4,,,,", "a,A100,8,5,,,,h,,,",
                                        "a,A100,8,5,,,,,p,,",   "a,A100,8,5,,,,,,n,",   "a,A100,8,5,,,,,,,7"};
    static const char header[] = "job,gpu,batch,ms,gib,precision,software,host,predictor,note,measured_at";
    static char text[1 << 16];
    static const mdot_job *jobs[LINES];
    store_fixture *f = *state;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    for (size_t i = 0; i < LINES; i++) jobs[i] = f->job;
    for (size_t i = 0; i < 2 * sizeof lines / sizeof *lines; i++) {
        snprintf(text, sizeof text, "%s\n%s\n", header, lines[i / 2]);
        store_expect_ok(mdot_store_import_csv(f->store, text, strlen(text), "t", jobs, 1, &counts, &f->err), &f->err);
        if (counts.added_count != (i + 1) % 2) fail_msg("%s: %zu are new", lines[i / 2], (size_t)counts.added_count);
    }
    jobs[0] = f->other; /* the same line about another network */
    store_expect_ok(mdot_store_import_csv(f->store, text, strlen(text), "t", jobs, 1, &counts, &f->err), &f->err);
    assert_int_equal(counts.added_count, 1);
    jobs[0] = f->job;
    static const int steps[] = {1, LINES - 1, 11};
    for (int order = 0; order < 3; order++) {
        size_t length = (size_t)sprintf(text, "job,gpu,batch,ms\n");
        for (int i = 0; i < LINES; i++)
            length += (size_t)sprintf(text + length, "x,A100,64,%d\n", 1 + i * steps[order] % LINES * 7 % KINDS);
        store_expect_ok(mdot_store_import_csv(f->store, text, length, "t", jobs, LINES, &counts, &f->err), &f->err);
        assert_int_equal(counts.added_count, order == 0 ? LINES : 0);
    }
}

static void each_row_needs_a_job(void **state)
{
    store_fixture *f = *state;
    for (size_t jobs = 0; jobs < 4; jobs++) {
        char part[64];
        snprintf(part, sizeof part, "steps.csv:%zu: the table has more rows than the %zu jobs given", jobs + 2, jobs);
        store_expect_failure(import_text(f, f->store, plain, jobs, NULL), &f->err, MDOT_INVALID_ARGUMENT, part);
        assert_int_equal(store_count(f->store).row_count, 0);
    }
}

static void digests_select_jobs_that_the_store_has(void **state)
{
    store_fixture *f = *state;
    char text[256];
    snprintf(text, sizeof text, "job,gpu,batch,ms,digest\nx,A100,1,5,%s\n", f->other_digest);
    store_expect_ok(mdot_store_import_csv(f->store, text, strlen(text), "x.csv", NULL, 0, NULL, &f->err), &f->err);
    snprintf(text, sizeof text, "job,gpu,batch,ms,digest\nx,A100,1,5,%032d\n", 7);
    store_expect_failure(mdot_store_import_csv(f->store, text, strlen(text), "x.csv", NULL, 0, NULL, &f->err), &f->err,
                         MDOT_NOT_FOUND, "x.csv:2");
}

static void a_wrong_digest_is_refused(void **state)
{
    store_fixture *f = *state;
    char text[256];
    snprintf(text, sizeof text, "job,gpu,batch,ms,digest\ntwo.onnx,A100,1,5,%s\n", f->other_digest);
    store_expect_failure(import_text(f, f->store, text, 1, NULL), &f->err, MDOT_INVALID_ARGUMENT,
                         "the column digest has");
}

typedef struct wrong {
    const char *text, *part;
} wrong;

static void a_wrong_line_is_named_and_nothing_is_added(void **state)
{
    store_fixture *f = *state;
    static const wrong cases[] = {
        {"", "the table is empty"},
        {"job,gpu,ms\n", "no column batch"},
        {"job,gpu,batch,ms,gpu\n", "two columns gpu"},
        {"job,gpu,batch,ms\na,A100,1,5\nb,A100,1\n", ":3: there are 3 fields, but 4 columns"},
        {"job,gpu,batch,ms\na,A100,1,5\n\nb,A100,1,0\n", ":4: ms is a time above 0"},
        {"job,gpu,batch,ms\na,A100,1,5\nb,A100,1,nan\n", ":3: ms is not a number"},
        {"job,gpu,batch,ms\na,A100,1,5x\n", ":2: ms is not a number"},
        {"job,gpu,batch,ms\na,A100,0,5\n", ":2: the batch"},
        {"job,gpu,batch,ms\na,A100,1.5,5\n", ":2: batch is not an integer"},
        {"job,gpu,batch,ms\na,,1,5\n", ":2: the GPU is missing"},
        {"job,gpu,batch,ms,row\na,A100,1,5,xyz\n", ":2: row has 16 digits"},
        {"job,gpu,batch,ms,gib\na,A100,1,5,-1\n", ":2: the memory (gib)"},
        {"job,gpu,batch,ms,note\na,A100,1,5,\"open\n", ":2: a quote is not closed"},
        {"job,gpu,batch,ms,note\na,A100,1,5,\"x\"y\n", ":2: characters follow"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->err = (mdot_error){0};
        mdot_status status = import_text(f, f->store, cases[i].text, 4, NULL);
        if (status == MDOT_OK) fail_msg("accepted: %s", cases[i].text);
        expect_contains(f->err.message, cases[i].part);
        expect_contains(f->err.message, "steps.csv");
        assert_int_equal(store_count(f->store).row_count, 0);
    }
    static const char zero[] = "job,gpu,batch,ms\na,A\0"
                               "100,1,5\n";
    const mdot_job *jobs[] = {f->job};
    store_expect_failure(mdot_store_import_csv(f->store, zero, sizeof zero - 1, "zero.csv", jobs, 1, NULL, &f->err),
                         &f->err, MDOT_MALFORMED, "zero byte");
}

static void numbers_are_read_as_on_the_command_line(void **state)
{
    store_fixture *f = *state;
    store_expect_ok(
        import_text(f, f->store, "# comment\njob,gpu,batch,ms\r\n a , A100 ,1_024,1e3\r\nb,A100,1e3,.5\n", 2, NULL),
        &f->err);
    char *text = export_text(f, f->store, MDOT_STORE_EXPORT_PLAIN, NULL);
    assert_string_equal(text, "job,gpu,batch,ms\na,A100,1024,1000\nb,A100,1000,0.5\n");
    mdot_store_free(text);
}

static void exports_select_rows(void **state)
{
    store_fixture *f = *state;
    store_expect_ok(import_text(f, f->store, plain, 4, NULL), &f->err);
    mdot_store_filter filter = {.struct_size = sizeof filter, .gpu = "v100"};
    mdot_store_export options = {.struct_size = sizeof options, .flags = MDOT_STORE_EXPORT_PLAIN, .filter = &filter};
    char *text = NULL;
    size_t size;
    store_expect_ok(mdot_store_export_csv(f->store, &options, &text, &size, &f->err), &f->err);
    assert_null(strstr(text, "A100"));
    expect_contains(text, "three.onnx,V100,1,8,\"dp=4,tp=2\",0.1,");
    mdot_store_free(text);
    options.flags = MDOT_STORE_EXPORT_GROUPS;
    store_expect_failure(mdot_store_export_csv(f->store, &options, &text, &size, &f->err), &f->err,
                         MDOT_INVALID_ARGUMENT, "job_folder");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

static bool add_moment(void *user, const mdot_store_row *row)
{
    *(int64_t *)user += row->measured_at;
    return true;
}

static void moments_carry_their_zone(void **state)
{
    store_fixture *f = *state;
    static const char dated[] = "job,gpu,batch,ms,measured_at\ntwo.onnx,A100,32,161.5,2026-11-24T10:00:00+01:00\n"
                                "two.onnx,A100,32,161.5,2026-11-24T10:00:00Z\ntwo.onnx,A100,32,161.5,1000\n",
                      local[] = "job,gpu,batch,ms,measured_at\ntwo.onnx,A100,32,161.5,2026-11-24T10:00:00\n";
    int64_t sum = 0;
    store_expect_ok(import_text(f, f->store, dated, 3, NULL), &f->err);
    store_expect_ok(mdot_store_visit_rows(f->store, NULL, add_moment, &sum, &f->err), &f->err);
    assert_int_equal(sum, INT64_C(1795510800) + 1795514400 + 1000);
    store_expect_failure(import_text(f, f->store, local, 1, NULL), &f->err, MDOT_MALFORMED, "with a zone");
}

static void missing_arguments_and_bounds_are_named(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    const mdot_job *jobs[] = {f->job};
    mdot_store_import small = {.struct_size = 1};
    store_expect_missing(mdot_store_import_csv(NULL, "x", 1, "n", jobs, 1, NULL, e), e);
    store_expect_missing(mdot_store_import_csv(f->store, NULL, 1, "n", jobs, 1, NULL, e), e);
    store_expect_missing(mdot_store_import_csv(f->store, "x", 1, NULL, jobs, 1, NULL, e), e);
    assert_int_equal(mdot_store_import_csv(f->store, "x", 1, "n", jobs, 1, &small, e), MDOT_INVALID_ARGUMENT);
    static const struct {
        const char *line, *part; /* part NULL: it is added */
    } cases[] = {{"a,A100,1,5,1e15", "measured_at is not an integer: \"1e15\""},
                 {"a,A100,1,5,-1e15", "measured_at is not an integer"},
                 {"a,A100,1,5,1.5", "measured_at is not an integer"},
                 {"a,A100,1,5,999999999999999", NULL},
                 {"a,A100,1,5,-999999999999999", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char table[128];
        int length = snprintf(table, sizeof table, "job,gpu,batch,ms,measured_at\n%s\n", cases[i].line);
        mdot_status status = mdot_store_import_csv(f->store, table, (size_t)length, "n.csv", jobs, 1, NULL, e);
        if (cases[i].part == NULL) store_expect_ok(status, e);
        if (cases[i].part != NULL) store_expect_failure(status, e, MDOT_MALFORMED, cases[i].part);
    }
    assert_int_equal(store_count(f->store).row_count, 2);
}

static bool expect_name(void *user, const mdot_store_job *j)
{
    const char *const *next = *(const char *const **)user;
    assert_string_equal(j->name, *next);
    *(const char *const **)user = next + 1;
    return true;
}

/* A job gets the name of the table, or else the last part of its path. */
static void a_new_job_is_named_after_its_file(void **state)
{
    store_fixture *f = *state;
    static const char *const names[] = {"two.onnx", "three.onnx", "plain", "net.onnx", "given"}, *const *next = names;
    static const char *const rows[] = {"plain,A100,1,5,", "some/where/net.onnx,A100,1,5,", "a/b,A100,1,5,given"};
    for (int i = 0; i < 3; i++) {
        char table[128];
        int length = snprintf(table, sizeof table, "job,gpu,batch,ms,name\n%s\n", rows[i]);
        mdot_job_operator o = MDOT_INIT(mdot_job_operator);
        o.type = rows[i];
        const mdot_job_description d = {.struct_size = sizeof d, .operators = &o, .operator_count = 1, .batch = 1};
        mdot_job *job = NULL;
        store_expect_ok(mdot_job_create(&d, &job, &f->err), &f->err);
        const mdot_job *const jobs[] = {job};
        store_expect_ok(mdot_store_import_csv(f->store, table, (size_t)length, "n", jobs, 1, NULL, &f->err), &f->err);
        mdot_job_destroy(job);
    }
    store_expect_ok(mdot_store_visit_jobs(f->store, expect_name, &next, &f->err), &f->err);
    assert_ptr_equal(next, names + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_plain_table_comes_out_as_it_went_in),
        CASE(a_table_of_all_columns_makes_an_equal_store),
        CASE(an_export_with_jobs_leaves_reading_options_out),
        CASE(a_table_that_has_grown_adds_its_new_rows_only),
        CASE(equal_lines_are_counted_and_others_differ),
        CASE(each_row_needs_a_job),
        CASE(digests_select_jobs_that_the_store_has),
        CASE(a_wrong_digest_is_refused),
        CASE(a_wrong_line_is_named_and_nothing_is_added),
        CASE(numbers_are_read_as_on_the_command_line),
        CASE(moments_carry_their_zone),
        CASE(exports_select_rows),
        CASE(missing_arguments_and_bounds_are_named),
        CASE(a_new_job_is_named_after_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
