/* read_job.h — the child in which mdotd reads the jobs of strangers, and the call that starts it. */
#ifndef SV_READ_JOB_H
#define SV_READ_JOB_H

#include "base/training/job_argument.h"
#include "service/service.h"

/* The child's part: reads a job from stdin, within the limits, and writes `job.job` to the current folder. Warnings and
 * the reason for a failure go to stderr. Returns the exit status: SV_READ_FAILED + the status of mdot. */
enum { SV_READ_FAILED = 64 };
int sv_read_job_child(const cli_reading *reading, const sv_reader_limits *limits);

/* Text from the child. */
enum { SV_READ_TEXT = 16384 };
typedef struct sv_read_text {
    char text[SV_READ_TEXT];
    size_t used;
} sv_read_text;

/* Starts the child with `options`, such as "--dim=sequence=128", and returns the bytes of the `.job` file; the caller
 * frees them. `out_text` receives warnings, a line each. Errors: those of the reader; OUT_OF_RANGE for a job that takes
 * too much time or memory; IO for the temporary folder. */
mdot_status sv_read_job(const sv_reader_limits *limits, const void *bytes, size_t size_bytes,
                        const char *const *options, size_t option_count, unsigned char **out_bytes, size_t *out_size,
                        sv_read_text *out_text, mdot_error *err);

#endif
