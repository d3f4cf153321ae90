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

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Slurm's own treatment of a request without --time, as far as it is certain. */
typedef struct bounds {
    uint32_t most;     /* longest limit that Slurm accepts wherever it accepts the default */
    uint32_t usual;    /* shortest default limit in the partitions */
    bool is_careful;   /* a limit above `usual` could make the job wait */
    double deadline_s; /* INFINITY: none */
} bounds;

/* False if a partition or an accounting limit is unknown. */
static bool find_bounds(const sl_site *site, const sl_submission *s, const char *list, uint32_t minutes, bounds *out)
{
    enum { DELAY_S = 120 }; /* a job starts some time after the decision */
    bounds b = {.most = SL_UNLIMITED, .usual = SL_UNLIMITED, .is_careful = s->has_reservation};
    sl_time_rule rule;
    size_t length;
    if (s->cluster == NULL || list == NULL || list[0] == '\0' || !sl_accounting_rule(s, list, &rule)) return false;
    for (const char *name = NULL; sl_next_name(list, &name, &length);) {
        const sl_partition *p = sl_partition_find(s->cluster, name, length);
        if (p == NULL) return false;
        b.most = lesser(b.most, lesser(p->most_minutes, stated_minutes(site, p->name)));
        b.usual = lesser(b.usual, p->default_minutes);
        b.is_careful |= p->reserved_s < s->now_s + 60.0 * minutes + DELAY_S;
    }
    b.most = lesser(b.most, rule.most_minutes);
    b.is_careful |= rule.counts_minutes;
    *out = b;
    return true;
}

uint32_t sl_limit_minutes(const sl_site *site, const sl_submission *s, const char *list, uint32_t wanted_minutes)
{
    bounds b;
    uint32_t wanted = wanted_minutes > s->least_minutes ? wanted_minutes : s->least_minutes;
    /* Without a limit, Slurm shortens a job so that it meets the deadline. With one, Slurm cancels it. */
    if (s->deadline_s > 0 || !find_bounds(site, s, list, wanted, &b) || s->least_minutes > b.usual) return 0;
    uint32_t maximum = b.is_careful ? lesser(b.most, b.usual) : b.most;
    if (wanted <= maximum) return wanted;
    /* The job would be cut off. This is an improvement only if Slurm's default would cut it off earlier. */
    return maximum >= s->least_minutes && maximum > b.usual ? maximum : 0;
}

uint32_t sl_limit_kept(const sl_site *site, const sl_submission *s, const char *list, uint32_t set_minutes)
{
    bounds b;
    if (!find_bounds(site, s, list, set_minutes, &b)) return set_minutes;
    uint32_t kept = lesser(set_minutes, b.is_careful || s->deadline_s > 0 ? lesser(b.most, b.usual) : b.most);
    if (s->deadline_s > 0) kept = lesser(kept, (uint32_t)fmax((s->deadline_s - s->now_s) / 60 - 1, 1));
    return kept;
}

uint32_t sl_binding_minutes(const sl_submission *s, const char *list, uint32_t set_minutes)
{
    uint32_t longest = 0, over = 0;
    size_t length;
    if (list == NULL || list[0] == '\0') return SL_UNLIMITED;
    for (const char *name = NULL; sl_next_name(list, &name, &length);) {
        const sl_partition *p = sl_partition_find(s->cluster, name, length);
        if (p == NULL || p->over_minutes == SL_UNLIMITED) return SL_UNLIMITED;
        longest = p->default_minutes > longest ? p->default_minutes : longest;
        over = p->over_minutes > over ? p->over_minutes : over;
    }
    if (s->own_minutes != 0)
        longest = s->own_minutes;
    else if (set_minutes > 0)
        longest = set_minutes;
    return longest < SL_UNLIMITED - over ? longest + over : SL_UNLIMITED;
}
