/* mdot_round.c — mdot-round: times a scheduler's round. A job is encoded once, when it arrives. A round then evaluates
 * jobs × configurations through libmdot, and a policy decides on the resulting throughputs.
 *
 *     mdot-round PREDICTOR.mdot JOB… [--jobs 500] [--rounds 9]
 *
 * Each job in the queue is one of the given files at one of five batches, as a separate object, so every query is
 * different. The configurations are four GPU types × 1, 2, 4, 8 and 16 GPUs. */
#include "base/text.h"
#include "mdot/mdotjob.h"

#include "simulator/solve/time_fractions.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TYPES = 4, WIDTHS = 5, CONFIGURATIONS = TYPES * WIDTHS, MAX_ROUNDS = 99, MAX_FILES = 64 };
static const char *const types[TYPES] = {"T4", "RTX-3090", "A100", "H100"};
static const double gpus_of_type[TYPES] = {64, 64, 32, 32};

typedef struct queue {
    size_t jobs;
    mdot_encoding **encodings;
    mdot_configuration *configurations; /* configuration of each pair */
    mdot_prediction *predictions;
    double *speed, *scale, *weight, *remaining, *since_s, *fractions;
} queue;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void free_queue(queue *q)
{
    for (size_t i = 0; q->encodings != NULL && i < q->jobs; i++) mdot_encoding_destroy(q->encodings[i]);
    free(q->encodings);
    free(q->configurations);
    free(q->predictions);
    free(q->speed);
    free(q->scale);
    free(q->weight);
    free(q->remaining);
    free(q->since_s);
    free(q->fractions);
}

static mdot_status make_queue(size_t file_count, size_t jobs, queue *q, mdot_error *err)
{
    size_t pairs = jobs * CONFIGURATIONS;
    *q = (queue){.jobs = jobs,
                 .encodings = calloc(jobs, sizeof *q->encodings),
                 .configurations = calloc(pairs, sizeof *q->configurations),
                 .predictions = calloc(pairs, sizeof *q->predictions),
                 .speed = calloc(jobs * TYPES, sizeof(double)),
                 .scale = calloc(jobs, sizeof(double)),
                 .weight = calloc(jobs, sizeof(double)),
                 .remaining = calloc(jobs, sizeof(double)),
                 .since_s = calloc(jobs, sizeof(double)),
                 .fractions = calloc(jobs * TYPES, sizeof(double))};
    if (q->encodings == NULL || q->configurations == NULL || q->predictions == NULL || q->speed == NULL ||
        q->scale == NULL || q->weight == NULL || q->remaining == NULL || q->since_s == NULL || q->fractions == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < jobs; i++) {
        /* the first prediction of a call determines the struct size */
        q->predictions[i * CONFIGURATIONS] = MDOT_INIT(mdot_prediction);
        for (size_t c = 0; c < CONFIGURATIONS; c++) {
            q->configurations[i * CONFIGURATIONS + c] = (mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                                                             .batch = INT64_C(16) << i / file_count % 5,
                                                                             .gpu = types[c / WIDTHS],
                                                                             .gpu_count = 1 << c % WIDTHS,
                                                                             .precision = MDOT_PRECISION_AMP};
        }
        q->scale[i] = q->weight[i] = 1;
        q->remaining[i] = 1000 * (double)(1 + i % 97);
    }
    return MDOT_OK;
}

/* Work that is done once, when jobs arrive: each job is a separate object, as in a queue, even if files are equal. */
static mdot_status encode_jobs(mdot_context *context, mdot_job *const *files, size_t file_count, queue *q,
                               mdot_error *err)
{
    double begun_s = now_s();
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < q->jobs; i++)
        status = mdot_encoding_create(context, files[i % file_count], &q->encodings[i], err);
    double encode_s = now_s() - begun_s;
    if (status == MDOT_OK)
        printf("%zu jobs encoded in %.2f ms, once: %.1f us a job\n", q->jobs, 1e3 * encode_s,
               1e6 * encode_s / (double)q->jobs);
    return status;
}

/* Runs one round: predictions for all pairs, then max-min fairness over one-GPU throughputs. */
static mdot_status run_round(mdot_context *context, queue *q, double *out_predict_s, double *out_decide_s,
                             mdot_error *err)
{
    double begun_s = now_s(), value;
    mdot_status status = MDOT_OK;
    for (size_t i = 0, position = 0; status == MDOT_OK && i < q->jobs; i++, position += CONFIGURATIONS)
        status = mdot_evaluate(context, q->encodings[i], &q->configurations[position], CONFIGURATIONS,
                               &q->predictions[position], err);
    *out_predict_s = now_s() - begun_s;
    if (status != MDOT_OK) return status;
    begun_s = now_s();
    for (size_t i = 0; i < q->jobs; i++)
        for (size_t type = 0; type < TYPES; type++)
            q->speed[i * TYPES + type] = 1e3 / q->predictions[i * CONFIGURATIONS + type * WIDTHS].step_ms;
    sc_time_fractions problem = {.jobs = q->jobs,
                                 .types = TYPES,
                                 .speed = q->speed,
                                 .scale = q->scale,
                                 .weight = q->weight,
                                 .remaining = q->remaining,
                                 .since_start_s = q->since_s,
                                 .gpus = gpus_of_type,
                                 .limit_s = 60};
    status = sc_time_fractions_max_min(&problem, q->fractions, &value, err);
    *out_decide_s = now_s() - begun_s;
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static mdot_status measure(mdot_context *context, queue *q, size_t rounds, mdot_error *err)
{
    double predict_s[MAX_ROUNDS], decide_s[MAX_ROUNDS];
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < rounds; i++)
        status = run_round(context, q, &predict_s[i], &decide_s[i], err);
    if (status != MDOT_OK) return status;
    qsort(predict_s, rounds, sizeof *predict_s, by_size);
    qsort(decide_s, rounds, sizeof *decide_s, by_size);
    double predict_ms = 1e3 * predict_s[rounds / 2], decide_ms = 1e3 * decide_s[rounds / 2];
    printf("%zu jobs x %d configurations, median of %zu rounds\n", q->jobs, CONFIGURATIONS, rounds);
    printf("  predictions  %9.2f ms  %.1f us a pair\n", predict_ms,
           1e3 * predict_ms / ((double)q->jobs * CONFIGURATIONS));
    printf("  decision     %9.2f ms  max-min fairness over %d types\n", decide_ms, TYPES);
    printf("  round        %9.2f ms  %.0f %% of it predictions\n", predict_ms + decide_ms,
           100 * predict_ms / (predict_ms + decide_ms));
    return MDOT_OK;
}

static mdot_status read_file(const char *path, mdot_job **out_job, mdot_error *err)
{
    size_t length = strlen(path);
    bool is_job = length > 4 && strcmp(path + length - 4, ".job") == 0;
    return is_job ? mdot_job_load(path, out_job, err) : mdot_job_read(path, NULL, out_job, err);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"jobs", required_argument, NULL, 'j'}, {"rounds", required_argument, NULL, 'r'}, {0}};
    long jobs = 500, rounds = 9;
    bool is_right = true;
    opterr = 0; /* getopt would repeat unprintable characters */
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        char *end = NULL;
        long *value = option == 'j' ? &jobs : &rounds;
        if (option != '?') *value = strtol(optarg, &end, 10);
        is_right &= end != NULL && *end == '\0' && *value >= 1;
    }
    size_t file_count = argc - optind > 1 ? (size_t)(argc - optind - 1) : 0, read = 0;
    if (!is_right || file_count == 0 || file_count > MAX_FILES || jobs > 1000000 || rounds > MAX_ROUNDS) {
        fputs("usage: mdot-round PREDICTOR.mdot JOB… [--jobs N] [--rounds N]\n", stderr);
        return 2;
    }
    mdot_job *files[MAX_FILES];
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    queue q = {0};
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(argv[optind], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    for (; status == MDOT_OK && read < file_count; read += status == MDOT_OK)
        status = read_file(argv[optind + 1 + (int)read], &files[read], &err);
    if (status == MDOT_OK) status = make_queue(file_count, (size_t)jobs, &q, &err);
    if (status == MDOT_OK) status = encode_jobs(context, files, file_count, &q, &err);
    if (status == MDOT_OK) status = measure(context, &q, (size_t)rounds, &err);
    bs_make_printable(err.message);
    if (status != MDOT_OK) fprintf(stderr, "mdot-round: %s\n", err.message);
    free_queue(&q);
    for (size_t i = 0; i < read; i++) mdot_job_destroy(files[i]);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status == MDOT_OK ? 0 : 1;
}
