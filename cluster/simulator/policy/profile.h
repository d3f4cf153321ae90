/* profile.h — the number of free GPUs over future time, a step function. */
#ifndef SC_PROFILE_H
#define SC_PROFILE_H

#include "mdot/mdot_base.h"

#include <stddef.h>

typedef struct sc_profile {
    double *from_s; /* beginning of each step, ascending; the last step lasts for ever */
    int *gpus;      /* free in it */
    size_t count, capacity;
} sc_profile;

void sc_profile_free(sc_profile *profile);

/* Begins with `gpus` free GPUs from `now_s` on. */
mdot_status sc_profile_begin(sc_profile *profile, double now_s, int gpus, mdot_error *err);
/* Adds GPUs, or takes them if negative, from one time until another, which may be INFINITY. */
mdot_status sc_profile_add(sc_profile *profile, double from_s, double until_s, int gpus, mdot_error *err);
/* Returns the first time from which so many GPUs are free for `span_s` seconds; INFINITY: never. */
double sc_profile_find(const sc_profile *profile, int gpus, double span_s);

#endif
