/* stale_temp.c — see file.h.
 *
 * The locks belong to open file descriptions (fcntl). The kernel releases them when the process ends, and they also
 * work between threads. Saving a file needs fcntl anyway, which matters in a sandbox with few system calls. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_LENGTH = sizeof BS_TEMPORARY_PREFIX - 1, DIGITS = 16 };

static bool lock(int descriptor)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &range) == 0;
}

/* If another process took the file first, the lock comes too late: the file is unlinked, so its link count is zero. */
bool bs_hold(int descriptor)
{
    struct stat info;
    if (!lock(descriptor) && errno == EAGAIN) return false;
    return fstat(descriptor, &info) != 0 || info.st_nlink > 0;
}

static bool is_temporary_name(const char *name)
{
    return strncmp(name, BS_TEMPORARY_PREFIX, PREFIX_LENGTH) == 0 && strlen(name) == PREFIX_LENGTH + DIGITS &&
           strspn(name + PREFIX_LENGTH, "0123456789abcdef") == DIGITS;
}

void bs_remove_if_stale(int folder, const char *name)
{
    if (!is_temporary_name(name)) return;
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && lock(file))
        unlinkat(folder, name, 0);
    close(file);
}
