/* export_csv.c — rows, or robust means of groups, become a table. */
#include "base/csv.h"
#include "base/status.h"
#include "base/struct_version.h"
#include "base/text.h"
#include "store/records.h"
#include "store/settings.h"

#include <stdlib.h>
#include <string.h>

static const bs_struct_version export_type = BS_SIZED(mdot_store_export, unpredicted_by);

/* One line of the table; both rows and groups become such a line. */
typedef struct line {
    uint64_t uid;
    const char *job, *name, *digest, *gpu, *settings, *software, *host, *predictor, *note;
    int64_t batch, measured_at;
    double ms, memory_gib;
} line;

/* The first pass collects the columns; the second one writes. */
typedef struct table {
    const mdot_store_export *options;
    FILE *stream;                      /* NULL in the first pass */
    char *settings[BS_CSV_MAX_FIELDS]; /* names, sorted; owned */
    size_t setting_count;
    bool has_note, has_memory, has_software, has_host, has_predictor, has_date;
    bool is_plain, failed_memory, is_too_wide;
} table;

static bool is_left_out(const table *t, const st_setting *s)
{
    return t->options->job_folder != NULL && st_is_reading_setting(s->name, s->name_length);
}

static bool has_name(const char *name, const st_setting *s)
{
    return strlen(name) == s->name_length && memcmp(name, s->name, s->name_length) == 0;
}

static void collect_setting(table *t, const st_setting *s)
{
    for (size_t i = 0; i < t->setting_count; i++)
        if (has_name(t->settings[i], s)) return;
    enum { FIELDS = 13 };
    if (t->setting_count + FIELDS >= BS_CSV_MAX_FIELDS) {
        t->is_too_wide = true;
        return;
    }
    char *name = strndup(s->name, s->name_length);
    if (name == NULL) {
        t->failed_memory = true;
        return;
    }
    size_t at = t->setting_count++;
    for (; at > 0 && strcmp(t->settings[at - 1], name) > 0; at--) t->settings[at] = t->settings[at - 1];
    t->settings[at] = name;
}

static void collect(table *t, const line *l)
{
    st_setting s;
    for (const char *cursor = l->settings; st_next_setting(&cursor, &s);)
        if (!is_left_out(t, &s)) collect_setting(t, &s);
    t->has_note |= *l->note != '\0';
    t->has_memory |= l->memory_gib != 0;
    t->has_software |= *l->software != '\0';
    t->has_host |= *l->host != '\0';
    t->has_predictor |= *l->predictor != '\0';
    t->has_date |= l->measured_at != 0;
}

static void write_header(const table *t)
{
    fputs("job,gpu,batch", t->stream);
    for (size_t i = 0; i < t->setting_count; i++) {
        fputc(',', t->stream);
        bs_csv_write_text(t->stream, t->settings[i]);
    }
    fputs(",ms", t->stream);
    if (t->has_memory) fputs(",gib", t->stream);
    if (t->has_note) fputs(",note", t->stream);
    if (!t->is_plain) {
        if (t->has_software) fputs(",software", t->stream);
        if (t->has_host) fputs(",host", t->stream);
        if (t->has_predictor) fputs(",predictor", t->stream);
        if (t->has_date) fputs(",measured_at", t->stream);
        fputs(",name,digest,row", t->stream);
    }
    fputc('\n', t->stream);
}

static void write_text(FILE *stream, bool is_there, const char *text)
{
    if (!is_there) return;
    fputc(',', stream);
    bs_csv_write_text(stream, text);
}

/* The shortest text that reads as the same number. */
static void write_number(FILE *stream, double value)
{
    char text[BS_NUMBER_BYTES];
    const char *end;
    for (int digits = 15; digits <= 17; digits++)
        if (bs_number_read(bs_number_print(value, digits, text), &end) == value) break;
    fputs(text, stream);
}

static void write_settings(const table *t, const char *settings)
{
    for (size_t i = 0; i < t->setting_count; i++) {
        st_setting s;
        fputc(',', t->stream);
        for (const char *cursor = settings; st_next_setting(&cursor, &s);)
            if (has_name(t->settings[i], &s)) bs_csv_write(t->stream, s.value, s.value_length);
    }
}

static void write_line(const table *t, const line *l)
{
    FILE *out = t->stream;
    if (t->options->job_folder != NULL) {
        char path[4200];
        int length = snprintf(path, sizeof path, "%s/%s.job", t->options->job_folder, l->digest);
        bs_csv_write(out, path, (size_t)length < sizeof path ? (size_t)length : sizeof path - 1);
    } else {
        bs_csv_write_text(out, l->job);
    }
    write_text(out, true, l->gpu);
    fprintf(out, ",%lld", (long long)l->batch);
    write_settings(t, l->settings);
    fputc(',', out);
    write_number(out, l->ms);
    if (t->has_memory) {
        fputc(',', out);
        if (l->memory_gib != 0) write_number(out, l->memory_gib);
    }
    write_text(out, t->has_note, l->note);
    if (!t->is_plain) {
        write_text(out, t->has_software, l->software);
        write_text(out, t->has_host, l->host);
        write_text(out, t->has_predictor, l->predictor);
        if (t->has_date) {
            fputc(',', out);
            if (l->measured_at != 0) fprintf(out, "%lld", (long long)l->measured_at);
        }
        write_text(out, true, l->name);
        fprintf(out, ",%s,%016llx", l->digest, (unsigned long long)l->uid);
    }
    fputc('\n', out);
}

static bool take_line(table *t, const line *l)
{
    if (t->stream == NULL)
        collect(t, l);
    else
        write_line(t, l);
    return !t->failed_memory && !t->is_too_wide;
}

static bool take_row(void *user, const mdot_store_row *r)
{
    line l = {.uid = r->uid,
              .job = r->job,
              .name = r->name,
              .digest = r->digest,
              .gpu = r->gpu,
              .settings = r->settings,
              .software = r->software,
              .host = r->host,
              .predictor = r->predictor,
              .note = r->note,
              .batch = r->batch,
              .measured_at = r->measured_at,
              .ms = r->ms,
              .memory_gib = r->memory_gib};
    return take_line(user, &l);
}

static bool take_group(void *user, const mdot_store_group *g)
{
    table *t = user;
    if (t->options->unpredicted_by != NULL && g->predicted_ms > 0) return true;
    line l = {.job = g->job,
              .name = "",
              .digest = g->digest,
              .gpu = g->gpu_name,
              .settings = g->settings,
              .software = "",
              .host = "",
              .predictor = "",
              .note = "",
              .batch = g->batch,
              .ms = g->ms,
              .memory_gib = g->memory_gib};
    return take_line(t, &l);
}

static mdot_status visit_all(mdot_store *store, table *t, mdot_error *err)
{
    const mdot_store_export *o = t->options;
    if ((o->flags & MDOT_STORE_EXPORT_GROUPS) != 0)
        return mdot_store_visit_groups(store, o->filter, o->unpredicted_by, take_group, t, err);
    return mdot_store_visit_rows(store, o->filter, take_row, t, err);
}

static mdot_status write_table(mdot_store *store, table *t, char **out_text, size_t *out_size, mdot_error *err)
{
    bs_memstream memory = {0};
    size_t size = 0;
    mdot_status status = visit_all(store, t, err);
    if (status == MDOT_OK && t->is_too_wide)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: the rows have more than %d columns; export fewer rows",
                           store->path, BS_CSV_MAX_FIELDS);
    if (status != MDOT_OK) return status;
    bool has_memory = !t->failed_memory && bs_memstream_open(&memory);
    if (has_memory) {
        t->stream = memory.file;
        write_header(t);
        status = visit_all(store, t, err);
    }
    char *text = bs_memstream_close(&memory, &size);
    if (status == MDOT_OK && text == NULL) status = BS_OUT_OF_MEMORY(err, "a table of %s", store->path);
    if (status == MDOT_OK) {
        *out_text = text;
        *out_size = size;
    } else {
        free(text);
    }
    return status;
}

mdot_status mdot_store_export_csv(mdot_store *store, const mdot_store_export *options, char **out_text,
                                  size_t *out_size_bytes, mdot_error *err)
{
    mdot_store_export o = {0};
    if (store == NULL || out_text == NULL || out_size_bytes == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a place for the table is missing");
    mdot_status status = options != NULL ? bs_read_struct(&export_type, options, &o, err) : MDOT_OK;
    if (status == MDOT_OK &&
        ((o.flags & ~(uint32_t)(MDOT_STORE_EXPORT_PLAIN | MDOT_STORE_EXPORT_GROUPS)) != 0 || o.reserved != 0))
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "flags 0x%x are not those of an export", o.flags);
    if (status == MDOT_OK && (o.flags & MDOT_STORE_EXPORT_GROUPS) != 0 && o.job_folder == NULL)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "an export of groups needs a folder of their jobs (job_folder)");
    if (status != MDOT_OK) return status;
    table t = {.options = &o, .is_plain = o.flags != 0};
    /* Both passes must see the same rows, although others write. */
    bool is_alone = sqlite3_get_autocommit(store->db) != 0;
    if (is_alone) status = st_execute(store, "BEGIN", "read the rows", err);
    if (status == MDOT_OK) status = write_table(store, &t, out_text, out_size_bytes, err);
    if (is_alone && !sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    for (size_t i = 0; i < t.setting_count; i++) free(t.settings[i]);
    return status;
}
