/* mdot_calibrate.h — calibration: correct a predictor's answers with measurements of a site.
 *
 * mdot.h includes this header and states the rules of the whole library: ownership, threading, memory, errors.
 */
#ifndef MDOT_CALIBRATE_H
#define MDOT_CALIBRATE_H

#include "mdot_explain.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* A calibration is fitted to a few measured steps; three are enough. It holds a factor and an interval width for each
 * GPU, separately for half precision and for other precisions. It also holds the effect that all GPUs have in common,
 * for GPUs that lack a row. From eight rows on, it also corrects for the share of time that a step spends in a part
 * (forward, backward, optimizer, waiting for the host or for other GPUs). The fit is conservative: zero rows change
 * nothing and few rows change little (runtime/predict/calibrate.c). A calibration belongs to the predictor that it was
 * made with. Immutable; any number of threads may read it. */
typedef struct mdot_calibration mdot_calibration;

typedef struct mdot_calibration_info {
    size_t struct_size;
    const char *predictor; /* name of the predictor that it was made with; borrowed */
    size_t row_count, gpu_count;
    double factor;            /* multiplies times on GPUs that lack a row */
    double interval;          /* on those GPUs, multiplies the logarithms of the interval's bounds over the median */
    size_t several_row_count; /* steps that ran on several GPUs together; the next two are additional multipliers for
                               * such steps */
    double several_factor, several_interval;
} mdot_calibration_info;

typedef struct mdot_calibration_gpu {
    size_t struct_size;
    const char *name; /* borrowed */
    size_t row_count; /* rows in precisions other than half; factor and interval apply to them */
    double factor, interval;
    size_t half_row_count; /* rows in half precision; half_factor and half_interval apply to them */
    double half_factor, half_interval;
} mdot_calibration_gpu;

/* Fits a calibration to `count` measured steps: jobs[i] under configurations[i] took measured_ms[i]. INVALID_ARGUMENT
 * for an invalid time and for a GPU without a name. Names are cut to 63 bytes. Other errors in a row are those of
 * mdot_predict, with the row's number. OUT_OF_RANGE for more than 2^24 rows or 64 GPUs. Allocates. The caller
 * destroys the calibration. */
mdot_status mdot_calibrate(mdot_context *context, const mdot_job *const *jobs, const mdot_configuration *configurations,
                           const double *measured_ms, size_t count, mdot_calibration **out_calibration,
                           mdot_error *err);
/* Calibrates a prediction for `configuration`: its times, and its utilisation of the GPU's peak rates. `explanation`,
 * of the same job and configuration, adds the corrections for parts of a step; NULL skips them. Performs zero
 * allocations. Calibrate a prediction only once. INVALID_ARGUMENT for a prediction that failed, as in a call for
 * many. */
mdot_status mdot_calibration_apply(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                   const mdot_explanation *explanation, mdot_prediction *prediction, mdot_error *err);
/* A calibration file is a few lines of text, described in runtime/predict/calibration_text.c. It has at most 64 KiB; a
 * larger file is refused unread. MALFORMED names the line; INCOMPATIBLE means another version of the format. The
 * saved file appears only when it is complete. */
mdot_status mdot_calibration_load(const char *path, mdot_calibration **out_calibration, mdot_error *err);
mdot_status mdot_calibration_parse(const void *bytes, size_t size_bytes, mdot_calibration **out_calibration,
                                   mdot_error *err);
mdot_status mdot_calibration_save(const mdot_calibration *calibration, const char *path, mdot_error *err);
void mdot_calibration_destroy(mdot_calibration *calibration);
mdot_status mdot_calibration_get_info(const mdot_calibration *calibration, mdot_calibration_info *out_info);
mdot_status mdot_calibration_get_gpu(const mdot_calibration *calibration, size_t index, mdot_calibration_gpu *out_gpu);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
