/* mdot_calibrate.h — calibration: a predictor's answers corrected to what a site measures.
 *
 * mdot.h includes this header and says what holds for all of the library: ownership, threading, memory, errors.
 */
#ifndef MDOT_CALIBRATE_H
#define MDOT_CALIBRATE_H

#include "mdot_predict.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Made of a few measured steps, as few as three: a factor and a width of the interval for each GPU, in half precision
 * and not, what GPUs have in common for those without a row, and, from eight rows on, what steps have in common that
 * spend more of their time in one part (forward, backward, optimizer, waiting for the host or for other GPUs). It holds
 * back: without rows it changes nothing, with few it changes little (runtime/predict/calibrate.c). It belongs to the
 * predictor that it was made with. Immutable; any number of threads may read it. */
typedef struct mdot_calibration mdot_calibration;

typedef struct mdot_calibration_info {
    size_t struct_size;
    const char *predictor; /* the name of the one that it was made with; lent */
    size_t row_count, gpu_count;
    double factor;            /* that times are multiplied by, on GPUs without a row; */
    double interval;          /* and that the logarithms of their interval's bounds over the median are multiplied by */
    size_t several_row_count; /* steps of several GPUs that worked together; what theirs are multiplied by besides */
    double several_factor, several_interval;
} mdot_calibration_info;

typedef struct mdot_calibration_gpu {
    size_t struct_size;
    const char *name; /* lent */
    size_t row_count; /* not in half precision, and what of that; */
    double factor, interval;
    size_t half_row_count; /* in half precision */
    double half_factor, half_interval;
} mdot_calibration_gpu;

/* From `count` measured steps: of jobs[i] under configurations[i] one took measured_ms[i]. INVALID_ARGUMENT for a time
 * that is none and for a GPU without a name, of which 63 bytes are kept; what is wrong with a row otherwise is
 * mdot_predict's to say, with its number. OUT_OF_RANGE for more than 2^24 rows or 64 GPUs. Allocates. The caller
 * destroys the calibration. */
mdot_status mdot_calibrate(mdot_context *context, const mdot_job *const *jobs, const mdot_configuration *configurations,
                           const double *measured_ms, size_t count, mdot_calibration **out_calibration,
                           mdot_error *err);
/* Calibrates a prediction made for the configuration: its times and shares of the card's peak. `explanation`, of the
 * same job and configuration, brings in what parts of a step have in common; NULL leaves that out. Allocates nothing.
 * A prediction must not be calibrated twice; INVALID_ARGUMENT for one that was not answered, as in a call for many. */
mdot_status mdot_calibration_apply(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                   const mdot_explanation *explanation, mdot_prediction *prediction, mdot_error *err);
/* Text of a few lines, at most 64 KiB (of a larger file nothing is read), as runtime/predict/calibration_text.c describes
 * it. MALFORMED names the line, INCOMPATIBLE: another version of the format. The file appears complete or not at all.
 */
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
