/* import_csv.c — a table of measured steps becomes rows. */
#include "accounting/accounting.h"
#include "base/csv.h"
#include "base/struct_version.h"
#include "store/records.h"
#include "store/settings.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bs_struct_version import_type = BS_SIZED(mdot_store_import, malformed_count);

enum { UIDS_START = 256 };

typedef struct job_digest {
    const mdot_job *job;
    char digest[MDOT_STORE_DIGEST_BYTES];
} job_digest;

typedef struct table {
    mdot_store *store;
    bs_csv csv;
    const mdot_job *const *jobs;
    size_t job_count, row_count;
    sqlite3_stmt *insert, *find, *insert_job;
    struct job_digest *digests; /* each job once, because a digest reads all operators */
    size_t digest_count, digest_capacity;
    /* Row identities by content: occurrences so far. */
    uint64_t *contents;
    size_t content_capacity, content_count;
    mdot_store_import result;
    mdot_error *err;
} table;

#define FAIL(t, status, ...) bs_csv_fail(&(t)->csv, (t)->err, status, __VA_ARGS__)

static const char *cell(const table *t, const char *column)
{
    int i = bs_csv_find(&t->csv, column);
    return i != BS_CSV_ABSENT ? t->csv.field[i] : "";
}

/* Reads a number; an empty or absent cell gives 0. */
static mdot_status read_real(const table *t, const char *column, double *out)
{
    *out = 0;
    if (*cell(t, column) == '\0') return MDOT_OK;
    return bs_csv_number(&t->csv, bs_csv_find(&t->csv, column), -DBL_MAX, DBL_MAX, out, t->err);
}

/* The limit keeps every integer exact. */
static mdot_status read_whole(const table *t, const char *column, int64_t *out)
{
    double value;
    mdot_status status = read_real(t, column, &value);
    if (status == MDOT_OK && !(fabs(value) < 1e15 && value == floor(value)))
        status = FAIL(t, MDOT_MALFORMED, "%s is not an integer: \"%.40s\"", column, cell(t, column));
    if (status == MDOT_OK) *out = (int64_t)value;
    return status;
}

/* Seconds since 1970, or a date and time with a zone. */
static mdot_status read_moment(const table *t, int64_t *out)
{
    const char *text = cell(t, "measured_at");
    if (strchr(text, ':') == NULL) return read_whole(t, "measured_at", out);
    if (ac_read_time(text, out) && ac_has_zone(text)) return MDOT_OK;
    return FAIL(t, MDOT_MALFORMED,
                "measured_at is seconds since 1970, or a time with a zone, for example 2026-11-24T10:00:00+01:00, not "
                "\"%.40s\"",
                text);
}

static mdot_status read_uid(const table *t, uint64_t *out)
{
    const char *text = cell(t, "row");
    *out = 0;
    for (const char *at = text; *at != '\0'; at++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *at);
        if (digit == NULL || at - text >= 16)
            return FAIL(t, MDOT_MALFORMED, "row has 16 digits of 0 to 9 and a to f, not \"%.40s\"", text);
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return MDOT_OK;
}

/* The cells outside a row's fields; the caller frees them. NULL if memory ran out. */
static char *settings_of(const table *t)
{
    const bs_csv *csv = &t->csv;
    size_t size = 1;
    for (int i = 0; i < csv->header_count; i++) size += strlen(csv->header[i]) + strlen(csv->field[i]) + 2;
    char *text = malloc(size), *end = text;
    if (text == NULL) return NULL;
    for (int i = 0; i < csv->header_count; i++) {
        const char *column = csv->header[i], *value = csv->field[i];
        if (*value == '\0' || st_is_field(column, strlen(column))) continue;
        end += sprintf(end, "%s%s=%s", end > text ? "\n" : "", column, value);
    }
    *end = '\0';
    return text;
}

static uint64_t *slot_of(uint64_t *contents, size_t capacity, uint64_t key)
{
    size_t i = (size_t)(key & (capacity - 1));
    while (contents[i] != 0 && contents[i] != key) i = (i + 1) & (capacity - 1);
    return &contents[i];
}

static bool grow(table *t)
{
    size_t capacity = t->content_capacity == 0 ? UIDS_START : 2 * t->content_capacity;
    uint64_t *larger = calloc(capacity, sizeof *larger);
    if (larger == NULL) return false;
    for (size_t i = 0; i < t->content_capacity; i++)
        if (t->contents[i] != 0) *slot_of(larger, capacity, t->contents[i]) = t->contents[i];
    free(t->contents);
    t->contents = larger;
    t->content_capacity = capacity;
    return true;
}

/* Hashes the row's content and the count of equal earlier rows. Returns 0 if memory ran out. */
static uint64_t uid_of(table *t, const mdot_store_row *r)
{
    const char *const texts[] = {r->digest, r->job, r->gpu, r->settings, r->software, r->host, r->predictor, r->note};
    uint64_t hash = UINT64_C(0x2545f4914f6cdd1d);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) hash = st_hash(hash, texts[i], strlen(texts[i]) + 1);
    hash = st_hash(hash, &r->batch, sizeof r->batch);
    hash = st_hash(hash, &r->ms, sizeof r->ms);
    hash = st_hash(hash, &r->memory_gib, sizeof r->memory_gib);
    hash = st_hash(hash, &r->measured_at, sizeof r->measured_at);
    if (2 * (t->content_count + 1) > t->content_capacity && !grow(t)) return 0;
    for (uint64_t occurrence = 0;; occurrence++) {
        uint64_t uid = st_hash(hash, &occurrence, sizeof occurrence);
        if (uid == 0) uid = 1;
        uint64_t *slot = slot_of(t->contents, t->content_capacity, uid);
        if (*slot == uid) continue;
        *slot = uid;
        t->content_count++;
        return uid;
    }
}

/* Finds the job of the row among those of earlier rows, or adds it to the store. */
static mdot_status add_job(table *t, const mdot_job *job, char digest[MDOT_STORE_DIGEST_BYTES])
{
    for (size_t i = 0; i < t->digest_count; i++) {
        if (t->digests[i].job != job) continue;
        memcpy(digest, t->digests[i].digest, MDOT_STORE_DIGEST_BYTES);
        return MDOT_OK;
    }
    if (t->digest_count == t->digest_capacity) {
        size_t capacity = 2 * t->digest_capacity + 16;
        job_digest *larger = realloc(t->digests, capacity * sizeof *larger);
        if (larger == NULL) return FAIL(t, MDOT_OUT_OF_MEMORY, "memory ran out");
        t->digests = larger;
        t->digest_capacity = capacity;
    }
    mdot_error reason = {0};
    const char *name = cell(t, "name"), *path = cell(t, "job"), *slash = strrchr(path, '/');
    if (*name == '\0') name = slash != NULL ? slash + 1 : path;
    mdot_status status = mdot_store_digest(job, digest, &reason);
    if (status == MDOT_OK) status = st_add_job(t->store, t->insert_job, job, name, digest, &reason);
    if (status != MDOT_OK) return FAIL(t, status, "%s", reason.message);
    job_digest *entry = &t->digests[t->digest_count++];
    entry->job = job;
    memcpy(entry->digest, digest, MDOT_STORE_DIGEST_BYTES);
    return MDOT_OK;
}

static mdot_status find_job(table *t, char digest[MDOT_STORE_DIGEST_BYTES])
{
    const char *stated = cell(t, "digest");
    int64_t known = 0;
    if (t->jobs != NULL) {
        if (t->row_count >= t->job_count)
            return FAIL(t, MDOT_INVALID_ARGUMENT, "the table has more rows than the %zu jobs given", t->job_count);
        mdot_status status = add_job(t, t->jobs[t->row_count], digest);
        if (status == MDOT_OK && *stated != '\0' && strcmp(stated, digest) != 0)
            status = FAIL(t, MDOT_INVALID_ARGUMENT, "the job's digest is %s, but the column digest has %.40s", digest,
                          stated);
        return status;
    }
    if (strlen(stated) != MDOT_STORE_DIGEST_BYTES - 1)
        return FAIL(t, MDOT_INVALID_ARGUMENT, "the column digest has no digest of a job");
    memcpy(digest, stated, MDOT_STORE_DIGEST_BYTES);
    st_bind_text(t->find, 1, digest);
    mdot_status status = st_run(t->store, t->find, "add rows", &known, t->err);
    if (status == MDOT_OK && known == 0)
        status = FAIL(t, MDOT_NOT_FOUND, "the store has no job with the digest %s; add the job first", digest);
    return status;
}

static mdot_status read_row(table *t)
{
    char digest[MDOT_STORE_DIGEST_BYTES];
    mdot_store_row r = {.job = cell(t, "job"),
                        .gpu = cell(t, "gpu"),
                        .digest = digest,
                        .software = cell(t, "software"),
                        .host = cell(t, "host"),
                        .predictor = cell(t, "predictor"),
                        .note = cell(t, "note")};
    mdot_status status = find_job(t, digest);
    if (status == MDOT_OK) status = read_uid(t, &r.uid);
    if (status == MDOT_OK) status = read_whole(t, "batch", &r.batch);
    if (status == MDOT_OK) status = read_real(t, "ms", &r.ms);
    if (status == MDOT_OK) status = read_real(t, "gib", &r.memory_gib);
    if (status == MDOT_OK) status = read_moment(t, &r.measured_at);
    if (status != MDOT_OK) return status;
    char *settings = settings_of(t);
    r.settings = settings;
    if (settings != NULL && r.uid == 0) r.uid = uid_of(t, &r);
    bool is_new = false;
    if (settings == NULL || r.uid == 0)
        status = FAIL(t, MDOT_OUT_OF_MEMORY, "memory ran out");
    else
        status = st_add_row(t->store, t->insert, &r, t->csv.path, t->csv.line, &is_new, t->err);
    free(settings);
    t->result.added_count += is_new;
    t->result.known_count += !is_new;
    t->row_count++;
    return status;
}

static mdot_status read_table(table *t)
{
    static const char *const needed[] = {"job", "gpu", "batch", "ms"};
    mdot_status status = MDOT_OK;
    bool is_row = true;
    int column;
    for (size_t i = 0; status == MDOT_OK && i < sizeof needed / sizeof *needed; i++)
        status = bs_csv_need(&t->csv, needed[i], &column, t->err);
    while (status == MDOT_OK && is_row) {
        status = bs_csv_next(&t->csv, &is_row, t->err);
        if (status == MDOT_OK && is_row) status = read_row(t);
    }
    return status;
}

mdot_status mdot_store_import_csv(mdot_store *store, const char *text, size_t size_bytes, const char *name,
                                  const mdot_job *const *jobs, size_t job_count, mdot_store_import *out_import,
                                  mdot_error *err)
{
    if (store == NULL || text == NULL || name == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store, a table or its name is missing");
    mdot_status status = out_import != NULL ? bs_check_struct(&import_type, out_import, err) : MDOT_OK;
    if (status == MDOT_OK) status = st_begin(store, "add rows", err);
    if (status != MDOT_OK) return status;
    table t = {.store = store, .jobs = jobs, .job_count = job_count, .err = err};
    status = st_prepare(store, st_tables[ST_ROWS].insert, &t.insert, err);
    if (status == MDOT_OK) status = st_prepare(store, "SELECT 1 FROM jobs WHERE digest = ?1", &t.find, err);
    if (status == MDOT_OK) status = st_prepare(store, st_tables[ST_JOBS].insert, &t.insert_job, err);
    if (status == MDOT_OK) status = bs_csv_begin(name, text, size_bytes, NULL, &t.csv, err);
    if (status == MDOT_OK) status = read_table(&t);
    sqlite3_finalize(t.insert);
    sqlite3_finalize(t.insert_job);
    sqlite3_finalize(t.find);
    bs_csv_close(&t.csv);
    free(t.contents);
    free(t.digests);
    status = st_end(store, status, "add rows", err);
    if (status == MDOT_OK && out_import != NULL)
        bs_write_struct(&import_type, &t.result, out_import, bs_struct_bytes(out_import));
    return status;
}
