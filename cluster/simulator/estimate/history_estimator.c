/* history.c — estimates from a history of completed jobs (mdot_history.h), which starts empty.
 *
 * A history knows a distribution of a job's duration instead of one number. The remaining time is therefore that of
 * Gittins' index: the least ratio of expected time to probability of completion, over all spans for which the job might
 * run next. It equals the remaining time if that is certain. For a wide distribution it is shorter, because the job may
 * soon turn out to be a short one, and it grows while the job runs. Serving the least index first minimises the mean
 * completion time on one server (Gittins, 1979); Tiresias ranks jobs of unknown duration in this way, too.
 */
#include "history/mdot_history.h"

#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

mdot_history_job sc_history_job_of(const sc_job *job)
{
    return (mdot_history_job){.struct_size = sizeof(mdot_history_job),
                              .user = job->user != NULL ? job->user : job->group,
                              .group = job->user != NULL ? job->group : NULL,
                              .name = job->name,
                              .gpu_type = job->gpu_type,
                              .gpus = job->gpus,
                              .submit_s = job->submit_s};
}

/* A job that has arrived. */
typedef struct arrived {
    mdot_history_estimate estimate;
    double executed_s, index_s; /* Gittins' index at this executed time */
} arrived;

typedef struct history {
    mdot_history *jobs;
    arrived *arrived;
    mdot_history_trees *trees; /* NULL: none */
} history;

static void destroy(void *memory)
{
    history *self = memory;
    if (self == NULL) return;
    mdot_history_destroy(self->jobs);
    free(self->arrived);
    mdot_history_trees_close(self->trees);
    free(self);
}

static void ask(const history *self, const sc_workload *workload, uint32_t job)
{
    mdot_history_job question = sc_history_job_of(&workload->jobs[job]);
    mdot_history_estimate *estimate = &self->arrived[job].estimate;
    mdot_history_ask(self->jobs, &question, estimate, NULL);
    if (self->trees != NULL) mdot_history_trees_correct(self->trees, &question, estimate);
}

/* Traces are checked when they are read, so a history accepts all jobs. If memory runs out, the history lacks a job or
 * keeps its first estimate. */
static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    history *self = memory;
    arrived *a = &self->arrived[job];
    *a = (arrived){.estimate = MDOT_INIT(mdot_history_estimate), .executed_s = -1};
    ask(self, workload, job);
    return fmax(a->estimate.median_s, 1) / fmax(duration_s, 1);
}

/* A possible rest of a job's time. */
typedef struct rest {
    double seconds, probability;
} rest;

enum { DURATIONS = 24, FAILURES = 6, RESTS = DURATIONS + FAILURES };

static size_t insert(rest rests[RESTS], size_t count, rest added)
{
    size_t i = count;
    for (; i > 0 && rests[i - 1].seconds > added.seconds; i--) rests[i] = rests[i - 1];
    rests[i] = added;
    return count + 1;
}

/* Represents the rest's distribution by ascending values; the probabilities may sum to below 1. Times until early
 * failures are log-normal with σ = 1. */
static size_t list_rests(const mdot_history_estimate *e, double executed_s, rest out_rests[RESTS])
{
    static const double normal[FAILURES] = {-1.383, -.674, -.210, .210, .674, 1.383}; /* at 1/12, 3/12 … */
    size_t count = 0;
    for (int i = 0; i < DURATIONS; i++)
        out_rests[count++] = (rest){.seconds = mdot_history_remaining_s(e, executed_s, (i + .5) / DURATIONS),
                                    .probability = (1 - e->early_failure) / DURATIONS};
    for (int i = 0; i < FAILURES; i++) {
        double rest_s = e->failure_s * exp(normal[i]) - executed_s;
        if (rest_s > 0) count = insert(out_rests, count, (rest){rest_s, e->early_failure / FAILURES});
    }
    return count;
}

static double gittins_index_s(const mdot_history_estimate *e, double executed_s)
{
    rest rests[RESTS];
    size_t count = list_rests(e, executed_s, rests);
    double left = 0, ended = 0, spent_s = 0, least_s = INFINITY;
    for (size_t i = 0; i < count; i++) left += rests[i].probability;
    for (size_t i = 0; i < count; i++) {
        left -= rests[i].probability;
        ended += rests[i].probability;
        spent_s += rests[i].probability * rests[i].seconds;
        least_s = fmin(least_s, (spent_s + fmax(left, 0) * rests[i].seconds) / ended);
    }
    return least_s;
}

static void renew(void *memory, const sc_workload *workload, uint32_t job)
{
    history *self = memory;
    ask(self, workload, job);
    self->arrived[job].executed_s = -1;
}

/* The index is computed again whenever the executed time has grown by 3 %. */
static double remaining_s(void *memory, const sc_workload *workload, uint32_t job, double executed_s)
{
    const history *self = memory;
    arrived *a = &self->arrived[job];
    if (a->executed_s < 0 || executed_s > 1.03 * a->executed_s + 1 || executed_s < a->executed_s) {
        a->executed_s = executed_s;
        a->index_s = gittins_index_s(&a->estimate, executed_s);
    }
    return a->index_s;
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    history *self = memory;
    const sc_job *ended = &workload->jobs[job];
    mdot_history_job added = sc_history_job_of(ended);
    mdot_history_add(self->jobs, &added, ended->outcome, duration_s, now_s, NULL);
}

mdot_status sc_estimator_make_trees(const sc_workload *workload, const char *path, sc_estimator *out_estimator,
                                    mdot_error *err)
{
    mdot_history_trees *trees = NULL;
    BS_TRY(mdot_history_trees_open(path, &trees, err));
    mdot_status status = sc_estimator_make_history(workload, out_estimator, err);
    if (status == MDOT_OK)
        ((history *)out_estimator->self)->trees = trees;
    else
        mdot_history_trees_close(trees);
    return status;
}

mdot_status sc_estimator_make_history(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    history *self = calloc(1, sizeof *self);
    if (self != NULL) self->arrived = calloc(workload->job_count + 1, sizeof *self->arrived);
    mdot_status status = self != NULL && self->arrived != NULL ? mdot_history_create(NULL, &self->jobs, err)
                                                               : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status != MDOT_OK) {
        destroy(self);
        return status;
    }
    *out_estimator = (sc_estimator){
        .factor = factor, .learn = learn, .remaining_s = remaining_s, .renew = renew, .destroy = destroy, .self = self};
    return MDOT_OK;
}
