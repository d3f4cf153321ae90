/* chronus.c — Chronus (Gao et al., SoCC 2021), reduced to the job choice: leases, admission by an integer program, and
 * shortest remaining time for the remaining GPUs.
 *
 * Implemented: leases of 20 minutes, in which a job holds its GPUs. A job with a deadline is guaranteed if it and all
 * guaranteed jobs get their leases before their deadlines, which an integer program decides. Jobs without a guarantee
 * or a deadline run on the remaining GPUs, least remaining time first, and may be preempted at the beginning of a
 * lease. Left out: profiling, which an estimate replaces; deadlines of several steps with separate rewards; shorter
 * leases for jobs without a deadline; placement on nodes, where wide jobs are rounded up.
 *
 * A greedy rule runs before the program: by deadline, each job takes the earliest leases with free GPUs. If it finds a
 * plan, the program is skipped. If the program is too large, exceeds its time or lacks a solver, the rule alone
 * decides, and the log records it. With exact estimates every guaranteed deadline is met, because a plan stays until
 * another is found. The cost of a restart is deducted from every lease. */
#include "simulator/policy/policies.h"
#include "simulator/policy/reservation.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_S 1200.
static const double lease_s = LEASE_S, limit_s = 1;
enum { MOST_LEASES = 4096, MOST_COLUMNS = 4000 };

typedef struct waiting {
    uint32_t job;
    double key; /* least first */
} waiting;

typedef struct chronus {
    sc_reservation *plans; /* leases of each guaranteed job, from `begun_s` on */
    bool *is_guaranteed;
    double begun_s;    /* beginning of the current lease */
    bool gave_up;      /* a program exceeded the time limit in this lease: skip further ones */
    uint32_t *active;  /* arrived and incomplete */
    uint32_t *pending; /* active jobs that arrived since the lease began */
    size_t active_count, pending_count;
    uint32_t *chosen;      /* scratch: jobs to be planned, by deadline */
    sc_lease_job *needs;   /* scratch: needs of each chosen job */
    sc_reservation *fresh; /* scratch: new plan of each chosen job */
    waiting *order;
    sc_free_slots free_slots;
} chronus;

static void destroy(void *memory)
{
    chronus *self = memory;
    if (self == NULL) return;
    for (size_t i = 0; self->plans != NULL && i < self->active_count; i++)
        sc_reservation_free(&self->plans[self->active[i]]);
    free(self->plans);
    free(self->is_guaranteed);
    free(self->active);
    free(self->pending);
    free(self->chosen);
    free(self->needs);
    free(self->fresh);
    free(self->order);
    sc_free_slots_destroy(&self->free_slots);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    chronus *self = calloc(1, sizeof *self);
    if (self != NULL) {
        self->plans = calloc(jobs, sizeof *self->plans);
        self->is_guaranteed = calloc(jobs, sizeof *self->is_guaranteed);
        self->active = calloc(jobs, sizeof *self->active);
        self->pending = calloc(jobs, sizeof *self->pending);
        self->chosen = calloc(jobs, sizeof *self->chosen);
        self->needs = calloc(jobs, sizeof *self->needs);
        self->fresh = calloc(jobs, sizeof *self->fresh);
        self->order = calloc(jobs, sizeof *self->order);
        self->begun_s = -1;
    }
    if (self == NULL || self->plans == NULL || self->is_guaranteed == NULL || self->active == NULL ||
        self->pending == NULL || self->chosen == NULL || self->needs == NULL || self->fresh == NULL ||
        self->order == NULL) {
        destroy(self);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    *out_self = self;
    return MDOT_OK;
}

/* ---- Plans of leases --------------------------------------------------------------------------------------------- */

static double left_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    return sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
}

/* Computes a job's whole leases. It may end within the last one, `tail_s` after the lease begins. */
static sc_lease_job need_of(const sc_view *view, uint32_t job)
{
    int gpus = view->workload->jobs[job].gpus;
    double restart_s = sc_restart_s(view->restart, gpus, false), useful_s = lease_s - restart_s;
    double left = left_s(view, job), slack_s = view->workload->jobs[job].deadline_s - view->now_s;
    if (useful_s <= 0) return (sc_lease_job){gpus, 1, 0};
    double needed = fmax(1, ceil(left / useful_s - 1e-9));
    double tail_s = left - (needed - 1) * useful_s + restart_s;
    double until = floor((slack_s - tail_s) / lease_s + 1e-9) + 1;
    return (sc_lease_job){gpus, (size_t)fmin(needed, MOST_LEASES), (size_t)fmin(fmax(until, 0), MOST_LEASES)};
}

static void forget_fresh(chronus *self, size_t count)
{
    for (size_t i = 0; i < count; i++) sc_reservation_free(&self->fresh[i]);
}

static mdot_status make_empty(const sc_lease_job *need, sc_reservation *out, mdot_error *err)
{
    *out = (sc_reservation){.gpus = calloc(need->until + 1, sizeof *out->gpus), .count = need->until};
    return out->gpus != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

/* Takes the earliest leases with free GPUs. */
static mdot_status fill_one(chronus *self, const sc_lease_job *need, sc_reservation *out, bool *out_fits,
                            mdot_error *err)
{
    size_t got = 0;
    mdot_status status = make_empty(need, out, err);
    if (status != MDOT_OK) return status;
    for (size_t t = 0; t < need->until && got < need->needed; t++) {
        int left = t < self->free_slots.count ? self->free_slots.left[t] : self->free_slots.gpus;
        if (left < need->gpus) continue;
        out->gpus[t] = need->gpus;
        got++;
    }
    *out_fits = got == need->needed;
    if (*out_fits) status = sc_free_slots_reserve(&self->free_slots, out, err);
    if (!*out_fits || status != MDOT_OK) sc_reservation_free(out);
    return status;
}

/* Makes new plans for all chosen jobs by the greedy rule. */
static mdot_status fill_greedily(chronus *self, const sc_view *view, size_t count, bool *out_fits, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    size_t made = 0;
    *out_fits = true;
    sc_free_slots_reset(&self->free_slots, view->cluster->gpus);
    while (made < count && status == MDOT_OK && *out_fits) {
        status = fill_one(self, &self->needs[made], &self->fresh[made], out_fits, err);
        if (status == MDOT_OK && *out_fits) made++;
    }
    if (status != MDOT_OK || !*out_fits) forget_fresh(self, made);
    return status;
}

/* Makes new plans by the program. If it fails, *out_note is the reason. */
static mdot_status fill_by_program(chronus *self, const sc_view *view, size_t count, bool *out_fits,
                                   const char **out_note, mdot_error *err)
{
    size_t columns = 0, made = 0;
    mdot_status status = MDOT_OK;
    *out_fits = false;
    for (size_t i = 0; i < count; i++) {
        if (self->needs[i].needed > self->needs[i].until) return MDOT_OK;
        columns += self->needs[i].until;
    }
    if (columns > MOST_COLUMNS) {
        *out_note = "chronus: the program of leases is too large, jobs are admitted by deadline";
        return MDOT_OK;
    }
    unsigned char **runs = calloc(count + 1, sizeof *runs), *entries = calloc(columns + 1, 1);
    if (runs == NULL || entries == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0, position = 0; status == MDOT_OK && i < count; position += self->needs[i++].until)
        runs[i] = &entries[position];
    if (status == MDOT_OK) {
        mdot_status solved = sc_leases_solve(self->needs, count, view->cluster->gpus, limit_s, runs, err);
        *out_fits = solved == MDOT_OK;
        self->gave_up = solved == MDOT_DEVICE || solved == MDOT_UNSUPPORTED;
        if (self->gave_up)
            *out_note = "chronus: the program of leases has no solution, jobs are admitted by deadline";
        else if (solved != MDOT_OK && solved != MDOT_OUT_OF_RANGE)
            status = solved;
    }
    for (; status == MDOT_OK && *out_fits && made < count; made += status == MDOT_OK) {
        status = make_empty(&self->needs[made], &self->fresh[made], err);
        for (size_t t = 0; status == MDOT_OK && t < self->needs[made].until; t++)
            self->fresh[made].gpus[t] = runs[made][t] != 0 ? self->needs[made].gpus : 0;
    }
    if (status != MDOT_OK) forget_fresh(self, made);
    free(entries);
    free(runs);
    return status;
}

static void take_fresh(chronus *self, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sc_reservation_free(&self->plans[self->chosen[i]]);
        self->plans[self->chosen[i]] = self->fresh[i];
    }
}

/* Inserts a job into the chosen jobs, by its deadline. */
static void choose(chronus *self, const sc_view *view, size_t count, uint32_t job)
{
    size_t i = count;
    double deadline_s = view->workload->jobs[job].deadline_s;
    for (; i > 0 && view->workload->jobs[self->chosen[i - 1]].deadline_s > deadline_s; i--) {
        self->chosen[i] = self->chosen[i - 1];
        self->needs[i] = self->needs[i - 1];
    }
    self->chosen[i] = job;
    self->needs[i] = need_of(view, job);
}

static size_t choose_guaranteed(chronus *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < self->active_count; i++)
        if (self->is_guaranteed[self->active[i]]) choose(self, view, count++, self->active[i]);
    return count;
}

static mdot_status admit(chronus *self, const sc_view *view, uint32_t job, sc_plan *plan, mdot_error *err)
{
    bool fits;
    size_t count = choose_guaranteed(self, view);
    choose(self, view, count++, job);
    mdot_status status = fill_greedily(self, view, count, &fits, err);
    if (status == MDOT_OK && !fits && !self->gave_up)
        status = fill_by_program(self, view, count, &fits, &plan->note, err);
    if (status != MDOT_OK || !fits) return status;
    self->is_guaranteed[job] = true;
    take_fresh(self, count);
    return MDOT_OK;
}

/* Plans the rest of the guaranteed jobs again, earlier if possible. If the rule finds no plan, the old plans stay. */
static mdot_status plan_anew(chronus *self, const sc_view *view, mdot_error *err)
{
    bool fits;
    size_t count = choose_guaranteed(self, view);
    mdot_status status = fill_greedily(self, view, count, &fits, err);
    if (status == MDOT_OK && fits) take_fresh(self, count);
    return status;
}

/* ---- Running jobs ------------------------------------------------------------------------------------------------ */

static int by_key(const void *left, const void *right)
{
    const waiting *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

/* Grants this lease's free GPUs to jobs without planned GPUs. Least remaining time comes first, and guaranteed jobs
 * come behind the others. */
static void fill_rest(chronus *self, const sc_view *view, sc_plan *plan, bool starts_only)
{
    size_t count = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        if (sc_reservation_width(&self->plans[job]) > 0) continue;
        if (starts_only && view->states[job].phase == SC_RUNNING) continue;
        self->order[count++] = (waiting){job, left_s(view, job) + (self->is_guaranteed[job] ? 1e15 : 0)};
    }
    qsort(self->order, count, sizeof *self->order, by_key);
    for (size_t i = 0; i < count; i++) {
        int gpus = view->workload->jobs[self->order[i].job].gpus;
        if (gpus <= plan->free[0]) sc_plan_run(plan, self->order[i].job, 0, gpus);
    }
}

static void drop_completed(chronus *self, const sc_view *view)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        if (view->states[job].phase == SC_DONE) {
            sc_reservation_free(&self->plans[job]);
            self->is_guaranteed[job] = false;
        } else {
            self->active[kept++] = job;
        }
    }
    self->active_count = kept;
}

/* Decides on deadlines at the beginning of a lease. */
static mdot_status begin_lease(chronus *self, const sc_view *view, double begun_s, sc_plan *plan, mdot_error *err)
{
    size_t passed = self->begun_s < 0 ? 0 : (size_t)((begun_s - self->begun_s) / lease_s + .5);
    for (size_t i = 0; i < self->active_count; i++) sc_reservation_shift(&self->plans[self->active[i]], passed);
    self->begun_s = begun_s;
    self->gave_up = false;
    mdot_status status = plan_anew(self, view, err);
    for (size_t i = 0; status == MDOT_OK && i < self->pending_count; i++)
        if (isfinite(view->workload->jobs[self->pending[i]].deadline_s) &&
            view->states[self->pending[i]].phase != SC_DONE)
            status = admit(self, view, self->pending[i], plan, err);
    self->pending_count = 0;
    for (size_t i = 0; status == MDOT_OK && i < self->active_count; i++) {
        int width = sc_reservation_width(&self->plans[self->active[i]]);
        if (width > 0) sc_plan_run(plan, self->active[i], 0, width);
    }
    if (status == MDOT_OK) fill_rest(self, view, plan, false);
    return status;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    chronus *self = memory;
    mdot_status status = MDOT_OK;
    double begun_s = floor(view->now_s / lease_s) * lease_s;
    drop_completed(self, view);
    for (size_t i = 0; i < view->arrived_count; i++) {
        self->active[self->active_count++] = view->arrived[i];
        self->pending[self->pending_count++] = view->arrived[i];
    }
    if (begun_s == view->now_s) {
        status = begin_lease(self, view, begun_s, plan, err);
    } else { /* running jobs continue until the lease ends; free GPUs start others */
        for (size_t i = 0; i < view->running_count; i++)
            sc_plan_run(plan, view->running[i], 0, view->states[view->running[i]].gpus);
        fill_rest(self, view, plan, true);
    }
    if (self->active_count > 0) plan->wake_s = begun_s + lease_s;
    return status;
}

const sc_policy sc_policy_chronus = {
    .name = "chronus",
    .summary = "deadlines by a program of leases of 20 min, the rest shortest first (Chronus, reduced)",
    .period_s = LEASE_S,
    .plans_slots = true,
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
