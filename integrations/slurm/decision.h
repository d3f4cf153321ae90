/* decision.h — from a job and a request to what the controller writes into it: prediction → place, time limit,
 * priority, comment. Knows nothing of Slurm's own types. */
#ifndef SL_DECISION_H
#define SL_DECISION_H

#include "integrations/slurm/request.h"
#include "integrations/slurm/site.h"

/* What a request to Slurm asks for. Texts may be NULL. */
typedef struct sl_ask {
    const char *partitions;                    /* "a100,h100"; none: the default one */
    const char *default_partition;             /* the cluster's */
    const char *per_job, *per_node, *per_task; /* resources (gres.h) */
    uint32_t nodes, tasks;                     /* 0: not said */
} sl_ask;

/* GPUs and nodes that work on a step: the job's, else the nodes' or the tasks' times their number, else one. */
typedef struct sl_gpus {
    int64_t gpus, nodes;
    char type[SL_GRES_TYPE_BYTES]; /* of all of them; empty where none is said */
    bool is_mixed;                 /* types differ: no prediction */
} sl_gpus;
sl_gpus sl_gpus_of(const sl_ask *ask);

enum { SL_COMMENT_BYTES = 512 }; /* Slurm takes up to 1024 */

typedef struct sl_decision {
    sl_place place;         /* that the figures are of */
    bool is_chosen;         /* of several places this one: the request should name it alone */
    uint32_t limit_minutes; /* 0: none is to be set */
    bool has_priority;      /* `priority` is to be added, of sl_site.priority_weight at most */
    uint32_t priority;
    double step_ms, total_s; /* medians; total_s is 0 where steps are not known */
    char comment[SL_COMMENT_BYTES];
} sl_decision;

/* What answers: a context of the predictor, which runs in the calling thread, and its calibration, or NULL. */
typedef struct sl_oracle {
    mdot_context *context;
    const mdot_calibration *calibration;
} sl_oracle;

/* INVALID_ARGUMENT and NOT_FOUND say why nothing is predicted: settings that do not fit the job, a partition without
 * GPUs in mdot.conf. `context` runs in the calling thread. */
mdot_status sl_decide(const sl_site *site, const sl_oracle *oracle, const mdot_job *job, const sl_request *request,
                      const sl_ask *ask, sl_decision *out_decision, mdot_error *err);

/* The `quantile` of a step's time, which is taken as normal in its logarithm on either side of the median, as far apart
 * as the interval says. */
double sl_step_quantile_ms(const mdot_prediction *prediction, double quantile);

#endif
