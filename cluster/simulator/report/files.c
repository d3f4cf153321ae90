/* files.c — opens result files, writes results per job, and writes text as JSON. */
#include "base/csv.h"
#include "base/status.h"
#include "simulator/core/simulator.h"
#include "simulator/report/simulation_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mdot_status sc_check_output(const char *path, const char *input, mdot_error *err)
{
    struct stat a, b;
    if (path == NULL || input == NULL || stat(path, &a) != 0 || stat(input, &b) != 0 || a.st_dev != b.st_dev ||
        a.st_ino != b.st_ino || !S_ISREG(a.st_mode))
        return MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: the output would replace its own input %s", path, input);
}

mdot_status sc_open_output(const char *path, FILE **out_file, mdot_error *err)
{
    struct stat info;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    bool is_pipe = descriptor < 0 && errno == ENXIO; /* a pipe without a reader */
    FILE *file = NULL;
    if (is_pipe || (descriptor >= 0 && fstat(descriptor, &info) == 0 && !S_ISREG(info.st_mode)))
        mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    else if (descriptor < 0 || ftruncate(descriptor, 0) != 0 || (file = fdopen(descriptor, "w")) == NULL)
        mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    if (file == NULL && descriptor >= 0) close(descriptor);
    if (file == NULL) return MDOT_IO;
    *out_file = file;
    return MDOT_OK;
}

static bool write_rows(FILE *file, const sc_workload *workload, const sc_result *result)
{
    fputs("job_id,start_s,end_s,jct_s,preemptions\n", file);
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        const sc_state *state = &result->states[i];
        bs_csv_write_text(file, job->id);
        if (state->phase == SC_REJECTED)
            fprintf(file, ",,,,%u\n", state->preemptions);
        else
            fprintf(file, ",%.15g,%.15g,%.15g,%u\n", state->start_s, state->end_s, state->end_s - job->submit_s,
                    state->preemptions);
    }
    return ferror(file) == 0;
}

mdot_status sc_write_jobs(const char *path, const sc_workload *workload, const sc_result *result, mdot_error *err)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode)) return mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0) return BS_OUT_OF_MEMORY(err, "%s", path);
    mode_t mode = exists ? info.st_mode & 0777 : 0666; /* a replaced file keeps the permissions */
    int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool is_open = descriptor >= 0 && (!exists || fchmod(descriptor, mode) == 0);
    FILE *file = is_open ? fdopen(descriptor, "w") : NULL;
    mdot_status status = MDOT_OK;
    if (file == NULL) {
        status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
        if (descriptor >= 0) {
            close(descriptor);
            unlink(temporary);
        }
    } else {
        bool is_written = write_rows(file, workload, result);
        if (fclose(file) != 0 || !is_written || rename(temporary, path) != 0) {
            status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
            unlink(temporary);
        }
    }
    free(temporary);
    return status;
}

void sc_print_json_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *position = (const unsigned char *)text; *position != '\0'; position++) {
        if (*position == '"' || *position == '\\')
            fprintf(stream, "\\%c", *position);
        else if (*position < 0x20)
            fprintf(stream, "\\u%04x", *position);
        else
            fputc(*position, stream);
    }
    fputc('"', stream);
}
