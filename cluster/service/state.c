/* state.c — opening, reloading and closing what answers depend on (service.h). */
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>

enum { STORE_BUSY_MS = 2000 };

sv_model *sv_state_model(sv_state *state)
{
    pthread_mutex_lock(&state->model_mutex);
    sv_model *model = state->model;
    sv_model_retain(model);
    pthread_mutex_unlock(&state->model_mutex);
    return model;
}

mdot_store *sv_state_lock_store(sv_state *state, mdot_error *err)
{
    const mdot_store_options options = {.struct_size = sizeof options, .busy_ms = STORE_BUSY_MS};
    if (state->store_path == NULL) {
        mdot_fail(err, MDOT_IO, "this service has no store (--store)");
        return NULL;
    }
    pthread_mutex_lock(&state->store_mutex);
    if (state->store == NULL && mdot_store_open(state->store_path, &options, &state->store, err) != MDOT_OK)
        state->store = NULL;
    if (state->store == NULL) pthread_mutex_unlock(&state->store_mutex);
    return state->store;
}

void sv_state_unlock_store(sv_state *state) { pthread_mutex_unlock(&state->store_mutex); }

static bool learn(void *history, const mdot_store_outcome *outcome) { return sv_learn_outcome(history, outcome), true; }

/* Learns durations from the store; an unreadable one leaves what is known. */
static mdot_status learn_history(sv_state *state, mdot_error *err)
{
    mdot_history *history = NULL;
    mdot_status status = sv_create_history(&history, err);
    if (status != MDOT_OK) return status;
    mdot_store *store = state->store_path != NULL ? sv_state_lock_store(state, err) : NULL;
    if (store != NULL) {
        status = mdot_store_visit_outcomes(store, learn, history, err);
        sv_state_unlock_store(state);
    } else if (state->store_path != NULL) {
        status = MDOT_IO;
    }
    pthread_rwlock_wrlock(&state->history_lock);
    mdot_history *former = history;
    if (status == MDOT_OK || state->history == NULL) {
        former = state->history;
        state->history = history;
    }
    pthread_rwlock_unlock(&state->history_lock);
    mdot_history_destroy(former);
    return status;
}

mdot_status sv_state_open(sv_state *state, size_t job_bytes, mdot_error *err)
{
    pthread_mutex_init(&state->model_mutex, NULL);
    pthread_mutex_init(&state->store_mutex, NULL);
    pthread_rwlock_init(&state->history_lock, NULL);
    mdot_status status = sv_jobs_create(job_bytes, &state->jobs, err);
    if (status == MDOT_OK) status = sv_model_load(&state->sources, state->threads, &state->model, err);
    if (status == MDOT_OK) learn_history(state, NULL);
    if (status == MDOT_OK && state->history == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return status;
}

mdot_status sv_state_reload(sv_state *state, mdot_error *err)
{
    sv_model *model = NULL;
    mdot_status status = sv_model_load(&state->sources, state->threads, &model, err);
    atomic_fetch_add(status == MDOT_OK ? &state->metrics.reloads : &state->metrics.failed_reloads, 1);
    if (status != MDOT_OK) return status;
    pthread_mutex_lock(&state->model_mutex);
    sv_model *former = state->model;
    state->model = model;
    pthread_mutex_unlock(&state->model_mutex);
    sv_model_release(former);
    learn_history(state, NULL);
    return MDOT_OK;
}

void sv_state_close(sv_state *state)
{
    sv_jobs_destroy(state->jobs);
    sv_model_release(state->model);
    mdot_store_close(state->store);
    mdot_history_destroy(state->history);
    pthread_rwlock_destroy(&state->history_lock);
    pthread_mutex_destroy(&state->store_mutex);
    pthread_mutex_destroy(&state->model_mutex);
}
