/* calibrate_predictions.c — measured steps correct a predictor. The program fits a calibration to measured step times
 * of one job on one GPU, and prints the prediction for twice the last batch before and after the correction.
 *
 *     calibrate JOB.onnx GPU PREDICTOR.mdot BATCH=MILLISECONDS...
 */
#include "mdot/mdotjob.h"

#include <stdio.h>

enum { MAX_STEPS = 16 };

static void print(const char *title, int64_t batch, const mdot_prediction *p)
{
    printf("%s, batch %lld: %.1f ms (%.1f to %.1f)\n", title, (long long)batch, p->step_ms, p->lower_ms, p->upper_ms);
}

static mdot_status calibrate(mdot_context *context, const mdot_job *job, const char *gpu, char **steps, int count,
                             mdot_error *err)
{
    const mdot_job *jobs[MAX_STEPS];
    mdot_configuration configurations[MAX_STEPS];
    double measured_ms[MAX_STEPS];
    for (int i = 0; i < count; i++) {
        long long batch;
        if (sscanf(steps[i], "%lld=%lf", &batch, &measured_ms[i]) != 2)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%s\": the form is BATCH=MILLISECONDS, for example 32=120.5",
                             steps[i]);
        jobs[i] = job;
        configurations[i] = (mdot_configuration){
            .struct_size = sizeof configurations[i], .batch = batch, .gpu = gpu, .precision = MDOT_PRECISION_FP32};
    }
    mdot_calibration *calibration = NULL;
    mdot_status status = mdot_calibrate(context, jobs, configurations, measured_ms, (size_t)count, &calibration, err);
    if (status != MDOT_OK) return status;

    mdot_configuration next = configurations[count - 1];
    next.batch *= 2;
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    status = mdot_predict(context, job, &next, &prediction, err);
    if (status == MDOT_OK) print("predicted", next.batch, &prediction);
    if (status == MDOT_OK) status = mdot_calibration_apply_to_job(calibration, job, &next, &prediction, err);
    if (status == MDOT_OK) print("calibrated", next.batch, &prediction);
    mdot_calibration_destroy(calibration);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 4 + MAX_STEPS)
        return fprintf(stderr, "usage: calibrate JOB.onnx GPU PREDICTOR.mdot BATCH=MILLISECONDS...\n"), 2;
    mdot_job *job = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL; /* one for each thread */
    mdot_error err = {0};

    mdot_status status = mdot_job_read(argv[1], NULL, &job, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(argv[3], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) status = calibrate(context, job, argv[2], argv + 4, argc - 4, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
