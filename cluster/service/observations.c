/* observations.c — POST /v1/observations: measured steps, and outcomes of jobs, into the store. An answer means that
 * they are on the disk. A step with a `uid` may be sent again. */
#include "base/training/training_options.h"
#include "service/configurations.h"
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS_BYTES = 2048, PREDICTOR_BYTES = 192, UID_DIGITS = 16 };
#define LATEST_S 1e11

static void print_value(FILE *stream, const rt_option *o, double value)
{
    switch (o->kind) {
    case RT_KIND_CHOICE: fprintf(stream, "%s=%s\n", o->command, o->choices[(int)value]); break;
    case RT_KIND_FLAG: fprintf(stream, "%s=yes\n", o->command); break;
    case RT_KIND_VERSION: fprintf(stream, "%s=" RT_VERSION_FORMAT "\n", o->command, RT_VERSION_PARTS(value)); break;
    default: fprintf(stream, "%s=%.15g\n", o->command, value);
    }
}

/* Writes the options as the store's settings: columns of `mdot calibrate`, a line each, in any order. The optimizer is
 * always written, because the job's default may be another one. */
static mdot_status print_settings(const mdot_configuration *c, char out[SETTINGS_BYTES], mdot_error *err)
{
    const char *gap = "parallel=";
    FILE *stream = fmemopen(out, SETTINGS_BYTES, "w");
    if (stream == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        bool is_written = i == RT_OPTION_optimizer || rt_option_is_set(c, o);
        if (is_written && o->section != RT_SECTION_JOB && o->section != RT_SECTION_DEGREE)
            print_value(stream, o, rt_option_get(c, o));
    }
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->section != RT_SECTION_DEGREE || !rt_option_is_set(c, o)) continue;
        fprintf(stream, "%s%s=%.0f", gap, o->command, rt_option_get(c, o));
        gap = ",";
    }
    if (*gap == ',') fputs("\n", stream);
    fclose(stream);
    return MDOT_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

typedef struct step {
    mdot_store_row row;
    const char *job, *uid;
    mdot_configuration configuration;
    char settings[SETTINGS_BYTES], network[MDOT_STORE_DIGEST_BYTES];
} step;

static mdot_status read_step_option(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    const rt_option *option;
    double number = 0;
    mdot_status status = sv_read_option(name, value, &option, &number, err);
    if (status == MDOT_OK) rt_option_set(&((step *)user)->configuration, option, number);
    return status;
}

/* Checks the step, finds its network, and puts a job that only the cache has into the store. */
static mdot_status complete_step(sv_state *state, const sv_model *model, mdot_store *store, step *s, mdot_error *err)
{
    mdot_store_row *row = &s->row;
    if (s->job == NULL || row->gpu == NULL || row->batch == 0 || row->ms == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a step needs job, gpu, batch and step_ms");
    if (s->uid != NULL && (strlen(s->uid) != UID_DIGITS || strspn(s->uid, "0123456789abcdef") != UID_DIGITS))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "uid must have %d hexadecimal digits", UID_DIGITS);
    mdot_gpu gpu;
    const sv_job *job = NULL;
    mdot_status status = sv_gpu_table_find(&model->gpus, row->gpu, &gpu, err);
    if (status == MDOT_OK) status = print_settings(&s->configuration, s->settings, err);
    row->uid = s->uid != NULL ? strtoull(s->uid, NULL, 16) : 0;
    row->settings = s->settings;
    row->digest = s->network;
    bool is_network = strlen(s->job) == MDOT_STORE_DIGEST_BYTES - 1;
    if (is_network) memcpy(s->network, s->job, MDOT_STORE_DIGEST_BYTES); /* the store knows it, or refuses the row */
    if (status != MDOT_OK || is_network) return status;
    status = sv_jobs_find(state->jobs, s->job, &job, err);
    if (status == MDOT_OK) status = mdot_store_add_job(store, job->job, row->job, s->network, err);
    sv_jobs_release(state->jobs, job);
    return status;
}

static mdot_status add_steps(sv_state *state, mdot_store *store, struct json_object *list, const sv_request *request,
                             size_t *out_added, mdot_error *err)
{
    static const sv_member members[] = {
        SV_MEMBER(step, job, TEXT, 0, 0),
        SV_NAMED(step, "name", row.job, TEXT, 0, 0),
        SV_NAMED(step, "gpu", row.gpu, TEXT, 0, 0),
        SV_NAMED(step, "software", row.software, TEXT, 0, 0),
        SV_NAMED(step, "host", row.host, TEXT, 0, 0),
        SV_NAMED(step, "note", row.note, TEXT, 0, 0),
        SV_MEMBER(step, uid, TEXT, 0, 0),
        SV_NAMED(step, "batch", row.batch, WHOLE, 1, 1 << 24),
        SV_NAMED(step, "step_ms", row.ms, REAL, MDOT_STORE_SHORTEST_MS, MDOT_STORE_LONGEST_MS),
        SV_NAMED(step, "memory_gib", row.memory_gib, REAL, 0, MDOT_STORE_MOST_GIB),
        SV_NAMED(step, "measured_at", row.measured_at, WHOLE, 0, LATEST_S)};
    size_t count = sv_json_length(list);
    char predictor[PREDICTOR_BYTES];
    step *steps = calloc(count + 1, sizeof *steps);
    mdot_store_row *rows = calloc(count + 1, sizeof *rows);
    sv_model *model = sv_state_model(state);
    snprintf(predictor, sizeof predictor, "%s, mdot %s", sv_predictor_info(model->predictor)->name, mdot_version());
    mdot_status status = steps != NULL && rows != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        steps[i] =
            (step){.row = {.struct_size = sizeof *rows,
                           .predictor = predictor,
                           .measured_at = request->now_s > 0 && (double)request->now_s < LATEST_S ? request->now_s : 0},
                   .configuration = {.struct_size = sizeof steps->configuration}};
    if (status == MDOT_OK)
        status = sv_json_items(list, "step", members, SV_COUNT(members), steps, sizeof *steps, read_step_option, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        status = complete_step(state, model, store, &steps[i], &reason);
        if (status != MDOT_OK) mdot_fail(err, status, "step %zu: %s", i, reason.message);
        rows[i] = steps[i].row;
    }
    if (status == MDOT_OK && count > 0) status = mdot_store_add_rows(store, rows, count, out_added, err);
    sv_model_release(model);
    free(rows);
    free(steps);
    return status;
}

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

/* Texts of an outcome, and numbers from 0 on. */
#define OUTCOME_MAP(TEXT, COUNT)                                                                                       \
    TEXT(cluster), TEXT(job_id), TEXT(name), TEXT(user), TEXT(account), TEXT(partition), TEXT(state), TEXT(digest),    \
        TEXT(gpu), COUNT(submitted_at), COUNT(gpu_count), COUNT(node_count), COUNT(started_at), COUNT(ended_at)

static mdot_status read_outcome_word(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    mdot_store_outcome *o = user;
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    if (strcmp(name, "outcome") != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "an outcome has no member \"%.64s\"", name);
    for (int i = 0; i <= MDOT_OUTCOME_TIMED_OUT; i++)
        if (strcmp(mdot_outcome_name((mdot_outcome)i), text) == 0) return o->outcome = (mdot_outcome)i, MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "outcome must be unfinished, completed, failed, cancelled or timed-out, not \"%.40s\"", text);
}

static mdot_status add_outcomes(sv_state *state, mdot_store *store, struct json_object *list,
                                mdot_store_import *out_import, mdot_error *err)
{
#define TEXT_OF(field) SV_MEMBER(mdot_store_outcome, field, TEXT, 0, 0)
#define COUNT_OF(field) SV_MEMBER(mdot_store_outcome, field, WHOLE, 0, LATEST_S)
    static const sv_member members[] = {OUTCOME_MAP(TEXT_OF, COUNT_OF),
                                        SV_MEMBER(mdot_store_outcome, elapsed_s, WHOLE, -1, LATEST_S),
                                        SV_MEMBER(mdot_store_outcome, limit_s, WHOLE, -1, LATEST_S),
                                        SV_MEMBER(mdot_store_outcome, exit_code, WHOLE, -1, 1 << 16)};
    size_t count = sv_json_length(list);
    mdot_store_outcome *outcomes = calloc(count + 1, sizeof *outcomes);
    if (outcomes == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        outcomes[i] = (mdot_store_outcome){.struct_size = sizeof *outcomes, .elapsed_s = -1, .exit_code = -1};
    mdot_status status =
        sv_json_items(list, "outcome", members, SV_COUNT(members), outcomes, sizeof *outcomes, read_outcome_word, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        if (outcomes[i].job_id == NULL || outcomes[i].submitted_at == 0)
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "outcome %zu: it needs job_id and submitted_at", i);
    if (status == MDOT_OK && count > 0) status = mdot_store_add_outcomes(store, outcomes, count, out_import, err);
    if (status == MDOT_OK && out_import->added_count + out_import->updated_count > 0) {
        pthread_rwlock_wrlock(&state->history_lock);
        for (size_t i = 0; i < count; i++) sv_learn_outcome(state->history, &outcomes[i]);
        pthread_rwlock_unlock(&state->history_lock);
    }
    free(outcomes);
    return status;
}

/* ---- The endpoint ------------------------------------------------------------------------------------------------ */

typedef struct question {
    struct json_object *steps, *outcomes;
} question;

mdot_status sv_handle_observations(sv_state *state, const sv_request *request, struct json_object *body, FILE *out,
                                   mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(question, steps, ARRAY, 0, 0),
                                        SV_MEMBER(question, outcomes, ARRAY, 0, 0)};
    question q = {0};
    size_t added = 0;
    mdot_store_import import = MDOT_INIT(mdot_store_import);
    mdot_status status = sv_json_members(body, members, 2, &q, NULL, NULL, err);
    size_t steps = sv_json_length(q.steps), outcomes = sv_json_length(q.outcomes);
    if (status != MDOT_OK) return status;
    if (steps > SV_OBSERVATIONS || outcomes > SV_OBSERVATIONS)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "a request has at most %d steps and %d outcomes", SV_OBSERVATIONS,
                         SV_OBSERVATIONS);
    if (steps + outcomes == 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "give steps, outcomes or both");
    mdot_store *store = sv_state_lock_store(state, err);
    if (store == NULL) return MDOT_IO; /* whatever the file's fault is, a later try may succeed */
    status = add_steps(state, store, q.steps, request, &added, err);
    if (status == MDOT_OK) status = add_outcomes(state, store, q.outcomes, &import, err);
    if (status == MDOT_CORRUPT || status == MDOT_IO) { /* the next request opens the file anew */
        mdot_store_close(store);
        state->store = NULL;
    }
    sv_state_unlock_store(state);
    if (status != MDOT_OK) return status;
    atomic_fetch_add(&state->metrics.observations, added + import.added_count + import.updated_count);
    fprintf(out,
            "{\"mdot\": \"%s\", \"steps\": {\"added\": %zu, \"known\": %zu}, \"outcomes\": {\"added\": %zu, "
            "\"updated\": %zu, \"known\": %zu}}\n",
            mdot_version(), added, steps - added, import.added_count, import.updated_count, import.known_count);
    return MDOT_OK;
}
