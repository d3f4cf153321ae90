/* hosts.c — hosts whose steps take longer or shorter than on other hosts, with the same GPU model and the same work. */
#include "base/status.h"
#include "store/records.h"
#include "store/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A host's rows in a group; times are logarithms. */
typedef struct part {
    int64_t group;
    char *host, *gpu_name; /* owned */
    double rows, mean, squares;
    double deviation, variance; /* from the other hosts' median; variance 0: there is no other host */
} part;

typedef struct hosts {
    part *parts;
    size_t count, capacity;
} hosts;

static bool add_row(hosts *h, int64_t group, const char *host, const char *gpu_name, double value)
{
    part *last = h->count > 0 ? &h->parts[h->count - 1] : NULL;
    if (last == NULL || last->group != group || strcmp(last->host, host) != 0) {
        if (h->count == h->capacity) {
            size_t capacity = 2 * h->capacity + 64;
            part *larger = realloc(h->parts, capacity * sizeof *larger);
            if (larger == NULL) return false;
            h->parts = larger;
            h->capacity = capacity;
        }
        last = &h->parts[h->count++];
        *last = (part){.group = group, .host = strdup(host), .gpu_name = strdup(gpu_name)};
        if (last->host == NULL || last->gpu_name == NULL) return false;
    }
    last->rows++;
    double step = value - last->mean;
    last->mean += step / last->rows;
    last->squares += step * (value - last->mean);
    return true;
}

static mdot_status load(mdot_store *store, hosts *h, mdot_error *err)
{
    sqlite3_stmt *select = NULL;
    bool has_memory = true;
    mdot_status status = st_prepare(store,
                                    ST_SELECT_ROW ", m.group_id FROM members m JOIN rows r ON r.id = m.row "
                                                  "WHERE r.host <> '' ORDER BY m.group_id, r.host",
                                    &select, err);
    st_value v[ST_ROW_WIDTH];
    while (has_memory && st_next(store, &st_tables[ST_ROWS], select, "read the rows", v, &status, err))
        if (!st_is_absurd(v[ST_AT_ms].real, v[ST_AT_memory_gib].real))
            has_memory = add_row(h, sqlite3_column_int64(select, ST_ROW_WIDTH + 2), v[ST_AT_host].bytes,
                                 v[ST_AT_gpu_name].bytes, log(v[ST_AT_ms].real));
    if (status == MDOT_OK && !has_memory) status = BS_OUT_OF_MEMORY(err, "rows of %s", store->path);
    sqlite3_finalize(select);
    return status;
}

static int compare_real(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Compares the hosts in one group. Rows on one host repeat within at least 1 %. */
static void compare_in_group(part *parts, size_t count, double *scratch)
{
    const double least_spread = 0.01;
    double rows = 0, squares = 0;
    for (size_t i = 0; i < count; i++) rows += parts[i].rows, squares += parts[i].squares;
    double variance = rows > (double)count ? squares / (rows - (double)count) : 0;
    variance = fmax(variance, least_spread * least_spread);
    for (size_t i = 0; i < count && count > 1; i++) {
        size_t others = 0;
        for (size_t j = 0; j < count; j++)
            if (j != i) scratch[others++] = parts[j].mean;
        qsort(scratch, others, sizeof *scratch, compare_real);
        parts[i].deviation = parts[i].mean - (scratch[(others - 1) / 2] + scratch[others / 2]) / 2;
        parts[i].variance = variance / parts[i].rows + variance / (rows - parts[i].rows);
    }
}

static int compare_parts(const void *left, const void *right)
{
    const part *a = left, *b = right;
    int order = strcmp(a->gpu_name, b->gpu_name);
    return order != 0 ? order : strcmp(a->host, b->host);
}

/* Forms one report for each host and GPU model; each group counts once. Returns the number of reports. */
static size_t report_hosts(const hosts *h, mdot_store_host *out, double *out_p)
{
    size_t count = 0;
    for (size_t i = 0; i < h->count;) {
        size_t end = i;
        double deviation = 0, variance = 0, groups = 0, rows = 0;
        for (; end < h->count && compare_parts(&h->parts[i], &h->parts[end]) == 0; end++) {
            const part *p = &h->parts[end];
            if (p->variance == 0) continue;
            deviation += p->deviation;
            variance += p->variance;
            rows += p->rows;
            groups++;
        }
        if (groups > 0) {
            out_p[count] = st_normal_p(deviation / sqrt(variance));
            out[count++] = (mdot_store_host){.struct_size = sizeof(mdot_store_host),
                                             .host = h->parts[i].host,
                                             .gpu_name = h->parts[i].gpu_name,
                                             .row_count = (uint64_t)rows,
                                             .group_count = (uint64_t)groups,
                                             .ratio = exp(deviation / groups)};
        }
        i = end;
    }
    return count;
}

mdot_status mdot_store_find_hosts(mdot_store *store, mdot_store_visit_host visit, void *user, mdot_error *err)
{
    if (store == NULL || visit == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a visitor is missing");
    hosts h = {0};
    mdot_status status = load(store, &h, err);
    double *p = calloc(h.count + 1, sizeof *p);
    mdot_store_host *reports = calloc(h.count + 1, sizeof *reports);
    size_t count = 0;
    bool has_memory = p != NULL && reports != NULL;
    if (status == MDOT_OK && has_memory) {
        for (size_t i = 0, end; i < h.count; i = end) {
            for (end = i; end < h.count && h.parts[end].group == h.parts[i].group;) end++;
            compare_in_group(&h.parts[i], end - i, p);
        }
        if (h.count > 0) qsort(h.parts, h.count, sizeof *h.parts, compare_parts);
        count = report_hosts(&h, reports, p);
        has_memory = st_holm(p, count);
    }
    if (status == MDOT_OK && !has_memory) status = BS_OUT_OF_MEMORY(err, "rows of %s", store->path);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        reports[i].p = p[i];
        if (!visit(user, &reports[i])) break;
    }
    for (size_t i = 0; i < h.count; i++) {
        free(h.parts[i].host);
        free(h.parts[i].gpu_name);
    }
    free(h.parts);
    free(reports);
    free(p);
    return status;
}
