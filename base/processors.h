/* processors.h — the number of processors that the process may use. */
#pragma once

#include <stdbool.h>

/* Processors by affinity and by the quotas of the process's control groups (version 2); at least 1. */
long bs_processors(void);
/* The least quota, in processors, of the group that `membership` names (as /proc/self/cgroup) and its parents, below
 * the folder `root`. 0: no quota. */
long bs_cgroup_processors(const char *membership, const char *root);
