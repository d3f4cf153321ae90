/* idle.h — offline jobs in the idle windows of online services, MDOT's use case.
 *
 * A window is a span in which a GPU is unused. Jobs with one GPU wait in order of arrival. If a window opens, or has
 * time left when a job in it ends, a rule selects the first job that it expects to fit. A job that still runs when its
 * window ends is cut off: its work is lost, and it waits again behind all others.
 *
 *   upper       selects a job if the predicted upper quantile of its time fits
 *   first-fit   ignores times and selects the first waiting job
 *   oracle      selects a job if its true time fits */
#ifndef SC_IDLE_H
#define SC_IDLE_H

#include "simulator/core/estimate.h"

typedef struct sc_idle_window {
    double from_s, to_s;
} sc_idle_window;

typedef struct sc_idle_windows { /* sorted by from_s */
    sc_idle_window *items;
    size_t count;
} sc_idle_windows;

/* Reads gpu,from_s,to_s, one line per window. MALFORMED for a window that ends before it begins, and for overlapping
 * windows on one GPU. */
mdot_status sc_read_idle_windows(const char *path, sc_idle_windows *out_windows, mdot_error *err);
void sc_idle_windows_free(sc_idle_windows *windows);

typedef enum sc_idle_rule { SC_IDLE_UPPER, SC_IDLE_FIRST_FIT, SC_IDLE_ORACLE, SC_IDLE_RULES } sc_idle_rule;
extern const char *const sc_idle_rule_names[SC_IDLE_RULES];

typedef struct sc_idle_result {
    double idle_gpu_h; /* GPU hours of all windows */
    double used_gpu_h; /* GPU hours: completed jobs */
    double lost_gpu_h; /* GPU hours: jobs that were cut off */
    size_t ended, cut_off;
} sc_idle_result;

/* `predicted_s` is each job's predicted upper quantile. INVALID_ARGUMENT for jobs of more than one GPU. */
mdot_status sc_fill_idle_windows(const sc_workload *workload, const sc_idle_windows *windows, sc_idle_rule rule,
                                 const double *predicted_s, sc_idle_result *out_result, mdot_error *err);

#endif
