/* repeats.h — repeated stretches of a sequence. Private to frontend/job. */
#ifndef FE_REPEATS_H
#define FE_REPEATS_H

#include "frontend/job/fe_job.h"

/* Operators of a sequence, from `first` up to but excluding `end`. */
typedef struct fe_stretch {
    uint32_t first, end;
    uint64_t hash; /* for use by the code that compares stretches */
} fe_stretch;

/* Finds consecutive stretches of equal operator kinds, as many as fit into each run. `hash` is the number of the run,
 * and the stretches of a run are adjacent in `out`. Runs that cover the most operators come first, then those with the
 * shortest period. `out` holds up to `count` entries. Returns the number of stretches; 0 if memory runs out. */
uint32_t fe_find_repeats(const fe_job *job, const mdot_job_operator *operators, const uint32_t *kind, uint32_t count,
                         fe_stretch *out);

#endif
