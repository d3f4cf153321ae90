/* step_times.c — reads step times and gradient noise by job kind, as measured by Pollux' authors (petuum/adaptdl,
 * branch osdi21-artifact).
 *
 *     application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms      step times
 *     application,batch,progress,grad_sqr,grad_var                       gradient noise
 *
 * Applications are kinds of the trace; others are skipped. placement has the GPUs of each node as digits and may be
 * empty. step_ms is the step time without accumulation; sync_ms is the synchronisation part. The optional column type
 * names the GPU type of a row; without it, rows hold for all types in the cluster. Types with one-GPU steps only have
 * the placements of the first type with more.
 *
 * grad_sqr and grad_var are the gradient's squared norm and variance at the application's smallest batch, `batch` is
 * the batch size of the observation, and progress counts steps of the smallest batch. Negative estimates of the
 * variance count as 0. */
#include "base/csv.h"
#include "base/status.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 16, MOST_GPUS = 1 << 20 };

typedef struct columns {
    int application, placement, nodes, gpus, samples, step, sync, type;
} columns;

/* Returns `items` with space for one more; the capacity doubles at powers of two. NULL if memory ran out. */
static void *grow(void *items, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) return items;
    return count > SIZE_MAX / 2 / size ? NULL : realloc(items, (count > 0 ? 2 * count : 1) * size);
}

/* Makes the kind's scaling on its first row. */
static mdot_status make_scaling(sc_kind *kind, mdot_error *err)
{
    if (kind->scaling == NULL) kind->scaling = calloc(1, sizeof *kind->scaling);
    return kind->scaling != NULL ? MDOT_OK : BS_OUT_OF_MEMORY(err, "%s", kind->name);
}

/* Reads 31 as a pattern of two nodes. An empty field leaves it unknown. */
static mdot_status read_pattern(const bs_csv *csv, int column, sc_placement *out, mdot_error *err)
{
    if (column == BS_CSV_ABSENT || csv->field[column][0] == '\0') return MDOT_OK;
    sc_placement read = {0};
    for (const char *cursor = csv->field[column]; *cursor != '\0'; cursor++) {
        if (*cursor < '1' || *cursor > '9')
            return bs_csv_fail(csv, err, MDOT_MALFORMED,
                               "placement is \"%.40s\", but must be the GPUs of each node as digits",
                               csv->field[column]);
        read.nodes++;
        read.gpus += *cursor - '0';
        sc_placement_add(&read, *cursor - '0');
    }
    if (read.nodes != out->nodes || read.gpus != out->gpus)
        return bs_csv_fail(csv, err, MDOT_MALFORMED,
                           "placement \"%.40s\" has %d GPUs on %d nodes, but the row has %d on %d", csv->field[column],
                           read.gpus, read.nodes, out->gpus, out->nodes);
    *out = read;
    return MDOT_OK;
}

static mdot_status read_step(const bs_csv *csv, const columns *fields, const sc_cluster *cluster, sc_workload *workload,
                             mdot_error *err)
{
    sc_step_row row = {0};
    mdot_status status = bs_csv_integer(csv, fields->nodes, 1, MOST_NODES, &row.placement.nodes, err);
    if (status == MDOT_OK)
        status = bs_csv_integer(csv, fields->gpus, row.placement.nodes, MOST_GPUS, &row.placement.gpus, err);
    if (status == MDOT_OK) status = read_pattern(csv, fields->placement, &row.placement, err);
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->samples, 1, 1e9, &row.samples, err);
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->step, 1e-6, 1e12, &row.step_s, err);
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->sync, 0, 1e12, &row.sync_s, err);
    if (status != MDOT_OK) return status;
    row.step_s *= 1e-3;
    row.sync_s *= 1e-3;
    sc_kind *kind = sc_workload_find_kind(workload, csv->field[fields->application], SIZE_MAX);
    if (kind == NULL) return MDOT_OK;
    unsigned type = fields->type == BS_CSV_ABSENT ? 0 : sc_cluster_find_type(cluster, csv->field[fields->type]);
    if (type == cluster->type_count) return MDOT_OK;
    status = make_scaling(kind, err);
    return status == MDOT_OK ? sc_step_table_add(&kind->scaling->tables[type], row, err) : status;
}

static mdot_status read_steps(const char *path, const sc_cluster *cluster, sc_workload *workload, bool *out_has_types,
                              mdot_error *err)
{
    bs_csv csv;
    columns fields;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "application", &fields.application, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "nodes", &fields.nodes, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "gpus", &fields.gpus, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "batch_per_gpu", &fields.samples, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "step_ms", &fields.step, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "sync_ms", &fields.sync, err);
    fields.placement = bs_csv_find(&csv, "placement");
    fields.type = bs_csv_find(&csv, "type");
    *out_has_types = fields.type != BS_CSV_ABSENT;
    for (bool is_row = true; status == MDOT_OK;) {
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = read_step(&csv, &fields, cluster, workload, err);
    }
    bs_csv_close(&csv);
    return status;
}

static mdot_status add_noise(sc_scaling *scaling, sc_noise_row row, mdot_error *err)
{
    sc_noise_row *rows = grow(scaling->noise, scaling->noise_count, sizeof *rows);
    if (rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    scaling->noise = rows;
    rows[scaling->noise_count++] = row;
    return MDOT_OK;
}

static int by_batch(const void *left, const void *right)
{
    const sc_noise_row *a = left, *b = right;
    if (a->batch != b->batch) return a->batch < b->batch ? -1 : 1;
    return (a->progress > b->progress) - (a->progress < b->progress);
}

mdot_status sc_read_noise(const char *path, sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    int kind_at, batch_at, progress_at, squared_at, variance_at;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "application", &kind_at, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "batch", &batch_at, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "progress", &progress_at, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "grad_sqr", &squared_at, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "grad_var", &variance_at, err);
    for (bool is_row = true; status == MDOT_OK;) {
        double squared, variance;
        sc_noise_row row;
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = bs_csv_number(&csv, batch_at, 1, 1e9, &row.batch, err);
        if (status == MDOT_OK) status = bs_csv_number(&csv, progress_at, 0, 1e12, &row.progress, err);
        if (status == MDOT_OK) status = bs_csv_number(&csv, squared_at, 0, 1e300, &squared, err);
        if (status == MDOT_OK) status = bs_csv_number(&csv, variance_at, -1e300, 1e300, &variance, err);
        if (status != MDOT_OK) break;
        row.noise = fmin(fmax(0, variance) / fmax(squared, 1e-300), 1e12); /* far above any batch size */
        sc_kind *kind = sc_workload_find_kind(workload, csv.field[kind_at], SIZE_MAX);
        if (kind != NULL && kind->scaling != NULL) status = add_noise(kind->scaling, row, err);
    }
    bs_csv_close(&csv);
    for (size_t i = 0; status == MDOT_OK && i < workload->kind_count; i++) {
        sc_scaling *scaling = workload->kinds[i].scaling;
        if (scaling != NULL && scaling->noise_count > 0)
            qsort(scaling->noise, scaling->noise_count, sizeof *scaling->noise, by_batch);
    }
    return status;
}

/* Finds the source of each type, and fits the models. */
static mdot_status finish(const char *noise_path, sc_kind *kind, const sc_cluster *cluster, bool has_types,
                          mdot_error *err)
{
    sc_scaling *scaling = kind->scaling;
    unsigned several = SC_MAX_TYPES; /* the first type with steps on several GPUs */
    mdot_status status = MDOT_OK;
    if (scaling->noise_count == 0)
        return mdot_fail(err, MDOT_MALFORMED, "%s: no row of %s, which has step times", noise_path, kind->name);
    scaling->least_batch = scaling->noise[0].batch;
    scaling->most_batch = scaling->noise[scaling->noise_count - 1].batch;
    for (unsigned type = 0; type < SC_MAX_TYPES; type++) scaling->source[type] = SC_MAX_TYPES;
    for (unsigned type = 0; status == MDOT_OK && type < cluster->type_count; type++) {
        sc_step_table *table = &scaling->tables[type];
        if (table->row_count == 0) continue;
        sc_step_table_sort(table);
        status = sc_fit_steps(table, err);
        bool has_several = table->rows[table->row_count - 1].placement.gpus > 1;
        if (has_several && several == SC_MAX_TYPES) several = type;
        if (has_several) scaling->source[type] = type;
    }
    for (unsigned type = 0; type < cluster->type_count; type++) {
        bool has_one = scaling->tables[type].row_count > 0 && scaling->tables[type].rows[0].placement.gpus == 1;
        if (scaling->source[type] == SC_MAX_TYPES && has_one)
            scaling->source[type] = several < SC_MAX_TYPES ? several : type;
    }
    /* Without the column, every type is the first one; the rows are copied to keep one owner per table. */
    for (unsigned type = 1; status == MDOT_OK && !has_types && type < cluster->type_count; type++) {
        sc_step_table *table = &scaling->tables[type];
        *table = scaling->tables[0];
        table->rows = calloc(table->row_count, sizeof *table->rows);
        if (table->rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        memcpy(table->rows, scaling->tables[0].rows, table->row_count * sizeof *table->rows);
        scaling->source[type] = type;
    }
    return status;
}

mdot_status sc_read_step_times(const char *steps_path, const char *noise_path, const sc_cluster *cluster,
                               sc_workload *workload, mdot_error *err)
{
    bool has_types = false, is_any = false;
    mdot_status status = read_steps(steps_path, cluster, workload, &has_types, err);
    if (status == MDOT_OK) status = sc_read_noise(noise_path, workload, err);
    for (size_t i = 0; status == MDOT_OK && i < workload->kind_count; i++) {
        if (workload->kinds[i].scaling == NULL) continue;
        status = finish(noise_path, &workload->kinds[i], cluster, has_types, err);
        is_any = true;
    }
    if (status == MDOT_OK && !is_any)
        status = mdot_fail(err, MDOT_MALFORMED,
                           "%s: no row has an application of the trace and a GPU type of the cluster", steps_path);
    for (size_t i = 0; status == MDOT_OK && i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        const sc_scaling *scaling = job->kind == SC_NONE ? NULL : workload->kinds[job->kind].scaling;
        if (scaling != NULL && job->batch > 0 &&
            (job->batch < scaling->least_batch || job->batch > scaling->most_batch))
            status = mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: job %s has batch %g, but must have %g to %g, as %s has",
                               noise_path, job->id, job->batch, scaling->least_batch, scaling->most_batch,
                               workload->kinds[job->kind].name);
    }
    return status;
}
