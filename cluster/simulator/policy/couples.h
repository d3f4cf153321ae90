/* couples.h — pairs of active jobs that may share GPUs, for space sharing. */
#ifndef SC_COUPLES_H
#define SC_COUPLES_H

#include "simulator/core/policy.h"

typedef struct sc_couple {
    uint32_t a, b;     /* jobs, a < b */
    size_t at_a, at_b; /* their positions in the list from which the pair was made */
    double gain;       /* largest sum of the parts of their speeds that both keep, over the types */
    double speed_a[SC_MAX_TYPES], speed_b[SC_MAX_TYPES];
    double fraction[SC_MAX_TYPES], received_s[SC_MAX_TYPES];
} sc_couple;

/* INVALID_ARGUMENT if the workload lacks the speeds of pairs (--pairs). */
mdot_status sc_couples_check(const sc_view *view, mdot_error *err);

/* Returns the part of its speed that a job keeps on a type if it shares its GPUs with the other one; 0: they cannot
 * share them, for example because their memory does not suffice, or because they have different widths. */
double sc_couples_kept(const sc_view *view, uint32_t job, uint32_t other, unsigned type);

/* Finds pairs of jobs of equal width that keep, together, more than one job's speed on a type: the best `most` by gain,
 * sorted by jobs. Returns their number. `couples` has room for 2 · most. */
size_t sc_couples_find(const sc_view *view, const uint32_t *jobs, size_t job_count, size_t most, sc_couple *couples);

/* Returns the couple of two jobs, or NULL. */
sc_couple *sc_couples_get(sc_couple *couples, size_t count, uint32_t job, uint32_t other);

#endif
