/* observations.c — POST /v1/observations: measured steps, and outcomes of jobs, into the store. An answer means that
 * they are on the disk. A step with a `uid` may be sent again. */
#include "base/text.h"
#include "runtime/job/configuration_table.h"
#include "service/configurations.h"
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS_BYTES = 2048, PREDICTOR_BYTES = 192, UID_DIGITS = 16 };
#define LATEST_S 1e11

/* Writes the options as the store's settings: columns of `mdot calibrate`, a line each, in any order. The optimizer is
 * always written, because the job's default may be another one. */
static void print_settings(const mdot_configuration *c, char out[SETTINGS_BYTES])
{
    char parallel[256] = "";
    size_t used = 0, length = 0;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        double value = rt_option_get(c, o);
        bool is_written = i == RT_OPTION_optimizer || rt_option_is_set(c, o);
        if (o->section == RT_SECTION_JOB || !is_written || used >= SETTINGS_BYTES) continue;
        if (o->section == RT_SECTION_DEGREE) {
            length += (size_t)snprintf(parallel + length, sizeof parallel - length, "%s%s=%.0f", length > 0 ? "," : "",
                                       o->command, value);
            continue;
        }
        used += (size_t)snprintf(out + used, SETTINGS_BYTES - used, "%s=", o->command);
        switch (o->kind) {
        case RT_KIND_CHOICE:
            used += (size_t)snprintf(out + used, SETTINGS_BYTES - used, "%s\n", o->choices[(int)value]);
            break;
        case RT_KIND_FLAG: used += (size_t)snprintf(out + used, SETTINGS_BYTES - used, "yes\n"); break;
        case RT_KIND_VERSION:
            used +=
                (size_t)snprintf(out + used, SETTINGS_BYTES - used, RT_VERSION_FORMAT "\n", RT_VERSION_PARTS(value));
            break;
        case RT_KIND_WHOLE:
        case RT_KIND_COUNT:
        case RT_KIND_REAL:
        case RT_KIND_GPU: used += (size_t)snprintf(out + used, SETTINGS_BYTES - used, "%.15g\n", value); break;
        }
    }
    if (length > 0 && used < SETTINGS_BYTES) snprintf(out + used, SETTINGS_BYTES - used, "parallel=%s\n", parallel);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

typedef struct step {
    const char *job, *name, *gpu, *software, *host, *note, *uid;
    int64_t batch, measured_at;
    double step_ms, memory_gib;
    mdot_configuration configuration;
    char settings[SETTINGS_BYTES], network[MDOT_STORE_DIGEST_BYTES];
} step;

static mdot_status read_step_option(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    step *s = user;
    mdot_status status = sv_read_option(name, value, &s->configuration, err);
    if (status != MDOT_NOT_FOUND) return status;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a step has no member \"%.64s\"", name);
}

/* Finds the step's network, and puts a job that only the cache has into the store. */
static mdot_status find_network(sv_state *state, mdot_store *store, step *s, mdot_error *err)
{
    const sv_job *job = NULL;
    if (strlen(s->job) == MDOT_STORE_DIGEST_BYTES - 1) {
        memcpy(s->network, s->job, MDOT_STORE_DIGEST_BYTES);
        return MDOT_OK; /* the store knows it, or refuses the row */
    }
    mdot_status status = sv_jobs_find(state->jobs, s->job, &job, err);
    if (status == MDOT_OK) status = mdot_store_add_job(store, job->job, s->name, s->network, err);
    sv_jobs_release(state->jobs, job);
    return status;
}

static mdot_status read_step(sv_state *state, struct json_object *item, const sv_request *request, step *s,
                             mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(step, job, TEXT, 0, 0),
                                        SV_MEMBER(step, name, TEXT, 0, 0),
                                        SV_MEMBER(step, gpu, TEXT, 0, 0),
                                        SV_MEMBER(step, software, TEXT, 0, 0),
                                        SV_MEMBER(step, host, TEXT, 0, 0),
                                        SV_MEMBER(step, note, TEXT, 0, 0),
                                        SV_MEMBER(step, uid, TEXT, 0, 0),
                                        SV_MEMBER(step, batch, WHOLE, 1, 1 << 24),
                                        SV_MEMBER(step, step_ms, REAL, MDOT_STORE_SHORTEST_MS, MDOT_STORE_LONGEST_MS),
                                        SV_MEMBER(step, memory_gib, REAL, 0, MDOT_STORE_MOST_GIB),
                                        SV_MEMBER(step, measured_at, WHOLE, 0, LATEST_S)};
    *s = (step){.configuration = {.struct_size = sizeof s->configuration},
                .measured_at = request->now_s > 0 && (double)request->now_s < LATEST_S ? request->now_s : 0};
    if (!json_object_is_type(item, json_type_object))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a step must be an object");
    mdot_status status = sv_json_members(item, members, sizeof members / sizeof *members, s, read_step_option, s, err);
    if (status != MDOT_OK) return status;
    if (s->job == NULL || s->gpu == NULL || s->batch == 0 || s->step_ms == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a step needs job, gpu, batch and step_ms");
    if (s->uid != NULL && (strlen(s->uid) != UID_DIGITS || strspn(s->uid, "0123456789abcdef") != UID_DIGITS))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "uid must have %d hexadecimal digits", UID_DIGITS);
    sv_model *model = sv_state_model(state);
    mdot_gpu gpu;
    status = sv_gpu_table_find(&model->gpus, s->gpu, &gpu, err);
    sv_model_release(model);
    print_settings(&s->configuration, s->settings);
    return status;
}

static mdot_status add_steps(sv_state *state, mdot_store *store, struct json_object *list, const sv_request *request,
                             size_t *out_added, mdot_error *err)
{
    size_t count = json_object_array_length(list);
    step *steps = calloc(count, sizeof *steps);
    mdot_store_row *rows = calloc(count, sizeof *rows);
    char predictor[PREDICTOR_BYTES];
    sv_model *model = sv_state_model(state);
    snprintf(predictor, sizeof predictor, "%s, mdot %s", sv_predictor_info(model->predictor)->name, mdot_version());
    sv_model_release(model);
    mdot_status status = steps != NULL && rows != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        step *s = &steps[i];
        status = read_step(state, json_object_array_get_idx(list, i), request, s, &reason);
        if (status == MDOT_OK) status = find_network(state, store, s, &reason);
        if (status != MDOT_OK) mdot_fail(err, status, "step %zu: %s", i, reason.message);
        rows[i] = (mdot_store_row){.struct_size = sizeof *rows,
                                   .uid = s->uid != NULL ? strtoull(s->uid, NULL, 16) : 0,
                                   .digest = s->network,
                                   .job = s->name,
                                   .gpu = s->gpu,
                                   .batch = s->batch,
                                   .ms = s->step_ms,
                                   .memory_gib = s->memory_gib,
                                   .settings = s->settings,
                                   .software = s->software,
                                   .host = s->host,
                                   .predictor = predictor,
                                   .note = s->note,
                                   .measured_at = s->measured_at};
    }
    if (status == MDOT_OK) status = mdot_store_add_rows(store, rows, count, out_added, err);
    free(rows);
    free(steps);
    return status;
}

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

static mdot_status read_outcome_word(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    mdot_store_outcome *o = user;
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    if (strcmp(name, "outcome") != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "an outcome has no member \"%.64s\"", name);
    for (int i = 0; i <= MDOT_OUTCOME_TIMED_OUT; i++)
        if (strcmp(mdot_outcome_name((mdot_outcome)i), text) == 0) return o->outcome = (mdot_outcome)i, MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "outcome must be unfinished, completed, failed, cancelled or timed-out, "
                     "not \"%.40s\"",
                     text);
}

static mdot_status add_outcomes(sv_state *state, mdot_store *store, struct json_object *list,
                                mdot_store_import *out_import, mdot_error *err)
{
#define TEXT_OF(field) SV_MEMBER(mdot_store_outcome, field, TEXT, 0, 0)
#define TIME_OF(field, least) SV_MEMBER(mdot_store_outcome, field, WHOLE, least, LATEST_S)
    static const sv_member members[] = {TEXT_OF(cluster),
                                        TEXT_OF(job_id),
                                        TEXT_OF(name),
                                        TEXT_OF(user),
                                        TEXT_OF(account),
                                        TEXT_OF(partition),
                                        TEXT_OF(state),
                                        TEXT_OF(digest),
                                        TEXT_OF(gpu),
                                        TIME_OF(submitted_at, 0),
                                        TIME_OF(gpu_count, 0),
                                        TIME_OF(node_count, 0),
                                        TIME_OF(started_at, 0),
                                        TIME_OF(ended_at, 0),
                                        TIME_OF(elapsed_s, -1),
                                        TIME_OF(limit_s, -1),
                                        SV_MEMBER(mdot_store_outcome, exit_code, WHOLE, -1, 1 << 16)};
    size_t count = json_object_array_length(list);
    mdot_store_outcome *outcomes = calloc(count, sizeof *outcomes);
    mdot_status status = outcomes != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        mdot_store_outcome *o = &outcomes[i];
        struct json_object *item = json_object_array_get_idx(list, i);
        *o = (mdot_store_outcome){.struct_size = sizeof *o, .elapsed_s = -1, .exit_code = -1};
        status =
            json_object_is_type(item, json_type_object)
                ? sv_json_members(item, members, sizeof members / sizeof *members, o, read_outcome_word, o, &reason)
                : mdot_fail(&reason, MDOT_INVALID_ARGUMENT, "it must be an object");
        if (status == MDOT_OK && (o->job_id == NULL || o->submitted_at == 0))
            status = mdot_fail(&reason, MDOT_INVALID_ARGUMENT, "it needs job_id and submitted_at");
        if (status != MDOT_OK) mdot_fail(err, status, "outcome %zu: %s", i, reason.message);
    }
    if (status == MDOT_OK) status = mdot_store_add_outcomes(store, outcomes, count, out_import, err);
    if (status == MDOT_OK && out_import->added_count + out_import->updated_count > 0) {
        pthread_rwlock_wrlock(&state->history_lock);
        for (size_t i = 0; i < count; i++) sv_learn_outcome(state->history, &outcomes[i]);
        pthread_rwlock_unlock(&state->history_lock);
    }
    free(outcomes);
    return status;
}

/* ---- The endpoint ------------------------------------------------------------------------------------------------ */

static mdot_status check_count(struct json_object *list, mdot_error *err)
{
    if (list == NULL || json_object_array_length(list) <= SV_OBSERVATIONS) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "a request has at most %d steps and %d outcomes", SV_OBSERVATIONS,
                     SV_OBSERVATIONS);
}

static bool has_items(struct json_object *list) { return list != NULL && json_object_array_length(list) > 0; }

void sv_handle_observations(sv_state *state, const sv_request *request, sv_answer *out)
{
    struct {
        struct json_object *steps, *outcomes;
    } question = {0};
    static const sv_member members[] = {{"steps", SV_JSON_ARRAY, 0, 0, 0},
                                        {"outcomes", SV_JSON_ARRAY, 0, 0, sizeof(struct json_object *)}};
    mdot_error err = {0};
    size_t added = 0;
    mdot_store_import import = MDOT_INIT(mdot_store_import);
    struct json_object *body = NULL;
    mdot_store *store = NULL;
    mdot_status status = sv_json_read(request->body, request->body_bytes, &body, &err);
    if (status == MDOT_OK) status = sv_json_members(body, members, 2, &question, NULL, NULL, &err);
    if (status == MDOT_OK) status = check_count(question.steps, &err);
    if (status == MDOT_OK) status = check_count(question.outcomes, &err);
    if (status == MDOT_OK && !has_items(question.steps) && !has_items(question.outcomes))
        status = mdot_fail(&err, MDOT_INVALID_ARGUMENT, "give steps, outcomes or both");
    if (status == MDOT_OK && (store = sv_state_lock_store(state, &err)) == NULL)
        status = err.status = MDOT_IO; /* whatever the file's fault is, a later try may succeed */
    if (status == MDOT_OK && has_items(question.steps))
        status = add_steps(state, store, question.steps, request, &added, &err);
    if (status == MDOT_OK && has_items(question.outcomes))
        status = add_outcomes(state, store, question.outcomes, &import, &err);
    if (store != NULL && (status == MDOT_CORRUPT || status == MDOT_IO)) { /* the next request opens the file anew */
        mdot_store_close(store);
        state->store = NULL;
    }
    if (store != NULL) sv_state_unlock_store(state);
    bs_memstream stream;
    if (status == MDOT_OK && !bs_memstream_open(&stream)) status = mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) {
        size_t steps = question.steps != NULL ? json_object_array_length(question.steps) : 0;
        atomic_fetch_add(&state->metrics.observations, added + import.added_count + import.updated_count);
        fprintf(stream.file,
                "{\"mdot\": \"%s\", \"steps\": {\"added\": %zu, \"known\": %zu}, \"outcomes\": {\"added\": %zu, "
                "\"updated\": %zu, \"known\": %zu}}\n",
                mdot_version(), added, steps - added, import.added_count, import.updated_count, import.known_count);
        sv_answer_stream(out, &stream, sv_json_type);
    } else {
        sv_answer_error(out, &err);
    }
    json_object_put(body);
}
