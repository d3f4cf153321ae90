/* predict.c — POST /v1/predict: configurations of a known job. The answer is the document of `mdot predict --json`,
 * with the job's digest as its name. */
#include "base/text.h"
#include "base/training/prediction_json.h"
#include "service/configurations.h"
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>
#include <string.h>

/* Several threads share a request from so many configurations on. */
enum { SHARED_COUNT = 512, MOST_THREADS = 16 };

typedef struct question {
    const char *job;
    struct json_object *configurations, *configuration;
} question;

typedef struct answers {
    sv_state *state;
    sv_model *model;
    const sv_job *job;
    sv_encoding *encoding;
    cli_job_choices choices;
    sv_configurations asked;
    mdot_prediction *predictions;
    mdot_error reason; /* why the first configuration failed */
} answers;

/* A range of configurations with its text; evaluated in another order, in arrays of its own. */
typedef struct part {
    answers *a;
    mdot_context *context;
    size_t first, count;
    FILE *out;
    bs_memstream text; /* behind `out`, except for the first part */
    pthread_t thread;
    bool has_thread;
} part;

static void print_refused(FILE *stream, const mdot_error *err)
{
    const char *text = strncmp(err->message, "pair ", 5) == 0 ? strstr(err->message, ": ") : NULL;
    fprintf(stream, "{\"error\": {\"code\": \"%s\", \"detail\": ", mdot_status_name(err->status));
    cli_json_string(stream, text != NULL ? text + 2 : err->message);
    fputs("}}", stream);
}

typedef struct keyed {
    int64_t batch;
    size_t index;
} keyed;

static int by_batch(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->batch != y->batch) return x->batch < y->batch ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Evaluates the range in ascending order of batches, because neighbours with one batch share most of the work. */
static mdot_status evaluate(const part *x, mdot_error *err)
{
    const mdot_configuration *c = x->a->asked.item + x->first;
    mdot_prediction *p = x->a->predictions + x->first;
    const mdot_encoding *encoding = sv_encoding_get(x->a->encoding);
    if (x->count == 1) return mdot_evaluate(x->context, encoding, c, 1, p, err);
    keyed *order = calloc(x->count, sizeof *order);
    mdot_configuration *sorted = calloc(x->count, sizeof *sorted);
    mdot_prediction *answered = calloc(x->count, sizeof *answered);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    if (order != NULL && sorted != NULL && answered != NULL) {
        for (size_t i = 0; i < x->count; i++) order[i] = (keyed){c[i].batch, i};
        qsort(order, x->count, sizeof *order, by_batch);
        for (size_t i = 0; i < x->count; i++) sorted[i] = c[order[i].index];
        answered->struct_size = sizeof *answered;
        status = mdot_evaluate(x->context, encoding, sorted, x->count, answered, err);
        for (size_t i = 0; i < x->count; i++) p[order[i].index] = answered[i];
    }
    free(order);
    free(sorted);
    free(answered);
    return status;
}

/* Completes a configuration's answer, where `all` is the status of the whole part: the reason for a failure, and the
 * calibration. */
static mdot_status finish_one(const part *x, size_t i, mdot_status all, mdot_error *err)
{
    const answers *a = x->a;
    const mdot_configuration *c = &a->asked.item[x->first + i];
    mdot_prediction *p = &a->predictions[x->first + i];
    mdot_status status = all == MDOT_OK || x->count == 1 ? all : p->status;
    if (all != MDOT_OK && x->count > 1 && (status != MDOT_OK || p->step_ms == 0)) { /* for its own message */
        p->struct_size = sizeof *p;
        status = mdot_evaluate(x->context, sv_encoding_get(a->encoding), c, 1, p, err);
    }
    if (status == MDOT_OK && a->model->calibration != NULL)
        status = mdot_calibration_apply_to_job(a->model->calibration, a->job->job, c, p, err);
    p->status = status;
    return status;
}

static void answer_part(part *x)
{
    answers *a = x->a;
    FILE *stream = x->out;
    mdot_error err = {0};
    mdot_status all = evaluate(x, &err);
    if (x->first == 0) {
        cli_json_origin origin = sv_origin(a->model, a->job);
        size_t answered = 0;
        while (answered + 1 < x->count && a->predictions[answered].status != MDOT_OK) answered++;
        origin.flops_per_sample = a->predictions[answered].flops_per_sample;
        cli_json_begin(stream, &origin);
    }
    for (size_t i = 0; i < x->count; i++) {
        size_t index = x->first + i;
        mdot_status status = finish_one(x, i, all, &err);
        if (status != MDOT_OK && index == 0) a->reason = err;
        fputs(index == 0 ? "\n  " : ",\n  ", stream);
        if (status == MDOT_OK) {
            cli_json_step(stream, &a->asked.item[index], &a->predictions[index], &a->choices,
                          a->job->tokens_per_sample);
            cli_json_memory(stream, &a->asked.item[index], &a->predictions[index]);
            fputs("}", stream);
        } else {
            print_refused(stream, &err);
        }
    }
}

static void *run_part(void *x) { return answer_part(x), NULL; }

/* Answers all configurations; the parts' texts follow each other. */
static mdot_status answer_parts(answers *a, FILE *out, mdot_error *err)
{
    part parts[MOST_THREADS];
    sv_predictor *predictor = a->model->predictor;
    mdot_context *contexts[MOST_THREADS] = {sv_predictor_borrow(predictor)};
    mdot_status status = sv_jobs_encode(a->state->jobs, a->job, a->model, false, contexts[0], &a->encoding, err);
    size_t count = 1, wanted = a->asked.count / SHARED_COUNT, most = a->state->plan_threads;
    if (most > MOST_THREADS) most = MOST_THREADS;
    if (wanted >= most) wanted = most - 1;
    if (status == MDOT_OK) count += sv_predictor_borrow_more(predictor, contexts + 1, wanted);
    for (size_t i = 0; i < count; i++) {
        size_t first = a->asked.count * i / count, end = a->asked.count * (i + 1) / count;
        parts[i] = (part){.a = a, .context = contexts[i], .first = first, .count = end - first, .out = out};
        if (i > 0 && !bs_memstream_open(&parts[i].text)) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        if (i > 0) parts[i].out = parts[i].text.file;
    }
    for (size_t i = 1; status == MDOT_OK && i < count; i++)
        parts[i].has_thread = pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) == 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        if (status == MDOT_OK && !parts[i].has_thread) answer_part(&parts[i]);
        if (parts[i].has_thread) pthread_join(parts[i].thread, NULL);
        char *text = bs_memstream_close(&parts[i].text, &size);
        if (text != NULL) fwrite(text, 1, size, out);
        if (text == NULL && i > 0 && status == MDOT_OK) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        free(text);
        sv_predictor_return(predictor, contexts[i]);
    }
    fputs("\n ]}\n", out);
    return status;
}

static mdot_status read_question(answers *a, struct json_object *body, mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(question, job, TEXT, 0, 0),
                                        SV_MEMBER(question, configurations, ARRAY, 0, 0),
                                        SV_MEMBER(question, configuration, OBJECT, 0, 0)};
    question q = {0};
    BS_TRY(sv_json_members(body, members, 3, &q, NULL, NULL, err));
    if (q.job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "job is missing: the digest of POST /v1/jobs");
    if ((q.configurations == NULL) == (q.configuration == NULL))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "give either configuration or configurations");
    mdot_status status = sv_jobs_find(a->state->jobs, q.job, &a->job, err);
    size_t count = q.configurations != NULL ? sv_json_length(q.configurations) : 1;
    if (status == MDOT_OK && count == 0)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "configurations is an empty array");
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        struct json_object *item =
            q.configurations != NULL ? json_object_array_get_idx(q.configurations, i) : q.configuration;
        status = sv_configurations_add(&a->asked, item, &a->job->info, &a->model->gpus, &reason);
        if (status != MDOT_OK && count > 1)
            mdot_fail(err, status, "configuration %zu: %s", i, reason.message);
        else if (status != MDOT_OK)
            mdot_fail(err, status, "%s", reason.message);
    }
    return status;
}

static mdot_status predict(answers *a, FILE *out, mdot_error *err)
{
    size_t refused = 0;
    a->predictions = calloc(a->asked.count, sizeof *a->predictions);
    if (a->predictions == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < a->asked.count; i++) a->predictions[i].struct_size = sizeof *a->predictions;
    a->choices = a->job->choices;
    a->choices.torch = sv_predictor_info(a->model->predictor)->assumed_torch;
    BS_TRY(answer_parts(a, out, err));
    for (size_t i = 0; i < a->asked.count; i++) refused += a->predictions[i].status != MDOT_OK;
    atomic_fetch_add(&a->state->metrics.configurations, a->asked.count);
    atomic_fetch_add(&a->state->metrics.refused_configurations, refused);
    if (refused == 0 || a->asked.count > 1) return MDOT_OK;
    return mdot_fail(err, a->reason.status, "%s", a->reason.message); /* a question alone, without an answer */
}

static void free_answers(answers *a)
{
    free(a->predictions);
    sv_configurations_free(&a->asked);
    sv_encoding_release(a->state->jobs, a->encoding);
    sv_jobs_release(a->state->jobs, a->job);
    sv_model_release(a->model);
    free(a);
}

/* ---- Shadow mode ------------------------------------------------------------------------------------------------- */

/* A second predictor answers the same questions; GET /metrics counts the differences. Nobody waits for it, and no
 * answer depends on it. */
static void compare(void *user)
{
    answers *a = user;
    sv_metrics *metrics = &a->state->metrics;
    size_t count = a->asked.count;
    sv_encoding *encoding = NULL;
    mdot_prediction *others = calloc(count, sizeof *others);
    mdot_context *context = sv_predictor_borrow(a->model->shadow);
    mdot_status status = sv_jobs_encode(a->state->jobs, a->job, a->model, true, context, &encoding, NULL);
    bool is_encoded = status == MDOT_OK && others != NULL;
    if (is_encoded) {
        others->struct_size = sizeof *others;
        status = mdot_evaluate(context, sv_encoding_get(encoding), a->asked.item, count, others, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        if (a->predictions[i].status != MDOT_OK) continue;
        bool is_answered = is_encoded && (status == MDOT_OK || others[i].status == MDOT_OK) && others[i].step_ms > 0;
        atomic_fetch_add(is_answered ? &metrics->shadow_answers : &metrics->shadow_failures, 1);
        if (is_answered) sv_metrics_difference(metrics, others[i].step_ms / a->predictions[i].step_ms);
    }
    sv_predictor_return(a->model->shadow, context);
    sv_encoding_release(a->state->jobs, encoding);
    free(others);
    free_answers(a);
}

mdot_status sv_handle_predict(sv_state *state, const sv_request *request, struct json_object *body, FILE *out,
                              mdot_error *err)
{
    answers *a = calloc(1, sizeof *a);
    if (a == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    a->state = state;
    a->model = sv_state_model(state);
    mdot_status status = read_question(a, body, err);
    if (status == MDOT_OK) status = predict(a, out, err);
    bool has_shadow = status == MDOT_OK && a->model->shadow != NULL && state->shadows != NULL;
    if (has_shadow && sv_workers_add(state->shadows, compare, a)) return MDOT_OK;
    if (has_shadow) atomic_fetch_add(&state->metrics.shadow_dropped, 1);
    free_answers(a);
    return status;
}
