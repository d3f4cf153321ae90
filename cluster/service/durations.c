/* durations.c — POST /v1/durations: how long jobs without a known number of steps run. The history learns from the
 * outcomes of jobs. */
#include "service/service.h"

#include <stdlib.h>
#include <sys/random.h>

enum { MOST_JOBS = 1000, MOST_QUANTILES = 16, MOST_KEYS = 1 << 17, DIGITS_OF_A_DIGEST = 16, MOST_GPUS = 1 << 20 };
#define LATEST_S 1e12

/* ---- The history ------------------------------------------------------------------------------------------------- */

/* The digest of a network as a number, for the history; 0 for NULL. */
static uint64_t network_number(const char *network)
{
    char head[DIGITS_OF_A_DIGEST + 1] = "";
    if (network != NULL) snprintf(head, sizeof head, "%s", network);
    return strtoull(head, NULL, 16);
}

void sv_learn_outcome(mdot_history *history, const mdot_store_outcome *o)
{
    static const mdot_ended ends[] = {[MDOT_OUTCOME_COMPLETED] = MDOT_ENDED_COMPLETED,
                                      [MDOT_OUTCOME_FAILED] = MDOT_ENDED_FAILED,
                                      [MDOT_OUTCOME_CANCELLED] = MDOT_ENDED_CANCELLED,
                                      [MDOT_OUTCOME_TIMED_OUT] = MDOT_ENDED_TIMED_OUT};
    if (o->outcome == MDOT_OUTCOME_UNFINISHED || o->elapsed_s < 0 || o->ended_at <= 0) return;
    const mdot_history_job job = {.struct_size = sizeof job,
                                  .user = o->user,
                                  .group = o->account,
                                  .name = o->name,
                                  .gpu_type = o->gpu,
                                  .digest = network_number(o->digest),
                                  .gpus = o->gpu_count >= 0 && o->gpu_count <= MOST_GPUS ? (int)o->gpu_count : 0,
                                  .submit_s = (double)o->submitted_at};
    mdot_history_add(history, &job, ends[o->outcome], (double)o->elapsed_s, (double)o->ended_at, NULL);
}

mdot_status sv_create_history(mdot_history **out, mdot_error *err)
{
    mdot_history_options options = {.struct_size = sizeof options, .most_keys = MOST_KEYS};
    /* users choose names: random seeds keep them from disturbing the keys of others */
    if (getrandom(options.hash_seed, sizeof options.hash_seed, 0) < 0) options.hash_seed[0] = (uint64_t)(uintptr_t)out;
    return mdot_history_create(&options, out, err);
}

/* ---- The endpoint ------------------------------------------------------------------------------------------------ */

/* By mdot_history_key. */
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

#define JOB_MAP(TEXT, COUNT)                                                                                           \
    TEXT(user), TEXT(group), TEXT(name), TEXT(gpu_type), TEXT(network), COUNT(gpus, MOST_GPUS),                        \
        COUNT(submitted_at, LATEST_S), COUNT(executed_s, LATEST_S)

typedef struct duration_job {
    const char *user, *group, *name, *gpu_type, *network;
    int64_t gpus, submitted_at, executed_s;
} duration_job;

typedef struct question {
    struct json_object *jobs, *quantiles;
    size_t count;
    double quantile[MOST_QUANTILES];
} question;

static mdot_status read_quantiles(question *q, mdot_error *err)
{
    size_t length = sv_json_length(q->quantiles);
    if (length > MOST_QUANTILES)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "quantiles has more than %d numbers", MOST_QUANTILES);
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < length; i++)
        status = sv_json_number("a quantile", json_object_array_get_idx(q->quantiles, i), false, .001, .999,
                                &q->quantile[i], err);
    if (length > 0) q->count = length;
    return status;
}

static mdot_status answer_job(sv_state *state, const duration_job *j, const question *q, FILE *stream, mdot_error *err)
{
    const mdot_history_job job = {.struct_size = sizeof job,
                                  .user = j->user,
                                  .group = j->group,
                                  .name = j->name,
                                  .gpu_type = j->gpu_type,
                                  .digest = network_number(j->network),
                                  .gpus = (int)j->gpus,
                                  .submit_s = (double)j->submitted_at};
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    pthread_rwlock_rdlock(&state->history_lock);
    mdot_status status = mdot_history_ask(state->history, &job, &e, err);
    pthread_rwlock_unlock(&state->history_lock);
    if (status != MDOT_OK) return status;
    fprintf(stream,
            "{\"median_s\": %.9g, \"early_failure\": %.6g, \"failure_s\": %.9g, \"key\": \"%s\", \"weight\": %.6g, "
            "\"quantiles\": [",
            e.median_s, e.early_failure, e.failure_s, key_names[e.key], e.weight);
    for (size_t i = 0; i < q->count; i++)
        fprintf(stream, "%s{\"probability\": %.6g, \"seconds\": %.9g, \"remaining_seconds\": %.9g}", i > 0 ? ", " : "",
                q->quantile[i], mdot_history_quantile_s(&e, q->quantile[i]),
                mdot_history_remaining_s(&e, (double)j->executed_s, q->quantile[i]));
    fputs("]}", stream);
    return MDOT_OK;
}

mdot_status sv_handle_durations(sv_state *state, const sv_request *request, struct json_object *body, FILE *out,
                                mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(question, jobs, ARRAY, 0, 0),
                                        SV_MEMBER(question, quantiles, ARRAY, 0, 0)};
#define TEXT_OF(field) SV_MEMBER(duration_job, field, TEXT, 0, 0)
#define COUNT_OF(field, most) SV_MEMBER(duration_job, field, WHOLE, 0, most)
    static const sv_member job_members[] = {JOB_MAP(TEXT_OF, COUNT_OF)};
    question q = {.count = 4, .quantile = {.05, .5, .9, .95}};
    mdot_status status = sv_json_members(body, members, 2, &q, NULL, NULL, err);
    if (status == MDOT_OK) status = read_quantiles(&q, err);
    size_t count = sv_json_length(q.jobs);
    if (status == MDOT_OK && (count == 0 || count > MOST_JOBS))
        status =
            mdot_fail(err, count > 0 ? MDOT_OUT_OF_RANGE : MDOT_INVALID_ARGUMENT, "jobs needs 1 to %d jobs", MOST_JOBS);
    if (status != MDOT_OK) return status;
    duration_job *jobs = calloc(count, sizeof *jobs);
    if (jobs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) jobs[i].submitted_at = request->now_s > 0 ? request->now_s : 0;
    status = sv_json_items(q.jobs, "job", job_members, SV_COUNT(job_members), jobs, sizeof *jobs, NULL, err);
    fprintf(out, "{\"mdot\": \"%s\", \"estimates\": [", mdot_version());
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", out);
        status = answer_job(state, &jobs[i], &q, out, err);
    }
    fputs("\n ]}\n", out);
    free(jobs);
    return status;
}
