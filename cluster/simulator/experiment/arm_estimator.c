/* arm_estimator.c — the estimator of an arm. */
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/experiment/experiment.h"

#include <math.h>
#include <stdlib.h>

bool ex_is_random(const ex_arm *arm)
{
    return arm->kind == EX_SCALE || arm->kind == EX_TOTAL || arm->kind == EX_PREDICTED || arm->kind == EX_LEARNED ||
           arm->kind == EX_MIXED;
}

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

/* Assigns a network to each job. A predictor's error for a job is that for this network. */
static mdot_status draw_networks(const ex_predictions *p, int column, const sc_workload *workload, uint64_t seed,
                                 uint64_t *digests, sc_estimator *out_estimator, mdot_error *err)
{
    double *factors = calloc(workload->job_count + 1, sizeof *factors);
    uint64_t state = seed;
    if (factors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < workload->job_count; i++) {
        uint64_t network = draw_network(&workload->jobs[i], seed, &state, p->network_count);
        factors[i] = p->factors[(size_t)column * p->network_count + network];
        digests[i] = 1 + network;
    }
    return sc_estimator_make_fixed(factors, out_estimator, err);
}

static mdot_status make_learned(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload, uint64_t seed,
                                uint64_t *digests, sc_estimator *out_estimator, mdot_error *err)
{
    sc_estimator cold = {0};
    mdot_status status = draw_networks(&setup->predictions, arm->column, workload, seed, digests, &cold, err);
    if (status != MDOT_OK) return status;
    return sc_estimator_make_learning(workload, &cold, digests, out_estimator, err);
}

typedef struct mixed {
    sc_estimator known, unknown;
    const sc_workload *workload;
    bool *is_known;                /* of each job */
    double *factors, *durations_s; /* for each arrived job with known steps */
} mixed;

static void destroy(void *memory)
{
    mixed *self = memory;
    sc_estimator_destroy(&self->known);
    sc_estimator_destroy(&self->unknown);
    free(self->is_known);
    free(self->factors);
    free(self->durations_s);
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
    if (self->is_known[job]) self->known.learn(self->known.self, workload, job, duration_s, now_s);
    self->unknown.learn(self->unknown.self, workload, job, duration_s, now_s);
}

static mdot_status make_mixed(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload, uint64_t seed,
                              uint64_t *digests, sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count + 1;
    mixed *self = calloc(1, sizeof *self);
    if (self == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    self->is_known = calloc(count, sizeof *self->is_known);
    self->factors = calloc(count, sizeof *self->factors);
    self->durations_s = calloc(count, sizeof *self->durations_s);
    mdot_status status = MDOT_OK;
    if (self->is_known == NULL || self->factors == NULL || self->durations_s == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = make_learned(setup, arm, workload, seed, digests, &self->known, err);
    if (status == MDOT_OK) status = sc_estimator_make_history(workload, &self->unknown, err);
    uint64_t state = ~seed;
    for (size_t i = 0; status == MDOT_OK && i + 1 < count; i++)
        self->is_known[i] = sc_random_unit(&state) < setup->known_share;
    if (status != MDOT_OK) {
        destroy(self);
        return status;
    }
    *out_estimator = (sc_estimator){
        .factor = factor, .learn = learn, .remaining_s = remaining_s, .renew = renew, .destroy = destroy, .self = self};
    return MDOT_OK;
}

mdot_status ex_make_estimator(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload, uint64_t seed,
                              uint64_t *digests, sc_estimator *out_estimator, sc_errors *out_errors, mdot_error *err)
{
    bool is_total = arm->kind == EX_TOTAL || arm->kind == EX_ROLLING || arm->kind == EX_LAST_TWO;
    bool is_residual = arm->kind == EX_HISTORY || arm->kind == EX_MIXED;
    *out_errors = is_total ? SC_ERRORS_TOTAL : is_residual ? SC_ERRORS_RESIDUAL : SC_ERRORS_SCALE;
    switch (arm->kind) {
    case EX_SCALE:
    case EX_TOTAL:
        return sc_estimator_make_errors(workload->job_count, setup->error_model, arm->error, seed, out_estimator, err);
    case EX_PREDICTED:
        return draw_networks(&setup->predictions, arm->column, workload, seed, digests, out_estimator, err);
    case EX_LEARNED: return make_learned(setup, arm, workload, seed, digests, out_estimator, err);
    case EX_MIXED: return make_mixed(setup, arm, workload, seed, digests, out_estimator, err);
    case EX_HISTORY: return sc_estimator_make_history(workload, out_estimator, err);
    case EX_ROLLING: return sc_estimator_make_rolling(workload, out_estimator, err);
    case EX_LAST_TWO: return sc_estimator_make_last_two(workload, out_estimator, err);
    case EX_BLIND:
    case EX_EXACT: break;
    }
    *out_estimator = sc_estimator_oracle();
    return MDOT_OK;
}
