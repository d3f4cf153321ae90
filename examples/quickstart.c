/* quickstart.c — from a training job to its step time: read the job, open the predictor, make one prediction and a
 * sweep.
 *
 *     quickstart JOB.onnx GPU PREDICTOR.mdot
 */
#include "mdot/mdotjob.h"

#include <stdio.h>

enum { BATCH_COUNT = 4 };

static mdot_status predict(mdot_context *context, const mdot_job *job, const char *gpu, mdot_error *err)
{
    mdot_configuration configuration = {
        .struct_size = sizeof configuration, .batch = 32, .gpu = gpu, .precision = MDOT_PRECISION_AMP};
    mdot_prediction answer = MDOT_INIT(mdot_prediction);
    mdot_status status = mdot_predict(context, job, &configuration, &answer, err);
    if (status != MDOT_OK) return status;
    printf("batch %lld: %.1f ms (%.1f to %.1f), %.1f GiB, %s, warnings %#x\n", (long long)configuration.batch,
           answer.step_ms, answer.lower_ms, answer.upper_ms, (double)answer.peak_memory_bytes / (1 << 30),
           answer.fits ? "fits" : "does not fit", answer.warnings);

    mdot_configuration many[BATCH_COUNT];
    mdot_prediction answers[BATCH_COUNT] = {MDOT_INIT(mdot_prediction)};
    for (int i = 0; i < BATCH_COUNT; i++) {
        many[i] = configuration;
        many[i].batch = 16 << i;
    }
    status = mdot_sweep(context, job, many, BATCH_COUNT, answers, err);
    for (int i = 0; status == MDOT_OK && i < BATCH_COUNT; i++)
        printf("batch %lld: %.0f samples/s\n", (long long)many[i].batch,
               1000 * (double)many[i].batch / answers[i].step_ms);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: quickstart JOB.onnx GPU PREDICTOR.mdot\n"), 2;
    mdot_job *job = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL; /* create one per thread */
    mdot_error err = {0};

    mdot_status status = mdot_job_read(argv[1], NULL, &job, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(argv[3], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) status = predict(context, job, argv[2], &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
