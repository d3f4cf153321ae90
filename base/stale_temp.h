/* stale_temp.h — temporary files of bs_write_file, which a process that is killed meanwhile leaves beside its output. */
#ifndef BS_STALE_TEMP_H
#define BS_STALE_TEMP_H

#include <stdbool.h>

#define BS_TEMPORARY_PREFIX ".mdot-" /* and 16 hexadecimal digits behind it */

/* Locks a new file for as long as it is open, by which others see that it is somebody's. False: somebody has taken it
 * for left behind before that and removes it; another name is needed. Where there are no locks it is held without. */
bool bs_hold(int descriptor);

/* Removes a file from a folder where it has such a name, is this user's and locked by nobody. Nothing is followed, and
 * nothing waited for; what is refused stays. */
void bs_remove_if_stale(int folder, const char *name);

#endif
