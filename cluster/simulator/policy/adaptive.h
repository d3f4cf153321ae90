/* adaptive.h — the mechanism that Pollux and Sia share: every 60 s, each job gets one of its options, which are numbers
 * of GPUs of a type, or none.
 *
 * Options of a type whose nodes have R GPUs are powers of two up to R and all multiples of R, as in Sia, so that jobs
 * fit the nodes. Pollux considers any width up to the smaller of R and 8, too. A job that none of these suits has its
 * least or its own width as the only option, for example a job that fixes its width. A job starts on its least number
 * of GPUs. Later it may get twice as many as it ever had, because its speed is unknown beyond. Jobs that arrive or end
 * between two decisions change nothing until the next one.
 */
#ifndef SC_ADAPTIVE_H
#define SC_ADAPTIVE_H

#include "simulator/policy/packing.h"
#include "simulator/solve/options.h"

#define SC_ADAPTIVE_S 60. /* the interval in both papers */

/* What a policy knows of an option when it states its cost. */
typedef struct sc_offer {
    uint32_t job;
    double goodput;     /* predicted work per second */
    double least, fair; /* goodput of the job's slowest option, and on an equal part of the cluster */
    bool is_present;    /* the job runs on this option now */
    bool is_running;    /* the job runs, on this option or another */
    double kept;        /* the part of its time that the job keeps if it restarts now: (age - restarts so far · cost) /
                          * (age + cost), at least 0 */
} sc_offer;

typedef struct sc_adaptive_rule {
    double (*cost)(const sc_offer *offer);
    double (*none_cost)(bool is_running);
    bool any_width; /* consider all widths up to 8 GPUs of a node */
} sc_adaptive_rule;

mdot_status sc_adaptive_create(const sc_view *view, const sc_adaptive_rule *rule, void **out_self, mdot_error *err);
mdot_status sc_adaptive_decide(void *self, const sc_view *view, sc_plan *plan, mdot_error *err);
void sc_adaptive_destroy(void *self);

#endif
