/* append_file.c — see file.h. The lock is flock's, because the kernel releases it when a process ends, and
 * because it excludes other threads in the process, too. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static mdot_status fail_append(const bs_append *a, const char *action, mdot_error *err)
{
    mdot_status status = errno == ENOENT || errno == ENOTDIR ? MDOT_NOT_FOUND : MDOT_IO;
    return mdot_fail(err, status, "%s: %s: %s", a->path, action, strerror(errno));
}

static bool lock(int descriptor)
{
    int result;
    do result = flock(descriptor, LOCK_EX);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Reads up to `size_bytes` at `offset`. Returns the number of bytes, or -1. */
static ssize_t read_at(int descriptor, char *out, size_t size_bytes, uint64_t offset)
{
    size_t have = 0;
    while (have < size_bytes) {
        ssize_t count = pread(descriptor, out + have, size_bytes - have, (off_t)(offset + have));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        have += (size_t)count;
    }
    return (ssize_t)have;
}

static mdot_status read_head(bs_append *a, mdot_error *err)
{
    struct stat info;
    char final = '\n';
    if (fstat(a->descriptor, &info) != 0) return fail_append(a, "cannot be read", err);
    if (!S_ISREG(info.st_mode)) return mdot_fail(err, MDOT_IO, "%s: not a regular file", a->path);
    if (!lock(a->descriptor)) return fail_append(a, "cannot be locked", err);
    if (fstat(a->descriptor, &info) != 0) return fail_append(a, "cannot be read", err);
    a->size_bytes = (uint64_t)info.st_size;
    ssize_t count = read_at(a->descriptor, a->head, sizeof a->head - 1, 0);
    if (count < 0 || (a->size_bytes > 0 && read_at(a->descriptor, &final, 1, a->size_bytes - 1) < 0))
        return fail_append(a, "cannot be read", err);
    a->head[count] = '\0';
    a->is_line_open = final != '\n';
    return MDOT_OK;
}

mdot_status bs_append_begin(bs_append *a, const char *path, mdot_error *err)
{
    a->path = path;
    a->descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (a->descriptor < 0) return fail_append(a, "cannot be opened for appending", err);
    mdot_status status = read_head(a, err);
    if (status != MDOT_OK) bs_append_cancel(a);
    return status;
}

void bs_append_cancel(bs_append *a) { close(a->descriptor); }

mdot_status bs_append_end(bs_append *a, const char *text, size_t size_bytes, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    if (!bs_is_within_limit(a->size_bytes + size_bytes + 1)) {
        status = mdot_fail(err, MDOT_IO, "%s: the process's limit of file sizes is too low", a->path);
    } else if ((a->is_line_open && !bs_write_all(a->descriptor, "\n", 1)) ||
               !bs_write_all(a->descriptor, text, size_bytes) || fsync(a->descriptor) != 0) {
        status = fail_append(a, "cannot be written", err);
        if (ftruncate(a->descriptor, (off_t)a->size_bytes) != 0)
            status = mdot_fail(err, MDOT_IO, "%s: a line is incomplete, because writing and truncating failed: %s",
                               a->path, strerror(errno));
    }
    bs_append_cancel(a);
    return status;
}
