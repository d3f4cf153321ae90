/* measurements_csv.h — a table of measured training steps: `mdot calibrate`'s input. */
#ifndef CLI_MEASUREMENTS_CSV_H
#define CLI_MEASUREMENTS_CSV_H

#include "mdot/mdot.h"

#include <stddef.h>

enum { MEASURED_MAX_ROWS = 1000000, MEASURED_MAX_COLUMNS = 64, MEASURED_MAX_BYTES = 1 << 26 };

/* Step i took ms[i] for jobs[i] under configurations[i]. A job that several rows share is read once. */
typedef struct measured_steps {
    const mdot_job **jobs;
    mdot_configuration *configurations;
    mdot_gpu *gpus; /* referenced by the configurations */
    double *ms;
    size_t count;
    mdot_job **owned; /* each job once */
    char **owned_by;  /* for each owned job, the cells of its row that selected it */
    size_t owned_count;
} measured_steps;

/* MALFORMED and INVALID_ARGUMENT name file and line. An invalid option value is also reported on stderr. `output` is
 * the file that the command will write; INVALID_ARGUMENT if it is a job of the table. It may be NULL. */
mdot_status measured_read(const char *command, const char *path, const char *output, bool quiet, measured_steps *out,
                          mdot_error *err);
/* Like measured_read, from text that ends in a NUL and is changed. `path` names it in messages, and paths of jobs are
 * relative to its folder. */
mdot_status measured_parse(const char *command, const char *path, char *text, size_t size_bytes, const char *output,
                           bool quiet, measured_steps *out, mdot_error *err);
void measured_free(measured_steps *steps);

#endif
