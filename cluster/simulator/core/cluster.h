/* cluster.h — the hardware that jobs run on: nodes with GPUs of a type. */
#ifndef SC_CLUSTER_H
#define SC_CLUSTER_H

#include "simulator/core/workload.h"

typedef struct sc_node {
    char *name;
    unsigned type;
    int gpus;
    uint32_t domain; /* nodes whose GPUs one fabric connects as fast as those of a node, for example by NVLink */
    uint32_t rack;   /* nodes below one switch; a domain lies within a rack */
} sc_node;

/* The smallest part of the topology that holds a set of GPUs. */
typedef enum sc_level { SC_LEVEL_NODE, SC_LEVEL_DOMAIN, SC_LEVEL_RACK, SC_LEVEL_CLUSTER } sc_level;

typedef struct sc_type {
    char *name;
    int gpus;     /* in all nodes together */
    double watts; /* power of a GPU while a job holds it; 0: unknown */
} sc_type;

typedef struct sc_cluster {
    sc_type types[SC_MAX_TYPES]; /* in the order of the cluster's file */
    unsigned type_count;
    sc_node *nodes;
    size_t node_count;
    uint32_t domain_count, rack_count; /* at first every node is a domain of its own, and all are in one rack */
    int gpus;
    double power_w; /* power limit of all GPUs together; 0: unlimited */
} sc_cluster;

/* Makes one node with `gpus` GPUs of the type "gpu". */
mdot_status sc_cluster_make_pool(int gpus, sc_cluster *out_cluster, mdot_error *err);

/* Adds a node, and its type if it is new. INVALID_ARGUMENT beyond SC_MAX_TYPES types. */
mdot_status sc_cluster_add_node(sc_cluster *cluster, const char *name, const char *type, int gpus, mdot_error *err);

/* Places the last node in a domain and a rack, counted from 0. INVALID_ARGUMENT if the domain is in another rack. */
mdot_status sc_cluster_locate(sc_cluster *cluster, uint32_t domain, uint32_t rack, mdot_error *err);

/* Returns whether racks or domains of several nodes are known. */
bool sc_cluster_has_topology(const sc_cluster *cluster);

/* Returns the type's index, or type_count if it is unknown. Case does not matter: V100 and v100 are one type. */
unsigned sc_cluster_find_type(const sc_cluster *cluster, const char *name);

/* Returns the number of GPUs in the type's largest node. */
int sc_cluster_widest_node(const sc_cluster *cluster, unsigned type);

/* Returns whether a job of that many GPUs could ever run; the GPUs of a job are all of one type. */
bool sc_cluster_holds(const sc_cluster *cluster, int gpus);

void sc_cluster_free(sc_cluster *cluster);

#endif
