/* bench_round.c — `mdot bench --round`: the cost of a scheduler's round that predicts many jobs under many
 * configurations.
 *
 * Every job is a separate object, as in a scheduler, so that cached data of one job cannot speed up another.
 */
#include "cli/bench/bench.h"

#include <stdlib.h>

enum { LEAST_ROUNDS = 3, MAX_ROUNDS = 10000, GPU_COUNT = 4, WIDTHS = 5, BATCHES = 5, FIRST_BATCH = 16 };
static const char *const gpus[GPU_COUNT] = {"T4", "RTX-3090", "A100", "H100"};

typedef struct queue {
    const bench_round *round;
    mdot_context *context;
    size_t pairs;
    mdot_job **jobs;                    /* one copy for each job of the round */
    const mdot_job **job_of;            /* job of each pair */
    mdot_configuration *configurations; /* configuration of each pair */
    mdot_prediction *predictions;
    mdot_encoding **encodings;
    float *us; /* one per pair, or one per round */
} queue;

static mdot_status copy_job(const mdot_job *model, mdot_job **out_copy, mdot_error *err)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(model, &info);
    mdot_job_operator *operators = calloc(info.operator_count, sizeof *operators);
    if (operators == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < info.operator_count; i++) {
        operators[i].struct_size = sizeof *operators;
        mdot_job_get_operator(model, i, &operators[i]);
    }
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operators = operators,
                                              .operator_count = info.operator_count,
                                              .batch = info.batch,
                                              .has_optimizer = info.has_optimizer,
                                              .optimizer = info.optimizer,
                                              .notes = info.notes};
    mdot_status status = mdot_job_create(&description, out_copy, err);
    free(operators);
    return status;
}

static mdot_configuration make_configuration(const bench_round *round, size_t job, size_t i)
{
    return (mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                .batch = (int64_t)FIRST_BATCH << job / round->model_count % BATCHES,
                                .gpu = gpus[i % GPU_COUNT],
                                .gpu_count = 1 << i / GPU_COUNT % WIDTHS,
                                .precision = MDOT_PRECISION_AMP,
                                .layout = (mdot_layout)(i / (GPU_COUNT * WIDTHS) % (MDOT_LAYOUT_NHWC + 1)),
                                .optimizer = (mdot_optimizer)(i / (2 * GPU_COUNT * WIDTHS) % MDOT_OPTIMIZER_ADAMW)};
}

static mdot_status make_queue(const bench_round *round, queue *q, mdot_error *err)
{
    size_t pairs = round->jobs * round->configurations;
    *q = (queue){.round = round,
                 .pairs = pairs,
                 .jobs = calloc(round->jobs, sizeof *q->jobs),
                 .job_of = calloc(pairs, sizeof *q->job_of),
                 .configurations = calloc(pairs, sizeof *q->configurations),
                 .predictions = calloc(pairs, sizeof *q->predictions),
                 .encodings = calloc(round->jobs, sizeof *q->encodings),
                 .us = calloc(pairs > MAX_ROUNDS ? pairs : MAX_ROUNDS, sizeof *q->us)};
    if (q->jobs == NULL || q->job_of == NULL || q->configurations == NULL || q->predictions == NULL ||
        q->encodings == NULL || q->us == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(mdot_context_create(round->predictor, &q->context, err));
    for (size_t i = 0; i < round->jobs; i++) BS_TRY(copy_job(round->models[i % round->model_count], &q->jobs[i], err));
    for (size_t i = 0; i < pairs; i++) {
        size_t job = i / round->configurations;
        q->job_of[i] = q->jobs[job];
        q->configurations[i] = make_configuration(round, job, i % round->configurations);
        q->predictions[i] = MDOT_INIT(mdot_prediction);
    }
    return MDOT_OK;
}

static void free_encodings(queue *q)
{
    for (size_t i = 0; q->encodings != NULL && i < q->round->jobs; i++) {
        mdot_encoding_destroy(q->encodings[i]);
        q->encodings[i] = NULL;
    }
}

static void free_queue(queue *q)
{
    free_encodings(q);
    for (size_t i = 0; q->jobs != NULL && i < q->round->jobs; i++) mdot_job_destroy(q->jobs[i]);
    mdot_context_destroy(q->context);
    free(q->jobs);
    free(q->job_of);
    free(q->configurations);
    free(q->predictions);
    free(q->encodings);
    free(q->us);
}

static mdot_status predict_all(queue *q, mdot_error *err)
{
    return mdot_predict_many(q->context, q->job_of, q->configurations, q->pairs, q->predictions, err);
}

static mdot_status encode_all(queue *q, mdot_error *err)
{
    for (size_t i = 0; i < q->round->jobs; i++)
        BS_TRY(mdot_encoding_create(q->context, q->jobs[i], &q->encodings[i], err));
    return MDOT_OK;
}

static mdot_status evaluate_all(queue *q, mdot_error *err)
{
    size_t count = q->round->configurations;
    for (size_t i = 0; i < q->round->jobs; i++)
        BS_TRY(mdot_evaluate(q->context, q->encodings[i], &q->configurations[i * count], count,
                             &q->predictions[i * count], err));
    return MDOT_OK;
}

/* `before` is excluded from the measurement. */
static mdot_status measure(queue *q, void (*before)(queue *q), mdot_status (*call)(queue *q, mdot_error *err),
                           bench_round_time *out, mdot_error *err)
{
    size_t rounds = 0;
    double end = bench_now() + q->round->seconds;
    do {
        if (before != NULL) before(q);
        double begin = bench_now();
        BS_TRY(call(q, err));
        q->us[rounds++] = (float)(1e6 * (bench_now() - begin));
    } while (rounds < LEAST_ROUNDS || (rounds < MAX_ROUNDS && bench_now() < end));
    bench_sort(q->us, rounds);
    *out = (bench_round_time){1e-3 * bench_percentile(q->us, rounds, 0.5), 1e-3 * (double)q->us[0], rounds};
    return MDOT_OK;
}

/* Predicts every pair once, one at a time, in an order in which neighbours belong to different jobs. */
static mdot_status measure_evaluations(queue *q, bench_round_result *out, mdot_error *err)
{
    size_t jobs = q->round->jobs, count = q->round->configurations;
    for (size_t i = 0; i < q->pairs; i++) {
        size_t job = i % jobs, pair = job * count + i / jobs;
        double begin = bench_now();
        BS_TRY(mdot_evaluate(q->context, q->encodings[job], &q->configurations[pair], 1, &q->predictions[pair], err));
        q->us[i] = (float)(1e6 * (bench_now() - begin));
    }
    bench_sort(q->us, q->pairs);
    out->evaluations = q->pairs;
    out->p50_us = bench_percentile(q->us, q->pairs, 0.5);
    out->p99_us = bench_percentile(q->us, q->pairs, 0.99);
    out->p999_us = bench_percentile(q->us, q->pairs, 0.999);
    return MDOT_OK;
}

static double mean_operators(const queue *q)
{
    double sum = 0;
    for (size_t i = 0; i < q->round->jobs; i++) {
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(q->jobs[i], &info);
        sum += (double)info.operator_count;
    }
    return sum / (double)q->round->jobs;
}

mdot_status bench_measure_round(const bench_round *round, bench_round_result *out_result, mdot_error *err)
{
    queue q;
    bench_round_result result = {0};
    mdot_status status = make_queue(round, &q, err);
    if (status == MDOT_OK) status = measure(&q, NULL, predict_all, &result.cold, err);
    if (status == MDOT_OK) status = measure(&q, free_encodings, encode_all, &result.encode, err);
    if (status == MDOT_OK) status = measure(&q, NULL, evaluate_all, &result.encoded, err);
    if (status == MDOT_OK) status = measure_evaluations(&q, &result, err);
    if (status == MDOT_OK) {
        result.mean_operators = mean_operators(&q);
        *out_result = result;
    }
    free_queue(&q);
    return status;
}
