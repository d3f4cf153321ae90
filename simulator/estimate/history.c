/* history.c — estimates from a history of completed jobs (mdot_history.h), which starts empty. */
#include "mdot/mdot_history.h"

#include "simulator/estimate/estimators.h"
#include "simulator/estimate/history_job.h"

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

typedef struct history {
    mdot_history *jobs;
    mdot_history_estimate *estimates; /* of each job that has arrived */
} history;

static void destroy(void *memory)
{
    history *self = memory;
    if (self == NULL) return;
    mdot_history_destroy(self->jobs);
    free(self->estimates);
    free(self);
}

/* Traces are checked when they are read, so that a history accepts all of their jobs. If memory runs out, the history
 * lacks a job or keeps its first estimate. */
static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    history *self = memory;
    mdot_history_job question = sc_history_job_of(&workload->jobs[job]);
    mdot_history_estimate *e = &self->estimates[job];
    *e = (mdot_history_estimate)MDOT_INIT(mdot_history_estimate);
    mdot_history_ask(self->jobs, &question, e, NULL);
    return fmax(e->median_s, 1) / fmax(duration_s, 1);
}

static double remaining(void *memory, uint32_t job, double executed_s)
{
    const history *self = memory;
    return mdot_history_remaining_s(&self->estimates[job], executed_s, 0.5);
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    history *self = memory;
    const sc_job *ended = &workload->jobs[job];
    mdot_history_job added = sc_history_job_of(ended);
    mdot_history_add(self->jobs, &added, ended->outcome, duration_s, now_s, NULL);
}

mdot_status sc_estimator_make_history(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    history *self = calloc(1, sizeof *self);
    if (self != NULL) self->estimates = calloc(workload->job_count + 1, sizeof *self->estimates);
    mdot_status status = self != NULL && self->estimates != NULL
                             ? mdot_history_create(NULL, &self->jobs, err)
                             : mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for the history of %zu jobs",
                                         workload->job_count);
    if (status != MDOT_OK) {
        destroy(self);
        return status;
    }
    *out_estimator = (sc_estimator){
        .factor = factor, .learn = learn, .remaining = remaining, .destroy = destroy, .self = self};
    return MDOT_OK;
}
