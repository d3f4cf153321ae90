/* pairs.c — reads the speeds of jobs that share GPUs: gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s.
 *
 * gpu is a type of the cluster, ignoring case; job_a and job_b are kinds of the trace. Others are skipped. If the table
 * has the column table (Gavel's pairs as measured-2026/gavel_pairs.csv has them), only its rows "simulation" are read,
 * which belong to simulation_throughputs.json. 0 steps: the pair does not fit into memory.
 */
#include "simulator/input/input.h"

#include <string.h>

typedef struct target {
    const sc_cluster *cluster;
    sc_workload *workload;
} target;

static mdot_status read_pair(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    enum { TYPE, A, B, GPUS, SPEED_A, SPEED_B, TABLE };
    const target *t = context;
    int gpus;
    double speed_a, speed_b;
    if (at[TABLE] != BS_CSV_ABSENT && strcmp(csv->field[at[TABLE]], "simulation") != 0) return MDOT_OK;
    BS_TRY(bs_csv_integer(csv, at[GPUS], 1, 1 << (SC_WIDTHS - 1), &gpus, err));
    BS_TRY(bs_csv_number(csv, at[SPEED_A], 0, 1e9, &speed_a, err));
    BS_TRY(bs_csv_number(csv, at[SPEED_B], 0, 1e9, &speed_b, err));
    unsigned width = sc_width_of(gpus), type = sc_cluster_find_type(t->cluster, csv->field[at[TYPE]]);
    if (width == SC_WIDTHS)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "gpus is %d, but must be a power of two", gpus);
    const sc_kind *kind_a = sc_workload_find_kind(t->workload, csv->field[at[A]], SIZE_MAX);
    const sc_kind *kind_b = sc_workload_find_kind(t->workload, csv->field[at[B]], SIZE_MAX);
    if (type == t->cluster->type_count || kind_a == NULL || kind_b == NULL) return MDOT_OK;
    uint32_t a = (uint32_t)(kind_a - t->workload->kinds), b = (uint32_t)(kind_b - t->workload->kinds);
    BS_TRY(sc_workload_set_pair_speed(t->workload, a, b, type, width, speed_a, err));
    return sc_workload_set_pair_speed(t->workload, b, a, type, width, speed_b, err);
}

mdot_status sc_read_pairs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    target t = {cluster, workload};
    BS_TRY(sc_read_rows(path, "gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s,table?", read_pair, &t, err));
    if (workload->pair_speeds != NULL) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED, "%s: no row has kinds of the trace and a GPU type of the cluster", path);
}
