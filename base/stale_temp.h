/* stale_temp.h — temporary files of bs_write_file. A process killed while writing leaves one beside the output. */
#ifndef BS_STALE_TEMP_H
#define BS_STALE_TEMP_H

#include <stdbool.h>

#define BS_TEMPORARY_PREFIX ".mdot-" /* followed by 16 hexadecimal digits */

/* Locks a new file while it is open, as a sign of use. False if another process has meanwhile taken it for an
 * abandoned file and removes it; the caller needs another name then. If the file system lacks locks, the file is
 * used unlocked. */
bool bs_hold(int descriptor);

/* Removes a file from a folder if it has such a name, belongs to this user and is unlocked. It never follows links or
 * waits. If the removal is refused, the file stays. */
void bs_remove_if_stale(int folder, const char *name);

#endif
