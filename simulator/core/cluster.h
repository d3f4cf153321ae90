/* cluster.h — what jobs run on: nodes with GPUs of a type. */
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
    int gpus;     /* in all nodes */
    double watts; /* that a GPU draws while a job holds it; 0: not known */
} sc_type;

typedef struct sc_cluster {
    sc_type types[SC_MAX_TYPES]; /* in the order in which the cluster's file names them */
    unsigned type_count;
    sc_node *nodes;
    size_t node_count;
    int gpus;
    double power_w; /* that all GPUs together may draw; 0: whatever they do */
} sc_cluster;

/* One node of `gpus` GPUs of the type "gpu". */
mdot_status sc_cluster_make_pool(int gpus, sc_cluster *out_cluster, mdot_error *err);

/* Adds a node, and its type where it is the first of it. INVALID_ARGUMENT beyond SC_MAX_TYPES types. */
mdot_status sc_cluster_add_node(sc_cluster *cluster, const char *name, const char *type, int gpus, mdot_error *err);

/* The type's index, or type_count. */
unsigned sc_cluster_find_type(const sc_cluster *cluster, const char *name);

/* GPUs of the type's largest node. */
int sc_cluster_widest_node(const sc_cluster *cluster, unsigned type);

/* Whether a job of that many GPUs could ever run: GPUs of one job are of one type. */
bool sc_cluster_holds(const sc_cluster *cluster, int gpus);

void sc_cluster_free(sc_cluster *cluster);

#endif
