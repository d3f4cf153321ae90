/* partition.h — the cluster and the request as Slurm describes them: GPUs, partitions, submissions. */
#ifndef SL_PARTITION_H
#define SL_PARTITION_H

#include "history/mdot_history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The GPUs in a request's text of resources: "gres:gpu:a100:4,gres:nic:1". Slurm produces such text from
 * --gres, --gpus and similar options. Later versions write gres/gpu for gres:gpu, and = before the count.
 */

enum { SL_GRES_TYPE_BYTES = 64 };

typedef struct sl_gres {
    int64_t count;                 /* GPUs over all types; 0: none requested */
    char type[SL_GRES_TYPE_BYTES]; /* in lower case; empty if unspecified */
    bool is_mixed;                 /* several types, or a type for only some GPUs */
    bool is_given;                 /* the text names GPUs, possibly 0 */
} sl_gres;

/* Parses a text; NULL means zero GPUs. Unknown parts count as zero. */
sl_gres sl_gres_read(const char *text);

/* Returns the text with `type` added to each part that asks for GPUs without a type. The caller frees it; NULL if
 * memory ran out. */
char *sl_gres_with_type(const char *text, const char *type);

/* ---- Partition --------------------------------------------------------------------------------------------------- */

/* The cluster's partitions as slurmctld reports them. With them, the decision leaves a job at least as acceptable as it
 * is without a prediction. */

enum { SL_PARTITION_BYTES = 64, SL_MAX_PARTITIONS = 256, SL_MAX_NODE_TYPES = 8, SL_ACCOUNT_BYTES = 64 };

enum { SL_UNLIMITED = UINT32_MAX, SL_UNSET = UINT32_MAX - 1 }; /* in minute fields, as Slurm's INFINITE and NO_VAL */

/* GPUs with one type on a partition's usable nodes. */
typedef struct sl_node_gpus {
    char type[SL_GRES_TYPE_BYTES]; /* in lower case; empty if the nodes name no type */
    uint32_t nodes;                /* nodes with at least one */
    int64_t per_node, all;         /* the most in one node, and the sum */
} sl_node_gpus;

typedef struct sl_partition {
    char name[SL_PARTITION_BYTES];
    uint32_t most_minutes;    /* MaxTime; SL_UNLIMITED */
    uint32_t default_minutes; /* limit for a job without --time: DefaultTime, or else MaxTime */
    uint32_t over_minutes;    /* OverTimeLimit: Slurm ends a job this much later; SL_UNLIMITED */
    double reserved_s;        /* when the next reservation of its nodes begins, as seconds since 1970; INFINITY: none */
    uint32_t least_nodes, most_nodes;
    bool is_up;                 /* jobs may be submitted and start */
    bool is_open;               /* no list of users, groups, accounts or QOS restricts it */
    char qos[SL_ACCOUNT_BYTES]; /* the partition's QOS; empty: none */
    uint32_t least_cpus;        /* of a usable node */
    uint64_t least_memory_mib;
    sl_node_gpus gpus[SL_MAX_NODE_TYPES];
    uint32_t type_count, usable_nodes;
} sl_partition;

/* Limits of accounting on the time of one job. */
typedef struct sl_time_rule {
    uint32_t most_minutes; /* MaxWall; SL_UNLIMITED */
    bool counts_minutes;   /* minutes times resources are limited, too (for example GrpTRESMins); the rest is unknown */
} sl_time_rule;

typedef struct sl_qos {
    char name[SL_ACCOUNT_BYTES];
    uint32_t id;
    sl_time_rule rule;
} sl_qos;

/* A user in an account. */
typedef struct sl_association {
    char account[SL_ACCOUNT_BYTES];
    uint32_t user;
    uint32_t default_qos; /* an id; 0: unknown */
    sl_time_rule rule;    /* with the limits of the accounts above */
} sl_association;

/* A cluster snapshot. sl_cluster_destroy frees it with its two arrays. */
typedef struct sl_cluster {
    double read_s;        /* monotonic clock, in seconds */
    bool enforces_limits; /* limits of accounting apply (AccountingStorageEnforce) */
    sl_qos *qos;
    sl_association *associations;
    size_t qos_count, association_count;
    uint32_t partition_count;
    sl_partition partitions[SL_MAX_PARTITIONS];
} sl_cluster;
void sl_cluster_destroy(sl_cluster *cluster);

/* Finds the partition whose name is the first `length` bytes of `name`; NULL if it is unknown. `cluster` may be
 * NULL. */
const sl_partition *sl_partition_find(const sl_cluster *cluster, const char *name, size_t length);

/* Notes a reservation of nodes in the partition. `recurs`: it begins again after its end, or moves with the time. */
void sl_partition_add_reservation(sl_partition *partition, double start_s, bool recurs, double now_s);

/* Adds a usable node with this resource text, "gpu:a100:4,gpu:h100:2(S:0-1)", to the partition. */
void sl_partition_add_node(sl_partition *partition, const char *gres);

/* Returns the GPUs with this type, or all if it is empty, on the partition's usable nodes. */
sl_node_gpus sl_partition_gpus(const sl_partition *partition, const char *type);

/* ---- Submission -------------------------------------------------------------------------------------------------- */

/* A request to Slurm, as far as the decision looks at it. */

/* Texts may be NULL, and numbers 0, if the request leaves them open. */
typedef struct sl_submission {
    const char *partitions;                                 /* "a100,h100"; empty: the default one */
    const char *default_partition;                          /* the cluster's default partition */
    const char *per_job, *per_node, *per_socket, *per_task; /* resource texts (gres.h) */
    uint32_t nodes, sockets, tasks, cpus_per_task;          /* sockets per node */
    uint32_t tasks_per_gpu;                                 /* --ntasks-per-gpu */
    uint32_t own_minutes;                                   /* --time; SL_UNLIMITED */
    uint32_t least_minutes;                                 /* --time-min */
    double now_s;                                           /* seconds since 1970 */
    double deadline_s;                                      /* the same; 0: none */
    bool has_reservation;
    bool is_heterogeneous;  /* a part of a heterogeneous job; there is no prediction */
    bool is_exclusive;      /* takes whole nodes, with all GPUs */
    bool is_constrained;    /* asks for certain nodes, for example with --constraint or --nodelist */
    uint32_t cpus_per_node; /* at least */
    uint64_t memory_mib;    /* per node, at least */
    uint32_t user;
    const char *account, *qos;            /* NULL: the user's default */
    const char *name;                     /* the job's */
    const mdot_history_estimate *history; /* duration by the cluster's completed jobs; NULL: unknown */
    double understatement;     /* how much longer the user's jobs ran than they stated (user_records.h); 0: unknown */
    const sl_cluster *cluster; /* NULL: unknown; the request then keeps the old limit and place */
} sl_submission;

/* GPUs and nodes for a step. The GPUs are those per job; otherwise those per node, per socket or per task times their
 * number; otherwise one. */
typedef struct sl_gpus {
    int64_t gpus, nodes;
    char type[SL_GRES_TYPE_BYTES]; /* type for all GPUs; empty if unspecified */
    bool is_mixed;                 /* types differ, so there is no prediction */
    bool is_requested;             /* false: the request names no GPU */
    bool is_none;                  /* the request asks for 0 GPUs, so there is no prediction */
} sl_gpus;
sl_gpus sl_gpus_of(const sl_submission *submission);

/* Finds the strictest accounting limits for a job in the partitions of `list`. False if they are unknown. Where Slurm
 * decides by defaults, all possible ones count. */
bool sl_accounting_rule(const sl_submission *submission, const char *list, sl_time_rule *out_rule);

/* Iterates over a list: sets *name and *length to the next name. False behind the last. *name starts as NULL. */
bool sl_next_name(const char *list, const char **name, size_t *length);

#endif
