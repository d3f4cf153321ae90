/* groups.c — groups of repeated measurements, their robust means, and predictions for them.
 *
 * `members` has a line for each row in a group, so rows above the greatest one are new. A group depends on the rows in
 * it only. The result is therefore the same whether rows were added at once or one after the other, except that a group
 * reads at most the newest MOST_ROWS rows; older rows keep their weights. */
#include "base/status.h"
#include "base/struct_version.h"
#include "store/records.h"
#include "store/settings.h"
#include "store/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const bs_struct_version report_type = BS_SIZED(mdot_store_refresh_report, group_count);
static const bs_struct_version prediction_type = BS_SIZED(mdot_store_prediction, upper_ms);

enum { MOST_ROWS = 1000 };

typedef struct refresh {
    mdot_store *store;
    sqlite3_stmt *new_rows, *add_group, *find_group, *add_member, *mark, *marked;
    sqlite3_stmt *read_group, *set_weight, *set_group;
    int64_t row[MOST_ROWS];
    double value[MOST_ROWS], weight[MOST_ROWS], scratch[MOST_ROWS];
    mdot_store_refresh_report report;
    mdot_error *err;
} refresh;

/* A group whose count is negative has changed. */
static const char sql_new_rows[] = ST_SELECT_ROW " FROM rows "
                                                 "WHERE id > (SELECT coalesce(max(row), 0) FROM members) ORDER BY id";
static const char sql_add_group[] =
    "INSERT INTO groups (digest, gpu_name, batch, settings, software, row_count, outlier_count, mean, spread, "
    "memory_gib, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, -1, 0, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING";
static const char sql_find_group[] = "SELECT id FROM groups WHERE digest = ?1 AND gpu_name = ?2 AND batch = ?3 AND "
                                     "settings = ?4 AND software = ?5";
static const char sql_add_member[] = "INSERT INTO members (row, group_id, weight) VALUES (?1, ?2, 1)";
static const char sql_mark[] = "UPDATE groups SET row_count = -1 WHERE id = ?1";
static const char sql_marked[] = "SELECT id FROM groups WHERE row_count < 0 LIMIT 1";
static const char sql_read_group[] =
    ST_SELECT_ROW " FROM members m JOIN rows r ON r.id = m.row WHERE m.group_id = ?1 ORDER BY m.row DESC LIMIT ?2";
static const char sql_set_weight[] = "UPDATE members SET weight = ?2 WHERE row = ?1";
static const char sql_set_group[] =
    "UPDATE groups SET mean = ?2, spread = ?3, row_count = (SELECT count(*) FROM members WHERE group_id = ?1), "
    "outlier_count = (SELECT count(*) FROM members WHERE group_id = ?1 AND weight < ?4), "
    "(memory_gib, first_at, last_at) = (SELECT coalesce(max(CASE WHEN m.weight > 0 THEN r.memory_gib END), 0), "
    "coalesce(min(nullif(r.measured_at, 0)), 0), max(r.measured_at) "
    "FROM members m JOIN rows r ON r.id = m.row WHERE m.group_id = ?1) WHERE id = ?1";

static mdot_status no_memory(const refresh *f) { return BS_OUT_OF_MEMORY(f->err, "groups of %s", f->store->path); }

static void bind_key(sqlite3_stmt *statement, const st_value *row, const char *settings)
{
    st_bind_text(statement, 1, row[ST_AT_digest].bytes);
    st_bind_text(statement, 2, row[ST_AT_gpu_name].bytes);
    sqlite3_bind_int64(statement, 3, row[ST_AT_batch].whole);
    st_bind_text(statement, 4, settings);
    st_bind_text(statement, 5, row[ST_AT_software].bytes);
}

static mdot_status place_row(refresh *f, const st_value *row)
{
    static const char action[] = "group the rows";
    int64_t group = 0;
    char *settings = st_strip_reading(row[ST_AT_settings].bytes);
    if (settings == NULL) return no_memory(f);
    bind_key(f->add_group, row, settings);
    bind_key(f->find_group, row, settings);
    mdot_status status = st_run(f->store, f->add_group, action, NULL, f->err);
    if (status == MDOT_OK) status = st_run(f->store, f->find_group, action, &group, f->err);
    if (status == MDOT_OK) {
        sqlite3_bind_int64(f->add_member, 1, sqlite3_column_int64(f->new_rows, 0));
        sqlite3_bind_int64(f->add_member, 2, group);
        status = st_run(f->store, f->add_member, action, NULL, f->err);
    }
    if (status == MDOT_OK) {
        sqlite3_bind_int64(f->mark, 1, group);
        status = st_run(f->store, f->mark, action, NULL, f->err);
    }
    free(settings);
    f->report.new_row_count++;
    return status;
}

static mdot_status place_rows(refresh *f)
{
    st_value row[ST_ROW_WIDTH];
    mdot_status status = MDOT_OK;
    while (st_next(f->store, &st_tables[ST_ROWS], f->new_rows, "read the rows", row, &status, f->err))
        status = place_row(f, row);
    return status;
}

/* Rows of absurd size come last, in an array that is filled from the end. */
static mdot_status read_group(refresh *f, int64_t group, size_t *out_count, size_t *out_absurd)
{
    size_t count = 0, absurd = 0;
    st_value row[ST_ROW_WIDTH];
    mdot_status status = MDOT_OK;
    sqlite3_bind_int64(f->read_group, 1, group);
    sqlite3_bind_int(f->read_group, 2, MOST_ROWS);
    while (st_next(f->store, &st_tables[ST_ROWS], f->read_group, "read a group", row, &status, f->err)) {
        double ms = row[ST_AT_ms].real;
        size_t slot = st_is_absurd(ms, row[ST_AT_memory_gib].real) ? MOST_ROWS - ++absurd : count++;
        f->row[slot] = sqlite3_column_int64(f->read_group, 0);
        f->value[slot] = log(ms);
    }
    sqlite3_reset(f->read_group);
    *out_count = count;
    *out_absurd = absurd;
    return status;
}

static mdot_status set_weight(refresh *f, int64_t row, double weight)
{
    sqlite3_bind_int64(f->set_weight, 1, row);
    sqlite3_bind_double(f->set_weight, 2, weight);
    return st_run(f->store, f->set_weight, "group the rows", NULL, f->err);
}

static mdot_status fit_group(refresh *f, int64_t group)
{
    static const char action[] = "group the rows";
    size_t count = 0, absurd = 0;
    mdot_status status = read_group(f, group, &count, &absurd);
    if (status != MDOT_OK) return status;
    if (count + absurd == 0)
        return mdot_fail(f->err, MDOT_CORRUPT, "%s: a group without rows: the store is damaged", f->store->path);
    st_fit fit = {.mean = f->value[MOST_ROWS - 1]}; /* if all rows are absurd: visitors leave such a group out */
    if (count > 0) fit = st_fit_student(f->value, count, f->weight, f->scratch);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) status = set_weight(f, f->row[i], f->weight[i]);
    for (size_t i = MOST_ROWS - absurd; status == MDOT_OK && i < MOST_ROWS; i++) status = set_weight(f, f->row[i], 0);
    if (status != MDOT_OK) return status;
    sqlite3_bind_int64(f->set_group, 1, group);
    sqlite3_bind_double(f->set_group, 2, fit.mean);
    sqlite3_bind_double(f->set_group, 3, fit.spread);
    sqlite3_bind_double(f->set_group, 4, MDOT_STORE_OUTLIER_WEIGHT);
    f->report.read_row_count += count + absurd;
    f->report.changed_group_count++;
    return st_run(f->store, f->set_group, action, NULL, f->err);
}

static mdot_status fit_groups(refresh *f)
{
    for (;;) {
        int64_t group = 0;
        mdot_status status = st_run(f->store, f->marked, "read the groups", &group, f->err);
        if (status == MDOT_OK && group == 0) return MDOT_OK;
        if (status == MDOT_OK) status = fit_group(f, group);
        if (status != MDOT_OK) return status;
    }
}

static mdot_status prepare(refresh *f)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } statements[] = {{&f->new_rows, sql_new_rows},
                      {&f->add_group, sql_add_group},
                      {&f->find_group, sql_find_group},
                      {&f->add_member, sql_add_member},
                      {&f->mark, sql_mark},
                      {&f->marked, sql_marked},
                      {&f->read_group, sql_read_group},
                      {&f->set_weight, sql_set_weight},
                      {&f->set_group, sql_set_group}};
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sizeof statements / sizeof *statements; i++)
        status = st_prepare(f->store, statements[i].sql, statements[i].statement, f->err);
    return status;
}

static void finalize(refresh *f)
{
    sqlite3_stmt *statements[] = {f->new_rows, f->add_group,  f->find_group, f->add_member, f->mark,
                                  f->marked,   f->read_group, f->set_weight, f->set_group};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) sqlite3_finalize(statements[i]);
}

mdot_status mdot_store_refresh(mdot_store *store, mdot_store_refresh_report *out_report, mdot_error *err)
{
    static const char action[] = "group the rows";
    if (store == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the store is missing");
    BS_TRY(out_report != NULL ? bs_check_struct(&report_type, out_report, err) : MDOT_OK);
    refresh *f = calloc(1, sizeof *f);
    if (f == NULL) return BS_OUT_OF_MEMORY(err, "groups of %s", store->path);
    f->store = store;
    f->err = err;
    int64_t groups = 0;
    mdot_status status = st_begin_derived(store, action, err);
    if (status == MDOT_OK) {
        status = prepare(f);
        if (status == MDOT_OK) status = place_rows(f);
        sqlite3_reset(f->new_rows);
        if (status == MDOT_OK) status = fit_groups(f);
        if (status == MDOT_OK) status = st_query_number(store, "SELECT count(*) FROM groups", &groups, err);
        finalize(f);
        status = st_end(store, status, action, err);
    }
    f->report.group_count = (uint64_t)groups;
    if (status == MDOT_OK && out_report != NULL)
        bs_write_struct(&report_type, &f->report, out_report, bs_struct_bytes(out_report));
    free(f);
    return status;
}

static const char sql_groups[] =
    "SELECT g.id, g.digest, coalesce(j.name, ''), g.gpu_name, g.settings, g.software, g.batch, g.row_count, "
    "g.outlier_count, g.mean, g.spread, g.memory_gib, g.first_at, g.last_at, coalesce(p.ms, 0), coalesce(p.lower_ms, "
    "0), coalesce(p.upper_ms, 0) FROM groups g LEFT JOIN jobs j ON j.digest = g.digest LEFT JOIN predictions p ON "
    "p.group_id = g.id AND p.predictor = ?1 WHERE (?2 IS NULL OR g.gpu_name = ?2) AND (?3 IS NULL OR substr(g.digest, "
    "1, length(?3)) = ?3) AND (?4 IS NULL OR g.software = ?4) AND EXISTS (SELECT 1 FROM members m WHERE m.group_id = "
    "g.id AND m.weight > 0) ORDER BY g.id";

static mdot_store_group group_of(sqlite3_stmt *s)
{
    return (mdot_store_group){.struct_size = sizeof(mdot_store_group),
                              .id = sqlite3_column_int64(s, 0),
                              .digest = st_column_text(s, 1),
                              .job = st_column_text(s, 2),
                              .gpu_name = st_column_text(s, 3),
                              .settings = st_column_text(s, 4),
                              .software = st_column_text(s, 5),
                              .batch = sqlite3_column_int64(s, 6),
                              .row_count = (uint64_t)sqlite3_column_int64(s, 7),
                              .outlier_count = (uint64_t)sqlite3_column_int64(s, 8),
                              .ms = exp(sqlite3_column_double(s, 9)),
                              .spread = sqlite3_column_double(s, 10),
                              .memory_gib = sqlite3_column_double(s, 11),
                              .first_at = sqlite3_column_int64(s, 12),
                              .last_at = sqlite3_column_int64(s, 13),
                              .predicted_ms = sqlite3_column_double(s, 14),
                              .lower_ms = sqlite3_column_double(s, 15),
                              .upper_ms = sqlite3_column_double(s, 16)};
}

mdot_status mdot_store_visit_groups(mdot_store *store, const mdot_store_filter *filter, const char *predictor,
                                    mdot_store_visit_group visit, void *user, mdot_error *err)
{
    if (store == NULL || visit == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a visitor is missing");
    mdot_store_filter f;
    sqlite3_stmt *select = NULL;
    char gpu_name[256];
    mdot_status status = st_read_filter(filter, &f, err);
    if (status == MDOT_OK) status = st_prepare(store, sql_groups, &select, err);
    if (status != MDOT_OK) return status;
    if (predictor != NULL) st_bind_text(select, 1, predictor);
    if (f.gpu != NULL) st_bind_text(select, 2, st_gpu_name(f.gpu, gpu_name, sizeof gpu_name));
    if (f.digest != NULL) st_bind_text(select, 3, f.digest);
    if (f.software != NULL) st_bind_text(select, 4, f.software);
    while (st_next(store, NULL, select, "read the groups", NULL, &status, err)) {
        mdot_store_group group = group_of(select);
        if (!visit(user, &group)) break;
    }
    sqlite3_finalize(select);
    return status;
}

static mdot_status set_all(mdot_store *store, const mdot_store_prediction *predictions, size_t count, sqlite3_stmt *set,
                           mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_store_prediction p;
        status = bs_read_element(&prediction_type, predictions, i, &p, err);
        if (status != MDOT_OK) break;
        if (!(p.lower_ms > 0) || !(p.lower_ms <= p.ms) || !(p.ms <= p.upper_ms) || !isfinite(p.upper_ms))
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "prediction %zu is not an interval around a time above 0", i);
        sqlite3_bind_int64(set, 2, p.group);
        sqlite3_bind_double(set, 3, p.ms);
        sqlite3_bind_double(set, 4, p.lower_ms);
        sqlite3_bind_double(set, 5, p.upper_ms);
        status = st_run(store, set, "store predictions", NULL, err);
    }
    return status;
}

mdot_status mdot_store_set_predictions(mdot_store *store, const char *predictor,
                                       const mdot_store_prediction *predictions, size_t count, mdot_error *err)
{
    if (store == NULL || predictor == NULL || (predictions == NULL && count > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store, a predictor or its predictions are missing");
    sqlite3_stmt *set = NULL;
    BS_TRY(st_begin_derived(store, "store predictions", err));
    mdot_status status = st_prepare(store, "INSERT OR REPLACE INTO predictions VALUES (?1, ?2, ?3, ?4, ?5)", &set, err);
    if (status == MDOT_OK) {
        st_bind_text(set, 1, predictor);
        status = set_all(store, predictions, count, set, err);
    }
    sqlite3_finalize(set);
    return st_end(store, status, "store predictions", err);
}
