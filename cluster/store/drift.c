/* drift.c — where measurements and predictions part company: three tests for each GPU model and software version.
 *
 *   load      groups with predictions, sorted into cells of one GPU and software; and their rows in the order of time
 *   test      level, change and software, for each cell
 *   correct   all p-values together
 */
#include "base/status.h"
#include "store/records.h"
#include "store/settings.h"
#include "store/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL, CHANGE, SOFTWARE, TESTS };
enum { LEAST_DATED_ROWS = 8, LEAST_JOBS_OF_T = 3 };
#define ABSENT_TEST (-1.0)

typedef struct group {
    int64_t id, first_at;
    char *gpu_name, *software, *digest; /* owned */
    uint64_t key;                       /* job, batch and settings, except for PyTorch's version */
    size_t cell;
    double mean, spread, predicted, sigma; /* logarithms */
    double rows;
} group;

typedef struct row {
    int64_t at;
    size_t group;
    double value; /* logarithm */
} row;

typedef struct cell {
    size_t first, count; /* groups */
    int64_t first_at;
    mdot_store_drift report;
    double p[TESTS];
} cell;

typedef struct drift {
    group *groups;
    size_t group_count, group_capacity;
    row *rows;
    size_t row_count, row_capacity;
    cell *cells;
    size_t cell_count;
    bool failed_memory;
} drift;

/* ---- Loading ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const mdot_store_group *g)
{
    uint64_t key = st_hash(1, g->digest, strlen(g->digest) + 1);
    key = st_hash(key, &g->batch, sizeof g->batch);
    st_setting s;
    for (const char *cursor = g->settings; st_next_setting(&cursor, &s);)
        if (s.name_length != strlen("torch") || memcmp(s.name, "torch", s.name_length) != 0)
            key = st_hash(key, s.name, s.name_length + 1 + s.value_length);
    return key;
}

/* The rows' software, or else the PyTorch version in the settings. */
static char *software_of(const mdot_store_group *g)
{
    char *text = NULL;
    st_setting s;
    if (*g->software != '\0') return strdup(g->software);
    for (const char *cursor = g->settings; st_next_setting(&cursor, &s);)
        if (s.name_length == strlen("torch") && memcmp(s.name, "torch", s.name_length) == 0)
            return asprintf(&text, "torch %.*s", (int)s.value_length, s.value) < 0 ? NULL : text;
    return strdup("");
}

static bool take_group(void *user, const mdot_store_group *g)
{
    drift *d = user;
    if (!(g->predicted_ms > 0)) return true;
    if (d->group_count == d->group_capacity) {
        size_t capacity = 2 * d->group_capacity + 64;
        group *larger = realloc(d->groups, capacity * sizeof *larger);
        if (larger == NULL) {
            d->failed_memory = true;
            return false;
        }
        d->groups = larger;
        d->group_capacity = capacity;
    }
    const double bounds_of_90_percent = 2 * 1.6448536269514722, least_sigma = 0.01;
    double sigma = log(g->upper_ms / g->lower_ms) / bounds_of_90_percent;
    group *taken = &d->groups[d->group_count++];
    *taken = (group){.id = g->id,
                     .first_at = g->first_at,
                     .gpu_name = strdup(g->gpu_name),
                     .software = software_of(g),
                     .digest = strdup(g->digest),
                     .key = key_of(g),
                     .mean = log(g->ms),
                     .spread = g->spread,
                     .predicted = log(g->predicted_ms),
                     .sigma = sigma > least_sigma ? sigma : least_sigma,
                     .rows = (double)g->row_count};
    d->failed_memory |= taken->gpu_name == NULL || taken->software == NULL || taken->digest == NULL;
    return !d->failed_memory;
}

static int compare_cells(const group *a, const group *b)
{
    int order = strcmp(a->gpu_name, b->gpu_name);
    return order != 0 ? order : strcmp(a->software, b->software);
}

static int compare_groups(const void *left, const void *right)
{
    const group *a = left, *b = right;
    int order = compare_cells(a, b);
    if (order == 0) order = strcmp(a->digest, b->digest);
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

static bool form_cells(drift *d)
{
    qsort(d->groups, d->group_count, sizeof *d->groups, compare_groups);
    d->cells = calloc(d->group_count + 1, sizeof *d->cells);
    if (d->cells == NULL) return false;
    for (size_t i = 0; i < d->group_count; i++) {
        group *g = &d->groups[i];
        bool is_new = i == 0 || compare_cells(&g[-1], g) != 0;
        if (is_new)
            d->cells[d->cell_count++] = (cell){.first = i,
                                               .p = {ABSENT_TEST, ABSENT_TEST, ABSENT_TEST},
                                               .report = {.struct_size = sizeof(mdot_store_drift),
                                                          .gpu_name = g->gpu_name,
                                                          .software = g->software,
                                                          .previous_software = ""}};
        cell *c = &d->cells[d->cell_count - 1];
        c->count++;
        c->report.row_count += (uint64_t)g->rows;
        if (g->first_at != 0 && (c->first_at == 0 || g->first_at < c->first_at)) c->first_at = g->first_at;
        g->cell = d->cell_count - 1;
    }
    return true;
}

typedef struct id_index {
    int64_t id;
    size_t group;
} id_index;

static int compare_ids(const void *left, const void *right)
{
    const id_index *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static bool add_row(drift *d, size_t group_at, int64_t measured_at, double value)
{
    if (d->row_count == d->row_capacity) {
        size_t capacity = 2 * d->row_capacity + 256;
        row *larger = realloc(d->rows, capacity * sizeof *larger);
        if (larger == NULL) return false;
        d->rows = larger;
        d->row_capacity = capacity;
    }
    d->rows[d->row_count++] = (row){.at = measured_at, .group = group_at, .value = value};
    return true;
}

static mdot_status load_rows(mdot_store *store, drift *d, mdot_error *err)
{
    sqlite3_stmt *select = NULL;
    id_index *ids = malloc((d->group_count + 1) * sizeof *ids);
    mdot_status status = MDOT_OK;
    st_value v[ST_ROW_WIDTH];
    if (ids == NULL)
        d->failed_memory = true;
    else
        status = st_prepare(store,
                            ST_SELECT_ROW ", m.group_id FROM members m JOIN rows r ON r.id = m.row "
                                          "WHERE r.measured_at > 0 ORDER BY r.measured_at, r.id",
                            &select, err);
    for (size_t i = 0; ids != NULL && i < d->group_count; i++) ids[i] = (id_index){d->groups[i].id, i};
    if (ids != NULL) qsort(ids, d->group_count, sizeof *ids, compare_ids);
    while (!d->failed_memory && st_next(store, &st_tables[ST_ROWS], select, "read the rows", v, &status, err)) {
        id_index wanted = {.id = sqlite3_column_int64(select, ST_ROW_WIDTH + 2)};
        const id_index *found = bsearch(&wanted, ids, d->group_count, sizeof *ids, compare_ids);
        if (found != NULL)
            d->failed_memory |= !add_row(d, found->group, v[ST_AT_measured_at].whole, log(v[ST_AT_ms].real));
    }
    sqlite3_finalize(select);
    free(ids);
    return status;
}

/* ---- Level ------------------------------------------------------------------------------------------------------- */

/* Errors of one job mostly have the same cause, so the mean has the variance of a single error. */
static void test_level(const drift *d, cell *c)
{
    double total_z = 0, total_log = 0;
    size_t jobs = 0;
    for (size_t i = c->first; i < c->first + c->count;) {
        double z = 0, ratio = 0;
        size_t end = i;
        for (; end < c->first + c->count && strcmp(d->groups[end].digest, d->groups[i].digest) == 0; end++) {
            const group *g = &d->groups[end];
            z += (g->mean - g->predicted) / g->sigma;
            ratio += g->mean - g->predicted;
        }
        total_z += z / (double)(end - i);
        total_log += ratio / (double)(end - i);
        jobs++;
        i = end;
    }
    c->report.group_count = c->count;
    c->report.job_count = jobs;
    c->report.ratio = exp(total_log / (double)jobs);
    c->report.level_z = total_z / sqrt((double)jobs);
    c->p[LEVEL] = st_normal_p(c->report.level_z);
}

/* ---- Change ------------------------------------------------------------------------------------------------------ */

typedef struct series {
    double *value;
    int64_t *at;
    size_t *group;       /* within the cell */
    double *sum, *dated; /* per group in the cell */
    size_t count;
} series;

static bool allocate_series(series *s, size_t rows, size_t groups)
{
    s->value = malloc((rows + 1) * sizeof *s->value);
    s->at = malloc((rows + 1) * sizeof *s->at);
    s->group = malloc((rows + 1) * sizeof *s->group);
    s->sum = calloc(groups + 1, sizeof *s->sum);
    s->dated = calloc(groups + 1, sizeof *s->dated);
    return s->value != NULL && s->at != NULL && s->group != NULL && s->sum != NULL && s->dated != NULL;
}

static void free_series(series *s)
{
    free(s->value);
    free(s->at);
    free(s->group);
    free(s->sum);
    free(s->dated);
}

/* Deviations from the group's mean, limited to 2.5 spreads: an outlier counts, but only up to this limit. */
static void fill_series(const drift *d, size_t cell_at, series *s)
{
    const double limit = 2.5;
    const cell *c = &d->cells[cell_at];
    for (size_t i = 0; i < d->row_count; i++)
        if (d->groups[d->rows[i].group].cell == cell_at) s->dated[d->rows[i].group - c->first]++;
    for (size_t i = 0; i < d->row_count; i++) {
        const group *g = &d->groups[d->rows[i].group];
        size_t local = d->rows[i].group - c->first;
        if (g->cell != cell_at || s->dated[local] < 2) continue;
        double deviation = (d->rows[i].value - g->mean) / g->spread;
        deviation = deviation > limit ? limit : deviation < -limit ? -limit : deviation;
        s->value[s->count] = deviation;
        s->at[s->count] = d->rows[i].at;
        s->group[s->count++] = local;
        s->sum[local] += deviation;
    }
    for (size_t i = 0; i < s->count; i++) s->value[i] -= s->sum[s->group[i]] / s->dated[s->group[i]];
}

/* Mean log time from `at` on minus the mean before, over the groups with rows on both sides. */
static double change_of(const drift *d, size_t cell_at, int64_t moment)
{
    const cell *c = &d->cells[cell_at];
    double total = 0, weights = 0;
    double *sum = calloc(4 * (c->count + 1), sizeof *sum); /* before: sum, count; after: sum, count */
    if (sum == NULL) return NAN;
    for (size_t i = 0; i < d->row_count; i++) {
        if (d->groups[d->rows[i].group].cell != cell_at) continue;
        double *side_sum = &sum[4 * (d->rows[i].group - c->first) + (d->rows[i].at >= moment ? 2 : 0)];
        side_sum[0] += d->rows[i].value;
        side_sum[1]++;
    }
    for (size_t k = 0; k < c->count; k++) {
        const double *s = &sum[4 * k];
        if (s[1] == 0 || s[3] == 0) continue;
        double weight = s[1] * s[3] / (s[1] + s[3]);
        total += weight * (s[2] / s[3] - s[0] / s[1]);
        weights += weight;
    }
    free(sum);
    return weights > 0 ? total / weights : 0;
}

static bool test_change(const drift *d, size_t cell_at)
{
    cell *c = &d->cells[cell_at];
    series s = {0};
    bool allocated = allocate_series(&s, d->row_count, c->count);
    if (allocated) fill_series(d, cell_at, &s);
    c->report.change_ratio = 1;
    if (allocated && s.count >= LEAST_DATED_ROWS) {
        size_t split;
        double largest = st_largest_sum(s.value, s.at, s.count, &split), p = 1;
        if (largest > 0) p = st_change_p(s.value, s.at, s.group, s.count, c->count, largest);
        c->report.dated_row_count = s.count;
        c->report.change_statistic = largest;
        if (largest > 0) {
            c->report.changed_at = s.at[split];
            c->report.change_ratio = exp(change_of(d, cell_at, s.at[split]));
        }
        c->p[CHANGE] = p;
        allocated = p <= 1 && !isnan(c->report.change_ratio);
    }
    free_series(&s);
    return allocated;
}

/* ---- Software ---------------------------------------------------------------------------------------------------- */

/* The version on the same GPU that was first measured most recently before this one. */
static const cell *previous_of(const drift *d, const cell *c)
{
    const cell *found = NULL;
    for (size_t i = 0; i < d->cell_count; i++) {
        const cell *other = &d->cells[i];
        if (other == c || strcmp(other->report.gpu_name, c->report.gpu_name) != 0) continue;
        bool is_before = other->first_at != c->first_at ? other->first_at < c->first_at
                                                        : strcmp(other->report.software, c->report.software) < 0;
        bool is_later =
            found == NULL || other->first_at > found->first_at ||
            (other->first_at == found->first_at && strcmp(other->report.software, found->report.software) > 0);
        if (is_before && is_later) found = other;
    }
    return found;
}

static int compare_keys(const void *left, const void *right)
{
    const group *a = *(const group *const *)left, *b = *(const group *const *)right;
    return (a->key > b->key) - (a->key < b->key);
}

static bool test_software(const drift *d, cell *c)
{
    const cell *before = previous_of(d, c);
    c->report.software_ratio = 1;
    if (before == NULL) return true;
    const group **index = malloc((before->count + 1) * sizeof *index);
    if (index == NULL) return false;
    for (size_t i = 0; i < before->count; i++) index[i] = &d->groups[before->first + i];
    qsort(index, before->count, sizeof *index, compare_keys);
    double sum = 0, squares = 0, noise = 0, jobs = 0;
    for (size_t i = c->first; i < c->first + c->count;) {
        double job = 0, pairs = 0, job_noise = 0;
        size_t end = i;
        for (; end < c->first + c->count && strcmp(d->groups[end].digest, d->groups[i].digest) == 0; end++) {
            const group *g = &d->groups[end];
            const group *const *other = bsearch(&g, index, before->count, sizeof *index, compare_keys);
            if (other == NULL) continue;
            job += g->mean - (*other)->mean;
            job_noise += g->spread * g->spread / g->rows + (*other)->spread * (*other)->spread / (*other)->rows;
            pairs++;
        }
        if (pairs > 0) {
            sum += job / pairs;
            squares += job / pairs * (job / pairs);
            noise += job_noise / (pairs * pairs);
            jobs++;
            c->report.pair_count += (uint64_t)pairs;
        }
        i = end;
    }
    free(index);
    if (jobs == 0) return true;
    double mean = sum / jobs;
    c->report.previous_software = before->report.software;
    c->report.software_ratio = exp(mean);
    if (jobs >= LEAST_JOBS_OF_T) {
        /* Differences that agree by chance must not look certain. */
        double variance = fmax((squares - jobs * mean * mean) / (jobs - 1), noise / jobs);
        c->report.software_t = mean / sqrt(variance / jobs);
        c->p[SOFTWARE] = st_student_p(c->report.software_t, jobs - 1);
    } else {
        c->report.software_t = mean / sqrt(noise / (jobs * jobs));
        c->p[SOFTWARE] = st_normal_p(c->report.software_t);
    }
    return true;
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static bool test_all(drift *d)
{
    double *p = malloc((TESTS * d->cell_count + 1) * sizeof *p);
    bool allocated = p != NULL;
    for (size_t i = 0; allocated && i < d->cell_count; i++) {
        cell *c = &d->cells[i];
        test_level(d, c);
        allocated = test_change(d, i) && test_software(d, c);
        memcpy(&p[TESTS * i], c->p, sizeof c->p);
    }
    allocated = allocated && st_holm(p, TESTS * d->cell_count);
    for (size_t i = 0; allocated && i < d->cell_count; i++) {
        const double *of_cell = &p[TESTS * i];
        mdot_store_drift *r = &d->cells[i].report;
        r->level_p = of_cell[LEVEL] < 0 ? 1 : of_cell[LEVEL];
        r->change_p = of_cell[CHANGE] < 0 ? 1 : of_cell[CHANGE];
        r->software_p = of_cell[SOFTWARE] < 0 ? 1 : of_cell[SOFTWARE];
    }
    free(p);
    return allocated;
}

mdot_status mdot_store_find_drift(mdot_store *store, const char *predictor, mdot_store_visit_drift visit, void *user,
                                  mdot_error *err)
{
    if (store == NULL || predictor == NULL || visit == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store, a predictor or a visitor is missing");
    drift d = {0};
    mdot_status status = mdot_store_visit_groups(store, NULL, predictor, take_group, &d, err);
    if (status == MDOT_OK && !d.failed_memory) d.failed_memory = !form_cells(&d);
    if (status == MDOT_OK && !d.failed_memory) status = load_rows(store, &d, err);
    if (status == MDOT_OK && !d.failed_memory) d.failed_memory = !test_all(&d);
    if (status == MDOT_OK && d.failed_memory) status = BS_OUT_OF_MEMORY(err, "rows of %s", store->path);
    for (size_t i = 0; status == MDOT_OK && i < d.cell_count; i++)
        if (!visit(user, &d.cells[i].report)) break;
    for (size_t i = 0; i < d.group_count; i++) {
        free(d.groups[i].gpu_name);
        free(d.groups[i].software);
        free(d.groups[i].digest);
    }
    free(d.groups);
    free(d.rows);
    free(d.cells);
    return status;
}
