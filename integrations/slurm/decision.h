/* decision.h — from a job and a request to the values that the controller writes into the request: prediction →
 * place, time limit, priority, comment. It is independent of Slurm's own types. */
#ifndef SL_DECISION_H
#define SL_DECISION_H

#include "integrations/slurm/request.h"
#include "integrations/slurm/site.h"

/* Resources that a request to Slurm asks for. Texts may be NULL. */
typedef struct sl_submission {
    const char *partitions;                    /* "a100,h100"; empty: the default one */
    const char *default_partition;             /* default partition of the cluster */
    const char *per_job, *per_node, *per_task; /* texts of resources (gres.h) */
    uint32_t nodes, tasks;                     /* 0: unspecified */
} sl_submission;

/* Number of GPUs and nodes that work on a step. The GPUs are those per job; otherwise those per node or per task
 * times their number; otherwise one. */
typedef struct sl_gpus {
    int64_t gpus, nodes;
    char type[SL_GRES_TYPE_BYTES]; /* type of all GPUs; empty if unspecified */
    bool is_mixed;                 /* types differ, so there is no prediction */
} sl_gpus;
sl_gpus sl_gpus_of(const sl_submission *submission);

enum { SL_COMMENT_BYTES = 512 }; /* Slurm permits up to 1024 */

typedef struct sl_decision {
    sl_place place;         /* place that the predicted values apply to */
    bool is_chosen;         /* this place was chosen among several, so the request should name only this one */
    uint32_t limit_minutes; /* 0: set no limit */
    bool has_priority;      /* `priority` should be added; it is at most sl_site.priority_weight */
    uint32_t priority;
    double step_ms, total_s; /* medians; total_s is 0 if the number of steps is unknown */
    char comment[SL_COMMENT_BYTES];
} sl_decision;

/* A context of the predictor, which runs in the calling thread, and a calibration, which may be NULL. */
typedef struct sl_oracle {
    mdot_context *context;
    const mdot_calibration *calibration;
} sl_oracle;

/* INVALID_ARGUMENT and NOT_FOUND give the reason why there is no prediction: for example, settings that contradict
 * the job, or a partition without GPUs in mdot.conf. The context runs in the calling thread. */
mdot_status sl_decide(const sl_site *site, const sl_oracle *oracle, const mdot_job *job, const sl_request *request,
                      const sl_submission *submission, sl_decision *out_decision, mdot_error *err);

/* Returns the `quantile` of a step's time. The logarithm of the time is assumed to be normal on either side of the
 * median, with a width that matches the interval. */
double sl_step_quantile_ms(const mdot_prediction *prediction, double quantile);

#endif
