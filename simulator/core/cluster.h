/* cluster.h — the hardware that jobs run on: nodes with GPUs of a type. */
#ifndef SC_CLUSTER_H
#define SC_CLUSTER_H

#include "simulator/core/workload.h"

typedef struct sc_node {
    char *name;
    unsigned type;
    int gpus;
} sc_node;

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
    int gpus;
    double power_w; /* power limit of all GPUs together; 0: unlimited */
} sc_cluster;

/* Makes one node with `gpus` GPUs of the type "gpu". */
mdot_status sc_cluster_make_pool(int gpus, sc_cluster *out_cluster, mdot_error *err);

/* Adds a node, and its type if it is new. INVALID_ARGUMENT beyond SC_MAX_TYPES types. */
mdot_status sc_cluster_add_node(sc_cluster *cluster, const char *name, const char *type, int gpus, mdot_error *err);

/* Returns the type's index, or type_count if it is unknown. */
unsigned sc_cluster_find_type(const sc_cluster *cluster, const char *name);

/* Returns the number of GPUs in the type's largest node. */
int sc_cluster_widest_node(const sc_cluster *cluster, unsigned type);

/* Returns whether a job of that many GPUs could ever run; the GPUs of a job are all of one type. */
bool sc_cluster_holds(const sc_cluster *cluster, int gpus);

void sc_cluster_free(sc_cluster *cluster);

#endif
