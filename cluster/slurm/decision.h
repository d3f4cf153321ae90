/* decision.h — the values written into a request by the controller, independent of Slurm's own types. */
#ifndef SL_DECISION_H
#define SL_DECISION_H

#include "slurm/partition.h"
#include "slurm/request.h"
#include "slurm/site.h"

/* Prediction → place, time limit, priority, comment. */

enum { SL_COMMENT_BYTES = 512 }; /* Slurm permits up to 1024 */

typedef struct sl_decision {
    sl_place place;           /* place for the predicted values */
    bool is_chosen;           /* this place was chosen among several, so the request should name only this one */
    uint32_t limit_minutes;   /* 0: set no limit */
    uint32_t binding_minutes; /* the limit that ends the job; SL_UNLIMITED: none */
    bool has_priority;        /* `priority` should be added; it is at most sl_site.priority_weight. False unless a limit
                             * binds the job (INCENTIVES.md) */
    uint32_t priority;
    double step_ms, total_s; /* medians; total_s is 0 if the step count is unknown */
    size_t work;             /* operators times places */
    char comment[SL_COMMENT_BYTES];
} sl_decision;

/* A predictor's context, run in the calling thread, and a calibration, which may be NULL. */
typedef struct sl_oracle {
    mdot_context *context;
    const mdot_calibration *calibration;
    size_t most_work; /* operators times places that the caller waits for; 0: as in mdot.conf */
} sl_oracle;

/* INVALID_ARGUMENT and NOT_FOUND give the reason why there is no prediction: for example, settings that contradict
 * the job, or a partition without GPUs in mdot.conf. The context runs in the calling thread. */
mdot_status sl_decide(const sl_site *site, const sl_oracle *oracle, const mdot_job *job, const sl_request *request,
                      const sl_submission *submission, sl_decision *out_decision, mdot_error *err);

/* Returns a job's priority: the full weight for jobs as short as sl_site.shortest_s, zero for longest_s, linear in the
 * logarithm between. The length is the longer of the predicted time and the limit that ends the job, multiplied by
 * `understatement` if that is above 1. 0 without a limit. */
uint32_t sl_priority(const sl_site *site, double predicted_s, uint32_t binding_minutes, int64_t gpus,
                     double understatement);

/* Whether warnings (MDOT_WARN_…) make a prediction too uncertain for a priority, and for a limit unless the site
 * permits it. */
bool sl_is_doubtful(uint32_t warnings);

/* Returns the `quantile` of the step time, whose logarithm is assumed to be normal on either side of the median, with a
 * width that matches the interval. */
double sl_step_quantile_ms(const mdot_prediction *prediction, double quantile);

/* ---- Limit ------------------------------------------------------------------------------------------------------- */

/* Returns the limit in minutes for a request without --time that needs `wanted_minutes`; 0: leave the limit to Slurm.
 *
 * Slurm treats the job with this limit at least as well as without one. The limit is within MaxTime of all partitions
 * in `list`, within MaxWall of QOS and associations, and at least --time-min. It is within Slurm's default if the job
 * asks for a reservation, if one begins before the limit's end, or if accounting counts minutes. There is no limit for
 * a request with a deadline, and none while a partition or an association is unknown. MaxTime in mdot.conf lowers
 * it. */
uint32_t sl_limit_minutes(const sl_site *site, const sl_submission *submission, const char *list,
                          uint32_t wanted_minutes);

/* Returns what must remain of a limit set earlier, after a change to the request or the cluster: at most `set_minutes`.
 * It may lie below --time-min, which the caller then lowers, too. */
uint32_t sl_limit_kept(const sl_site *site, const sl_submission *submission, const char *list, uint32_t set_minutes);

/* Returns the minutes after which Slurm ends the job: --time, or else `set_minutes` if it is above 0, or else the
 * longest default limit in the job's partitions, and OverTimeLimit. SL_UNLIMITED if there is none or it is unknown. */
uint32_t sl_binding_minutes(const sl_submission *submission, const char *list, uint32_t set_minutes);

#endif
