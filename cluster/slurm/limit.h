/* limit.h — time limits that Slurm accepts for a request, and the limit that binds it. */
#ifndef SL_LIMIT_H
#define SL_LIMIT_H

#include "slurm/site.h"
#include "slurm/submission.h"

/* Returns the limit in minutes for a request without --time that needs `wanted_minutes`; 0: leave the limit to Slurm.
 *
 * Every limit that is returned is accepted wherever Slurm's own default is accepted: it is within the MaxTime of all
 * partitions of `list`, at least --time-min, and within the default limit if a deadline, a reservation or a limit of
 * accounting applies, because these are unknown here. A line of mdot.conf with MaxTime lifts the last restriction for
 * its partition. */
uint32_t sl_limit_minutes(const sl_site *site, const sl_submission *submission, const char *list,
                          uint32_t wanted_minutes);

/* Returns the limit that will end the job: its own --time, or else `set_minutes` if it is above 0, or else the longest
 * default limit of its partitions. SL_UNLIMITED if there is none or if it is unknown. */
uint32_t sl_binding_minutes(const sl_submission *submission, const char *list, uint32_t set_minutes);

#endif
