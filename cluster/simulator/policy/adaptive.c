/* adaptive.c — job options, the choice among them, and nodes for it. */
#include "simulator/policy/adaptive.h"
#include "base/status.h"
#include "simulator/policy/allocation.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

static const double limit_s = 10;

/* Beyond so many options of the program, or steps of dynamic programming, prices replace both. */
enum { MOST_IN_PROGRAM = 1000, MOST_STEPS = 10000000 };

typedef struct offered {
    double goodput, batch;
} offered;

typedef struct adaptive {
    uint32_t *active;
    size_t count;
    int *explored;      /* per job: most GPUs that it had */
    uint32_t *restarts; /* per job */
    sc_option *options;
    offered *offers; /* what the options yield */
    size_t option_count;
    double *none_cost; /* of active jobs */
    size_t *chosen;
    sc_share *shares;
} adaptive;

void sc_adaptive_destroy(void *memory)
{
    adaptive *self = memory;
    free(self->options);
    free(self->offers);
    free(self);
}

mdot_status sc_adaptive_create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    if (view->cluster->type_count > 1 && !sc_linear_solves_integers())
        return mdot_fail(err, MDOT_UNSUPPORTED, "built without COIN-OR CBC, which solves the program of this policy");
    const sc_array arrays[] = {SC_ARRAY(adaptive, active, jobs),   SC_ARRAY(adaptive, explored, jobs),
                               SC_ARRAY(adaptive, restarts, jobs), SC_ARRAY(adaptive, none_cost, jobs),
                               SC_ARRAY(adaptive, chosen, jobs),   SC_ARRAY(adaptive, shares, jobs)};
    return SC_STATE(adaptive, arrays, out_self, err);
}

static bool is_power_of_two(int number) { return (number & (number - 1)) == 0; }

/* Returns the next candidate width above `gpus`, for nodes with `node` GPUs. */
static int next_width(const sc_view *view, int gpus, int node)
{
    do gpus++;
    while (gpus % node != 0 &&
           !(gpus < node && (is_power_of_two(gpus) || (view->policy->rule->any_width && gpus <= 8))));
    return gpus;
}

static bool add_option(adaptive *self, const sc_view *view, size_t position, unsigned type, int gpus)
{
    offered offer;
    offer.goodput = sc_goodput(view, self->active[position], type, gpus, true, &offer.batch);
    if (offer.goodput == 0) return true;
    if (!sc_grow(&self->options, self->option_count, sizeof *self->options) ||
        !sc_grow(&self->offers, self->option_count, sizeof *self->offers))
        return false;
    self->options[self->option_count] = (sc_option){.job = position, .type = type, .gpus = gpus};
    self->offers[self->option_count++] = offer;
    return true;
}

/* Returns the most GPUs that a job may get now. */
static int most_gpus(const adaptive *self, const sc_view *view, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    int minimum = j->least_gpus > 0 ? j->least_gpus : 1, maximum = 2 * self->explored[job];
    return maximum > minimum ? maximum : minimum;
}

/* Adds the options of an active job. */
static bool add_options(adaptive *self, const sc_view *view, size_t position)
{
    uint32_t job = self->active[position];
    const sc_cluster *c = view->cluster;
    size_t first = self->option_count;
    const sc_job *j = &view->workload->jobs[job];
    int maximum = most_gpus(self, view, job), others[] = {j->least_gpus, j->gpus};
    for (unsigned type = 0; type < c->type_count; type++) {
        int node = c->types[type].widest_node, limit = maximum < c->types[type].gpus ? maximum : c->types[type].gpus;
        for (int gpus = next_width(view, 0, node); gpus <= limit; gpus = next_width(view, gpus, node))
            if (!add_option(self, view, position, type, gpus)) return false;
    }
    /* No such width is possible now: use the minimum, or else the requested width. */
    for (size_t i = 0; i < 2 && self->option_count == first; i++)
        for (unsigned type = 0; others[i] > 0 && type < c->type_count; type++)
            if (others[i] <= c->types[type].gpus && !add_option(self, view, position, type, others[i])) return false;
    return true;
}

static void state_costs(adaptive *self, const sc_view *view, size_t position, size_t first)
{
    uint32_t job = self->active[position];
    const sc_state *state = &view->states[job];
    bool is_running = state->phase == SC_RUNNING;
    int fair = (int)ceil((double)view->cluster->gpus / (double)self->count);
    double batch, minimum = INFINITY, fair_goodput = 0, age_s = view->now_s - view->workload->jobs[job].submit_s;
    for (size_t i = first; i < self->option_count; i++) minimum = fmin(minimum, self->offers[i].goodput);
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        int gpus = fair < view->cluster->types[type].gpus ? fair : view->cluster->types[type].gpus;
        fair_goodput = fmax(fair_goodput, sc_goodput(view, job, type, gpus, true, &batch));
    }
    if (fair_goodput == 0) fair_goodput = minimum;
    self->none_cost[position] = view->policy->rule->none_cost(is_running);
    for (size_t i = first; i < self->option_count; i++) {
        sc_option *o = &self->options[i];
        double cost_s = sc_restart_s(view->restart, o->gpus, false);
        double kept = age_s + cost_s > 0 ? fmax(0, age_s - self->restarts[job] * cost_s) / (age_s + cost_s) : 1;
        bool is_present = is_running && state->type == o->type && state->gpus == o->gpus;
        o->cost = view->policy->rule->cost(&(sc_offer){.job = job,
                                                       .goodput = self->offers[i].goodput,
                                                       .least = minimum,
                                                       .fair = fair_goodput,
                                                       .is_present = is_present,
                                                       .is_running = is_running,
                                                       .kept = kept});
    }
}

static mdot_status choose(adaptive *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    int gpus[SC_MAX_TYPES];
    double cost;
    self->option_count = 0;
    for (size_t position = 0; position < self->count; position++) {
        size_t first = self->option_count;
        if (!add_options(self, view, position)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        state_costs(self, view, position, first);
    }
    for (unsigned type = 0; type < view->cluster->type_count; type++) gpus[type] = view->cluster->types[type].gpus;
    sc_option_problem problem = {.options = self->options,
                                 .option_count = self->option_count,
                                 .job_count = self->count,
                                 .none_cost = self->none_cost,
                                 .gpus = gpus,
                                 .type_count = view->cluster->type_count};
    bool is_large = problem.type_count > 1 ? self->option_count > MOST_IN_PROGRAM
                                           : self->option_count > MOST_STEPS / (size_t)(gpus[0] + 1);
    if (is_large) return sc_options_by_prices(&problem, self->chosen, &cost, err);
    if (problem.type_count == 1) return sc_options_by_gpus(&problem, self->chosen, &cost, err);
    mdot_status status = sc_options_by_program(&problem, limit_s, self->chosen, &cost, err);
    if (status != MDOT_DEVICE) return status;
    plan->note = "no solution in time: jobs stay as they are";
    for (size_t position = 0; position < self->count; position++) self->chosen[position] = SIZE_MAX;
    for (size_t i = 0; i < self->option_count; i++) {
        const sc_state *state = &view->states[self->active[self->options[i].job]];
        if (state->phase == SC_RUNNING && state->type == self->options[i].type && state->gpus == self->options[i].gpus)
            self->chosen[self->options[i].job] = i;
    }
    return MDOT_OK;
}

/* Turns choices into shares and remembers them. */
static size_t take_chosen(adaptive *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t position = 0; position < self->count; position++) {
        size_t chosen = self->chosen[position];
        uint32_t job = self->active[position];
        const sc_state *state = &view->states[job];
        if (chosen == SIZE_MAX) continue;
        const sc_option *o = &self->options[chosen];
        bool stays = state->phase == SC_RUNNING && state->type == o->type && state->gpus == o->gpus;
        if (!stays && state->start_s < INFINITY) self->restarts[job]++;
        if (o->gpus > self->explored[job]) self->explored[job] = o->gpus;
        self->shares[count++] =
            (sc_share){.job = job, .type = o->type, .gpus = o->gpus, .batch = self->offers[chosen].batch};
    }
    return count;
}

/* Lets running jobs go on. */
static size_t take_running(adaptive *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t position = 0; position < self->count; position++) {
        const sc_state *state = &view->states[self->active[position]];
        if (state->phase == SC_RUNNING)
            self->shares[count++] = (sc_share){self->active[position], state->type, state->gpus, state->batch};
    }
    return count;
}

mdot_status sc_adaptive_decide(void *memory, const sc_view *view, sc_plan *plan)
{
    adaptive *self = memory;
    double begun_s = floor(view->now_s / SC_ADAPTIVE_S) * SC_ADAPTIVE_S;
    bool is_due = begun_s == view->now_s;
    self->count = sc_active_update(view, self->active, self->count);
    if (self->count == 0) return MDOT_OK;
    plan->wake_s = begun_s + SC_ADAPTIVE_S;
    BS_TRY(is_due ? choose(self, view, plan, view->err) : MDOT_OK);
    size_t count = is_due ? take_chosen(self, view) : take_running(self, view);
    return sc_pack(view, plan, self->shares, count, view->err);
}
