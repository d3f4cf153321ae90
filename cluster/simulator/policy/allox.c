/* allox.c — AlloX (Le et al., EuroSys 2020): jobs of one GPU are matched to machines and positions with the least sum
 * of completion times, and the first job of each machine runs.
 *
 * It works in rounds, as Gavel's simulation. A job that has a machine keeps it to its end. After every change, the
 * other jobs are matched to all machines again: a busy type costs each job the mean time until one of its machines is
 * free, so that a job waits for a fast machine if that pays. Left out: the paper's fairness (alpha, the fraction of
 * considered jobs) and the profiler of run times, replaced by an estimate. */
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct matching { /* jobs that have no machine yet */
    size_t *jobs;         /* their indices in the problem */
    double *time_s;
    sc_match *matches;
} matching;

static void free_matching(matching *m)
{
    free(m->jobs);
    free(m->time_s);
    free(m->matches);
}

/* The first job on each machine is the farthest from the end: of a type with n machines, the n jobs of highest
 * position. */
static void start_first(const matching *m, size_t count, size_t types, double *machines, double *fractions)
{
    for (size_t type = 0; type < types; type++) {
        for (; machines[type] > 0; machines[type]--) {
            size_t first = count;
            for (size_t i = 0; i < count; i++) {
                bool is_taken = fractions[m->jobs[i] * types + type] > 0;
                if (m->matches[i].type != type || is_taken) continue;
                if (first == count || m->matches[i].from_end > m->matches[first].from_end) first = i;
            }
            if (first == count) break;
            fractions[m->jobs[first] * types + type] = 1;
        }
    }
}

static mdot_status allocate(const sc_round_problem *problem, double *fractions, mdot_error *err)
{
    const sc_time_fractions *p = &problem->fractions;
    double machines[SC_MAX_TYPES], delay_s[SC_MAX_TYPES] = {0}, sum_s;
    size_t count = 0;
    matching m = {calloc(p->jobs, sizeof *m.jobs), calloc(p->jobs * p->types, sizeof *m.time_s),
                  calloc(p->jobs, sizeof *m.matches)};
    mdot_status status = MDOT_OK;
    if (m.jobs == NULL || m.time_s == NULL || m.matches == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    memcpy(machines, p->gpus, p->types * sizeof *machines);
    memset(fractions, 0, p->jobs * p->types * sizeof *fractions);
    for (size_t i = 0; status == MDOT_OK && i < p->jobs; i++) {
        /* The type on which it has a machine; types: none. */
        const sc_state *state = &problem->view->states[problem->jobs[i]];
        size_t had = state->phase == SC_RUNNING ? state->type : p->types;
        if (p->scale[i] != 1) {
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy allox is for jobs of one GPU: job %s has %g",
                               problem->view->workload->jobs[problem->jobs[i]].id, p->scale[i]);
        } else if (had < p->types) {
            double speed = p->speed[i * p->types + had];
            fractions[i * p->types + had] = 1;
            machines[had]--;
            if (speed > 0) delay_s[had] += p->remaining[i] / speed / p->gpus[had];
        } else {
            for (size_t type = 0; type < p->types; type++) {
                double speed = p->speed[i * p->types + type];
                m.time_s[count * p->types + type] = speed > 0 ? p->remaining[i] / speed : INFINITY;
            }
            m.jobs[count++] = i;
        }
    }
    double free_machines = 0;
    for (size_t type = 0; type < p->types; type++) free_machines += machines[type];
    if (status == MDOT_OK && count > 0 && free_machines > 0) {
        status = sc_match_jobs(count, p->types, m.time_s, delay_s, p->gpus, p->limit_s, m.matches, &sum_s, err);
        if (status == MDOT_OK) start_first(&m, count, p->types, machines, fractions);
    }
    free_matching(&m);
    return status;
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create_keeping(view, allocate, out_self, err);
}

const sc_policy sc_policy_allox = {
    .name = "allox",
    .summary = "min-cost matching of jobs of one GPU to machines and positions (AlloX)",
    .round_s = SC_ROUND_S,
    .uses_types = true,
    .needs_kinds = true,
    .create = create,
    .decide = sc_rounds_decide,
    .destroy = sc_rounds_destroy,
};
