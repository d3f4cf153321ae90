/* cluster.c — nodes and types of GPUs. */
#include "simulator/core/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_GPUS = 1 << 24 };

unsigned sc_cluster_find_type(const sc_cluster *cluster, const char *name)
{
    unsigned type = 0;
    while (type < cluster->type_count && strcasecmp(cluster->types[type].name, name) != 0) type++;
    return type;
}

mdot_status sc_cluster_add_node(sc_cluster *cluster, const char *name, const char *type_name, int gpus, mdot_error *err)
{
    if (gpus < 1 || gpus > MAX_GPUS - cluster->gpus)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a cluster has 1 to %d GPUs", MAX_GPUS);
    unsigned type = sc_cluster_find_type(cluster, type_name);
    if (type == SC_MAX_TYPES)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a cluster has at most %d types of GPUs", SC_MAX_TYPES);
    sc_node *nodes = realloc(cluster->nodes, (cluster->node_count + 1) * sizeof *nodes);
    if (nodes == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    cluster->nodes = nodes;
    char *node_name = strdup(name);
    if (node_name == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (type == cluster->type_count) {
        char *copy = strdup(type_name);
        if (copy == NULL) {
            free(node_name);
            return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        }
        cluster->types[cluster->type_count++] = (sc_type){.name = copy};
    }
    nodes[cluster->node_count++] =
        (sc_node){.name = node_name, .type = type, .gpus = gpus, .domain = cluster->domain_count++};
    if (cluster->rack_count == 0) cluster->rack_count = 1;
    cluster->types[type].gpus += gpus;
    if (gpus > cluster->types[type].widest_node) cluster->types[type].widest_node = gpus;
    cluster->gpus += gpus;
    return MDOT_OK;
}

mdot_status sc_cluster_locate(sc_cluster *cluster, uint32_t domain, uint32_t rack, mdot_error *err)
{
    sc_node *final = &cluster->nodes[cluster->node_count - 1];
    for (size_t i = 0; i + 1 < cluster->node_count; i++)
        if (cluster->nodes[i].domain == domain && cluster->nodes[i].rack != rack)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "its domain is in two racks, those of nodes %s and %s",
                             cluster->nodes[i].name, final->name);
    cluster->domain_count--; /* the new node's initial domain */
    final->domain = domain;
    final->rack = rack;
    if (domain >= cluster->domain_count) cluster->domain_count = domain + 1;
    if (rack >= cluster->rack_count) cluster->rack_count = rack + 1;
    return MDOT_OK;
}

mdot_status sc_cluster_make_pool(int gpus, sc_cluster *out_cluster, mdot_error *err)
{
    sc_cluster cluster = {0};
    mdot_status status = sc_cluster_add_node(&cluster, "pool", "gpu", gpus, err);
    if (status == MDOT_OK)
        *out_cluster = cluster;
    else
        sc_cluster_free(&cluster);
    return status;
}

double sc_cluster_watts(const sc_type *type, double clock)
{
    if (clock == 0 || type->idle_watts == 0) return type->watts;
    return type->idle_watts + (type->watts - type->idle_watts) * clock * clock * clock;
}

bool sc_cluster_holds(const sc_cluster *cluster, int gpus)
{
    for (unsigned type = 0; type < cluster->type_count; type++)
        if (gpus <= cluster->types[type].gpus) return true;
    return false;
}

void sc_cluster_free(sc_cluster *cluster)
{
    for (size_t i = 0; i < cluster->node_count; i++) free(cluster->nodes[i].name);
    for (unsigned type = 0; type < cluster->type_count; type++) free(cluster->types[type].name);
    free(cluster->nodes);
    *cluster = (sc_cluster){0};
}
