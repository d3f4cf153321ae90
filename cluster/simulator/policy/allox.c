/* allox.c — AlloX (Le et al., EuroSys 2020): jobs of one GPU are matched to machines and positions with the least sum
 * of completion times, and the first job of each free machine runs, without preemption.
 *
 * At every event the waiting jobs are matched again to all machines. A busy machine costs each job the predicted time
 * until it is free, so that a job waits for a fast machine if that pays. Machines of a type that are free are one group
 * of equal machines; busy ones are groups of their own while the program stays small, otherwise of neighbours with the
 * mean of their times. Beyond 64 waiting jobs, the shortest are matched. Left out: the paper's fairness (alpha, the
 * fraction of considered jobs) and the profiler of run times, replaced by an estimate. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_MATCHED = 64, MOST_PLACES = 30000 };
static const double limit_s = 10;

typedef struct busy {
    unsigned type;
    double left_s;
} busy;

/* The matching of one decision. Groups come by type, the free machines of each first. */
typedef struct matching {
    sc_ranked *jobs; /* by their time on the fastest type */
    busy *machines;
    size_t count, machine_count, group_count;
    unsigned *types; /* of each group */
    double *delay_s, *sizes, *time_s;
    sc_match *matches;
} matching;

static int by_type_and_time(const void *left, const void *right)
{
    const busy *a = left, *b = right;
    if (a->type != b->type) return a->type < b->type ? -1 : 1;
    return (a->left_s > b->left_s) - (a->left_s < b->left_s);
}

static double seconds_on(const sc_view *view, uint32_t job, unsigned type)
{
    double speed = sc_estimate_speed(view->estimate, job, type, 1);
    return speed > 0 ? sc_view_planned_work(view, job) / speed : INFINITY;
}

static void list_jobs(matching *m, const sc_view *view, const sc_active *active)
{
    for (size_t i = 0; i < active->count; i++) {
        uint32_t job = active->jobs[i];
        if (sc_view_is_running(view, job)) continue;
        double fastest_s = INFINITY;
        for (unsigned type = 0; type < view->cluster->type_count; type++)
            fastest_s = fmin(fastest_s, seconds_on(view, job, type));
        m->jobs[m->count++] = (sc_ranked){job, fastest_s};
    }
    qsort(m->jobs, m->count, sizeof *m->jobs, sc_by_rank);
    if (m->count > MOST_MATCHED) m->count = MOST_MATCHED;
}

static void group_machines(matching *m, const sc_view *view, const sc_plan *plan)
{
    for (size_t i = 0; i < view->running_count; i++) {
        const sc_state *state = &view->states[view->running[i]];
        double left_s = seconds_on(view, view->running[i], state->type) + fmax(0, state->busy_s - view->now_s);
        m->machines[m->machine_count++] = (busy){state->type, fmax(left_s, 60)};
    }
    qsort(m->machines, m->machine_count, sizeof *m->machines, by_type_and_time);
    size_t most_groups = MOST_PLACES / (m->count * m->count) + 1, size = m->machine_count / most_groups + 1;
    for (unsigned type = 0, first = 0; type < view->cluster->type_count; type++) {
        m->types[m->group_count] = type;
        m->sizes[m->group_count++] = plan->free[type];
        for (size_t taken = 0; first < m->machine_count && m->machines[first].type == type; first++) {
            if (taken++ % size == 0) m->types[m->group_count++] = type;
            size_t group = m->group_count - 1;
            m->sizes[group]++;
            m->delay_s[group] += (m->machines[first].left_s - m->delay_s[group]) / m->sizes[group];
        }
    }
}

/* Starts the jobs that are the farthest from the end on their machines, or waits for the shortest on `fails`. */
static void start(const matching *m, const sc_view *view, sc_plan *plan, bool fails)
{
    for (size_t i = 0; fails && i < m->count; i++) sc_plan_run_fastest(view, plan, m->jobs[i].job);
    for (size_t group = 0; !fails && group < m->group_count; group++) {
        unsigned type = m->types[group];
        bool is_free = group == 0 || m->types[group - 1] != type;
        for (unsigned from_end = (unsigned)m->count; is_free && from_end > 0 && plan->free[type] > 0; from_end--)
            for (size_t i = 0; i < m->count && plan->free[type] > 0; i++)
                if (m->matches[i].type == group && m->matches[i].from_end == from_end)
                    sc_plan_run(plan, m->jobs[i].job, type, 1);
    }
}

static mdot_status match(matching *m, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    double sum_s;
    group_machines(m, view, plan);
    for (size_t i = 0; i < m->count; i++)
        for (size_t group = 0; group < m->group_count; group++)
            m->time_s[i * m->group_count + group] = seconds_on(view, m->jobs[i].job, m->types[group]);
    mdot_status status =
        sc_match_jobs(m->count, m->group_count, m->time_s, m->delay_s, m->sizes, limit_s, m->matches, &sum_s, err);
    bool fails = status == MDOT_DEVICE || status == MDOT_OUT_OF_RANGE;
    if (fails) plan->note = "no matching in time: shortest first";
    if (status != MDOT_OK && !fails) return status;
    start(m, view, plan, fails);
    return MDOT_OK;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *active = memory;
    size_t gpus = (size_t)view->cluster->gpus, groups = gpus + SC_MAX_TYPES;
    for (size_t i = 0; i < view->arrived_count; i++) {
        const sc_job *job = &view->workload->jobs[view->arrived[i]];
        if (job->gpus != 1)
            return mdot_fail(view->err, MDOT_INVALID_ARGUMENT, "policy allox is for jobs of one GPU: job %s has %d",
                             job->id, job->gpus);
    }
    active->count = sc_active_update(view, active->jobs, active->count);
    sc_queue_keep_running(view, plan);
    if (active->count == view->running_count || sc_plan_most_free(view, plan) == 0) return MDOT_OK;
    const sc_array arrays[] = {
        SC_ARRAY(matching, jobs, active->count),   SC_ARRAY(matching, machines, gpus),
        SC_ARRAY(matching, types, groups),         SC_ARRAY(matching, delay_s, groups),
        SC_ARRAY(matching, sizes, groups),         SC_ARRAY(matching, time_s, MOST_MATCHED * groups),
        SC_ARRAY(matching, matches, active->count)};
    void *scratch;
    mdot_status status = SC_STATE(matching, arrays, &scratch, view->err);
    if (status != MDOT_OK) return status;
    list_jobs(scratch, view, active);
    status = match(scratch, view, plan, view->err);
    free(scratch);
    return status;
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_active_create(view, 1, out_self, err);
}

const sc_policy sc_policy_allox = {
    .name = "allox",
    .summary = "min-cost matching of jobs of one GPU to machines and positions (AlloX)",
    .create = create,
    .decide = decide,
};
