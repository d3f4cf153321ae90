/* cluster_file.c — reads a cluster from a file: node,type,gpus, one line per node; watts and price if energy and cost
 * matter; domain and rack if the topology matters. */
#include "base/csv.h"
#include "simulator/input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a figure of the row's type, for example its power; it must be equal on all nodes. */
static mdot_status read_figure(const bs_csv *csv, int column, double minimum, const sc_type *type, double *out_figure,
                               mdot_error *err)
{
    double value;
    mdot_status status = bs_csv_number(csv, column, minimum, 1e5, &value, err);
    if (status != MDOT_OK) return status;
    if (*out_figure != 0 && *out_figure != value)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "type %s has %g %s and %g", type->name, *out_figure,
                           csv->header[column], value);
    *out_figure = value;
    return MDOT_OK;
}

/* Domain or rack names in order of occurrence. */
typedef struct names {
    char **items;
    size_t count;
} names;

static void free_names(names *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
}

/* Returns a name's index and adds new names; SC_NONE: no memory. */
static uint32_t index_of(names *list, const char *name)
{
    for (size_t i = list->count; i-- > 0;) /* backwards, because neighbours in the file are neighbours in the cluster */
        if (strcmp(list->items[i], name) == 0) return (uint32_t)i;
    char **items = realloc(list->items, (list->count + 1) * sizeof *items), *copy = strdup(name);
    if (items != NULL) list->items = items;
    if (items == NULL || copy == NULL) {
        free(copy);
        return SC_NONE;
    }
    items[list->count] = copy;
    return (uint32_t)list->count++;
}

/* Reads the last node's domain and rack. A node without a domain is one by itself. */
static mdot_status read_place(const bs_csv *csv, int domain, int rack, names *domains, names *racks,
                              sc_cluster *cluster, mdot_error *err)
{
    const char *rack_name = rack >= 0 ? csv->field[rack] : "";
    char requested[32];
    snprintf(requested, sizeof requested, ":%zu", cluster->node_count); /* names in the file lack colons */
    const char *domain_name = domain >= 0 && csv->field[domain][0] != '\0' ? csv->field[domain] : requested;
    if (domain_name != requested && strchr(domain_name, ':') != NULL)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "domain \"%.40s\" contains a colon", domain_name);
    uint32_t domain_index = index_of(domains, domain_name), rack_index = index_of(racks, rack_name);
    if (domain_index == SC_NONE || rack_index == SC_NONE) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_error reason = {0};
    mdot_status status = sc_cluster_locate(cluster, domain_index, rack_index, &reason);
    return status == MDOT_OK ? MDOT_OK : bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static mdot_status check_names(const sc_cluster *cluster, const char *path, mdot_error *err)
{
    char **sorted = calloc(cluster->node_count + 1, sizeof *sorted);
    if (sorted == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < cluster->node_count; i++) sorted[i] = cluster->nodes[i].name;
    qsort(sorted, cluster->node_count, sizeof *sorted, by_name);
    mdot_status status = MDOT_OK;
    for (size_t i = 1; status == MDOT_OK && i < cluster->node_count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: two nodes have the name %s", path, sorted[i]);
    free(sorted);
    return status;
}

mdot_status sc_read_cluster(const char *path, sc_cluster *out_cluster, mdot_error *err)
{
    bs_csv csv;
    sc_cluster cluster = {0};
    int node, type, gpus;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "node", &node, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "type", &type, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "gpus", &gpus, err);
    int watts = bs_csv_find(&csv, "watts"), idle_watts = bs_csv_find(&csv, "idle_watts"),
        price = bs_csv_find(&csv, "price"), domain = bs_csv_find(&csv, "domain"), rack = bs_csv_find(&csv, "rack");
    const int totals[] = {bs_csv_find(&csv, "cpus"), bs_csv_find(&csv, "memory_gb")};
    names domains = {0}, racks = {0};
    bool is_row = true;
    while (status == MDOT_OK && is_row) {
        int count;
        mdot_error reason = {0};
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = bs_csv_integer(&csv, gpus, 1, 1 << 20, &count, err);
        if (status != MDOT_OK) break;
        if (csv.field[type][0] == '\0') {
            status = bs_csv_fail(&csv, err, MDOT_MALFORMED, "type is empty");
        } else if (csv.field[node][0] == '\0' || strpbrk(csv.field[node], " :,\"") != NULL) {
            status = bs_csv_fail(&csv, err, MDOT_MALFORMED,
                                 "node is \"%.40s\", but a name must not contain blanks, colons, commas or quotes",
                                 csv.field[node]);
        } else if (sc_cluster_add_node(&cluster, csv.field[node], csv.field[type], count, &reason) != MDOT_OK) {
            status = bs_csv_fail(&csv, err, MDOT_MALFORMED, "%s", reason.message);
        } else {
            sc_type *t = &cluster.types[sc_cluster_find_type(&cluster, csv.field[type])];
            if (watts >= 0) status = read_figure(&csv, watts, 1, t, &t->watts, err);
            if (status == MDOT_OK && idle_watts >= 0)
                status = read_figure(&csv, idle_watts, 1e-3, t, &t->idle_watts, err);
            if (status == MDOT_OK && t->idle_watts > t->watts)
                status = bs_csv_fail(&csv, err, MDOT_MALFORMED, "type %s has %g idle_watts, but only %g watts", t->name,
                                     t->idle_watts, t->watts);
            if (status == MDOT_OK && price >= 0) status = read_figure(&csv, price, 1e-6, t, &t->price, err);
        }
        for (int i = 0; status == MDOT_OK && i < 2; i++) {
            double amount = 0;
            if (totals[i] >= 0) status = bs_csv_number(&csv, totals[i], 0, 1e9, &amount, err);
            *(i == 0 ? &cluster.cpus : &cluster.memory_gb) += amount;
        }
        if (status == MDOT_OK && (domain >= 0 || rack >= 0))
            status = read_place(&csv, domain, rack, &domains, &racks, &cluster, err);
    }
    free_names(&domains);
    free_names(&racks);
    if (status == MDOT_OK) status = check_names(&cluster, path, err);
    if (status == MDOT_OK && cluster.gpus == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no nodes", path);
    bs_csv_close(&csv);
    if (status == MDOT_OK)
        *out_cluster = cluster;
    else
        sc_cluster_free(&cluster);
    return status;
}
