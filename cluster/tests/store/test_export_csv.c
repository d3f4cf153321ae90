/* test_export_csv.c — tables of random stores, read by a reader of this file: exactly the columns with values, in the
 * documented order, and each value once and unchanged. An import into an empty store gives the same table again. */
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

#include <math.h>
#include <unistd.h>

enum { MOST_ROWS = 12, MOST_SETTINGS = 100, COLUMNS = 96, FIXED = 13 };

static uint64_t state_of_random;

static uint64_t draw(uint64_t below)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_of_random >> 20) % below;
}

/* A text of one line, without blanks at its ends. */
static char *draw_text(bool is_there)
{
    static const char *const parts[] = {"a", "\"", ",", " x", "é", "|", "=", "'", "#", "z9", "\"\"", ";"};
    char text[64] = "";
    for (uint64_t i = is_there ? draw(8) : 0; i-- > 0;) strcat(text, parts[draw(sizeof parts / sizeof *parts)]);
    if (*text != '\0') strcat(text, "."), *text = *text == ' ' ? '_' : *text;
    return strdup(text);
}

/* Reads a field of RFC 4180 at *io, and what ends it. */
static char *read_field(const char **io, char *out_end)
{
    char *field = calloc(1, 5000), *next = field;
    const char *c = *io;
    bool is_quoted = *c == '"';
    if (is_quoted) c++;
    for (;; c++) {
        if (is_quoted && *c == '"' && *++c != '"') break;
        if (!is_quoted && (*c == ',' || *c == '\n')) break;
        assert_true(*c != '\0' && (is_quoted || *c != '"'));
        *next++ = *c;
    }
    *out_end = *c;
    assert_true(*c == ',' || *c == '\n');
    *io = c + 1;
    return field;
}

typedef struct table {
    char *name[COLUMNS], *value[MOST_ROWS][COLUMNS];
    size_t columns, rows;
} table;

static void read_table(const char *text, table *t)
{
    char end;
    *t = (table){0};
    do t->name[t->columns++] = read_field(&text, &end);
    while (end == ',');
    for (; *text != '\0'; t->rows++)
        for (size_t i = 0; i < t->columns; i++) {
            t->value[t->rows][i] = read_field(&text, &end);
            assert_int_equal(end, i + 1 < t->columns ? ',' : '\n');
        }
}

static void free_table(table *t)
{
    for (size_t i = 0; i < t->columns; i++) {
        free(t->name[i]);
        for (size_t k = 0; k < t->rows; k++) free(t->value[k][i]);
    }
}

typedef struct stored {
    mdot_store_row row[MOST_ROWS];
    char *settings[MOST_ROWS], *text[MOST_ROWS][5]; /* owned */
    bool has_setting[MOST_ROWS][MOST_SETTINGS];
    size_t rows, settings_count;
} stored;

/* Writes the name of a setting; the last one describes how to read a job file. */
static void set_name(const stored *s, size_t at, char *out)
{
    sprintf(out, at + 1 == s->settings_count ? "trained" : "o%d", (int)at);
}

static void fill(store_fixture *f, stored *s)
{
    *s = (stored){.rows = 1 + (size_t)draw(MOST_ROWS),
                  .settings_count = draw(4) == 0 ? 70 + (size_t)draw(30) : (size_t)draw(5)};
    bool has[6];
    for (int i = 0; i < 6; i++) has[i] = draw(2) == 0;
    for (size_t i = 0; i < s->rows; i++) {
        mdot_store_row *r = &s->row[i];
        char settings[4096] = "";
        *r = store_fixture_row(f, (double)(1 + draw(1u << 30)) / (double)(1 + draw(1u << 20)) + .001);
        for (size_t k = 0; k < s->settings_count; k++) {
            if (!(s->has_setting[i][k] = draw(3) != 0)) continue;
            set_name(s, k, settings + strlen(settings));
            sprintf(settings + strlen(settings), "=v%zu,\"%zu\n", k, i);
        }
        for (int k = 0; k < 5; k++) s->text[i][k] = draw_text(k == 4 || has[k]);
        s->settings[i] = strdup(settings);
        r->digest = draw(2) == 0 ? f->digest : f->other_digest;
        r->job = *s->text[i][4] != '\0' ? s->text[i][4] : "j";
        r->gpu = draw(2) == 0 ? "a100" : "My, card";
        r->batch = 1 + (int64_t)draw(1 << 24);
        r->settings = s->settings[i];
        r->note = s->text[i][0];
        r->software = s->text[i][1];
        r->host = s->text[i][2];
        r->predictor = s->text[i][3];
        r->memory_gib = has[4] && draw(2) == 0 ? (double)draw(1000) / 8 : 0;
        r->measured_at = has[5] && draw(2) == 0 ? (int64_t)draw(1u << 31) - 5 : 0;
        r->uid = 1 + draw(UINT64_MAX);
    }
    store_expect_ok(mdot_store_add_rows(f->store, s->row, s->rows, NULL, &f->err), &f->err);
}

typedef struct column {
    char name[16];
    const char *value[MOST_ROWS]; /* NULL: a number, which is compared by value */
    double number[MOST_ROWS];
} column;

static column wanted[COLUMNS + 20];
static size_t wanted_count;

static column *add_column(const char *name)
{
    column *c = &wanted[wanted_count++];
    *c = (column){.name = ""};
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

static const char *text_of(const stored *s, size_t row, int kind, const store_fixture *f)
{
    const mdot_store_row *r = &s->row[row];
    const char *const all[] = {r->job, r->gpu, r->note, r->software, r->host, r->predictor};
    if (kind < 6) return all[kind];
    return strcmp(r->digest, f->digest) == 0 ? "two.onnx" : "three.onnx";
}

/* Adds a column of texts; an optional one only if a row has a value. */
static void add_texts(const stored *s, const store_fixture *f, const char *name, int kind, bool is_optional)
{
    column *c = add_column(name);
    bool has_any = !is_optional;
    for (size_t i = 0; i < s->rows; i++) has_any |= *(c->value[i] = text_of(s, i, kind, f)) != '\0';
    wanted_count -= !has_any;
}

static void add_numbers(const stored *s, const char *name, size_t offset, bool is_whole, bool is_optional)
{
    column *c = add_column(name);
    bool has_any = !is_optional;
    for (size_t i = 0; i < s->rows; i++) {
        const char *field = (const char *)&s->row[i] + offset;
        c->number[i] = is_whole ? (double)*(const int64_t *)(const void *)field : *(const double *)(const void *)field;
        if (is_optional && c->number[i] == 0) c->value[i] = "";
        has_any |= c->number[i] != 0;
    }
    wanted_count -= !has_any;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const column *)left)->name, ((const column *)right)->name);
}

static char cell[MOST_ROWS][MOST_SETTINGS][48], path[MOST_ROWS][80], identity[MOST_ROWS][2][40];

/* Lists the columns of a table; with `folder`, jobs are files there, and settings for reading are left out. */
static void expect_columns(const stored *s, const store_fixture *f, bool is_plain, const char *folder)
{
    wanted_count = 0;
    add_texts(s, f, "job", 0, false);
    for (size_t i = 0; folder != NULL && i < s->rows; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s.job", folder, s->row[i].digest);
        wanted[0].value[i] = path[i];
    }
    add_texts(s, f, "gpu", 1, false);
    add_numbers(s, "batch", offsetof(mdot_store_row, batch), true, false);
    size_t first = wanted_count;
    for (size_t k = 0; k < s->settings_count; k++) {
        char name[16];
        bool has_any = false, reads = k + 1 == s->settings_count;
        set_name(s, k, name);
        column *c = add_column(name);
        for (size_t i = 0; i < s->rows; i++) {
            *cell[i][k] = '\0';
            if (s->has_setting[i][k]) snprintf(cell[i][k], sizeof cell[i][k], "v%zu,\"%zu", k, i);
            c->value[i] = cell[i][k];
            has_any |= s->has_setting[i][k];
        }
        wanted_count -= !has_any || (reads && folder != NULL);
    }
    qsort(wanted + first, wanted_count - first, sizeof *wanted, by_name);
    add_numbers(s, "ms", offsetof(mdot_store_row, ms), false, false);
    add_numbers(s, "gib", offsetof(mdot_store_row, memory_gib), false, true);
    add_texts(s, f, "note", 2, true);
    if (is_plain) return;
    add_texts(s, f, "software", 3, true);
    add_texts(s, f, "host", 4, true);
    add_texts(s, f, "predictor", 5, true);
    add_numbers(s, "measured_at", offsetof(mdot_store_row, measured_at), true, true);
    add_texts(s, f, "name", 6, false);
    column *digest = add_column("digest"), *uid = add_column("row");
    for (size_t i = 0; i < s->rows; i++) {
        snprintf(identity[i][1], sizeof identity[i][1], "%016llx", (unsigned long long)s->row[i].uid);
        digest->value[i] = s->row[i].digest;
        uid->value[i] = identity[i][1];
    }
}

static void compare(const table *t, size_t rows)
{
    assert_int_equal(t->rows, rows);
    assert_int_equal(t->columns, wanted_count);
    for (size_t k = 0; k < wanted_count; k++) {
        assert_string_equal(t->name[k], wanted[k].name);
        for (size_t i = 0; i < rows; i++) {
            if (wanted[k].value[i] != NULL) assert_string_equal(t->value[i][k], wanted[k].value[i]);
            if (wanted[k].value[i] == NULL) assert_true(strtod(t->value[i][k], NULL) == wanted[k].number[i]);
        }
    }
}

static size_t setting_columns(const stored *s, bool keeps_reading)
{
    size_t count = 0;
    for (size_t k = 0; k + !keeps_reading < s->settings_count; k++) {
        bool has_any = false;
        for (size_t i = 0; i < s->rows; i++) has_any |= s->has_setting[i][k];
        count += has_any;
    }
    return count;
}

static void tables_have_every_value_and_no_other_column(void **state)
{
    for (uint64_t trial = 0; trial < 60; trial++) {
        if (trial > 0) assert_int_equal(store_fixture_set_up(state), 0);
        store_fixture *f = *state;
        static stored s;
        static table t;
        state_of_random = 1000 + trial;
        fill(f, &s);
        const char *folder = draw(2) == 0 ? "some, folder" : NULL;
        mdot_store_export o = {.struct_size = sizeof o, .flags = (uint32_t)draw(2), .job_folder = folder};
        char *text = NULL, *again = NULL;
        size_t size = 0;
        mdot_status status = mdot_store_export_csv(f->store, &o, &text, &size, &f->err);
        if (setting_columns(&s, folder == NULL) + FIXED > COLUMNS) {
            store_expect_failure(status, &f->err, MDOT_OUT_OF_RANGE, "more than 96 columns");
            assert_null(text);
        } else {
            store_expect_ok(status, &f->err);
            assert_int_equal(strlen(text), size);
            read_table(text, &t);
            expect_columns(&s, f, o.flags != 0, folder);
            compare(&t, s.rows);
            free_table(&t);
            mdot_store_free(text);
        }
        if (setting_columns(&s, true) + FIXED <= COLUMNS) {
            char *name = process_in_folder(f->folder, "other.store");
            mdot_store *other = NULL;
            const mdot_job *jobs[MOST_ROWS];
            for (size_t i = 0; i < s.rows; i++) jobs[i] = s.row[i].digest == f->digest ? f->job : f->other;
            store_expect_ok(mdot_store_export_csv(f->store, NULL, &text, &size, &f->err), &f->err);
            store_expect_ok(mdot_store_open(name, NULL, &other, &f->err), &f->err);
            store_expect_ok(mdot_store_import_csv(other, text, size, "t", jobs, s.rows, NULL, &f->err), &f->err);
            store_expect_ok(mdot_store_export_csv(other, NULL, &again, &size, &f->err), &f->err);
            assert_string_equal(text, again);
            mdot_store_free(text);
            mdot_store_free(again);
            mdot_store_close(other);
            free(name);
        }
        for (size_t i = 0; i < s.rows; i++) {
            free(s.settings[i]);
            for (int k = 0; k < 5; k++) free(s.text[i][k]);
        }
        if (trial < 59) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

static void other_flags_and_missing_places_are_refused(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    char *text = NULL;
    size_t size = 0;
    for (unsigned bit = 0; bit < 64; bit++) { /* those of `flags`, and those of `reserved` */
        uint32_t flags = bit < 32 ? 1u << bit : 0;
        mdot_store_export o = {.struct_size = sizeof o, .flags = flags, .reserved = bit < 32 ? 0 : 1u << (bit - 32)};
        const bool is_known = flags == MDOT_STORE_EXPORT_PLAIN || flags == MDOT_STORE_EXPORT_GROUPS;
        mdot_status status = mdot_store_export_csv(f->store, &o, &text, &size, e);
        if (flags == MDOT_STORE_EXPORT_GROUPS) {
            store_expect_failure(status, e, MDOT_INVALID_ARGUMENT, "needs a folder of their jobs (job_folder)");
            o.job_folder = "jobs";
            status = mdot_store_export_csv(f->store, &o, &text, &size, e);
        }
        if (is_known) {
            store_expect_ok(status, e);
            mdot_store_free(text);
            text = NULL;
        } else {
            char part[24];
            snprintf(part, sizeof part, "flags 0x%x are", flags);
            store_expect_failure(status, e, MDOT_INVALID_ARGUMENT, part);
        }
        assert_null(text);
    }
    store_expect_missing(mdot_store_export_csv(NULL, NULL, &text, &size, e), e);
    store_expect_missing(mdot_store_export_csv(f->store, NULL, NULL, &size, e), e);
    store_expect_missing(mdot_store_export_csv(f->store, NULL, &text, NULL, e), e);
    const mdot_store_export small = {.struct_size = 1};
    assert_int_equal(mdot_store_export_csv(f->store, &small, &text, &size, e), MDOT_INVALID_ARGUMENT);
    assert_null(text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(tables_have_every_value_and_no_other_column),
                                       CASE(other_flags_and_missing_places_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
