/* history_nodes.h — the table of keys: for each key, the statistics of its jobs. It has a fixed number of entries; the
 * one that was used least recently makes room for a new key. */
#ifndef HS_NODES_H
#define HS_NODES_H

#include "history/history_keys.h"

enum { HS_NO_NODE = 0xffffffff, HS_EARLIER = 6 };

/* Durations of a key, which are natural logarithms of seconds. Weights decay with time. */
typedef struct hs_durations {
    double at_s;         /* end of the last job, to which weights have decayed */
    double weight, mean; /* of durations, or of deviations from the coarser keys (history_learning.h) */
    double recent;       /* mean in which each job counts as much as all earlier ones together */
} hs_durations;

/* Statistics of one key. A job is compared with the estimate at its submission, and other jobs of the key have ended
 * since then. Therefore a key keeps its durations at a few earlier times, whose distances grow from a minute to
 * days. */
typedef struct hs_node {
    uint64_t hash;
    hs_durations now, earlier[HS_EARLIER]; /* the latest first; weight 0: empty */
    double misses, spread; /* weight and mean of absolute errors of estimates, relative to the usual error */
    double ends, failures; /* weights of all jobs and of early failures */
    double failure;        /* mean logarithm of the seconds until early failures */
    double at_s;           /* time to which the weights above have decayed */
} hs_node;

/* Returns the durations that the key had at a time; NULL: none. */
const hs_durations *hs_node_at(const hs_node *node, double time_s);
/* Keeps the present durations as earlier ones, where it is time to do so. Call it before a job that ended at `time_s`
 * is added. */
void hs_node_keep(hs_node *node, double time_s);

typedef struct hs_nodes hs_nodes;

/* The caller destroys the table; NULL if memory ran out. */
hs_nodes *hs_nodes_create(size_t most);
void hs_nodes_destroy(hs_nodes *nodes);
size_t hs_nodes_count(const hs_nodes *nodes);

/* Returns the entry of a key, or NULL. */
const hs_node *hs_nodes_find(const hs_nodes *nodes, uint64_t hash);

/* Returns the entry of a key, and creates it if it is missing. It is valid until the next call. NULL if memory ran
 * out. */
hs_node *hs_nodes_use(hs_nodes *nodes, uint64_t hash);

/* Returns the entries from the least to the most recently used: the one behind `previous`, which is NULL at first. NULL
 * behind the last. */
const hs_node *hs_nodes_next(const hs_nodes *nodes, const hs_node *previous);

#endif
