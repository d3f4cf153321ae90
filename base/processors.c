/* processors.c — see processors.h. Sources: sched_getaffinity(2), cgroups(7), Linux's cgroup-v2.rst (cpu.max). */
#include "base/processors.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* Quota over period of a group, rounded up; 0: none. */
static long quota_of(const char *root, const char *group)
{
    char path[PATH_BYTES + 64];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
    FILE *file = fopen(path, "re");
    bool has_quota = file != NULL && fscanf(file, "%lld %lld", &quota, &period) == 2; /* "max" is no number */
    if (file != NULL) fclose(file);
    return has_quota && quota > 0 && period > 0 ? (long)((quota + period - 1) / period) : 0;
}

long bs_cgroup_processors(const char *membership, const char *root)
{
    char line[PATH_BYTES], *group = NULL;
    long least = 0;
    FILE *file = fopen(membership, "re");
    while (file != NULL && group == NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::", 3) == 0) group = line + 3;
    if (file != NULL) fclose(file);
    if (group == NULL) return 0;
    group[strcspn(group, "\n")] = '\0';
    for (char *end = group + strlen(group);; *end = '\0') { /* a parent's quota holds for its children */
        long found = quota_of(root, strcmp(group, "/") == 0 ? "" : group);
        if (found > 0 && (least == 0 || found < least)) least = found;
        end = strrchr(group, '/');
        if (end == NULL || *group == '\0') break;
    }
    return least;
}

long bs_processors(void)
{
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    long quota = bs_cgroup_processors("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < count) count = quota;
    return count > 0 ? count : 1;
}
