#include "slurm/site.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mdot_status check(const char *path, mdot_error *err)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return mdot_fail(err, errno == ENOENT ? MDOT_NOT_FOUND : MDOT_IO, "%s: %s", path, strerror(errno));
    if (s.st_uid != 0 && s.st_uid != geteuid())
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "%s belongs to user %u; slurmctld believes only files of root and of SlurmUser: use chown",
                         path, (unsigned)s.st_uid);
    bool is_sticky = S_ISDIR(s.st_mode) && (s.st_mode & S_ISVTX) != 0;
    bool is_group_trusted = s.st_gid == 0 || s.st_gid == getegid();
    if (!is_sticky && ((s.st_mode & S_IWOTH) != 0 || ((s.st_mode & S_IWGRP) != 0 && !is_group_trusted)))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s may be changed by other users: use chmod go-w", path);
    return MDOT_OK;
}

mdot_status sl_check_trusted(const char *path, mdot_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    mdot_status status = check(path, err);
    if (status != MDOT_OK || slash == NULL) return status;
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return check(folder, err);
}
