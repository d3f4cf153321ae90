/* cluster_file.c — reads a cluster from a file: node,type,gpus, one line per node; watts and price if energy and cost
 * matter; domain and rack if the topology matters. */
#include "base/csv.h"
#include "simulator/input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a figure of the row's type, for example its power, if there is such a column; it must be equal on all nodes. */
static mdot_status read_figure(const bs_csv *csv, int column, double minimum, const sc_type *type, double *out_figure,
                               mdot_error *err)
{
    double value;
    if (column == BS_CSV_ABSENT) return MDOT_OK;
    BS_TRY(bs_csv_number(csv, column, minimum, 1e5, &value, err));
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

/* The cluster so far. */
typedef struct reading {
    sc_cluster cluster;
    names domains, racks;
} reading;

enum { NODE, TYPE, GPUS, WATTS, IDLE_WATTS, PRICE, DOMAIN, RACK, CPUS, MEMORY };
static const char column_names[] = "node,type,gpus,watts?,idle_watts?,price?,domain?,rack?,cpus?,memory_gb?";

/* Reads the last node's domain and rack. A node without a domain is one by itself. */
static mdot_status read_place(const bs_csv *csv, const int *at, reading *r, mdot_error *err)
{
    char requested[32];
    snprintf(requested, sizeof requested, ":%zu", r->cluster.node_count); /* names in the file lack colons */
    const char *rack = at[RACK] >= 0 ? csv->field[at[RACK]] : "",
               *domain = sc_csv_has(csv, at[DOMAIN]) ? csv->field[at[DOMAIN]] : requested;
    if (domain != requested && strchr(domain, ':') != NULL)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "domain \"%.40s\" contains a colon", domain);
    uint32_t domain_index = index_of(&r->domains, domain), rack_index = index_of(&r->racks, rack);
    if (domain_index == SC_NONE || rack_index == SC_NONE) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_error reason = {0};
    mdot_status status = sc_cluster_locate(&r->cluster, domain_index, rack_index, &reason);
    return status == MDOT_OK ? MDOT_OK : bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
}

static mdot_status read_node(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    reading *r = context;
    mdot_error reason = {0};
    const char *node = csv->field[at[NODE]], *type = csv->field[at[TYPE]];
    int count;
    double cpus = 0, memory_gb = 0;
    BS_TRY(bs_csv_integer(csv, at[GPUS], 1, 1 << 20, &count, err));
    if (type[0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "type is empty");
    if (node[0] == '\0' || strpbrk(node, " :,\"") != NULL)
        return bs_csv_fail(csv, err, MDOT_MALFORMED,
                           "node is \"%.40s\", but a name must not contain blanks, colons, commas or quotes", node);
    if (sc_cluster_add_node(&r->cluster, node, type, count, &reason) != MDOT_OK)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
    sc_type *t = &r->cluster.types[sc_cluster_find_type(&r->cluster, type)];
    BS_TRY(read_figure(csv, at[WATTS], 1, t, &t->watts, err));
    BS_TRY(read_figure(csv, at[IDLE_WATTS], 1e-3, t, &t->idle_watts, err));
    if (t->idle_watts > t->watts)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "type %s has %g idle_watts, but only %g watts", t->name,
                           t->idle_watts, t->watts);
    BS_TRY(read_figure(csv, at[PRICE], 1e-6, t, &t->price, err));
    if (at[CPUS] >= 0) BS_TRY(bs_csv_number(csv, at[CPUS], 0, 1e9, &cpus, err));
    if (at[MEMORY] >= 0) BS_TRY(bs_csv_number(csv, at[MEMORY], 0, 1e9, &memory_gb, err));
    r->cluster.cpus += cpus;
    r->cluster.memory_gb += memory_gb;
    return at[DOMAIN] >= 0 || at[RACK] >= 0 ? read_place(csv, at, r, err) : MDOT_OK;
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
    reading r = {0};
    mdot_status status = sc_read_rows(path, column_names, read_node, &r, err);
    free_names(&r.domains);
    free_names(&r.racks);
    if (status == MDOT_OK) status = check_names(&r.cluster, path, err);
    if (status == MDOT_OK && r.cluster.gpus == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no nodes", path);
    if (status == MDOT_OK)
        *out_cluster = r.cluster;
    else
        sc_cluster_free(&r.cluster);
    return status;
}
