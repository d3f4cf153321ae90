/* shadow.c — see shadow.h. */
#include "service/shadow.h"
#include "service/job_cache.h"

#include <stdlib.h>
#include <string.h>

typedef struct comparison {
    sv_state *state;
    sv_model *model;
    char digest[SV_SHA256_TEXT];
    size_t count;
    mdot_configuration *configurations;
    mdot_gpu *gpus; /* copies, because a request may describe its own */
    char (*names)[SV_GPU_NAME_BYTES + 1];
    mdot_prediction *predictions; /* by the first predictor, calibrated; then by the shadow */
    double *step_ms;
} comparison;

static void free_comparison(comparison *c)
{
    if (c == NULL) return;
    sv_model_release(c->model);
    free(c->configurations);
    free(c->gpus);
    free(c->names);
    free(c->predictions);
    free(c->step_ms);
    free(c);
}

static void compare(void *user)
{
    comparison *c = user;
    sv_metrics *metrics = &c->state->metrics;
    const sv_job *job = NULL;
    sv_encoding *encoding = NULL;
    mdot_status status = sv_jobs_find(c->state->jobs, c->digest, &job, NULL);
    mdot_context *context = sv_predictor_borrow(c->model->shadow);
    if (status == MDOT_OK) status = sv_jobs_encode(c->state->jobs, job, c->model, true, context, &encoding, NULL);
    bool is_encoded = status == MDOT_OK;
    if (is_encoded)
        status = mdot_evaluate(context, sv_encoding_get(encoding), c->configurations, c->count, c->predictions, NULL);
    for (size_t i = 0; i < c->count; i++) {
        bool is_answered =
            is_encoded && (status == MDOT_OK || c->predictions[i].status == MDOT_OK) && c->predictions[i].step_ms > 0;
        if (c->step_ms[i] == 0) continue; /* the first one refused it */
        atomic_fetch_add(is_answered ? &metrics->shadow_answers : &metrics->shadow_failures, 1);
        if (is_answered) sv_metrics_difference(metrics, c->predictions[i].step_ms / c->step_ms[i]);
    }
    sv_predictor_return(c->model->shadow, context);
    sv_encoding_release(c->state->jobs, encoding);
    sv_jobs_release(c->state->jobs, job);
    free_comparison(c);
}

void sv_shadow_add(void *user, const char *digest, const mdot_configuration *configurations,
                   const mdot_prediction *predictions, size_t count)
{
    sv_shadow *shadow = user;
    comparison *c = calloc(1, sizeof *c);
    if (c == NULL) return;
    *c = (comparison){.state = shadow->state,
                      .count = count,
                      .configurations = calloc(count, sizeof *c->configurations),
                      .gpus = calloc(count, sizeof *c->gpus),
                      .names = calloc(count, sizeof *c->names),
                      .predictions = calloc(count, sizeof *c->predictions),
                      .step_ms = calloc(count, sizeof *c->step_ms)};
    snprintf(c->digest, sizeof c->digest, "%s", digest);
    bool is_whole = c->configurations != NULL && c->gpus != NULL && c->names != NULL && c->predictions != NULL &&
                    c->step_ms != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        snprintf(c->names[i], sizeof c->names[i], "%s", configurations[i].gpu_spec->name);
        c->gpus[i] = *configurations[i].gpu_spec;
        c->gpus[i].name = c->names[i];
        c->configurations[i] = configurations[i];
        c->configurations[i].gpu_spec = &c->gpus[i];
        c->predictions[i].struct_size = sizeof *c->predictions;
        c->step_ms[i] = predictions[i].status == MDOT_OK ? predictions[i].step_ms : 0;
    }
    c->model = sv_state_model(shadow->state);
    if (is_whole && c->model->shadow != NULL && sv_workers_add(shadow->workers, compare, c)) return;
    atomic_fetch_add(&shadow->state->metrics.shadow_dropped, 1);
    free_comparison(c);
}
