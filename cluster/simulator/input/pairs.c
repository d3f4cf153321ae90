/* pairs.c — reads the speeds of jobs that share GPUs: gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s.
 *
 * gpu is a type of the cluster, ignoring case; job_a and job_b are kinds of the trace. Others are skipped. If the table
 * has the column table (Gavel's pairs as measured-2026/gavel_pairs.csv has them), only its rows "simulation" are read,
 * which belong to simulation_throughputs.json. 0 steps: the pair does not fit into memory.
 */
#include "base/csv.h"
#include "simulator/input/input.h"

#include <string.h>

typedef struct columns {
    int type, a, b, gpus, speed_a, speed_b, table;
} columns;

static mdot_status find_columns(const bs_csv *csv, columns *out, mdot_error *err)
{
    *out = (columns){.table = bs_csv_find(csv, "table")};
    mdot_status status = bs_csv_need(csv, "gpu", &out->type, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "job_a", &out->a, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "job_b", &out->b, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "gpus", &out->gpus, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "together_a_steps_s", &out->speed_a, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "together_b_steps_s", &out->speed_b, err);
    return status;
}

static mdot_status read_row(const bs_csv *csv, const columns *fields, const sc_cluster *cluster, sc_workload *workload,
                            mdot_error *err)
{
    int gpus;
    double speed_a, speed_b;
    if (fields->table != BS_CSV_ABSENT && strcmp(csv->field[fields->table], "simulation") != 0) return MDOT_OK;
    mdot_status status = bs_csv_integer(csv, fields->gpus, 1, 1 << (SC_WIDTHS - 1), &gpus, err);
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->speed_a, 0, 1e9, &speed_a, err);
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->speed_b, 0, 1e9, &speed_b, err);
    if (status != MDOT_OK) return status;
    unsigned width = sc_width_of(gpus);
    if (width == SC_WIDTHS)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "gpus is %d, but must be a power of two", gpus);
    unsigned type = sc_cluster_find_type(cluster, csv->field[fields->type]);
    const sc_kind *kind_a = sc_workload_find_kind(workload, csv->field[fields->a], SIZE_MAX);
    const sc_kind *kind_b = sc_workload_find_kind(workload, csv->field[fields->b], SIZE_MAX);
    if (type == cluster->type_count || kind_a == NULL || kind_b == NULL) return MDOT_OK;
    uint32_t a = (uint32_t)(kind_a - workload->kinds), b = (uint32_t)(kind_b - workload->kinds);
    status = sc_workload_set_pair_speed(workload, a, b, type, width, speed_a, err);
    return status == MDOT_OK ? sc_workload_set_pair_speed(workload, b, a, type, width, speed_b, err) : status;
}

mdot_status sc_read_pairs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    columns fields;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = find_columns(&csv, &fields, err);
    for (bool is_row = true; status == MDOT_OK;) {
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = read_row(&csv, &fields, cluster, workload, err);
    }
    bs_csv_close(&csv);
    if (status == MDOT_OK && workload->pair_speeds == NULL)
        status =
            mdot_fail(err, MDOT_MALFORMED, "%s: no row has kinds of the trace and a GPU type of the cluster", path);
    return status;
}
