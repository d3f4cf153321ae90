/* sweep.c — one mdot_sweep for each kind: every type of GPU at every width. */
#include "examples/scheduler/estimate/sweep.h"
#include "examples/scheduler/estimate/job_row.h"

#include <string.h>

enum { MAX_CONFIGURATIONS = SC_MAX_TYPES * SC_WIDTHS };

static sc_kind *find_kind(const sc_workload *workload, const char *name)
{
    for (size_t i = 0; i < workload->kind_count; i++)
        if (strcmp(workload->kinds[i].name, name) == 0) return &workload->kinds[i];
    return NULL;
}

static bool is_measured(const sc_kind *kind)
{
    for (unsigned type = 0; type < SC_MAX_TYPES; type++)
        for (unsigned width = 0; width < SC_WIDTHS; width++)
            if (kind->speed[type][width] > 0) return true;
    return false;
}

static mdot_status sweep_kind(mdot_context *context, const mdot_job *job, const mdot_configuration *base,
                              const sc_cluster *cluster, sc_kind *kind, mdot_error *err)
{
    mdot_configuration configurations[MAX_CONFIGURATIONS];
    mdot_prediction predictions[MAX_CONFIGURATIONS] = {MDOT_INIT(mdot_prediction)};
    size_t count = 0, i = 0;
    for (unsigned type = 0; type < cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= cluster->types[type].gpus; width++) {
            configurations[count] = *base;
            configurations[count].gpu = cluster->types[type].name;
            configurations[count++].gpu_count = 1 << width;
        }
    }
    mdot_status status = mdot_sweep(context, job, configurations, count, predictions, err);
    if (status != MDOT_OK) return status;
    bool is_known = is_measured(kind), fits_somewhere = false;
    for (size_t c = 0; c < count; c++) fits_somewhere |= predictions[c].fits;
    kind->has_belief = true;
    for (unsigned type = 0; type < cluster->type_count; type++) {
        for (unsigned width = 0; width < SC_WIDTHS && 1 << width <= cluster->types[type].gpus; width++, i++) {
            kind->believed[type][width] = predictions[i].fits || !fits_somewhere ? 1e3 / predictions[i].step_ms : 0;
            if (!is_known) kind->speed[type][width] = kind->believed[type][width];
        }
    }
    return MDOT_OK;
}

static mdot_status sweep_row(mdot_context *context, const sc_csv *csv, const sc_job_columns *at,
                             const sc_cluster *cluster, sc_kind *kind, mdot_error *err)
{
    mdot_job *job;
    mdot_configuration base;
    mdot_error reason = {0};
    mdot_status status = sc_job_row_read(csv, at, &job, &base, err);
    if (status != MDOT_OK) return status;
    status = sweep_kind(context, job, &base, cluster, kind, &reason);
    mdot_job_destroy(job);
    return status == MDOT_OK ? MDOT_OK : sc_csv_fail(csv, err, "%s", reason.message);
}

static mdot_status sweep_table(mdot_context *context, const char *path, const sc_cluster *cluster,
                               sc_workload *workload, mdot_error *err)
{
    sc_csv csv;
    sc_job_columns at;
    int type;
    mdot_status status = sc_csv_open(path, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = sc_csv_need(&csv, "job_type", &type, err);
    if (status == MDOT_OK) status = sc_job_columns_find(&csv, &at, err);
    for (bool is_row = true; status == MDOT_OK;) {
        status = sc_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        sc_kind *kind = find_kind(workload, csv.field[type]);
        if (kind != NULL) status = sweep_row(context, &csv, &at, cluster, kind, err);
    }
    sc_csv_close(&csv);
    return status;
}

mdot_status sc_sweep_throughputs(const char *path, const char *predictor_path, const sc_cluster *cluster,
                                 sc_workload *workload, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = mdot_predictor_open(predictor_path, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    if (status == MDOT_OK) status = sweep_table(context, path, cluster, workload, err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}
