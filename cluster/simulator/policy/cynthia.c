/* cynthia.c — GPUs for a goal: the least of them that end a job in time, without preemption.
 *
 *   cynthia   Cynthia (Zheng et al., ICPP 2019): first come, first served; the type and number of GPUs of least cost
 *             that meets the deadline. Left out: numbers of parameter servers, which are part of predicted speeds.
 *   genie     GENIE (Chen et al., IEEE TPDS 2020): the latest possible start first, jobs whose deadline is out of reach
 *             last; the least GPU time that meets the deadline. Left out: the profiler, which an estimate replaces, and
 *             placement, which the simulator chooses.
 *
 * If no choice meets a job's deadline, the job takes the fastest free one. Costs are prices of the cluster's file.
 * Without prices, they are GPU time. */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

enum { BY_PRICE, BY_START }; /* sc_policy.variant */

typedef struct choice {
    uint32_t job;
    unsigned type;
    int width; /* 0: none fits */
    double time_s, cost;
    double start_s; /* the latest start that meets the deadline */
    bool is_hopeless;
} choice;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_active_create(view, sizeof(choice), out_self, err);
}

/* Chooses among the GPUs that are free; if `is_fastest`, by time alone. */
static choice choose(const sc_view *view, uint32_t job, const int *free_gpus, bool is_fastest)
{
    choice best = {.job = job, .time_s = INFINITY};
    double left_s = view->workload->jobs[job].deadline_s - view->now_s;
    bool is_new = !isfinite(view->states[job].start_s);
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        double price = view->policy->variant == BY_PRICE ? view->cluster->types[type].price : 1;
        for (int w = 0; (w = sc_goodput_next_width(view, job, type, w, free_gpus[type])) > 0;) {
            double time_s = sc_goodput_left_s(view, job, type, w) + sc_restart_s(view->restart, w, is_new);
            double cost = (price > 0 ? price : 1) * w * time_s;
            bool was_in_time = best.time_s <= left_s, is_in_time = time_s <= left_s;
            bool is_better = is_fastest || !(was_in_time || is_in_time) ? time_s < best.time_s
                             : was_in_time != is_in_time                ? is_in_time
                                                                        : cost < best.cost;
            if (best.width > 0 && !is_better) continue;
            best = (choice){.job = job, .type = type, .width = w, .time_s = time_s, .cost = cost};
        }
    }
    best.start_s = view->workload->jobs[job].deadline_s - best.time_s;
    best.is_hopeless = best.start_s < view->now_s;
    return best;
}

static int by_start(const void *left, const void *right)
{
    const choice *a = left, *b = right;
    if (a->is_hopeless != b->is_hopeless) return a->is_hopeless ? 1 : -1;
    if (a->start_s != b->start_s) return a->start_s < b->start_s ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    choice *waiting = self->items;
    bool sorts = view->policy->variant == BY_START;
    int all[SC_MAX_TYPES];
    size_t count = 0;
    for (unsigned type = 0; type < view->cluster->type_count; type++) all[type] = view->cluster->types[type].gpus;
    self->count = sc_active_update(view, self->jobs, self->count);
    sc_queue_keep_running(view, plan);
    if (sc_plan_most_free(view, plan) == 0) return MDOT_OK;
    for (size_t i = 0; i < self->count; i++)
        if (!sc_view_is_running(view, self->jobs[i]))
            waiting[count++] = sorts ? choose(view, self->jobs[i], all, true) : (choice){.job = self->jobs[i]};
    if (sorts) qsort(waiting, count, sizeof *waiting, by_start);
    for (size_t i = 0; i < count && sc_plan_most_free(view, plan) > 0; i++) {
        choice c = choose(view, waiting[i].job, plan->free, false);
        if (c.width > 0)
            sc_plan_run(plan, c.job, c.type, c.width);
        else if (!sorts)
            break;
    }
    return MDOT_OK;
}

const sc_policy sc_policy_cynthia = {
    .name = "cynthia",
    .summary = "first come, first served; the GPUs of least cost that meet the deadline (Cynthia)",
    .variant = BY_PRICE,
    .create = create,
    .decide = decide,
};

const sc_policy sc_policy_genie = {
    .name = "genie",
    .summary = "latest start first; the least GPU time that meets the deadline (GENIE)",
    .variant = BY_START,
    .create = create,
    .decide = decide,
};
