/* open.h — opens a store with a given set of schema versions. */
#ifndef ST_OPEN_H
#define ST_OPEN_H

#include "store/schema.h"

/* Whether a file system, by its number from statfs, is shared with other machines. */
bool st_is_network(unsigned long file_system);

/* Like mdot_store_open, with the versions of `steps`. Migrates an older store only if `migrates` is set; *out_from
 * (may be NULL) gets the version before. `disk`: 0 asks the system, 1 assumes a network file system. */
mdot_status st_open(const char *path, const mdot_store_options *options, const st_steps *steps, bool migrates, int disk,
                    int *out_from, mdot_store **out_store, mdot_error *err);

#endif
