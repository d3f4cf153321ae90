/* learning.c — an estimate, corrected by errors on completed jobs.
 *
 * The error of a predicted step time belongs to the job and the GPU, so one completed job corrects the next ones with
 * the same network. A history (mdot_history.h) learns the ratio of true to estimated durations instead of durations,
 * under the same keys. The unit is 1 h, because an empty history answers 1 h: then the ratio is one. */
#include "history/mdot_history.h"

#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

static const double unit_s = 3600;

typedef struct learning {
    sc_estimator base;
    uint64_t *digests; /* may be NULL */
    mdot_history *ratios;
    double *estimated_s; /* by the base, for each arrived job */
} learning;

static void destroy(void *memory)
{
    learning *self = memory;
    sc_estimator_destroy(&self->base);
    mdot_history_destroy(self->ratios);
    free(self->digests);
    free(self);
}

static mdot_history_job job_of(const learning *self, const sc_workload *workload, uint32_t job)
{
    mdot_history_job j = sc_history_job_of(&workload->jobs[job]);
    if (self->digests != NULL)
        j.digest = self->digests[job];
    else if (workload->jobs[job].kind != SC_NONE)
        j.digest = 1 + workload->jobs[job].kind;
    return j;
}

static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    learning *self = memory;
    mdot_history_job question = job_of(self, workload, job);
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    double base = self->base.factor(self->base.self, workload, job, duration_s);
    self->estimated_s[job] = base * duration_s;
    bool is_answered = mdot_history_ask(self->ratios, &question, &e, NULL) == MDOT_OK;
    return is_answered && e.weight > 0 ? base * e.median_s / unit_s : base;
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    learning *self = memory;
    mdot_history_job added = job_of(self, workload, job);
    double ratio = duration_s / self->estimated_s[job];
    if (self->base.learn != NULL) self->base.learn(self->base.self, workload, job, duration_s, now_s);
    if (ratio > 0 && ratio < 1e6)
        mdot_history_add(self->ratios, &added, MDOT_ENDED_COMPLETED, unit_s * ratio, now_s, NULL);
}

mdot_status sc_estimator_make_learning(const sc_workload *workload, sc_estimator *base, uint64_t *digests,
                                       sc_estimator *out_estimator, mdot_error *err)
{
    const sc_array arrays[] = {SC_ARRAY(learning, estimated_s, workload->job_count + 1)};
    mdot_history *ratios = NULL;
    void *memory = NULL;
    mdot_status status = mdot_history_create(NULL, &ratios, err);
    if (status == MDOT_OK) status = SC_STATE(learning, arrays, &memory, err);
    if (status != MDOT_OK) {
        mdot_history_destroy(ratios);
        sc_estimator_destroy(base);
        free(digests);
        return status;
    }
    learning *self = memory;
    *self = (learning){.base = *base, .digests = digests, .ratios = ratios, .estimated_s = self->estimated_s};
    *out_estimator = (sc_estimator){.factor = factor, .learn = learn, .destroy = destroy, .self = self};
    return MDOT_OK;
}
