/* cluster_file.c — reads a cluster from a file: node,type,gpus, one line per node, and watts if power matters. */
#include "simulator/input/csv.h"
#include "simulator/input/input.h"

#include <stdlib.h>
#include <string.h>

/* Reads the power of the type's GPUs, which must be the same for all nodes of the type. */
static mdot_status read_watts(const sc_csv *csv, int type, int watts, sc_cluster *cluster, mdot_error *err)
{
    double value;
    mdot_status status = sc_csv_number(csv, watts, 1, 1e5, &value, err);
    if (status != MDOT_OK) return status;
    sc_type *t = &cluster->types[sc_cluster_find_type(cluster, csv->field[type])];
    if (t->watts != 0 && t->watts != value)
        return sc_csv_fail(csv, err, "type %s has %g watts and %g", t->name, t->watts, value);
    t->watts = value;
    return MDOT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static mdot_status check_names(const sc_cluster *cluster, const char *path, mdot_error *err)
{
    char **names = calloc(cluster->node_count + 1, sizeof *names);
    if (names == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu nodes", cluster->node_count);
    for (size_t i = 0; i < cluster->node_count; i++) names[i] = cluster->nodes[i].name;
    qsort(names, cluster->node_count, sizeof *names, by_name);
    mdot_status status = MDOT_OK;
    for (size_t i = 1; status == MDOT_OK && i < cluster->node_count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: two nodes have the name %s", path, names[i]);
    free(names);
    return status;
}

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
    int watts = sc_csv_find(&csv, "watts");
    bool is_row = true;
    while (status == MDOT_OK && is_row) {
        int count;
        mdot_error reason = {0};
        status = sc_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = sc_csv_integer(&csv, gpus, 1, 1 << 20, &count, err);
        if (status != MDOT_OK) break;
        if (csv.field[type][0] == '\0') {
            status = sc_csv_fail(&csv, err, "type is empty");
        } else if (csv.field[node][0] == '\0' || strpbrk(csv.field[node], " :,\"") != NULL) {
            status = sc_csv_fail(&csv, err,
                                 "node is \"%.40s\", but a name must not contain blanks, colons, commas or quotes",
                                 csv.field[node]);
        } else if (sc_cluster_add_node(&cluster, csv.field[node], csv.field[type], count, &reason) != MDOT_OK) {
            status = sc_csv_fail(&csv, err, "%s", reason.message);
        } else if (watts >= 0) {
            status = read_watts(&csv, type, watts, &cluster, err);
        }
    }
    if (status == MDOT_OK) status = check_names(&cluster, path, err);
    if (status == MDOT_OK && cluster.gpus == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no nodes", path);
    sc_csv_close(&csv);
    if (status == MDOT_OK)
        *out_cluster = cluster;
    else
        sc_cluster_free(&cluster);
    return status;
}
