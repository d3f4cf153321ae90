/* encode_and_evaluate.c — one job under many configurations, as a scheduler compares them. The job is encoded once, and
 * each call of mdot_evaluate answers all batches of one GPU. The last line names the pair with the highest throughput.
 *
 *     encode_and_evaluate JOB.onnx PREDICTOR.mdot GPU...
 */
#include "mdot/mdotjob.h"

#include <stdio.h>

enum { BATCH_COUNT = 4 };

typedef struct choice {
    const char *gpu;
    int64_t batch;
    double samples_per_second;
} choice;

static mdot_status evaluate_gpu(mdot_context *context, const mdot_encoding *encoding, const char *gpu, choice *best,
                                mdot_error *err)
{
    /* [example: mdot_evaluate] */
    mdot_configuration configurations[BATCH_COUNT];
    mdot_prediction answers[BATCH_COUNT];
    for (int i = 0; i < BATCH_COUNT; i++) {
        configurations[i] = (mdot_configuration){
            .struct_size = sizeof configurations[i], .batch = 16 << i, .gpu = gpu, .precision = MDOT_PRECISION_AMP};
        answers[i] = MDOT_INIT(mdot_prediction);
    }
    mdot_status status = mdot_evaluate(context, encoding, configurations, BATCH_COUNT, answers, err);
    /* [end of example] */
    for (int i = 0; status == MDOT_OK && i < BATCH_COUNT; i++) {
        double rate = 1000 * (double)configurations[i].batch / answers[i].step_ms;
        printf("%s, batch %lld: %.1f ms, %.0f samples/s%s\n", gpu, (long long)configurations[i].batch,
               answers[i].step_ms, rate, answers[i].fits ? "" : ", exceeds the memory");
        if (answers[i].fits && rate > best->samples_per_second) *best = (choice){gpu, configurations[i].batch, rate};
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: encode_and_evaluate JOB.onnx PREDICTOR.mdot GPU...\n"), 2;
    mdot_job *job = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL; /* one for each thread */
    mdot_encoding *encoding = NULL;
    mdot_error err = {0};
    choice best = {0};

    /* [example: mdot_encoding_create, mdot_encoding_destroy] */
    mdot_status status = mdot_job_read(argv[1], NULL, &job, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(argv[2], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) status = mdot_encoding_create(context, job, &encoding, &err);
    for (int i = 3; status == MDOT_OK && i < argc; i++) status = evaluate_gpu(context, encoding, argv[i], &best, &err);
    if (status == MDOT_OK && best.gpu != NULL) printf("best: %s, batch %lld\n", best.gpu, (long long)best.batch);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_encoding_destroy(encoding); /* before the job, which it borrows */
    /* [end of example] */
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
