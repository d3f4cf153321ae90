/* idle.h — offline jobs in the idle windows of online services, which is what MDOT predicts for.
 *
 * A window is a GPU that nobody needs from one time to another. Jobs of one GPU wait in order of arrival; where a
 * window opens, or has time left when a job ends in it, a rule takes the first of them that it believes to fit, and a
 * job that has not ended when its window does is cut off: what it did is lost, and it waits again behind all others.
 *
 *   upper       fits where the predicted upper quantile of its time does
 *   first-fit   knows nothing: takes the first that waits
 *   oracle      fits where its true time does
 */
#ifndef SC_IDLE_H
#define SC_IDLE_H

#include "simulator/core/estimate.h"

typedef struct sc_idle_window {
    double from_s, to_s;
} sc_idle_window;

typedef struct sc_idle_windows { /* by from_s */
    sc_idle_window *items;
    size_t count;
} sc_idle_windows;

/* gpu,from_s,to_s: a line a window. MALFORMED for one that ends before it begins, or two of one GPU that overlap. */
mdot_status sc_read_idle_windows(const char *path, sc_idle_windows *out_windows, mdot_error *err);
void sc_idle_windows_free(sc_idle_windows *windows);

typedef enum sc_idle_rule { SC_IDLE_UPPER, SC_IDLE_FIRST_FIT, SC_IDLE_ORACLE, SC_IDLE_RULES } sc_idle_rule;
extern const char *const sc_idle_rule_names[SC_IDLE_RULES];

typedef struct sc_idle_result {
    double idle_gpu_h; /* of all windows */
    double used_gpu_h; /* by jobs that ended */
    double lost_gpu_h; /* by jobs that were cut off */
    size_t ended, cut_off;
} sc_idle_result;

/* `believed_s` is each job's predicted upper quantile. Jobs of more than one GPU are INVALID_ARGUMENT. */
mdot_status sc_fill_idle_windows(const sc_workload *workload, const sc_idle_windows *windows, sc_idle_rule rule,
                                 const double *believed_s, sc_idle_result *out_result, mdot_error *err);

#endif
