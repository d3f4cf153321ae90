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
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 16, MOST_GPUS = 1 << 20 };

enum { APPLICATION, NODES, GPUS, SAMPLES, STEP, SYNC, PLACEMENT, TYPE };
static const char step_names[] = "application,nodes,gpus,batch_per_gpu,step_ms,sync_ms,placement?,type?";

typedef struct target {
    const sc_cluster *cluster;
    sc_workload *workload;
    bool has_types;
} target;

/* Makes the kind's scaling on its first row. */
static mdot_status make_scaling(sc_kind *kind, mdot_error *err)
{
    if (kind->scaling == NULL) kind->scaling = calloc(1, sizeof *kind->scaling);
    return kind->scaling != NULL ? MDOT_OK : BS_OUT_OF_MEMORY(err, "%s", kind->name);
}

/* Reads 31 as a pattern of two nodes. An empty field leaves it unknown. */
static mdot_status read_pattern(const bs_csv *csv, int column, sc_placement *out, mdot_error *err)
{
    if (!sc_csv_has(csv, column)) return MDOT_OK;
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

static mdot_status read_step(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    target *out = context;
    sc_step_row row = {0};
    BS_TRY(bs_csv_integer(csv, at[NODES], 1, MOST_NODES, &row.placement.nodes, err));
    BS_TRY(bs_csv_integer(csv, at[GPUS], row.placement.nodes, MOST_GPUS, &row.placement.gpus, err));
    BS_TRY(read_pattern(csv, at[PLACEMENT], &row.placement, err));
    BS_TRY(bs_csv_number(csv, at[SAMPLES], 1, 1e9, &row.samples, err));
    BS_TRY(bs_csv_number(csv, at[STEP], 1e-6, 1e12, &row.step_s, err));
    BS_TRY(bs_csv_number(csv, at[SYNC], 0, 1e12, &row.sync_s, err));
    row.step_s *= 1e-3;
    row.sync_s *= 1e-3;
    out->has_types = at[TYPE] != BS_CSV_ABSENT;
    sc_kind *kind = sc_workload_find_kind(out->workload, csv->field[at[APPLICATION]], SIZE_MAX);
    unsigned type = out->has_types ? sc_cluster_find_type(out->cluster, csv->field[at[TYPE]]) : 0;
    if (kind == NULL || type == out->cluster->type_count) return MDOT_OK;
    BS_TRY(make_scaling(kind, err));
    return sc_step_table_add(&kind->scaling->tables[type], row, err);
}

static int by_batch(const void *left, const void *right)
{
    const sc_noise_row *a = left, *b = right;
    if (a->batch != b->batch) return a->batch < b->batch ? -1 : 1;
    return (a->progress > b->progress) - (a->progress < b->progress);
}

static mdot_status read_observation(const bs_csv *csv, const int *at, void *workload, mdot_error *err)
{
    double squared, variance;
    sc_noise_row row;
    BS_TRY(bs_csv_number(csv, at[1], 1, 1e9, &row.batch, err));
    BS_TRY(bs_csv_number(csv, at[2], 0, 1e12, &row.progress, err));
    BS_TRY(bs_csv_number(csv, at[3], 0, 1e300, &squared, err));
    BS_TRY(bs_csv_number(csv, at[4], -1e300, 1e300, &variance, err));
    row.noise = fmin(fmax(0, variance) / fmax(squared, 1e-300), 1e12); /* far above any batch size */
    const sc_kind *kind = sc_workload_find_kind(workload, csv->field[at[0]], SIZE_MAX);
    sc_scaling *scaling = kind != NULL ? kind->scaling : NULL;
    if (scaling == NULL) return MDOT_OK;
    if (!sc_grow(&scaling->noise, scaling->noise_count, sizeof row)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    scaling->noise[scaling->noise_count++] = row;
    return MDOT_OK;
}

mdot_status sc_read_noise(const char *path, sc_workload *workload, mdot_error *err)
{
    BS_TRY(sc_read_rows(path, "application,batch,progress,grad_sqr,grad_var", read_observation, workload, err));
    for (size_t i = 0; i < workload->kind_count; i++) {
        sc_scaling *scaling = workload->kinds[i].scaling;
        if (scaling != NULL && scaling->noise_count > 0)
            qsort(scaling->noise, scaling->noise_count, sizeof *scaling->noise, by_batch);
    }
    return MDOT_OK;
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
    bool is_any = false;
    target out = {.cluster = cluster, .workload = workload};
    mdot_status status = sc_read_rows(steps_path, step_names, read_step, &out, err);
    if (status == MDOT_OK) status = sc_read_noise(noise_path, workload, err);
    for (size_t i = 0; status == MDOT_OK && i < workload->kind_count; i++) {
        if (workload->kinds[i].scaling == NULL) continue;
        status = finish(noise_path, &workload->kinds[i], cluster, out.has_types, err);
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
