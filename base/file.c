/* file.c — see file.h.
 *
 * A file is synchronised before it is renamed. Otherwise the new name may have empty content after a power failure. The
 * folder is left unsynchronised, because either complete file is a correct result then. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static mdot_status fail_file(mdot_error *err, const char *path)
{
    bool is_missing = errno == ENOENT || errno == ENOTDIR;
    mdot_status status = is_missing ? MDOT_NOT_FOUND : errno == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_IO;
    return mdot_fail(err, status, "%s: %s", path, strerror(errno));
}

mdot_status bs_open_file(const char *path, int *out_descriptor, uint64_t *out_size_bytes, mdot_error *err)
{
    if (path == NULL) return BS_INVALID(err, "the name of a file is missing");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return fail_file(err, path);
    struct stat info;
    mdot_status status = MDOT_OK;
    if (fstat(descriptor, &info) != 0)
        status = fail_file(err, path);
    else if (S_ISDIR(info.st_mode))
        status = mdot_fail(err, MDOT_IO, "%s: a directory, not a file", path);
    else if (!S_ISREG(info.st_mode))
        status = mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    if (status != MDOT_OK) {
        close(descriptor);
        return status;
    }
    *out_descriptor = descriptor;
    *out_size_bytes = (uint64_t)info.st_size;
    return MDOT_OK;
}

static mdot_status read_all(int descriptor, const char *path, unsigned char *bytes, size_t size_bytes,
                            size_t *out_size_bytes, mdot_error *err)
{
    size_t have = 0;
    while (have < size_bytes) {
        ssize_t count = read(descriptor, bytes + have, size_bytes - have);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_file(err, path);
        if (count == 0) break; /* the file was truncated meanwhile */
        have += (size_t)count;
    }
    bytes[have] = '\0';
    *out_size_bytes = have;
    return MDOT_OK;
}

mdot_status bs_read_file(const char *path, unsigned char **out_bytes, size_t *out_size_bytes, mdot_error *err)
{
    return bs_read_file_within(path, UINT64_MAX, out_bytes, out_size_bytes, err);
}

mdot_status bs_read_file_within(const char *path, uint64_t max_bytes, unsigned char **out_bytes, size_t *out_size_bytes,
                                mdot_error *err)
{
    int descriptor;
    uint64_t size_bytes;
    mdot_status status = bs_open_file(path, &descriptor, &size_bytes, err);
    if (status != MDOT_OK) return status;
    bool is_small = size_bytes <= max_bytes;
    unsigned char *bytes = is_small && size_bytes < SIZE_MAX ? malloc((size_t)size_bytes + 1) : NULL;
    if (!is_small)
        status = mdot_fail(err, MDOT_MALFORMED, "%s: the file has %llu bytes; the maximum is %llu", path,
                           (unsigned long long)size_bytes, (unsigned long long)max_bytes);
    else if (bytes == NULL)
        status = BS_OUT_OF_MEMORY(err, "%s", path);
    else
        status = read_all(descriptor, path, bytes, (size_t)size_bytes, out_size_bytes, err);
    close(descriptor);
    if (status == MDOT_OK)
        *out_bytes = bytes;
    else
        free(bytes);
    return status;
}

/* Length of the folder in a path, including its slash; 0 for a bare name. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Returns whether the folder is /dev or within /proc, where names refer to open files of processes. */
static bool is_for_devices(const char *path)
{
    size_t length = folder_length(path);
    char *folder = length > 0 ? strndup(path, length) : strdup(".");
    char *real = folder != NULL ? realpath(folder, NULL) : NULL;
    bool found = real != NULL && (strcmp(real, "/dev") == 0 || strncmp(real, "/proc/", 6) == 0);
    free(real);
    free(folder);
    return found;
}

mdot_status bs_check_output(const char *path, mdot_error *err)
{
    struct stat info;
    if (path == NULL || *path == '\0') return BS_INVALID(err, "the output has no name");
    bool exists = stat(path, &info) == 0;
    if (path[folder_length(path)] == '\0' || (exists && S_ISDIR(info.st_mode)))
        return mdot_fail(err, MDOT_IO, "%s: a directory, not a file", path);
    if ((exists && !S_ISREG(info.st_mode)) || is_for_devices(path))
        return BS_INVALID(
            err, "%s: not a regular file; mdot replaces outputs atomically and therefore requires a regular file",
            path);
    return MDOT_OK;
}

bool bs_is_same_file(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

mdot_status bs_check_replaces(const char *path, const char *input, mdot_error *err)
{
    mdot_status status = bs_check_output(path, err);
    if (status != MDOT_OK || !bs_is_same_file(path, input)) return status;
    return BS_INVALID(err, "%s: the output would replace its own input %s", path, input);
}

bool bs_write_all(int descriptor, const void *data, size_t size_bytes)
{
    const char *bytes = data;
    while (size_bytes > 0) {
        ssize_t written = write(descriptor, bytes, size_bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes += written;
        size_bytes -= (size_t)written;
    }
    return true;
}

/* Some file systems do not support synchronisation and report that. */
static bool synchronise(int descriptor)
{
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
}

static mdot_status rename_file(const char *temporary, const char *path, mdot_error *err)
{
    return rename(temporary, path) == 0 ? MDOT_OK : fail_file(err, path);
}

/* A name that differs between processes, threads and calls; if it is taken, another is tried. (The multipliers are
 * splitmix64's: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.) */
static uint64_t next_name(void)
{
    static atomic_uint_fast64_t calls;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t x = (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 32) +
                 (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

enum { PERMISSIONS = 0777 };

/* The permissions of the file at `path`; false if there is none. */
static bool find_mode(const char *path, mode_t *out_mode)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    *out_mode = info.st_mode & PERMISSIONS;
    return true;
}

/* Gives the descriptor's file the permissions of the file at `path`, if there is one. They usually agree already: a
 * sandbox without fchmod suffices. */
static bool keep_mode(int descriptor, const char *path)
{
    mode_t mode;
    struct stat info;
    if (!find_mode(path, &mode)) return true;
    return (fstat(descriptor, &info) == 0 && (info.st_mode & PERMISSIONS) == mode) || fchmod(descriptor, mode) == 0;
}

/* Creates a locked new file beside `path` and stores its name in `temporary`; -1 on failure. It is never more
 * permissive than the replaced file. The kernel applies the umask, because reading the mask would change it for the
 * whole process. */
static int create_beside(const char *path, char *temporary, size_t size)
{
    enum { ATTEMPTS = 100 };
    int descriptor = -1;
    mode_t mode;
    if (!find_mode(path, &mode)) mode = 0666;
    for (int i = 0; i < ATTEMPTS; i++) {
        snprintf(temporary, size, "%.*s" BS_TEMPORARY_PREFIX "%016llx", (int)folder_length(path), path,
                 (unsigned long long)next_name());
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0 ? bs_hold(descriptor) : errno != EEXIST) break;
        if (descriptor < 0) continue;
        unlink(temporary);
        close(descriptor);
        descriptor = -1;
        errno = EEXIST;
    }
    return descriptor;
}

bool bs_is_within_limit(uint64_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size_bytes <= limit.rlim_cur;
}

mdot_status bs_write_file(const char *path, const void *bytes, size_t size_bytes, mdot_error *err)
{
    mdot_status status = bs_check_output(path, err);
    if (status != MDOT_OK) return status;
    if (!bs_is_within_limit(size_bytes)) {
        errno = EFBIG;
        return fail_file(err, path);
    }
    size_t size = folder_length(path) + sizeof BS_TEMPORARY_PREFIX "0123456789abcdef";
    char *temporary = malloc(size);
    if (temporary == NULL) return BS_OUT_OF_MEMORY(err, "%s", path);
    int descriptor = create_beside(path, temporary, size);
    if (descriptor < 0) {
        status = fail_file(err, path);
    } else {
        if (!bs_write_all(descriptor, bytes, size_bytes) || !keep_mode(descriptor, path) || !synchronise(descriptor))
            status = fail_file(err, path);
        int held = fcntl(descriptor, F_DUPFD_CLOEXEC, 0); /* keeps the lock until the file has its name */
        if (close(descriptor) != 0 && status == MDOT_OK) status = fail_file(err, path);
        if (status == MDOT_OK) status = rename_file(temporary, path, err);
        if (status != MDOT_OK) unlink(temporary);
        if (held >= 0) close(held);
    }
    free(temporary);
    return status;
}

mdot_status bs_replace_file(const char *temporary, const char *path, mdot_error *err)
{
    mdot_status status = bs_check_output(path, err);
    if (status != MDOT_OK) return status;
    int descriptor = open(temporary, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_file(err, temporary);
    if (!keep_mode(descriptor, path) || !synchronise(descriptor)) status = fail_file(err, path);
    close(descriptor);
    return status == MDOT_OK ? rename_file(temporary, path, err) : status;
}
