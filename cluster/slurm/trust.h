/* trust.h — files that slurmctld may believe. */
#ifndef SL_TRUST_H
#define SL_TRUST_H

#include "mdot/mdot_base.h"

/* Checks that only root and the user of this process can change the file: they own it and its folder, and neither is
 * writable by others. A folder with the sticky bit may be. A group that may write must be root's or this process's.
 * INVALID_ARGUMENT names the file and the reason; NOT_FOUND. A predictor is native code, and mdot.conf names one. */
mdot_status sl_check_trusted(const char *path, mdot_error *err);

#endif
