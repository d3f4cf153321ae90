#include "slurm/request.h"

#include "base/status.h"
#include "mdot/mdot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mdot_status read_all(int file, const char *path, size_t most_bytes, unsigned char **out_bytes, size_t *out_count,
                            mdot_error *err)
{
    struct stat s;
    if (fstat(file, &s) != 0) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s is not a regular file", path);
    /* one byte more than the limit, because a file may grow while it is read */
    unsigned char *bytes = malloc(most_bytes + 1);
    if (bytes == NULL) return BS_OUT_OF_MEMORY(err, "%zu bytes of %s", most_bytes, path);
    size_t count = 0;
    ssize_t got = 1;
    while (count <= most_bytes && (got = read(file, bytes + count, most_bytes + 1 - count)) > 0) count += (size_t)got;
    mdot_status status = MDOT_OK;
    if (got < 0)
        status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    else if (count > most_bytes)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE, "%s has more than %zu bytes", path, most_bytes);
    if (status != MDOT_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_count = count;
    return MDOT_OK;
}

mdot_status sl_user_file_read(const char *path, size_t most_bytes, unsigned char **out_bytes, size_t *out_count,
                              mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t count = 0, length = strlen(path);
    mdot_job *job = NULL;
    mdot_error reason = {0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file < 0) return mdot_fail(err, errno == ENOENT ? MDOT_NOT_FOUND : MDOT_IO, "%s: %s", path, strerror(errno));
    mdot_status status = read_all(file, path, most_bytes, &bytes, &count, err);
    close(file);
    if (status != MDOT_OK) return status;
    status = mdot_job_parse(bytes, count, &job, &reason);
    if (status != MDOT_OK) {
        bool is_onnx = length > 5 && strcmp(path + length - 5, ".onnx") == 0;
        mdot_fail(err, status,
                  is_onnx ? "%s is not a .job file; create one with `mdot extract %s -o FILE.job`" : "%s: %s", path,
                  is_onnx ? path : reason.message);
        free(bytes);
        return status;
    }
    mdot_job_destroy(job);
    *out_bytes = bytes;
    *out_count = count;
    return MDOT_OK;
}
