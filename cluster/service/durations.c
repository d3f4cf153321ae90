/* durations.c — POST /v1/durations: how long jobs without a known number of steps run. */
#include "base/text.h"
#include "service/json.h"
#include "service/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JOBS = 1000, MOST_QUANTILES = 16 };
#define LATEST_S 1e12

static const char *const key_names[] = {"all",
                                        "resources",
                                        "hour",
                                        "group",
                                        "user",
                                        "user-resources",
                                        "name",
                                        "network",
                                        "user-name",
                                        "user-name-resources",
                                        "user-network-resources",
                                        "user-exact-name"};

typedef struct duration_job {
    const char *user, *group, *name, *gpu_type, *network;
    int64_t gpus, submitted_at, executed_s;
} duration_job;

static mdot_status read_quantiles(struct json_object *list, double out[MOST_QUANTILES], size_t *count, mdot_error *err)
{
    size_t length = list != NULL ? json_object_array_length(list) : 0;
    if (length > MOST_QUANTILES)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "quantiles has more than %d numbers", MOST_QUANTILES);
    for (size_t i = 0; i < length; i++) {
        mdot_status status =
            sv_json_number("a quantile", json_object_array_get_idx(list, i), false, .001, .999, &out[i], err);
        if (status != MDOT_OK) return status;
    }
    if (length > 0) *count = length;
    return MDOT_OK;
}

static mdot_status answer_job(sv_state *state, struct json_object *item, const sv_request *request,
                              const double *quantiles, size_t count, FILE *stream, mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(duration_job, user, TEXT, 0, 0),
                                        SV_MEMBER(duration_job, group, TEXT, 0, 0),
                                        SV_MEMBER(duration_job, name, TEXT, 0, 0),
                                        SV_MEMBER(duration_job, gpu_type, TEXT, 0, 0),
                                        SV_MEMBER(duration_job, network, TEXT, 0, 0),
                                        SV_MEMBER(duration_job, gpus, WHOLE, 0, 1 << 20),
                                        SV_MEMBER(duration_job, submitted_at, WHOLE, 0, LATEST_S),
                                        SV_MEMBER(duration_job, executed_s, WHOLE, 0, LATEST_S)};
    duration_job j = {.submitted_at = request->now_s > 0 ? request->now_s : 0};
    if (!json_object_is_type(item, json_type_object))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a job must be an object");
    mdot_status status = sv_json_members(item, members, sizeof members / sizeof *members, &j, NULL, NULL, err);
    if (status != MDOT_OK) return status;
    const mdot_history_job job = {.struct_size = sizeof job,
                                  .user = j.user,
                                  .group = j.group,
                                  .name = j.name,
                                  .gpu_type = j.gpu_type,
                                  .digest = sv_network_number(j.network),
                                  .gpus = (int)j.gpus,
                                  .submit_s = (double)j.submitted_at};
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    pthread_rwlock_rdlock(&state->history_lock);
    status = mdot_history_ask(state->history, &job, &e, err);
    pthread_rwlock_unlock(&state->history_lock);
    if (status != MDOT_OK) return status;
    fprintf(stream,
            "{\"median_s\": %.9g, \"early_failure\": %.6g, \"failure_s\": %.9g, \"key\": \"%s\", \"weight\": %.6g, "
            "\"quantiles\": [",
            e.median_s, e.early_failure, e.failure_s, key_names[e.key], e.weight);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%s{\"probability\": %.6g, \"seconds\": %.9g, \"remaining_seconds\": %.9g}", i > 0 ? ", " : "",
                quantiles[i], mdot_history_quantile_s(&e, quantiles[i]),
                mdot_history_remaining_s(&e, (double)j.executed_s, quantiles[i]));
    fputs("]}", stream);
    return MDOT_OK;
}

void sv_handle_durations(sv_state *state, const sv_request *request, sv_answer *out)
{
    struct {
        struct json_object *jobs, *quantiles;
    } question = {0};
    static const sv_member members[] = {{"jobs", SV_JSON_ARRAY, 0, 0, 0},
                                        {"quantiles", SV_JSON_ARRAY, 0, 0, sizeof(struct json_object *)}};
    double quantiles[MOST_QUANTILES] = {.05, .5, .9, .95};
    size_t quantile_count = 4;
    mdot_error err = {0};
    bs_memstream stream = {0};
    struct json_object *body = NULL;
    mdot_status status = sv_json_read(request->body, request->body_bytes, &body, &err);
    if (status == MDOT_OK) status = sv_json_members(body, members, 2, &question, NULL, NULL, &err);
    if (status == MDOT_OK) status = read_quantiles(question.quantiles, quantiles, &quantile_count, &err);
    size_t count = question.jobs != NULL ? json_object_array_length(question.jobs) : 0;
    if (status == MDOT_OK && (count == 0 || count > MOST_JOBS))
        status = mdot_fail(&err, count > 0 ? MDOT_OUT_OF_RANGE : MDOT_INVALID_ARGUMENT, "jobs needs 1 to %d jobs",
                           MOST_JOBS);
    if (status == MDOT_OK && !bs_memstream_open(&stream)) status = mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) fprintf(stream.file, "{\"mdot\": \"%s\", \"estimates\": [", mdot_version());
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stream.file);
        status = answer_job(state, json_object_array_get_idx(question.jobs, i), request, quantiles, quantile_count,
                            stream.file, &err);
    }
    if (status == MDOT_OK) {
        fputs("\n ]}\n", stream.file);
        sv_answer_stream(out, &stream, sv_json_type);
    } else {
        free(bs_memstream_close(&stream, NULL));
        sv_answer_error(out, &err);
    }
    json_object_put(body);
}
