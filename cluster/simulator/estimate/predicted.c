/* predicted.c — a predictor's errors for networks that jobs have, and such an estimate for a part of the jobs. */
#include "history/mdot_history.h"

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

/* Mixes the bytes of a text into a hash. */
static uint64_t add_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash ^= (unsigned char)*text;
        hash = sc_random_next(&hash);
    }
    return hash;
}

/* Returns the number of a job's network. Jobs of the same user and name have the same one. A job without a name has a
 * network that is drawn for it alone. */
static uint64_t draw_network(const sc_job *job, uint64_t seed, uint64_t *state, size_t count)
{
    char name[MDOT_HISTORY_NAME_BYTES];
    uint64_t drawn = sc_random_next(state);
    mdot_history_normalise_name(job->name, name);
    if (name[0] != '\0') drawn = add_text(add_text(seed, job->user != NULL ? job->user : ""), name);
    return drawn % count;
}

mdot_status sc_estimator_make_predicted(const sc_workload *workload, const double *ratios, size_t network_count,
                                        uint64_t seed, bool learns, sc_estimator *out_estimator, mdot_error *err)
{
    double *factors = calloc(workload->job_count + 1, sizeof *factors);
    uint64_t *digests = calloc(workload->job_count + 1, sizeof *digests), state = seed;
    sc_estimator cold = {0};
    if (factors == NULL || digests == NULL) {
        free(factors);
        free(digests);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    for (size_t i = 0; i < workload->job_count; i++) {
        uint64_t network = draw_network(&workload->jobs[i], seed, &state, network_count);
        factors[i] = ratios[network];
        digests[i] = 1 + network;
    }
    if (learns) {
        sc_estimator_make_fixed(factors, &cold, err);
        return sc_estimator_make_learning(workload, &cold, digests, out_estimator, err);
    }
    free(digests);
    return sc_estimator_make_fixed(factors, out_estimator, err);
}

typedef struct mixed {
    sc_estimator known, unknown;
    bool *is_known;                /* of each job */
    double *factors, *durations_s; /* for each arrived job with known steps */
} mixed;

static void destroy(void *memory)
{
    mixed *self = memory;
    sc_estimator_destroy(&self->known);
    sc_estimator_destroy(&self->unknown);
    free(self);
}

static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    mixed *self = memory;
    double known = self->known.factor(self->known.self, workload, job, duration_s);
    double unknown = self->unknown.factor(self->unknown.self, workload, job, duration_s);
    self->factors[job] = known;
    self->durations_s[job] = duration_s;
    return self->is_known[job] ? known : unknown;
}

static double remaining_s(void *memory, const sc_workload *workload, uint32_t job, double executed_s)
{
    const mixed *self = memory;
    if (!self->is_known[job]) return self->unknown.remaining_s(self->unknown.self, workload, job, executed_s);
    return self->factors[job] * fmax(self->durations_s[job] - executed_s, 0);
}

static void renew(void *memory, const sc_workload *workload, uint32_t job)
{
    mixed *self = memory;
    if (!self->is_known[job]) self->unknown.renew(self->unknown.self, workload, job);
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    mixed *self = memory;
    if (self->is_known[job] && self->known.learn != NULL)
        self->known.learn(self->known.self, workload, job, duration_s, now_s);
    self->unknown.learn(self->unknown.self, workload, job, duration_s, now_s);
}

mdot_status sc_estimator_make_mixed(const sc_workload *workload, sc_estimator *known, double known_share, uint64_t seed,
                                    sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count + 1;
    uint64_t state = ~seed;
    const sc_array arrays[] = {SC_ARRAY(mixed, is_known, count), SC_ARRAY(mixed, factors, count),
                               SC_ARRAY(mixed, durations_s, count)};
    sc_estimator unknown = {0};
    void *memory = NULL;
    mdot_status status = sc_estimator_make_history(workload, &unknown, err);
    if (status == MDOT_OK) status = SC_STATE(mixed, arrays, &memory, err);
    if (status != MDOT_OK) {
        sc_estimator_destroy(known);
        sc_estimator_destroy(&unknown);
        return status;
    }
    mixed *self = memory;
    self->known = *known;
    self->unknown = unknown;
    for (size_t i = 0; i < workload->job_count; i++) self->is_known[i] = sc_random_unit(&state) < known_share;
    *out_estimator = (sc_estimator){
        .factor = factor, .learn = learn, .remaining_s = remaining_s, .renew = renew, .destroy = destroy, .self = self};
    return MDOT_OK;
}
