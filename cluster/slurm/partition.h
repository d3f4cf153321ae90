/* partition.h — the partitions of the cluster as slurmctld reports them: limits, states, GPUs of usable nodes. The
 * decision uses them to leave a job at least as acceptable as it is without a prediction. */
#ifndef SL_PARTITION_H
#define SL_PARTITION_H

#include "slurm/gres.h"

#include <stddef.h>
#include <stdint.h>

enum { SL_PARTITION_BYTES = 64, SL_MAX_PARTITIONS = 256, SL_MAX_NODE_TYPES = 8 };

enum {
    SL_UNLIMITED = UINT32_MAX,
    SL_UNSET = UINT32_MAX - 1
}; /* in fields of minutes, as Slurm's INFINITE and NO_VAL */

/* GPUs of one type on the usable nodes of a partition. */
typedef struct sl_node_gpus {
    char type[SL_GRES_TYPE_BYTES]; /* in lower case; empty if the nodes name no type */
    uint32_t nodes;                /* nodes with at least one */
    int64_t per_node, all;         /* the most of one node, and the sum */
} sl_node_gpus;

typedef struct sl_partition {
    char name[SL_PARTITION_BYTES];
    uint32_t most_minutes;    /* MaxTime; SL_UNLIMITED */
    uint32_t default_minutes; /* limit of a job without --time: DefaultTime, or else MaxTime */
    uint32_t least_nodes, most_nodes;
    bool is_up;   /* jobs may be submitted and start */
    bool is_open; /* no list of users, groups, accounts or QOS restricts it */
    sl_node_gpus gpus[SL_MAX_NODE_TYPES];
    uint32_t type_count, usable_nodes;
} sl_partition;

/* A snapshot of the cluster. */
typedef struct sl_cluster {
    double read_s;        /* monotonic clock, in seconds */
    bool enforces_limits; /* accounting limits apply (AccountingStorageEnforce), which this snapshot does not hold */
    uint32_t partition_count;
    sl_partition partitions[SL_MAX_PARTITIONS];
} sl_cluster;

/* Finds the partition whose name is the first `length` bytes of `name`; NULL if it is unknown. `cluster` may be
 * NULL. */
const sl_partition *sl_partition_find(const sl_cluster *cluster, const char *name, size_t length);

/* Adds a usable node with this text of resources, "gpu:a100:4,gpu:h100:2(S:0-1)", to the partition. */
void sl_partition_add_node(sl_partition *partition, const char *gres);

/* Returns the GPUs of this type, or of all types if it is empty, on the partition's usable nodes. */
sl_node_gpus sl_partition_gpus(const sl_partition *partition, const char *type);

#endif
