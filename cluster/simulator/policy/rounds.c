/* rounds.c — turns time fractions into the next round's jobs. */
#include "simulator/policy/rounds.h"
#include "base/status.h"
#include "simulator/core/workload.h"
#include "simulator/policy/allocation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double between_shares_s = 1920, limit_s = 10;

typedef struct account { /* account of a job */
    double fraction[SC_MAX_TYPES], received_s[SC_MAX_TYPES], owed_s[SC_MAX_TYPES];
    double executed_s;            /* its executed_s when received_s was last updated */
    double isolated_s;            /* time that the steps so far would have taken with an equal part */
    double isolated_speed, steps; /* speed with an equal part, and remaining steps, when fractions were computed */
    size_t round;                 /* the last round in which it ran */
    bool is_known;                /* it was present when fractions were computed */
} account;

enum { MOST_COUPLES = 2000 };

typedef struct entry {     /* entry of a queue */
    uint32_t job, partner; /* partner: SC_NONE unless it is a pair */
    double priority, owed_s, fraction;
} entry;

typedef struct rounds {
    account *accounts; /* one per job of the workload */
    uint32_t *active;
    size_t active_count;
    double type_s[SC_MAX_TYPES]; /* time received by all jobs */
    double computed_s;           /* time at which fractions were computed; -INFINITY: never */
    bool is_stale, shares;
    sc_couple *couples; /* pairs with fractions; capacity: 2 MOST_COUPLES; NULL unless `shares` */
    size_t couple_count;
    sc_pair *pairs; /* the same for the solver */
    uint64_t random;
    size_t round; /* number of this round, counted from 1 */
    /* Scratch for the problem, in the order of active. */
    uint32_t *groups; /* of each job */
    double *group_weight;
    double *speed, *scale, *weight, *remaining, *since_start_s, *isolated_s, *fractions;
    entry *queue;
} rounds;

mdot_status sc_rounds_create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1, types = view->cluster->type_count;
    size_t couples = view->policy->variant == SC_ROUNDS_SHARE ? MOST_COUPLES : 0;
    if (couples > 0) BS_TRY(sc_couples_check(view, err));
    const sc_array arrays[] = {SC_ARRAY(rounds, accounts, jobs),
                               SC_ARRAY(rounds, active, jobs),
                               SC_ARRAY(rounds, speed, jobs * types),
                               SC_ARRAY(rounds, scale, jobs),
                               SC_ARRAY(rounds, weight, jobs),
                               SC_ARRAY(rounds, remaining, jobs),
                               SC_ARRAY(rounds, since_start_s, jobs),
                               SC_ARRAY(rounds, isolated_s, jobs),
                               SC_ARRAY(rounds, fractions, (jobs + couples) * types),
                               SC_ARRAY(rounds, queue, jobs + couples),
                               SC_ARRAY(rounds, groups, jobs),
                               SC_ARRAY(rounds, group_weight, jobs),
                               SC_ARRAY(rounds, couples, 2 * couples),
                               SC_ARRAY(rounds, pairs, couples)};
    BS_TRY(SC_STATE(rounds, arrays, out_self, err));
    rounds *self = *out_self;
    self->computed_s = -INFINITY;
    self->random = 1;
    self->shares = couples > 0;
    if (view->policy->variant == SC_ROUNDS_GROUPS) sc_number_groups(view->workload, self->groups, self->active);
    return MDOT_OK;
}

/* ---- Accounts ---------------------------------------------------------------------------------------------------- */

static void keep_books(rounds *self, const sc_view *view)
{
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        const sc_state *state = &view->states[job];
        account *a = &self->accounts[job];
        double received_s = state->executed_s - a->executed_s;
        a->executed_s = state->executed_s;
        if (received_s <= 0) continue;
        double *account_s = &a->received_s[state->type];
        if (state->partner != SC_NONE) { /* the time of a pair counts once, for the pair */
            sc_couple *c = sc_couples_get(self->couples, self->couple_count, job, state->partner);
            if (c == NULL || c->b == job) continue;
            account_s = &c->received_s[state->type];
        }
        *account_s += received_s;
        self->type_s[state->type] += received_s;
    }
    self->active_count = sc_active_update(view, self->active, self->active_count);
    self->is_stale |= view->completed_count > 0 || view->arrived_count > 0;
}

/* Carries over the time that jobs are owed. Received times start again with half a round for each job, so that they
 * are above 0. */
static void begin_period(rounds *self, const sc_view *view)
{
    double elapsed_s = isfinite(self->computed_s) ? view->now_s - self->computed_s : 0;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        self->type_s[type] = 0;
        for (size_t i = 0; i < self->active_count; i++) {
            account *a = &self->accounts[self->active[i]];
            bool is_known = a->received_s[type] > 0;
            a->owed_s[type] += a->fraction[type] * elapsed_s - (is_known ? a->received_s[type] - SC_ROUND_S / 2 : 0);
            a->received_s[type] = SC_ROUND_S / 2;
            self->type_s[type] += a->received_s[type];
        }
    }
    self->computed_s = view->now_s;
    self->is_stale = false;
}

/* Chooses the pairs of this period. */
static void begin_couples(rounds *self, const sc_view *view)
{
    if (!self->shares) return;
    self->couple_count = sc_couples_find(view, self->active, self->active_count, MOST_COUPLES, self->couples);
    for (size_t i = 0; i < self->couple_count; i++) {
        const sc_couple *c = &self->couples[i];
        self->pairs[i] = (sc_pair){c->at_a, c->at_b, c->speed_a, c->speed_b};
    }
}

/* Keeps the pairs with fractions, and starts received times as for jobs. */
static void keep_couples(rounds *self, size_t types)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->couple_count; i++) {
        const double *fraction = &self->fractions[(self->active_count + i) * types];
        double sum = 0;
        for (size_t type = 0; type < types; type++) sum += fraction[type];
        if (sum < 1e-9) continue;
        sc_couple *c = &self->couples[kept++];
        *c = self->couples[i];
        for (size_t type = 0; type < types; type++) {
            c->fraction[type] = fraction[type];
            c->received_s[type] = SC_ROUND_S / 2;
            self->type_s[type] += c->received_s[type];
        }
    }
    self->couple_count = kept;
}

/* ---- Fractions --------------------------------------------------------------------------------------------------- */

static void state_problem(rounds *self, const sc_view *view, const double *gpus, const double *prices,
                          sc_time_fractions *out)
{
    size_t types = view->cluster->type_count;
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        const sc_job *j = &view->workload->jobs[job];
        account *a = &self->accounts[job];
        for (unsigned type = 0; type < types; type++)
            self->speed[i * types + type] =
                j->gpus <= view->cluster->types[type].gpus ? sc_estimate_speed(view->estimate, job, type, j->gpus) : 0;
        self->scale[i] = j->gpus;
        self->weight[i] = j->weight;
        self->remaining[i] = sc_view_planned_work(view, job);
        self->since_start_s[i] = view->now_s - j->submit_s;
        if (a->isolated_speed > 0) a->isolated_s += (a->steps - self->remaining[i]) / a->isolated_speed;
        self->isolated_s[i] = a->isolated_s;
    }
    for (size_t i = 0; i < self->active_count; i++) self->group_weight[self->groups[self->active[i]]] = 0;
    for (size_t i = 0; i < self->active_count; i++)
        self->group_weight[self->groups[self->active[i]]] += self->weight[i];
    for (size_t i = 0; i < self->active_count && view->policy->variant == SC_ROUNDS_GROUPS; i++)
        self->weight[i] /= self->group_weight[self->groups[self->active[i]]];
    *out = (sc_time_fractions){.jobs = self->active_count,
                               .types = types,
                               .speed = self->speed,
                               .scale = self->scale,
                               .weight = self->weight,
                               .remaining = self->remaining,
                               .since_start_s = self->since_start_s,
                               .isolated_s = self->isolated_s,
                               .gpus = gpus,
                               .prices = prices,
                               .pairs = self->pairs,
                               .pair_count = self->couple_count,
                               .limit_s = limit_s};
}

static mdot_status compute_fractions(rounds *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    size_t types = view->cluster->type_count;
    double gpus[SC_MAX_TYPES], prices[SC_MAX_TYPES], value;
    sc_time_fractions problem;
    for (unsigned type = 0; type < types; type++) {
        gpus[type] = view->cluster->types[type].gpus;
        prices[type] = view->cluster->types[type].price > 0 ? view->cluster->types[type].price : 1;
    }
    begin_couples(self, view);
    state_problem(self, view, gpus, prices, &problem);
    sc_time_fractions_isolated(&problem, self->fractions);
    for (size_t i = 0; i < self->active_count; i++) {
        account *a = &self->accounts[self->active[i]];
        a->isolated_speed = sc_time_fractions_throughput(&problem, self->fractions, i);
        a->steps = self->remaining[i];
        a->is_known = true;
    }
    mdot_status status = MDOT_OK;
    if (view->policy->allocate != NULL) status = view->policy->allocate(&problem, self->fractions, &value, err);
    if (status == MDOT_DEVICE || status == MDOT_OUT_OF_RANGE) {
        sc_time_fractions_isolated(&problem, self->fractions);
        plan->note = "no solution in time: equal fractions";
        status = MDOT_OK;
    }
    for (size_t i = 0; status == MDOT_OK && i < self->active_count; i++)
        memcpy(self->accounts[self->active[i]].fraction, &self->fractions[i * types], types * sizeof(double));
    if (status == MDOT_OK) keep_couples(self, types);
    return status;
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------ */

static int by_priority(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->priority != b->priority) return a->priority < b->priority ? 1 : -1;
    if (a->owed_s != b->owed_s) return a->owed_s < b->owed_s ? 1 : -1;
    if (a->fraction != b->fraction) return a->fraction < b->fraction ? 1 : -1;
    return (a->job > b->job) - (a->job < b->job);
}

static double priority_of(const rounds *self, double fraction, double received_s, unsigned type)
{
    double part = self->type_s[type] > 0 ? received_s / self->type_s[type] : 0;
    return part > 0 ? fraction / part : 1e9 * fraction;
}

static size_t list_jobs(rounds *self, const sc_view *view, unsigned type)
{
    size_t count = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        const account *a = &self->accounts[job];
        int gpus = view->workload->jobs[job].gpus;
        if (view->policy->variant == SC_ROUNDS_SPARSE && a->fraction[type] < 1e-9) continue;
        if (a->round == self->round || !a->is_known || sc_estimate_speed(view->estimate, job, type, gpus) == 0)
            continue;
        double priority = priority_of(self, a->fraction[type], a->received_s[type], type);
        self->queue[count++] = (entry){job, SC_NONE, priority, a->owed_s[type], a->fraction[type]};
    }
    return count;
}

/* Adds pairs of incomplete jobs. Only pairs with a fraction run; single jobs also fill GPUs that would be idle. */
static size_t list_couples(rounds *self, const sc_view *view, unsigned type, size_t count)
{
    for (size_t i = 0; i < self->couple_count; i++) {
        const sc_couple *c = &self->couples[i];
        bool is_over = view->states[c->a].phase == SC_DONE || view->states[c->b].phase == SC_DONE;
        if (is_over || c->fraction[type] < 1e-9) continue;
        double priority = priority_of(self, c->fraction[type], c->received_s[type], type);
        self->queue[count++] = (entry){c->a, c->b, priority, 0, c->fraction[type]};
    }
    return count;
}

static void fill_type(rounds *self, const sc_view *view, unsigned type, sc_plan *plan)
{
    size_t count = list_couples(self, view, type, list_jobs(self, view, type));
    qsort(self->queue, count, sizeof *self->queue, by_priority);
    for (size_t i = 0; i < count && plan->free[type] > 0; i++) {
        const entry *e = &self->queue[i];
        int gpus = view->workload->jobs[e->job].gpus;
        account *a = &self->accounts[e->job], *b = e->partner == SC_NONE ? a : &self->accounts[e->partner];
        if (gpus > plan->free[type] || a->round == self->round || b->round == self->round) continue;
        sc_plan_run(plan, e->job, type, gpus);
        if (e->partner != SC_NONE) sc_plan_share(plan, e->partner);
        a->round = b->round = self->round;
    }
}

static void order_types(rounds *self, unsigned count, bool shuffles, unsigned *out_order)
{
    for (unsigned i = 0; i < count; i++) out_order[i] = i;
    for (unsigned i = count; i > 1 && shuffles; i--) {
        unsigned partner = (unsigned)(sc_random_next(&self->random) % i), type = out_order[partner];
        out_order[partner] = out_order[i - 1];
        out_order[i - 1] = type;
    }
}

mdot_status sc_rounds_decide(void *memory, const sc_view *view, sc_plan *plan)
{
    rounds *self = memory;
    keep_books(self, view);
    if (self->active_count == 0) return MDOT_OK;
    if (self->is_stale && view->now_s - self->computed_s >= between_shares_s) {
        begin_period(self, view);
        BS_TRY(compute_fractions(self, view, plan, view->err));
    }
    self->round++;
    unsigned order[SC_MAX_TYPES];
    order_types(self, view->cluster->type_count, view->policy->allocate == NULL, order);
    for (unsigned i = 0; i < view->cluster->type_count; i++) fill_type(self, view, order[i], plan);
    if (self->is_stale) plan->wake_s = fmax(view->now_s + SC_ROUND_S, self->computed_s + between_shares_s);
    return MDOT_OK;
}
