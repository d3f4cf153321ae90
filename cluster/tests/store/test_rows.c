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

#include <math.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

typedef struct seen {
    size_t count, most; /* most: number of visits after which the visitor stops; 0: unlimited */
    int64_t id[16];
    double ms[16];
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

/* The system's random numbers: as many bytes as this, then an error; below 0: all that are wanted. */
static ssize_t random_bytes = -1;
static uint64_t next_random = 1;

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    if (random_bytes >= 0 && (size_t)random_bytes < size) return random_bytes > 0 ? random_bytes : -1;
    memset(buffer, 0, size);
    memcpy(buffer, &next_random, size < sizeof next_random ? size : sizeof next_random);
    next_random += UINT64_C(0x9e3779b97f4a7c15);
    return (ssize_t)size;
}

static bool expect_uid(void *user, const mdot_store_row *r)
{
    assert_true(r->uid == *(uint64_t *)user);
    return false;
}

/* Early after boot, too, when the system has no random numbers. */
static void equal_measurements_are_different_rows(void **state)
{
    store_fixture *f = *state;
    uint64_t uid = next_random;
    for (random_bytes = -1; random_bytes < 2; random_bytes++) {
        store_fixture_add(f, store_fixture_row(f, 5));
        store_fixture_add(f, store_fixture_row(f, 5));
    }
    random_bytes = -1;
    assert_int_equal(visit(f, NULL).count, 6);
    store_expect_ok(mdot_store_visit_rows(f->store, NULL, expect_uid, &uid, &f->err), &f->err);
}

/* The job's temporary file may be descriptor 0. */
static void jobs_are_added_without_standard_input(void **state)
{
    store_fixture *f = *state;
    mdot_job *job = store_fixture_job(1, 1);
    int saved = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    mdot_status status = mdot_store_add_job(f->store, job, "one.onnx", NULL, &f->err);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    store_expect_ok(status, &f->err);
    assert_int_equal(store_count(f->store).job_count, 3);
    assert_int_equal(process_count_files(f->folder), 3); /* the store's own */
    mdot_job_destroy(job);
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

typedef struct copied_row {
    mdot_store_row r;
    char text[10][48]; /* digest, job, name, gpu, gpu_name, settings, software, host, predictor, note */
} copied_row;

static bool copy_row(void *user, const mdot_store_row *r)
{
    copied_row *c = user;
    const char *const texts[] = {r->digest,   r->job,      r->name, r->gpu,       r->gpu_name,
                                 r->settings, r->software, r->host, r->predictor, r->note};
    c->r = *r;
    for (size_t i = 0; i < 10; i++) snprintf(c->text[i], sizeof c->text[i], "%s", texts[i]);
    return false;
}

static void every_field_comes_back(void **state)
{
    store_fixture *f = *state;
    for (int i = 1; i <= 9; i++) {
        char gpu[16], settings[16], software[16], host[16], predictor[16], note[16], job[16];
        mdot_store_row row = store_fixture_row(f, i * 1.25);
        row.digest = i % 2 == 0 ? f->digest : f->other_digest;
#define NAME(field) (snprintf(field, sizeof field, #field "=%d", i), row.field = field)
        NAME(gpu), NAME(settings), NAME(software), NAME(host), NAME(predictor), NAME(note), NAME(job);
#undef NAME
        row.batch = i == 9 ? 1 << 24 : i; /* the largest one, and the smallest one */
        row.memory_gib = i == 1 ? 0 : i * .5;
        row.measured_at = i == 3 ? -77 : 1000 * i;
        row.uid = (uint64_t)i << 60 | (uint64_t)i;
        store_fixture_add(f, row);
        copied_row c;
        mdot_store_filter last = {.struct_size = sizeof last, .after_id = i - 1};
        store_expect_ok(mdot_store_visit_rows(f->store, &last, copy_row, &c, &f->err), &f->err);
        const char *const wanted[] = {
            row.digest, job, i % 2 == 0 ? "two.onnx" : "three.onnx", gpu, gpu, row.settings, software, host,
            predictor,  note};
        for (size_t k = 0; k < 10; k++) assert_string_equal(c.text[k], wanted[k]);
        assert_true(c.r.id == i && c.r.uid == row.uid && c.r.ms == row.ms && c.r.memory_gib == row.memory_gib);
        assert_true(c.r.batch == row.batch && c.r.measured_at == row.measured_at && c.r.weight == 0);
        assert_int_equal(c.r.struct_size, sizeof c.r);
    }
    assert_int_equal(visit(f, &(mdot_store_filter){.struct_size = sizeof(mdot_store_filter), .since = -77}).count, 9);
    assert_int_equal(visit(f, &(mdot_store_filter){.struct_size = sizeof(mdot_store_filter), .since = -76}).count, 8);
    assert_int_equal(visit(f, &(mdot_store_filter){.struct_size = sizeof(mdot_store_filter), .since = 9000}).count, 1);
    mdot_store_filter outliers = {.struct_size = sizeof outliers, .below_weight = 1};
    assert_int_equal(visit(f, &outliers).count, 0); /* they have no weight yet */
}

static void rows_beyond_a_bound_are_refused(void **state)
{
    store_fixture *f = *state;
    static const char *const many[] = {"a\rb", "a\nb"};
    for (int field = 0; field < 14; field++) {
        mdot_store_row rows[2] = {store_fixture_row(f, 5), store_fixture_row(f, 5)}, *r = &rows[1];
        const char **const texts[] = {&r->job, &r->gpu, &r->software, &r->host, &r->predictor, &r->note};
        const char *part = "a text has more than one line";
        if (field < 12) *texts[field % 6] = many[field / 6];
        if (field == 12) r->batch = (1 << 24) + 1, part = "the batch is from 1 to 2^24";
        if (field == 13) r->digest = "", part = "the digest of its job is missing";
        size_t added = 7;
        store_expect_failure(mdot_store_add_rows(f->store, rows, 2, &added, &f->err), &f->err, MDOT_INVALID_ARGUMENT,
                             part);
        expect_contains(f->err.message, f->path);
        assert_int_equal(added, 7);
        assert_int_equal(store_count(f->store).row_count, 0);
    }
    const double wrong[] = {NAN, INFINITY, -1};
    for (int i = 0; i < 3; i++) {
        mdot_store_row row = store_fixture_row(f, wrong[i]);
        store_expect_failure(mdot_store_add_rows(f->store, &row, 1, NULL, &f->err), &f->err, MDOT_INVALID_ARGUMENT,
                             "ms is a time above 0");
        row.ms = 1;
        row.memory_gib = wrong[i];
        store_expect_failure(mdot_store_add_rows(f->store, &row, 1, NULL, &f->err), &f->err, MDOT_INVALID_ARGUMENT,
                             "the memory (gib) is 0 GiB or more");
    }
    store_expect_ok(mdot_store_add_rows(f->store, NULL, 0, NULL, &f->err), &f->err);
}

static void missing_arguments_are_named(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    mdot_store_filter small = {.struct_size = 1};
    seen s = {0};
    void *bytes = NULL;
    size_t size = 0, sums[3] = {0};
    store_expect_missing(mdot_store_add_rows(NULL, NULL, 0, NULL, e), e);
    store_expect_missing(mdot_store_add_rows(f->store, NULL, 1, NULL, e), e);
    store_expect_missing(mdot_store_visit_rows(NULL, NULL, take, &s, e), e);
    store_expect_missing(mdot_store_visit_rows(f->store, NULL, NULL, &s, e), e);
    store_expect_missing(mdot_store_visit_jobs(NULL, count_job, sums, e), e);
    store_expect_missing(mdot_store_visit_jobs(f->store, NULL, sums, e), e);
    store_expect_missing(mdot_store_add_job(NULL, f->job, "x", NULL, e), e);
    store_expect_missing(mdot_store_get_job(NULL, f->digest, &bytes, &size, e), e);
    store_expect_missing(mdot_store_get_job(f->store, NULL, &bytes, &size, e), e);
    store_expect_missing(mdot_store_get_job(f->store, f->digest, NULL, &size, e), e);
    store_expect_missing(mdot_store_get_job(f->store, f->digest, &bytes, NULL, e), e);
    store_expect_failure(mdot_store_add_job(f->store, NULL, "x", NULL, e), e, MDOT_INVALID_ARGUMENT, "a digest needs");
    store_expect_failure(mdot_store_digest(f->job, NULL, e), e, MDOT_INVALID_ARGUMENT, "a digest needs a job");
    assert_int_equal(mdot_store_visit_rows(f->store, &small, take, &s, e), MDOT_INVALID_ARGUMENT);
    assert_true(bytes == NULL && s.count == 0);
}

static bool stop_at_job(void *user, const mdot_store_job *j)
{
    mdot_store_job *copy = user;
    *copy = *j;
    assert_string_equal(j->name, "two.onnx");
    return false;
}

static void jobs_have_their_sizes_and_visits_stop(void **state)
{
    store_fixture *f = *state;
    mdot_store_job job = {0};
    void *bytes = NULL;
    size_t size = 0;
    const time_t now = time(NULL);
    store_expect_ok(mdot_store_visit_jobs(f->store, stop_at_job, &job, &f->err), &f->err);
    store_expect_ok(mdot_store_get_job(f->store, f->digest, &bytes, &size, &f->err), &f->err);
    assert_true(job.size_bytes == size && job.operator_count == 2 && job.parameters == 2000 && job.row_count == 0);
    assert_true(job.added_at <= now && job.added_at > now - 3600);
    assert_int_equal(job.struct_size, sizeof job);
    mdot_store_free(bytes);
}

/* Each number of an operator counts. */
static void a_digest_sees_every_number(void **state)
{
    (void)state;
    enum { VARIANTS = 29 };
    char digest[VARIANTS][MDOT_STORE_DIGEST_BYTES];
    const uint32_t inputs[2] = {0, 1};
    for (int v = 0; v < VARIANTS; v++) {
        mdot_job_operator o[3] = {MDOT_INIT(mdot_job_operator), MDOT_INIT(mdot_job_operator),
                                  MDOT_INIT(mdot_job_operator)};
        o[0].type = o[1].type = "A", o[2].type = v == 1 ? "C" : "B";
        mdot_job_operator *p = &o[2];
        if (v == 2) p->parameters = 1;
        if (v == 3) p->parameters = p->frozen_parameters = 1;
        if (v == 4) p->block = 1;
        if (v == 5) p->setting[0] = 1;
        if (v == 6) p->setting[1] = 1;
        if (v == 7) p->setting[0] = 2;
        if (v == 8) p->input_count = 1, p->inputs = inputs;
        if (v >= 9 && v < 27) {
            mdot_load *l = v < 18 ? &p->per_sample[(v - 9) / 3] : &p->per_step[(v - 18) / 3];
            double *const numbers[] = {&l->flops, &l->bytes_read, &l->bytes_written};
            *numbers[v % 3] = 1;
        }
        if (v == 27) p->input_count = 2, p->inputs = inputs;
        if (v == 28) p->parameters = -0.0; /* as 0 */
        const mdot_job_description d = {.struct_size = sizeof d, .operators = o, .operator_count = 3, .batch = 1};
        mdot_job *job = NULL;
        mdot_error err = {0};
        store_expect_ok(mdot_job_create(&d, &job, &err), &err);
        store_expect_ok(mdot_store_digest(job, digest[v], &err), &err);
        mdot_job_destroy(job);
        for (int w = 0; w < v; w++)
            if ((strcmp(digest[v], digest[w]) == 0) != (v == 28 && w == 0)) fail_msg("%d and %d", w, v);
    }
}

static unsigned char text_of_job[20000];
static size_t text_bytes;

static void put(const void *bytes, size_t size)
{
    memcpy(text_of_job + text_bytes, bytes, size);
    text_bytes += size;
}

static void put_whole(uint64_t number) { put(&number, sizeof number); }

/* FNV-1a, each step with a shift: records.c. */
static uint64_t hash_simply(uint64_t hash)
{
    for (size_t i = 0; i < text_bytes; i++) {
        hash = (hash ^ text_of_job[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Digests stand in stores and file names, so they never change: for each operator, the first 256 letters of the type,
 * with a NUL if they are fewer; numbers and values of settings other than 0, and a 0; loads, parameters, block, flags,
 * inputs. */
static void a_digest_is_the_hash_of_these_bytes(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int trial = 0; trial < 300; trial++) {
        mdot_job_operator o[4];
        char type[4][300], digest[MDOT_STORE_DIGEST_BYTES], wanted[MDOT_STORE_DIGEST_BYTES];
        const uint32_t inputs[] = {0, 1, 2};
        size_t count = 1 + (size_t)trial % 4;
        text_bytes = 0;
        for (size_t i = 0; i < count; i++) {
            size_t letters = 1 + (size_t)(trial + 7 * (int)i) % 40 + (trial % 3 == 0 ? 230 : 0);
            o[i] = MDOT_INIT(mdot_job_operator);
            for (size_t k = 0; k < letters; k++) type[i][k] = (char)('a' + (random = random * 5 + 3) % 26);
            type[i][letters] = '\0';
            o[i].type = type[i];
            put(type[i], letters < 256 ? letters + 1 : 256);
            for (int k = 0; k < MDOT_SETTING_COUNT; k++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                if (random >> 62 != 0) continue;
                o[i].setting[k] = (int64_t)(random >> 30) % 1000;
                if (o[i].setting[k] != 0) put_whole((uint64_t)k + 1), put_whole((uint64_t)o[i].setting[k]);
            }
            put_whole(0);
            for (int k = 0; k < 2; k++) {
                mdot_load *loads = k == 0 ? o[i].per_sample : o[i].per_step;
                for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
                    loads[phase] = (mdot_load){trial + k, phase, (double)i};
                    put(&loads[phase], sizeof loads[phase]);
                }
            }
            o[i].parameters = trial % 5, o[i].frozen_parameters = 0;
            put((double[]){trial % 5, 0}, 2 * sizeof(double));
            o[i].block = (uint32_t)(i / 2);
            o[i].flags = i > 0 && trial % 2 == 0 ? MDOT_OPERATOR_RECOMPUTED : 0;
            put_whole(o[i].block), put_whole(o[i].flags), put_whole(i);
            o[i].input_count = i, o[i].inputs = inputs;
            put(inputs, i * sizeof *inputs);
        }
        const mdot_job_description d = {.struct_size = sizeof d, .operators = o, .operator_count = count, .batch = 1};
        mdot_job *job = NULL;
        mdot_error err = {0};
        store_expect_ok(mdot_job_create(&d, &job, &err), &err);
        store_expect_ok(mdot_store_digest(job, digest, &err), &err);
        mdot_job_destroy(job);
        snprintf(wanted, sizeof wanted, "%016llx%016llx", (unsigned long long)hash_simply(UINT64_C(0x9ae16a3b2f90404f)),
                 (unsigned long long)hash_simply(UINT64_C(0xc949c7defebf9b25)));
        assert_string_equal(digest, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_are_kept_with_canonical_settings_and_names),
        CASE(equal_measurements_are_different_rows),
        CASE(jobs_are_added_without_standard_input),
        CASE(a_row_of_known_identity_is_left_out),
        CASE(filters_select_rows),
        CASE(a_wrong_row_is_named_and_no_row_is_added),
        CASE(missing_arguments_are_refused),
        CASE(a_digest_ignores_the_batch_and_sees_the_operators),
        CASE(a_digest_reads_the_first_letters_of_a_type),
        CASE(a_job_comes_back_from_its_bytes),
        CASE(jobs_are_listed_once_with_their_rows),
        CASE(every_field_comes_back),
        CASE(rows_beyond_a_bound_are_refused),
        CASE(missing_arguments_are_named),
        CASE(jobs_have_their_sizes_and_visits_stop),
        CASE(a_digest_sees_every_number),
        cmocka_unit_test(a_digest_is_the_hash_of_these_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
