/* cluster_file.c — a cluster from a file: node,type,gpus, a line a node. */
#include "examples/scheduler/input/csv.h"
#include "examples/scheduler/input/input.h"

mdot_status sc_read_cluster(const char *path, sc_cluster *out_cluster, mdot_error *err)
{
    sc_csv csv;
    sc_cluster cluster = {0};
    int node, type, gpus;
    mdot_status status = sc_csv_open(path, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = sc_csv_need(&csv, "node", &node, err);
    if (status == MDOT_OK) status = sc_csv_need(&csv, "type", &type, err);
    if (status == MDOT_OK) status = sc_csv_need(&csv, "gpus", &gpus, err);
    bool is_row = true;
    while (status == MDOT_OK && is_row) {
        int count;
        mdot_error reason = {0};
        status = sc_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = sc_csv_whole(&csv, gpus, 1, 1 << 20, &count, err);
        if (status != MDOT_OK) break;
        if (csv.field[type][0] == '\0') {
            status = sc_csv_fail(&csv, err, "type is empty");
        } else if (sc_cluster_add_node(&cluster, csv.field[node], csv.field[type], count, &reason) != MDOT_OK) {
            status = sc_csv_fail(&csv, err, "%s", reason.message);
        }
    }
    if (status == MDOT_OK && cluster.gpus == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no nodes", path);
    sc_csv_close(&csv);
    if (status == MDOT_OK)
        *out_cluster = cluster;
    else
        sc_cluster_free(&cluster);
    return status;
}
