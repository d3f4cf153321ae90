#include "slurm/decision.h"

#include <math.h>
#include <string.h>

/* A partition's MaxTime in mdot.conf, in minutes; SL_UNLIMITED if it states none. */
static uint32_t stated_minutes(const sl_site *site, const char *partition)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < site->place_count; i++)
        if (strcmp(site->places[i].partition, partition) == 0) least_s = fmin(least_s, site->places[i].most_s);
    return (uint32_t)fmin(floor(least_s / 60), SL_UNLIMITED);
}

uint32_t sl_limit_minutes(const sl_site *site, const sl_submission *s, const char *list, uint32_t wanted_minutes)
{
    uint32_t maximum = SL_UNLIMITED, usual = SL_UNLIMITED, wanted = wanted_minutes;
    bool is_stated = true; /* mdot.conf limits each listed partition */
    if (list == NULL || list[0] == '\0') return 0;
    for (const char *cursor = list; cursor != NULL;
         cursor = strchr(cursor, ',') == NULL ? NULL : strchr(cursor, ',') + 1) {
        const sl_partition *p = sl_partition_find(s->cluster, cursor, strcspn(cursor, ","));
        if (p == NULL) return 0;
        uint32_t stated = stated_minutes(site, p->name);
        is_stated = is_stated && stated != SL_UNLIMITED;
        maximum = p->most_minutes < maximum ? p->most_minutes : maximum;
        maximum = stated < maximum ? stated : maximum;
        usual = p->default_minutes < usual ? p->default_minutes : usual;
    }
    bool is_careful = s->has_deadline || s->has_reservation || (s->cluster->enforces_limits && !is_stated);
    if (is_careful && usual < maximum) maximum = usual;
    if (s->least_minutes > wanted) wanted = s->least_minutes;
    if (wanted <= maximum) return wanted;
    /* The job would be cut off. This is an improvement only if Slurm's default would cut it off earlier. */
    return maximum >= s->least_minutes && maximum > usual ? maximum : 0;
}

uint32_t sl_binding_minutes(const sl_submission *s, const char *list, uint32_t set_minutes)
{
    uint32_t longest = 0;
    if (s->own_minutes != 0) return s->own_minutes;
    if (set_minutes > 0) return set_minutes;
    if (list == NULL || list[0] == '\0') return SL_UNLIMITED;
    for (const char *cursor = list; cursor != NULL;
         cursor = strchr(cursor, ',') == NULL ? NULL : strchr(cursor, ',') + 1) {
        const sl_partition *p = sl_partition_find(s->cluster, cursor, strcspn(cursor, ","));
        if (p == NULL) return SL_UNLIMITED;
        longest = p->default_minutes > longest ? p->default_minutes : longest;
    }
    return longest;
}
