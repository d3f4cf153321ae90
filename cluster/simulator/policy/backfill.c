/* backfill.c — EASY and conservative backfill, with Slurm's priorities and quotas if the cluster has accounts. */
#include "simulator/policy/backfill.h"
#include "simulator/core/job_order.h"
#include "simulator/policy/allocation.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH = 500 };

typedef struct ending {
    double at_s;
    int gpus;
} ending;

typedef struct backfill {
    bool chooses_nodes;
    sc_order order;       /* waiting jobs; the key is the negative priority, or 0 without accounts */
    sc_fair_tree *tree;   /* NULL: no accounts */
    double *billed_gpu_s; /* part of each job's GPU-seconds already added to the tree */
    double ranked_s;      /* time of the last ranking */
    sc_quota quota;
    sc_topology topology;
    sc_profile profile;
    ending *endings;   /* scratch, capacity: GPUs of the cluster */
    uint32_t *scratch; /* capacity: jobs */
} backfill;

void sc_backfill_destroy(void *memory)
{
    backfill *self = memory;
    free(self->tree);
    sc_profile_free(&self->profile);
    free(self);
}

mdot_status sc_backfill_create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1, accounts = view->accounts != NULL ? view->accounts->count : 0;
    const sc_array arrays[] = {{offsetof(backfill, order.nodes), sc_order_bytes(view->workload)},
                               SC_ARRAY(backfill, billed_gpu_s, jobs),
                               SC_ARRAY(backfill, scratch, jobs),
                               SC_ARRAY(backfill, endings, view->cluster->gpus + 1),
                               SC_ARRAY(backfill, quota.gpus, accounts),
                               SC_ARRAY(backfill, quota.gpu_s, accounts),
                               SC_ARRAY(backfill, topology.domain_free, view->cluster->domain_count),
                               SC_ARRAY(backfill, topology.rack_free, view->cluster->rack_count)};
    void *memory;
    mdot_status status = SC_STATE(backfill, arrays, &memory, err);
    if (status != MDOT_OK) return status;
    backfill *self = memory;
    self->chooses_nodes = view->cluster->node_count > 1;
    self->ranked_s = -INFINITY;
    self->quota.accounts = view->accounts;
    sc_order_begin(&self->order, view->workload);
    if (view->accounts != NULL) status = sc_fair_tree_create(view->accounts, &self->tree, err);
    if (status == MDOT_OK)
        *out_self = self;
    else
        free(self);
    return status;
}

/* Planned further seconds of a job, `over_s` seconds behind the estimate. */
static double correction_s(double over_s)
{
    static const double steps_s[] = {60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000};
    double sum_s = 0;
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++)
        if ((sum_s += steps_s[i]) > over_s) return sum_s - over_s;
    return 360000 - fmod(over_s - sum_s, 360000);
}

static double slowdown_of(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    sc_level level = sc_level_of(view->cluster, &view->parts[state->first_part], state->part_count);
    double slowdown = level > SC_LEVEL_DOMAIN ? sc_estimate_spread(view->estimate, job, state->type, state->gpus) : 1;
    return level > SC_LEVEL_RACK ? slowdown * sc_workload_rack_spread(&view->workload->jobs[job]) : slowdown;
}

/* Returns the planned seconds of a waiting job, or the planned rest of a running one. */
static double planned_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    bool runs = state->phase == SC_RUNNING;
    if (isfinite(state->limit_s)) return runs ? state->cut_s - view->now_s : state->limit_s;
    double rest_s = sc_view_left_s(view, job);
    if (!runs) return rest_s;
    if (rest_s > 0) return fmax(0, state->busy_s - view->now_s) + rest_s * slowdown_of(view, job);
    return correction_s(state->executed_s - sc_estimate_duration_s(view->estimate, job));
}

static void bill(backfill *self, const sc_view *view, uint32_t job)
{
    double attained_gpu_s = view->states[job].attained_gpu_s;
    sc_fair_tree_use(self->tree, view->accounts->users[job], attained_gpu_s - self->billed_gpu_s[job]);
    self->billed_gpu_s[job] = attained_gpu_s;
}

static double key_of(const backfill *self, const sc_view *view, uint32_t job)
{
    if (self->tree == NULL) return 0;
    const sc_job *j = &view->workload->jobs[job];
    return -sc_fair_tree_priority(self->tree, view->accounts->users[job], view->now_s - j->submit_s,
                                  j->gpus / (double)view->cluster->gpus, j->gpus * planned_s(view, job));
}

/* Ranks the users again and sorts all waiting jobs, every period. Jobs of equal priority keep the trace's order. */
static void rank_again(backfill *self, const sc_view *view)
{
    double span_s = view->now_s - self->ranked_s;
    if (span_s < view->accounts->priority.period_s) return;
    for (size_t i = 0; i < view->running_count; i++) bill(self, view, view->running[i]);
    if (isfinite(span_s)) sc_fair_tree_decay(self->tree, span_s);
    sc_fair_tree_rank(self->tree);
    self->ranked_s = view->now_s;
    size_t count = 0;
    for (uint32_t job = SC_NONE; (job = sc_order_next(&self->order, job, view->cluster->gpus)) != SC_NONE;)
        self->scratch[count++] = job;
    qsort(self->scratch, count, sizeof *self->scratch, sc_by_number);
    for (size_t i = 0; i < count; i++)
        sc_order_put_last(&self->order, self->scratch[i], key_of(self, view, self->scratch[i]));
}

static void update_order(backfill *self, const sc_view *view)
{
    for (size_t i = 0; self->tree != NULL && i < view->completed_count; i++) bill(self, view, view->completed[i]);
    if (self->tree != NULL) rank_again(self, view);
    for (size_t i = 0; i < view->arrived_count; i++) {
        uint32_t job = view->arrived[i];
        if (self->tree != NULL) bill(self, view, job); /* one that was cut off has used GPUs */
        sc_order_set_seconds(&self->order, job, planned_s(view, job));
        sc_order_put_last(&self->order, job, key_of(self, view, job));
    }
}

static void keep_running(backfill *self, const sc_view *view, sc_plan *plan)
{
    sc_quota_reset(&self->quota);
    for (size_t i = 0; self->quota.accounts != NULL && i < view->running_count; i++) {
        uint32_t job = view->running[i];
        sc_quota_take(&self->quota, job, view->states[job].gpus, planned_s(view, job));
    }
    if (!self->chooses_nodes) {
        sc_queue_keep_running(view, plan);
        return;
    }
    for (size_t i = 0; i < view->running_count; i++) sc_place_as_it_is(view, plan, view->running[i]);
}

static bool is_allowed(const backfill *self, const sc_view *view, uint32_t job)
{
    return self->quota.accounts == NULL ||
           sc_quota_allows(&self->quota, job, view->workload->jobs[job].gpus, planned_s(view, job));
}

static void start(backfill *self, const sc_view *view, sc_plan *plan, uint32_t job)
{
    int gpus = view->workload->jobs[job].gpus;
    sc_quota_take(&self->quota, job, gpus, self->quota.accounts != NULL ? planned_s(view, job) : 0);
    if (self->chooses_nodes)
        sc_topology_run(&self->topology, view, plan, job);
    else
        sc_plan_run(plan, job, 0, gpus);
}

/* Starts jobs from the front and returns the first that does not fit; SC_NONE: all fit. A job beyond the quota is
 * skipped, so it holds up no other. */
static uint32_t start_from_front(backfill *self, const sc_view *view, sc_plan *plan)
{
    for (uint32_t job = SC_NONE; (job = sc_order_next(&self->order, job, view->cluster->gpus)) != SC_NONE;) {
        if (!is_allowed(self, view, job)) continue;
        if (view->workload->jobs[job].gpus > plan->free[0]) return job;
        start(self, view, plan, job);
        if (plan->free[0] == 0) return SC_NONE;
    }
    return SC_NONE;
}

/* Moves the element at `at` down a heap whose least element is first. */
static void sift(ending *heap, size_t count, size_t position)
{
    for (size_t child; (child = 2 * position + 1) < count; position = child) {
        if (child + 1 < count && heap[child + 1].at_s < heap[child].at_s) child++;
        if (heap[position].at_s <= heap[child].at_s) return;
        ending moved = heap[position];
        heap[position] = heap[child];
        heap[child] = moved;
    }
}

/* Lists the planned ends of running and starting jobs. */
static size_t list_endings(backfill *self, const sc_view *view, const sc_plan *plan)
{
    for (size_t i = 0; i < plan->grant_count; i++)
        self->endings[i] = (ending){view->now_s + planned_s(view, plan->grants[i].job), plan->grants[i].gpus};
    return plan->grant_count;
}

/* Returns when so many GPUs are planned to be free, and how many further GPUs are free then. */
static double reserve(backfill *self, const sc_view *view, const sc_plan *plan, int gpus, int *out_spare)
{
    size_t count = list_endings(self, view, plan);
    int left = plan->free[0];
    double at_s = view->now_s;
    for (size_t i = count / 2; i-- > 0;) sift(self->endings, count, i);
    while (left < gpus && count > 0) {
        left += self->endings[0].gpus;
        at_s = self->endings[0].at_s;
        self->endings[0] = self->endings[--count];
        sift(self->endings, count, 0);
    }
    *out_spare = left - gpus;
    return at_s;
}

static void fill_easy(backfill *self, const sc_view *view, sc_plan *plan)
{
    uint32_t job = start_from_front(self, view, plan);
    if (job == SC_NONE || plan->free[0] == 0) return;
    int spare;
    double begins_s = reserve(self, view, plan, view->workload->jobs[job].gpus, &spare);
    while (plan->free[0] > 0) {
        int free_gpus = plan->free[0];
        sc_room room = {free_gpus, spare < free_gpus ? spare : free_gpus, begins_s - view->now_s};
        job = sc_order_next_in(&self->order, job, &room);
        if (job == SC_NONE) return;
        if (!is_allowed(self, view, job)) continue;
        if (planned_s(view, job) > room.seconds) spare -= view->workload->jobs[job].gpus;
        start(self, view, plan, job);
    }
}

static mdot_status fill_conservatively(backfill *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    sc_profile *profile = &self->profile;
    uint32_t job = start_from_front(self, view, plan);
    if (job == SC_NONE || plan->free[0] == 0) return MDOT_OK;
    size_t count = list_endings(self, view, plan);
    mdot_status status = sc_profile_begin(profile, view->now_s, view->cluster->gpus, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        status = sc_profile_add(profile, view->now_s, self->endings[i].at_s, -self->endings[i].gpus, err);
    /* Jobs with a planned end now still hold GPUs; `free` excludes these. */
    for (int depth = 0; status == MDOT_OK && job != SC_NONE && plan->free[0] > 0 && depth < DEPTH; depth++) {
        int gpus = view->workload->jobs[job].gpus;
        double span_s = planned_s(view, job);
        if (is_allowed(self, view, job)) {
            double begins_s = sc_profile_find(profile, gpus, span_s);
            status = sc_profile_add(profile, begins_s, begins_s + span_s, -gpus, err);
            if (begins_s <= view->now_s && gpus <= plan->free[0]) start(self, view, plan, job);
        }
        job = sc_order_next(&self->order, job, view->cluster->gpus);
    }
    return status;
}

mdot_status sc_backfill_decide(void *memory, const sc_view *view, sc_plan *plan)
{
    backfill *self = memory;
    mdot_status status = MDOT_OK;
    update_order(self, view);
    keep_running(self, view, plan);
    if (view->policy->variant == SC_BACKFILL_EASY)
        fill_easy(self, view, plan);
    else
        status = fill_conservatively(self, view, plan, view->err);
    for (size_t i = view->running_count; i < plan->grant_count; i++) sc_order_remove(&self->order, plan->grants[i].job);
    return status;
}
