/* profile.c — a sorted array of steps. */
#include "base/status.h"
#include "simulator/policy/backfill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sc_profile_free(sc_profile *profile)
{
    free(profile->from_s);
    free(profile->gpus);
    *profile = (sc_profile){0};
}

static mdot_status reserve(sc_profile *profile, size_t count, mdot_error *err)
{
    if (count <= profile->capacity) return MDOT_OK;
    size_t capacity = 2 * count;
    double *from_s = realloc(profile->from_s, capacity * sizeof *from_s);
    if (from_s != NULL) profile->from_s = from_s;
    int *gpus = realloc(profile->gpus, capacity * sizeof *gpus);
    if (gpus != NULL) profile->gpus = gpus;
    if (from_s == NULL || gpus == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    profile->capacity = capacity;
    return MDOT_OK;
}

mdot_status sc_profile_begin(sc_profile *profile, double now_s, int gpus, mdot_error *err)
{
    BS_TRY(reserve(profile, 1, err));
    profile->from_s[0] = now_s;
    profile->gpus[0] = gpus;
    profile->count = 1;
    return MDOT_OK;
}

/* Returns the step that begins at this time, which is split off if needed; times before the first step count as it. */
static size_t step_at(sc_profile *profile, double time_s)
{
    size_t low = 0, high = profile->count; /* the last step that begins at or before the time is in [low, high) */
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        *(profile->from_s[middle] <= time_s ? &low : &high) = middle;
    }
    if (profile->from_s[low] >= time_s) return low;
    size_t behind = profile->count - low - 1;
    memmove(&profile->from_s[low + 2], &profile->from_s[low + 1], behind * sizeof *profile->from_s);
    memmove(&profile->gpus[low + 2], &profile->gpus[low + 1], behind * sizeof *profile->gpus);
    profile->from_s[low + 1] = time_s;
    profile->gpus[low + 1] = profile->gpus[low];
    profile->count++;
    return low + 1;
}

mdot_status sc_profile_add(sc_profile *profile, double from_s, double until_s, int gpus, mdot_error *err)
{
    mdot_status status = reserve(profile, profile->count + 2, err);
    if (status != MDOT_OK || from_s >= until_s) return status;
    size_t first = step_at(profile, from_s);
    size_t final = isfinite(until_s) ? step_at(profile, until_s) : profile->count;
    for (size_t i = first; i < final; i++) profile->gpus[i] += gpus;
    return MDOT_OK;
}

double sc_profile_find(const sc_profile *profile, int gpus, double span_s)
{
    size_t begin = 0; /* first step from which enough GPUs have been free */
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->gpus[i] < gpus) {
            begin = i + 1;
            continue;
        }
        double until_s = i + 1 < profile->count ? profile->from_s[i + 1] : INFINITY;
        if (until_s - profile->from_s[begin] >= span_s) return profile->from_s[begin];
    }
    return INFINITY;
}
