/* mlfs.c — a policy learned by reinforcement, after MLFS (Wang, Liu and Shen, CoNEXT 2020): a compiled network scores
 * every job at every event, and GPUs go to each job that fits, the highest score first.
 *
 * Implemented: features of time, of the training (progress and loss, loss_curves.h) and of the load; a network that
 * begins as a heuristic and learns from simulations (lab/mdot_lab/policy), compiled by mdot (--learned). Left out:
 * deadlines, tasks of one job, and migration between overloaded servers. */
#include "base/status.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/learned.h"
#include "simulator/policy/loss_curves.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

mdot_status sc_learned_open(const char *path, hs_row_model **out_learned, mdot_error *err)
{
    static const hs_row row = {"features", "score", SC_FEATURES, 1};
    return hs_row_model_open(path, &row, out_learned, err);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    if (view->learned == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "policy mlfs requires --learned FILE, a network of lab/mdot_lab/policy, compiled by mdot");
    return sc_ranked_create(view, out_self, err);
}

static mdot_status score_of(const sc_view *view, uint32_t job, double load, float *out_score, mdot_error *err)
{
    const sc_job *j = &view->workload->jobs[job];
    const sc_state *state = &view->states[job];
    double part = 1 - sc_view_planned_work(view, job) / (j->work * sc_workload_planned(j));
    double left_s = sc_view_left_s(view, job);
    const float features[SC_FEATURES] = {(float)(log1p(left_s) / 10),
                                         (float)(log2(j->gpus) / 5),
                                         (float)(log1p(fmax(0, view->now_s - j->submit_s - state->executed_s)) / 10),
                                         (float)(log1p(state->attained_gpu_s) / 10),
                                         (float)(log1p(sc_estimate_duration_s(view->estimate, job)) / 10),
                                         (float)part,
                                         (float)sc_loss_at(job, fmax(0, part)),
                                         sc_view_is_running(view, job),
                                         (float)log1p(load)};
    return hs_row_model_ask(view->learned, features, out_score, err);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    sc_ranked *jobs = self->items;
    double requested_gpus = 0;
    self->count = sc_active_update(view, self->jobs, self->count);
    for (size_t i = 0; i < self->count; i++) requested_gpus += view->workload->jobs[self->jobs[i]].gpus;
    for (size_t i = 0; i < self->count; i++) {
        float score;
        BS_TRY(score_of(view, self->jobs[i], requested_gpus / view->cluster->gpus, &score, view->err));
        jobs[i] = (sc_ranked){self->jobs[i], -score};
    }
    qsort(jobs, self->count, sizeof *jobs, sc_by_rank);
    for (size_t i = 0; i < self->count && sc_plan_most_free(view, plan) > 0; i++)
        sc_plan_run_fastest(view, plan, jobs[i].job);
    return MDOT_OK;
}

const sc_policy sc_policy_mlfs = {
    .name = "mlfs",
    .summary = "the highest score of a learned, compiled network first (after MLFS); requires --learned",
    .create = create,
    .decide = decide,
};
