/* measurements_csv.h — a table of measured training steps: `mdot calibrate`'s input. */
#pragma once

#include "base/training/training_options.h"
#include "mdot/mdot.h"

#include <stddef.h>

enum { MEASURED_MAX_ROWS = 1000000, MEASURED_MAX_BYTES = 1 << 26, MEASURED_MAX_STEPS = 256 };

typedef struct measured_step {
    mdot_configuration configuration;
    mdot_gpu gpu;   /* referenced by the configuration */
    double ms, gib; /* either may be 0, which is unknown */
    char *place;    /* for messages, as "steps.csv:3" */
} measured_step;

typedef struct measured_job {
    mdot_job *job;
    char *cells; /* of the rows that selected it */
} measured_job;

/* Step i is of jobs[i]. Rows with the same job share one reading. */
typedef struct measured_steps {
    const mdot_job **jobs;
    measured_step *item;
    size_t count;
    measured_job *owned; /* each job once */
    size_t owned_count;
} measured_steps;

/* MALFORMED and INVALID_ARGUMENT name file and line. An invalid option value is also reported on stderr. `output` is
 * the future output file; INVALID_ARGUMENT if it is a job in the table. It may be NULL. */
mdot_status measured_read(const char *command, const char *path, const char *output, bool quiet, measured_steps *out,
                          mdot_error *err);
/* Like measured_read, from text in memory. `path` names it in messages, and paths of jobs are relative to its
 * folder. */
mdot_status measured_parse(const char *command, const char *path, const char *text, size_t size_bytes, bool quiet,
                           measured_steps *out, mdot_error *err);
/* Values of keys that a step in an option omits. gpu may be NULL and batch may be 0: the step must have them. */
typedef struct measured_defaults {
    const cli_training *training;
    const mdot_gpu *gpu;
    int64_t batch;
} measured_defaults;

/* The options --calibration and --measured of a command, whose rows are MEASURED_OPTIONS at `member` of `request`. */
typedef struct measured_options {
    const char *calibration_path;          /* may be NULL */
    const char *steps[MEASURED_MAX_STEPS]; /* for example "gpu=A100,batch=64,precision=amp,ms=123" */
    size_t step_count;
} measured_options;
bool measured_keep_step(const char *command, char *text, void *measured);
#define MEASURED_OPTIONS(request, member)                                                                              \
    PREDICT_CALIBRATION_OPTION(request, member.calibration_path),                                                      \
        CLI_CALL_ROW(                                                                                                  \
            "measured", "KEY=X,…", measured_keep_step,                                                                 \
            "correct the predictions by a measured step of this job: ms, gib (peak of allocated memory) or both, "     \
            "and the options under which it ran, for example gpu=A100,batch=64,precision=amp,ms=123. Omitted keys "    \
            "are those of the command line",                                                                           \
            .at = offsetof(request, member), .repeats = true, .excludes = "calibration")
/* Makes the calibration of the options from steps of `job`; NULL if both options are absent. The caller destroys it,
 * and frees the steps, also after a failure. */
mdot_status measured_make_calibration(const char *command, const measured_options *measured,
                                      const measured_defaults *defaults, mdot_predictor *predictor,
                                      mdot_context *context, const mdot_job *job, measured_steps *out_steps,
                                      mdot_calibration **out_calibration, mdot_error *err);

/* Fits a calibration to every stride-th step from `first` on. */
mdot_status measured_calibrate(mdot_context *context, const measured_steps *steps, size_t first, size_t stride,
                               mdot_calibration **out_calibration, mdot_error *err);
void measured_free(measured_steps *steps);
