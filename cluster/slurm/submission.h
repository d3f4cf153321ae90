/* submission.h — a request to Slurm, as far as the decision looks at it. */
#ifndef SL_SUBMISSION_H
#define SL_SUBMISSION_H

#include "slurm/partition.h"

#include "history/mdot_history.h"

/* Texts may be NULL, and numbers 0, if the request leaves them open. */
typedef struct sl_submission {
    const char *partitions;                                 /* "a100,h100"; empty: the default one */
    const char *default_partition;                          /* default partition of the cluster */
    const char *per_job, *per_node, *per_socket, *per_task; /* texts of resources (gres.h) */
    uint32_t nodes, sockets, tasks;                         /* sockets of a node */
    uint32_t own_minutes;                                   /* --time; SL_UNLIMITED */
    uint32_t least_minutes;                                 /* --time-min */
    bool has_deadline, has_reservation;
    bool is_exclusive; /* takes whole nodes, with all their GPUs */
    uint32_t user;
    const char *account, *name;           /* of the job */
    const mdot_history_estimate *history; /* its duration by the jobs that ended on the cluster; NULL: unknown */
    double understatement;     /* how much longer the user's jobs ran than they stated (outcomes.h); 0: unknown */
    const sl_cluster *cluster; /* NULL: unknown; the request then keeps its limit and place */
} sl_submission;

/* Number of GPUs and nodes that work on a step. The GPUs are those per job; otherwise those per node, per socket or per
 * task times their number; otherwise one. */
typedef struct sl_gpus {
    int64_t gpus, nodes;
    char type[SL_GRES_TYPE_BYTES]; /* type of all GPUs; empty if unspecified */
    bool is_mixed;                 /* types differ, so there is no prediction */
    bool is_requested;             /* false: the request asks for no GPU */
} sl_gpus;
sl_gpus sl_gpus_of(const sl_submission *submission);

#endif
