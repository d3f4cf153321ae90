/* mdot_calibrate.h — calibration: correct a predictor's answers with a site's measurements.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors. */
#ifndef MDOT_CALIBRATE_H
#define MDOT_CALIBRATE_H

#include "mdot_explain.h"

MDOT_BEGIN_DECLARATIONS

/* A calibration corrects predictions by a site's measured steps; one is enough. The logarithm of measured over
 * predicted is a sum of effects: site, GPU model (host and kernels), GPU model in half precision or in full precision,
 * several GPUs together, job on a GPU model, and configuration there. Each effect is drawn around zero with a part of
 * the variance in the predictor's intervals (runtime/predict/calibration_prior.c). Therefore zero rows change nothing,
 * a row corrects its own job most, and the interval narrows by the known part. Measured memory corrects predicted
 * memory in the same way.
 *
 *   jobs        A job is recognised by its operators, at any batch and under any name. Jobs with a similar division of
 *               work among operators share a part.
 *   GPU models  A GPU model is corrected by its own rows, with an exception: if two GPU models have rows for three or
 *               more common jobs, and the residuals agree, then rows on one model correct jobs without rows on the
 *               other.
 *               The site's offset corrects GPU models without a row.
 *
 * A calibration belongs to one predictor. Immutable.
 *
 * @threads any number may share a calibration */
typedef struct mdot_calibration mdot_calibration;

/* One measured step, or the median of several. At least one of step_ms and memory_bytes must be above 0; 0 means
 * unmeasured. */
typedef struct mdot_measurement {
    size_t struct_size;
    const mdot_job *job;                     /* job that was trained */
    const mdot_configuration *configuration; /* how it was trained; its GPU needs a name */
    double step_ms;                          /* measured step time in milliseconds; 0: not measured */
    double memory_bytes; /* peak of allocated memory on one GPU, as torch.cuda.max_memory_allocated counts it */
    /* uncalibrated prediction of the step, for example one stored with the measurement; NULL: the step is predicted
     * now */
    const mdot_prediction *prediction;
    const char *place; /* the row's place in messages, for example "steps.csv:3"; NULL: its number, as in "row 0" */
} mdot_measurement;

/* A calibration as a whole. */
typedef struct mdot_calibration_info {
    size_t struct_size;
    const char *predictor;       /* name of the calibrated predictor; borrowed */
    size_t row_count, gpu_count; /* measured steps; GPU models among them */
    double factor;               /* multiplies times on GPUs that lack a row */
    double interval; /* on those GPUs, multiplies the logarithms for the interval's bounds over the median */
    /* steps on several GPUs together; the next is the mean factor of this effect, over GPU models with such rows */
    size_t several_row_count;
    double several_factor, several_interval; /* several_interval is 1 */
    size_t memory_row_count;                 /* rows that have measured memory */
    size_t job_count;                        /* different jobs among the rows */
} mdot_calibration_info;

/* A measured GPU model. Factors and intervals are for a job without a common part with the measured ones. */
typedef struct mdot_calibration_gpu {
    size_t struct_size;
    const char *name;      /* borrowed */
    size_t row_count;      /* rows in precisions other than half; factor and interval apply to them */
    double factor;         /* multiplies times in precisions other than half, above 0 */
    double interval;       /* multiplies the logarithms of the bounds over the median, above 0 */
    size_t half_row_count; /* rows in half precision; half_factor and half_interval apply to them */
    double half_factor;    /* `factor` in half precision */
    double half_interval;  /* `interval` in half precision */
} mdot_calibration_gpu;

/* The effects in one prediction's correction, in this order: */
#define MDOT_CALIBRATION_EFFECT_MAP(X)                                                                                 \
    X(SITE, "site")                                                                                                    \
    X(GPU, "gpu")                     /* for a GPU model with rows, together with the site */                          \
    X(HOST, "host")                   /* launch cost on the GPU model's host */                                        \
    X(KERNELS, "kernels")             /* of the GPU model */                                                           \
    X(PRECISION, "precision")         /* of the GPU model, in this precision class */                                  \
    X(SEVERAL, "several")             /* for several GPUs together */                                                  \
    X(JOB, "job")                     /* on the GPU model; includes related jobs, and its rows on another GPU model */ \
    X(CONFIGURATION, "configuration") /* of the job on the GPU model */

/* An effect (MDOT_CALIBRATION_EFFECT_MAP), an index of the arrays below. */
typedef enum mdot_calibration_effect {
#define MDOT_CALIBRATION_EFFECT_ENUM(id, name) MDOT_CALIBRATION_EFFECT_##id,
    MDOT_CALIBRATION_EFFECT_MAP(MDOT_CALIBRATION_EFFECT_ENUM)
#undef MDOT_CALIBRATION_EFFECT_ENUM
        MDOT_CALIBRATION_EFFECT_COUNT /* effect count */
} mdot_calibration_effect;

/* Returns an effect's name (MDOT_CALIBRATION_EFFECT_MAP).
 *
 * @param effect any number
 * @return for example "job"; "?" for an unknown value; static
 */
const char *mdot_calibration_effect_name(mdot_calibration_effect effect);

/* One prediction's correction, as factors with the product `factor` (unless it is cut at 1/64 or 64). `believed`
 * is the explained part of an effect's prior variance: 0 knows nothing, 1 knows the effect exactly. */
typedef struct mdot_calibration_factors {
    size_t struct_size;
    double factor, interval; /* multiplier of the time; multiplier of the logarithms of the bounds over the median */
    double by_effect[MDOT_CALIBRATION_EFFECT_COUNT];        /* the time's factors by effect */
    double believed[MDOT_CALIBRATION_EFFECT_COUNT];         /* how much each factor is believed, 0 to 1 */
    double memory_factor, memory_interval;                  /* `factor` and `interval` for peak memory */
    double memory_by_effect[MDOT_CALIBRATION_EFFECT_COUNT]; /* peak memory's factors by effect */
    double memory_believed[MDOT_CALIBRATION_EFFECT_COUNT];  /* how much each of these is believed, 0 to 1 */
    size_t row_count;                                       /* the GPU model's rows */
    size_t job_row_count;                                   /* the job's rows */
    /* GPU model whose rows of the job correct the time here; NULL: none. It belongs to the calibration */
    const char *carried_gpu;
    double carried_correlation; /* correlation of one job's residuals on both GPU models, 0 to 1 */
    double carried_factor;      /* share of these rows in the job's by_effect */
} mdot_calibration_factors;

/* Fits a calibration to measured steps: jobs[i] under configurations[i] took measured_ms[i]. Names are cut to 63 bytes.
 * The order of rows does not matter. A GPU model keeps 512 different steps; beyond them, the closest are averaged.
 * Allocates.
 *
 * @param jobs each row's job
 * @param configurations each row's configuration; the GPU needs a name
 * @param measured_ms measured step time in milliseconds, above 0
 * @param count number of rows, at most 2^24 on at most 64 GPU models
 * @errors INVALID_ARGUMENT for an invalid time and for a GPU without a name; OUT_OF_RANGE for more rows or GPU models;
 *     those of mdot_predict, with the row's number; OUT_OF_MEMORY */
mdot_status mdot_calibrate(mdot_context *context, const mdot_job *const *jobs, const mdot_configuration *configurations,
                           const double *measured_ms, size_t count, mdot_calibration **out_calibration,
                           mdot_error *err);
/* Fits a calibration to measured times and memory, as mdot_calibrate does for times.
 *
 * @param rows measured steps; the caller may free them, with jobs and configurations, afterwards
 * @param count number of rows, at most 2^24
 * @errors those of mdot_calibrate */
mdot_status mdot_calibrate_measured(mdot_context *context, const mdot_measurement *rows, size_t count,
                                    mdot_calibration **out_calibration, mdot_error *err);
/* Calibrates a prediction: time, energy at the same average power, memory, and utilisation of the GPU's peak rates.
 * Performs zero allocations. Calibrate a prediction only once.
 *
 * @param configuration the prediction's
 * @param prediction changed in place
 * @errors INVALID_ARGUMENT for a failed prediction, as in a call for many, and for bounds that do not ascend */
mdot_status mdot_calibration_apply_to_job(const mdot_calibration *calibration, const mdot_job *job,
                                          const mdot_configuration *configuration, mdot_prediction *prediction,
                                          mdot_error *err);
/* Explains an uncalibrated prediction's correction.
 *
 * @param configuration the prediction's
 * @param explanation for the same job and configuration; identifies the job. NULL leaves the job's own effect out
 * @param prediction an uncalibrated prediction
 * @param out_factors receives all effects' factors
 * @errors those of mdot_calibration_apply_to_job */
mdot_status mdot_calibration_explain(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                     const mdot_explanation *explanation, const mdot_prediction *prediction,
                                     mdot_calibration_factors *out_factors, mdot_error *err);
/* Reads a calibration file: text of at most 16 MiB (docs/reference/formats/cal.md). A larger file is refused unread.
 *
 * @param path file name
 * @errors NOT_FOUND; IO; MALFORMED names the line; INCOMPATIBLE means another format version: make the file again from
 *     the measured steps; OUT_OF_MEMORY */
mdot_status mdot_calibration_load(const char *path, mdot_calibration **out_calibration, mdot_error *err);
/* Reads a calibration from a file's bytes.
 *
 * @param bytes the caller may free them afterwards
 * @param size_bytes number of bytes, at most 16 MiB
 * @errors MALFORMED names the line; INCOMPATIBLE means another format version: make the file again from the measured
 *     steps; OUT_OF_MEMORY */
mdot_status mdot_calibration_parse(const void *bytes, size_t size_bytes, mdot_calibration **out_calibration,
                                   mdot_error *err);
/* Writes a calibration file, which appears only when it is complete.
 *
 * @param path file name; an existing file is replaced
 * @errors IO; OUT_OF_MEMORY
 */
mdot_status mdot_calibration_save(const mdot_calibration *calibration, const char *path, mdot_error *err);
/* Destroys a calibration.
 *
 * @param calibration NULL is accepted
 */
void mdot_calibration_destroy(mdot_calibration *calibration);
/* Describes a calibration as a whole.
 *
 * @param out_info receives counts and factors; its string is borrowed from the calibration
 * @errors INVALID_ARGUMENT for NULL or an invalid struct_size
 */
mdot_status mdot_calibration_get_info(const mdot_calibration *calibration, mdot_calibration_info *out_info);
/* Describes a measured GPU model's correction.
 *
 * @param index index below gpu_count
 * @param out_gpu receives counts and factors; the name is borrowed from the calibration
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_calibration_get_gpu(const mdot_calibration *calibration, size_t index, mdot_calibration_gpu *out_gpu);

MDOT_END_DECLARATIONS
#endif
