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
    const char *job, *configuration_name;
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
    bs_memstream text;
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

static void print_head(const answers *a, const part *x)
{
    const mdot_predictor_info *info = sv_predictor_info(a->model->predictor);
    bool is_calibrated = a->model->calibration != NULL;
    size_t first = 0;
    while (first + 1 < x->count && a->predictions[first].status != MDOT_OK) first++;
    const cli_json_origin origin = {.predictor = info->name,
                                    .compiler = info->compiler,
                                    .calibrated_rows = a->model->calibrated_rows,
                                    .calibration = is_calibrated ? a->model->calibration_digest : NULL,
                                    .job = a->job->digest,
                                    .info = &a->job->info,
                                    .flops_per_sample = a->predictions[first].flops_per_sample};
    cli_json_begin(x->text.file, &origin);
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
    FILE *stream = x->text.file;
    mdot_error err = {0};
    mdot_status all = evaluate(x, &err);
    if (x->first == 0 && stream != NULL) print_head(a, x);
    for (size_t i = 0; i < x->count; i++) {
        size_t index = x->first + i;
        mdot_status status = finish_one(x, i, all, &err);
        if (status != MDOT_OK && index == 0) a->reason = err;
        if (stream == NULL) continue;
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

/* Answers all configurations; the parts' texts follow each other. Returns the number of parts. */
static size_t answer_parts(answers *a, part parts[MOST_THREADS])
{
    sv_predictor *predictor = a->model->predictor;
    mdot_context *contexts[MOST_THREADS] = {sv_predictor_borrow(predictor)};
    size_t count = 1, wanted = a->asked.count / SHARED_COUNT, most = a->state->plan_threads;
    if (most > MOST_THREADS) most = MOST_THREADS;
    if (wanted >= most) wanted = most - 1;
    count += sv_predictor_borrow_more(predictor, contexts + 1, wanted);
    for (size_t i = 0; i < count; i++) {
        size_t first = a->asked.count * i / count, end = a->asked.count * (i + 1) / count;
        parts[i] = (part){.a = a, .context = contexts[i], .first = first, .count = end - first};
        bs_memstream_open(&parts[i].text);
    }
    for (size_t i = 1; i < count; i++)
        parts[i].has_thread = pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) == 0;
    for (size_t i = 0; i < count; i++)
        if (!parts[i].has_thread) answer_part(&parts[i]);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].has_thread) pthread_join(parts[i].thread, NULL);
        sv_predictor_return(predictor, contexts[i]);
    }
    return count;
}

/* Joins the texts: the first part's stream has the head and takes the other ones. */
static void join(part *parts, size_t count, sv_answer *out)
{
    bs_memstream *whole = &parts[0].text;
    bool is_whole = whole->file != NULL;
    for (size_t i = 1; i < count; i++) {
        size_t size = 0;
        char *text = bs_memstream_close(&parts[i].text, &size);
        if (text != NULL && is_whole) fwrite(text, 1, size, whole->file);
        is_whole = is_whole && text != NULL;
        free(text);
    }
    if (is_whole) {
        fputs("\n ]}\n", whole->file);
        sv_answer_stream(out, whole, sv_json_type);
    } else {
        free(bs_memstream_close(whole, NULL));
        sv_answer_problem(out, 503, "memory ran out");
    }
}

static mdot_status read_question(answers *a, struct json_object *body, mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(question, job, TEXT, 0, 0),
                                        SV_MEMBER(question, configurations, ARRAY, 0, 0),
                                        SV_MEMBER(question, configuration, OBJECT, 0, 0)};
    question q = {0};
    mdot_status status = sv_json_members(body, members, 3, &q, NULL, NULL, err);
    if (status != MDOT_OK) return status;
    if (q.job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "job is missing: the digest of POST /v1/jobs");
    if ((q.configurations == NULL) == (q.configuration == NULL))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "give either configuration or configurations");
    status = sv_jobs_find(a->state->jobs, q.job, &a->job, err);
    size_t count = q.configurations != NULL ? json_object_array_length(q.configurations) : 1;
    if (status == MDOT_OK && count == 0)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "configurations is an empty array");
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        struct json_object *item =
            q.configurations != NULL ? json_object_array_get_idx(q.configurations, i) : q.configuration;
        status = sv_configurations_add(&a->asked, item, &a->job->info, &a->model->gpus, &reason);
        if (status == MDOT_OK) continue;
        if (count > 1)
            mdot_fail(err, status, "configuration %zu: %s", i, reason.message);
        else
            mdot_fail(err, status, "%s", reason.message);
    }
    return status;
}

static mdot_status predict(answers *a, sv_answer *out, mdot_error *err)
{
    a->predictions = calloc(a->asked.count, sizeof *a->predictions);
    if (a->predictions == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < a->asked.count; i++) a->predictions[i].struct_size = sizeof *a->predictions;
    mdot_context *context = sv_predictor_borrow(a->model->predictor);
    mdot_status status = sv_jobs_encode(a->state->jobs, a->job, a->model, false, context, &a->encoding, err);
    sv_predictor_return(a->model->predictor, context);
    if (status != MDOT_OK) return status;
    a->choices = a->job->choices;
    a->choices.torch = sv_predictor_info(a->model->predictor)->assumed_torch;
    part parts[MOST_THREADS];
    size_t part_count = answer_parts(a, parts), refused = 0;
    for (size_t i = 0; i < a->asked.count; i++) refused += a->predictions[i].status != MDOT_OK;
    atomic_fetch_add(&a->state->metrics.configurations, a->asked.count);
    atomic_fetch_add(&a->state->metrics.refused_configurations, refused);
    join(parts, part_count, out);
    if (refused > 0 && a->asked.count == 1) { /* a question alone, without an answer */
        sv_answer_free(out);
        return mdot_fail(err, a->reason.status, "%s", a->reason.message);
    }
    if (a->model->shadow != NULL && a->state->shadow != NULL)
        a->state->shadow(a->state->shadow_user, a->job->digest, a->asked.item, a->predictions, a->asked.count);
    return MDOT_OK;
}

void sv_handle_predict(sv_state *state, const sv_request *request, sv_answer *out)
{
    mdot_error err = {0};
    struct json_object *body = NULL;
    answers a = {.state = state, .model = sv_state_model(state)};
    mdot_status status = sv_json_read(request->body, request->body_bytes, &body, &err);
    if (status == MDOT_OK) status = read_question(&a, body, &err);
    if (status == MDOT_OK) status = predict(&a, out, &err);
    if (status != MDOT_OK) sv_answer_error(out, &err);
    free(a.predictions);
    sv_configurations_free(&a.asked);
    sv_encoding_release(state->jobs, a.encoding);
    sv_jobs_release(state->jobs, a.job);
    sv_model_release(a.model);
    json_object_put(body);
}
