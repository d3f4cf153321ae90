/* adaptive.h — policies that change widths and batch sizes: the mechanism of Pollux and Sia, and goodput. */
#ifndef SC_ADAPTIVE_H
#define SC_ADAPTIVE_H

#include "simulator/core/policy.h"
#include "simulator/policy/allocation.h"
#include "simulator/solve/linear.h"

/* Every 60 s, each job gets one option, a number of GPUs of one type, or none (Pollux, Sia).
 *
 * On nodes with R GPUs, options are powers of two up to R and all multiples of R, as in Sia, so jobs fit the nodes.
 * Pollux also considers any width up to min(R, 8). A job without a suitable option, for example with a fixed width, has
 * the minimum or requested width as the only option. A job starts on the minimum number of GPUs. Later it may get twice
 * the largest number so far, because the speed is unknown beyond. Jobs that arrive or end between two decisions change
 * nothing until the next one. */

#define SC_ADAPTIVE_S 60. /* the interval in both papers */

/* An option, as the cost function of a policy sees it. */
typedef struct sc_offer {
    uint32_t job;
    double goodput;     /* predicted work per second */
    double least, fair; /* goodput on the job's slowest option, and on an equal part of the cluster */
    bool is_present;    /* the job runs on this option now */
    bool is_running;    /* the job runs, on this option or another */
    double kept; /* part of the job's time kept after a restart now: (age - restarts so far · cost) / (age + cost), at
                  * least 0 */
} sc_offer;

typedef struct sc_adaptive_rule {
    double (*cost)(const sc_offer *offer);
    double (*none_cost)(bool is_running);
    bool any_width; /* consider all widths up to 8 GPUs of a node */
} sc_adaptive_rule;

mdot_status sc_adaptive_create(const sc_view *view, void **out_self, mdot_error *err);
mdot_status sc_adaptive_decide(void *self, const sc_view *view, sc_plan *plan);
void sc_adaptive_destroy(void *self);

/* ---- Goodput ----------------------------------------------------------------------------------------------------- */

/* A job's predicted speed by GPUs and batch size: Pollux' goodput, the product of throughput and statistical
 * efficiency. */

/* Returns the predicted work per second on `gpus` GPUs of a type, on as few nodes as possible; 0: the job does not run
 * there. If `adapts`, and the job has a scaling but no own batch size, the batch size is the best one by the step-time
 * model and the present gradient noise. *out_batch is that batch size, or 0: the job's own. */
double sc_goodput(const sc_view *view, uint32_t job, unsigned type, int gpus, bool adapts, double *out_batch);

/* Returns the predicted remaining seconds on so many GPUs, at the job's batch size. */
double sc_goodput_left_s(const sc_view *view, uint32_t job, unsigned type, int gpus);

/* Returns the next wider number of GPUs than `gpus` that the job's bounds allow and on which it is known to be faster,
 * at most `most`; 0: none. */
int sc_goodput_next_width(const sc_view *view, uint32_t job, unsigned type, int gpus, int most);

#endif
