/* muxflow.c — MuxFlow (Zhao et al., arXiv 2303.13803, 2023), reduced to the matching: offline jobs share the GPUs of
 * online services (column online), where pair speeds are known (--pairs).
 *
 * Implemented from the paper: each service GPU takes at most one offline job; the service must keep at least 0.8 of
 * full speed; and offline jobs are matched to services for the largest sum of kept speed fractions. Free GPUs, with
 * full speed for a job, are part of the same integer program. A pair has the same width on both sides.
 *
 * Services start in the order of arrival; offline jobs on exclusive GPUs give way to them, the last one first. Matched
 * jobs stay until one of the pair ends; the other one keeps the GPUs.
 *
 * Left out: multiprocessor limits for offline jobs by service load (measured pairs share a GPU freely); the speed
 * predictor, replaced by the table; protection of memory and against faults; and load over time. Measured pairs are two
 * training jobs. */
#include "base/status.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"
#include "simulator/solve/linear.h"

#include <stdlib.h>

/* Waiting jobs matched by one decision, by arrival. */
enum { MOST_MATCHED = 128 };

static const double least_kept = .8, limit_s = 10;

typedef struct muxflow {
    uint32_t *active, *partner; /* partner of each job in this decision, or SC_NONE */
    bool *runs;                 /* for each job: it gets exclusive GPUs */
    size_t count;
    uint32_t *hosts, *waiting; /* services without a partner, and offline jobs to be matched */
    size_t host_count, waiting_count;
    sc_option *options;
    int *capacity; /* free GPUs, then 1 for each host */
} muxflow;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1, gpus = (size_t)view->cluster->gpus + 1;
    BS_TRY(sc_couples_check(view, err));
    if (!sc_linear_solves_integers())
        return mdot_fail(err, MDOT_UNSUPPORTED, "built without COIN-OR CBC, which solves the program of this policy");
    const sc_array arrays[] = {
        SC_ARRAY(muxflow, active, jobs),      SC_ARRAY(muxflow, partner, jobs),
        SC_ARRAY(muxflow, runs, jobs),        SC_ARRAY(muxflow, hosts, gpus),
        SC_ARRAY(muxflow, waiting, jobs),     SC_ARRAY(muxflow, options, (gpus + 1) * MOST_MATCHED),
        SC_ARRAY(muxflow, capacity, gpus + 1)};
    return SC_STATE(muxflow, arrays, out_self, err);
}

static int width(const sc_view *view, uint32_t job) { return view->workload->jobs[job].gpus; }

/* Gives GPUs to services, first to running ones and then in the order of arrival until one does not fit. */
static int serve(muxflow *self, const sc_view *view)
{
    int left = view->cluster->gpus;
    for (int begins = 0; begins < 2; begins++) {
        for (size_t i = 0; i < self->count; i++) {
            uint32_t job = self->active[i];
            if (!view->workload->jobs[job].is_online || sc_view_is_running(view, job) == (begins == 1)) continue;
            if (width(view, job) > left) return left;
            self->runs[job] = true;
            left -= width(view, job);
        }
    }
    return left;
}

/* Lets running offline jobs stay with their services, or else on their own GPUs while these are free. Lists the others.
 * */
static int keep_offline(muxflow *self, const sc_view *view, int left)
{
    self->waiting_count = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i], host = view->states[job].partner;
        if (view->workload->jobs[job].is_online) continue;
        bool was = sc_view_is_running(view, job);
        if (was && host != SC_NONE && sc_view_is_running(view, host)) {
            self->partner[host] = job;
            self->partner[job] = host;
        } else if (was && width(view, job) <= left) {
            self->runs[job] = true;
            left -= width(view, job);
        } else if (self->waiting_count < MOST_MATCHED) {
            self->waiting[self->waiting_count++] = job;
        }
    }
    return left;
}

static size_t list_options(muxflow *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < self->waiting_count; i++) {
        uint32_t job = self->waiting[i];
        if (width(view, job) <= self->capacity[0]) self->options[count++] = (sc_option){i, 0, width(view, job), -1};
        for (size_t h = 0; h < self->host_count; h++) {
            double kept = sc_couples_kept(view, job, self->hosts[h], 0);
            if (kept > 0 && sc_couples_kept(view, self->hosts[h], job, 0) >= least_kept)
                self->options[count++] = (sc_option){i, (unsigned)h + 1, 1, -kept};
        }
    }
    return count;
}

/* Matches waiting offline jobs to services and to free GPUs. */
static mdot_status match(muxflow *self, const sc_view *view, int left, sc_plan *plan, mdot_error *err)
{
    static const double zeros[MOST_MATCHED] = {0};
    size_t chosen[MOST_MATCHED];
    double cost;
    self->host_count = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        if (view->workload->jobs[job].is_online && self->runs[job] && self->partner[job] == SC_NONE)
            self->hosts[self->host_count++] = job;
    }
    self->capacity[0] = left;
    for (size_t h = 0; h < self->host_count; h++) self->capacity[h + 1] = 1;
    sc_option_problem problem = {.options = self->options,
                                 .option_count = list_options(self, view),
                                 .job_count = self->waiting_count,
                                 .none_cost = zeros,
                                 .gpus = self->capacity,
                                 .type_count = self->host_count + 1};
    if (problem.option_count == 0) return MDOT_OK;
    mdot_status status = sc_options_by_program(&problem, limit_s, chosen, &cost, err);
    if (status == MDOT_DEVICE) plan->note = "no matching in time: jobs wait";
    if (status != MDOT_OK) return status == MDOT_DEVICE ? MDOT_OK : status;
    for (size_t i = 0; i < self->waiting_count; i++) {
        uint32_t job = self->waiting[i];
        if (chosen[i] == SIZE_MAX) continue;
        unsigned type = self->options[chosen[i]].type;
        if (type == 0) {
            self->runs[job] = true;
        } else {
            self->partner[job] = self->hosts[type - 1];
            self->partner[self->hosts[type - 1]] = job;
        }
    }
    return MDOT_OK;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    muxflow *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    for (size_t i = 0; i < self->count; i++) {
        self->runs[self->active[i]] = false;
        self->partner[self->active[i]] = SC_NONE;
    }
    int left = keep_offline(self, view, serve(self, view));
    mdot_status status = match(self, view, left, plan, view->err);
    for (size_t i = 0; status == MDOT_OK && i < self->count; i++) {
        uint32_t job = self->active[i];
        if (!self->runs[job]) continue;
        sc_plan_run(plan, job, 0, width(view, job));
        if (self->partner[job] != SC_NONE) sc_plan_share(plan, self->partner[job]);
    }
    return status;
}

const sc_policy sc_policy_muxflow = {
    .name = "muxflow",
    .summary = "offline jobs matched to the GPUs of online services, by --pairs (MuxFlow, reduced)",
    .one_type = true,
    .create = create,
    .decide = decide,
};
