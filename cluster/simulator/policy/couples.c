/* couples.c — selects and finds pairs of jobs. */
#include "simulator/policy/rounds.h"

#include <math.h>
#include <stdlib.h>

static int by_gain(const void *left, const void *right)
{
    const sc_couple *x = left, *y = right;
    if (x->gain != y->gain) return x->gain < y->gain ? 1 : -1;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static int by_jobs(const void *left, const void *right)
{
    const sc_couple *x = left, *y = right;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

mdot_status sc_couples_check(const sc_view *view, mdot_error *err)
{
    if (view->workload->pair_speeds != NULL) return MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "space sharing requires the speeds of pairs of jobs; give --pairs, or --sweep and --interference");
}

double sc_couples_kept(const sc_view *view, uint32_t job, uint32_t partner, unsigned type)
{
    const sc_workload *w = view->workload;
    const sc_job *a = &w->jobs[job], *b = &w->jobs[partner];
    if (a->gpus != b->gpus) return 0;
    double alone = sc_workload_speed(w, a, type, a->gpus);
    return alone > 0 ? sc_workload_pair_speed(w, a->kind, b->kind, type, a->gpus) / alone : 0;
}

/* Fills speeds and gain. The pair's true speeds are scaled as the speed of the job alone is mispredicted. */
static void measure(const sc_view *view, sc_couple *c)
{
    const sc_workload *w = view->workload;
    const sc_job *a = &w->jobs[c->a], *b = &w->jobs[c->b];
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        double kept_a = sc_couples_kept(view, c->a, c->b, type), kept_b = sc_couples_kept(view, c->b, c->a, type);
        bool fits = kept_a > 0 && kept_b > 0 && a->gpus <= view->cluster->types[type].gpus;
        c->speed_a[type] = fits ? kept_a * sc_estimate_speed(view->estimate, c->a, type, a->gpus) : 0;
        c->speed_b[type] = fits ? kept_b * sc_estimate_speed(view->estimate, c->b, type, b->gpus) : 0;
        if (fits && kept_a + kept_b > c->gain) c->gain = kept_a + kept_b;
    }
}

size_t sc_couples_find(const sc_view *view, const uint32_t *jobs, size_t job_count, size_t maximum, sc_couple *couples)
{
    size_t count = 0;
    for (size_t i = 0; i < job_count; i++) {
        for (size_t j = i + 1; j < job_count; j++) {
            if (view->workload->jobs[jobs[i]].gpus != view->workload->jobs[jobs[j]].gpus) continue;
            bool swaps = jobs[j] < jobs[i];
            sc_couple c = {
                .a = jobs[swaps ? j : i], .b = jobs[swaps ? i : j], .at_a = swaps ? j : i, .at_b = swaps ? i : j};
            measure(view, &c);
            if (c.gain <= 1) continue;
            couples[count++] = c;
            if (count < 2 * maximum) continue;
            qsort(couples, count, sizeof *couples, by_gain);
            count = maximum;
        }
    }
    qsort(couples, count, sizeof *couples, by_gain);
    if (count > maximum) count = maximum;
    qsort(couples, count, sizeof *couples, by_jobs);
    return count;
}

sc_couple *sc_couples_get(sc_couple *couples, size_t count, uint32_t job, uint32_t partner)
{
    sc_couple wanted = {.a = job < partner ? job : partner, .b = job < partner ? partner : job};
    return bsearch(&wanted, couples, count, sizeof *couples, by_jobs);
}
