/* chronus.c — Chronus (Gao et al., SoCC 2021): jobs hold GPUs for leases; jobs with a deadline are guaranteed if a
 * schedule of leases meets all guarantees, and other jobs run, shortest first, where they endanger none.
 *
 * Leases end together, so that wide jobs find room, and last as long as restarts make worthwhile (sc_lease_s: 20 min
 * with the paper's costs, 60 s if restarts are free). Free GPUs are leased at once. A job with a deadline is admitted
 * when it arrives, if one of four orders of all guaranteed jobs meets all deadlines in an outlook of leases
 * (outlook.c); the guarantees then follow that order. A job without a deadline goes ahead of waiting guarantees that
 * need more time, if the outlook still holds with its lease. Jobs whose deadline is out of reach come last, shortest
 * first. With exact estimates every guarantee is met.
 *
 * Left out: the integer program, which the four orders replace; profiling, which an estimate replaces; deadlines of
 * several steps with separate rewards; placement on nodes. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

enum { ORDERS = 4, MOST_ENDANGERING = 32 };

/* GUARANTEED_FIRST: ahead of all other guarantees. */
typedef enum standing { GUARANTEED_FIRST, GUARANTEED, WITHOUT_DEADLINE, REFUSED } standing;

typedef struct entry {
    sc_outlook_job ahead;
    standing standing;
    double key; /* least first within a standing */
    bool is_granted;
} entry;

typedef struct chronus {
    uint32_t *active;
    standing *standings; /* of each job */
    entry *entries;
    sc_outlook_job *outlook; /* scratch */
    size_t count;
    int order; /* of guarantees */
    double lease_end_s;
} chronus;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(chronus, active, jobs), SC_ARRAY(chronus, standings, jobs),
                               SC_ARRAY(chronus, entries, jobs), SC_ARRAY(chronus, outlook, jobs)};
    return SC_STATE(chronus, arrays, out_self, err);
}

static int by_key(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->standing != b->standing) return a->standing < b->standing ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->ahead.job > b->ahead.job) - (a->ahead.job < b->ahead.job);
}

static double key_of(const sc_view *view, const entry *e, int order)
{
    const sc_job *j = &view->workload->jobs[e->ahead.job];
    bool is_hopeless = view->now_s + e->ahead.left_s > j->deadline_s;
    if (e->standing > GUARANTEED) return e->ahead.left_s + (is_hopeless ? 1e15 : 0);
    switch (order) {
    case 0: return j->deadline_s;
    case 1: return j->deadline_s - sc_estimate_duration_s(view->estimate, e->ahead.job); /* the latest start */
    case 2: return -j->gpus + j->deadline_s * 1e-12; /* wide ones first, and by deadline */
    default: return j->deadline_s - 1e-3 * j->gpus;  /* by deadline, wide ones first among equals */
    }
}

static void sort(chronus *self, const sc_view *view, int order)
{
    for (size_t i = 0; i < self->count; i++) self->entries[i].key = key_of(view, &self->entries[i], order);
    qsort(self->entries, self->count, sizeof *self->entries, by_key);
}

/* Are all guarantees met in the sorted order? Others count only while they hold GPUs. */
static bool is_safe(chronus *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->entries[i].standing <= GUARANTEED || self->entries[i].is_granted) {
            self->outlook[count] = self->entries[i].ahead;
            self->outlook[count].holds = self->entries[i].is_granted;
            if (self->entries[i].standing > GUARANTEED) self->outlook[count].deadline_s = INFINITY;
            count++;
        }
    return sc_outlook_meets(view, self->outlook, count, sc_lease_s(view), self->lease_end_s);
}

/* Lists all jobs with their standing. Jobs within a lease are granted. */
static void list_jobs(chronus *self, const sc_view *view, bool is_lease_end)
{
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        self->entries[i] = (entry){.ahead = sc_outlook_of(view, job), .standing = self->standings[job]};
        self->entries[i].is_granted = !is_lease_end && sc_view_is_running(view, job);
    }
}

static void admit(chronus *self, const sc_view *view, uint32_t job)
{
    entry *e = self->entries;
    if (self->standings[job] == WITHOUT_DEADLINE) return;
    for (int attempt = 0; attempt < 2 * ORDERS; attempt++) {
        int order = (self->order + attempt) % ORDERS;
        for (e = self->entries; e->ahead.job != job;) e++;
        e->standing = self->standings[job] = attempt < ORDERS ? GUARANTEED : GUARANTEED_FIRST;
        sort(self, view, order);
        if (!is_safe(self, view)) continue;
        self->order = order;
        return;
    }
    for (e = self->entries; e->ahead.job != job;) e++;
    e->standing = self->standings[job] = REFUSED;
}

static bool grant(const sc_view *view, sc_plan *plan, entry *e)
{
    e->is_granted = sc_plan_run_fastest(view, plan, e->ahead.job);
    if (e->is_granted) e->ahead.type = plan->grants[plan->grant_count - 1].type;
    return e->is_granted;
}

/* Leases free GPUs to jobs without a guarantee that need less than `most_s`. While a guarantee waits, all must hold. */
static void grant_others(chronus *self, const sc_view *view, sc_plan *plan, double most_s, bool waits)
{
    int looked_at = 0;
    for (size_t i = 0; i < self->count && sc_plan_most_free(view, plan) > 0; i++) {
        entry *e = &self->entries[i];
        bool yields = isfinite(most_s) && (e->standing == REFUSED || e->ahead.left_s >= most_s);
        if (e->standing <= GUARANTEED || e->is_granted || yields) continue;
        if (waits && looked_at++ == MOST_ENDANGERING) return;
        sc_plan before = *plan;
        if (!grant(view, plan, e) || !waits || is_safe(self, view)) continue;
        *plan = before;
        e->is_granted = false;
    }
}

/* Leases free GPUs to guaranteed jobs. Returns the longest time that a waiting one needs; 0: none waits. */
static double grant_guaranteed(chronus *self, const sc_view *view, sc_plan *plan, bool only_looks)
{
    double longest_s = 0;
    for (size_t i = 0; i < self->count && self->entries[i].standing <= GUARANTEED; i++) {
        entry *e = &self->entries[i];
        if (!e->is_granted && (only_looks || !grant(view, plan, e))) longest_s = fmax(longest_s, e->ahead.left_s);
    }
    return longest_s;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    chronus *self = memory;
    bool is_lease_end = view->now_s >= self->lease_end_s, others_hold = false;
    if (is_lease_end) self->lease_end_s = sc_lease_end_s(view->now_s, sc_lease_s(view));
    self->count = sc_active_update(view, self->active, self->count);
    for (size_t i = 0; i < view->arrived_count; i++)
        self->standings[view->arrived[i]] =
            isfinite(view->workload->jobs[view->arrived[i]].deadline_s) ? REFUSED : WITHOUT_DEADLINE;
    list_jobs(self, view, is_lease_end);
    for (size_t i = 0; i < view->arrived_count; i++) admit(self, view, view->arrived[i]);
    sort(self, view, self->order);
    if (!is_lease_end) sc_queue_keep_running(view, plan);
    double waiting_s = grant_guaranteed(self, view, plan, true);
    if (waiting_s > 0) grant_others(self, view, plan, waiting_s, true);
    waiting_s = grant_guaranteed(self, view, plan, false);
    grant_others(self, view, plan, INFINITY, waiting_s > 0);
    for (size_t i = 0; i < self->count; i++)
        others_hold |= self->entries[i].is_granted && self->entries[i].standing > GUARANTEED;
    bool waits = self->count > plan->grant_count;
    if (waits && (!is_lease_end || (waiting_s > 0 && others_hold))) plan->wake_s = self->lease_end_s;
    return MDOT_OK;
}

const sc_policy sc_policy_chronus = {
    .name = "chronus",
    .summary = "deadlines guaranteed by schedules of leases, the rest shortest first (Chronus)",
    .period_s = 60,
    .plans_slots = true,
    .create = create,
    .decide = decide,
};
