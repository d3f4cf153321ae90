/* predictions.c — examples of mdot_predict.h, mdot_beside.h, mdot_explain.h and mdot_calibrate.h for the reference.
 *
 *     predictions JOB.job PREDICTOR.mdot FOLDER
 */
#include "mdot/mdot.h"

#include <stdio.h>
#include <string.h>

/* [example: mdot_warning_name, mdot_warning_text, mdot_implausible_name, mdot_implausible_text] */
static void print_warnings(const mdot_prediction *p)
{
    for (uint32_t bit = 1; bit != 0; bit <<= 1)
        if ((p->warnings & bit) != 0 && mdot_warning_name(bit) != NULL)
            printf("warning %s: %s\n", mdot_warning_name(bit), mdot_warning_text(bit));
    if (p->implausible != 0)
        printf("%s: %s\n", mdot_implausible_name(p->implausible), mdot_implausible_text(p->implausible));
}
/* [end of example] */

static mdot_status predict(mdot_context *context, const mdot_job *job, mdot_error *err)
{
    /* [example: mdot_gpu_find, mdot_predict] */
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_status status = mdot_gpu_find("a100 sxm 80gb", &gpu, err);
    gpu.memory_gbps = 1500; /* a model with slower memory */
    const mdot_configuration one = {
        .struct_size = sizeof one, .batch = 64, .gpu_spec = &gpu, .precision = MDOT_PRECISION_AMP};
    mdot_prediction answer = MDOT_INIT(mdot_prediction);
    if (status == MDOT_OK) status = mdot_predict(context, job, &one, &answer, err);
    if (status == MDOT_OK)
        printf("%.1f ms (%.1f to %.1f), %s\n", answer.step_ms, answer.lower_ms, answer.upper_ms,
               answer.fits ? "fits" : "exceeds the memory");
    /* [end of example] */
    print_warnings(&answer);

    /* [example: mdot_gpu_names, mdot_predict_many, mdot_sweep] */
    enum { COUNT = 3 };
    const char *const *names = mdot_gpu_names(); /* NULL behind the last */
    const mdot_job *jobs[COUNT];
    mdot_configuration many[COUNT];
    mdot_prediction answers[COUNT] = {MDOT_INIT(mdot_prediction)};
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = job; /* different jobs are fine */
        many[i] = (mdot_configuration){.struct_size = sizeof many[i], .batch = 16 << i, .gpu = names[i]};
    }
    if (status == MDOT_OK) status = mdot_predict_many(context, jobs, many, COUNT, answers, err);
    for (int i = 0; status == MDOT_OK && i < COUNT; i++) printf("%s: %.1f ms\n", names[i], answers[i].step_ms);
    if (status == MDOT_OK) status = mdot_sweep(context, job, many, COUNT, answers, err); /* the same answers */
    /* [end of example] */
    return status;
}

/* [example: mdot_gpu_load_of, mdot_predict_beside] */
static mdot_status pack(mdot_context *context, const mdot_job *job, const char *interference, mdot_error *err)
{
    const mdot_configuration small = {.struct_size = sizeof small, .batch = 8, .gpu = "V100"};
    mdot_predictor *slowdowns = NULL;
    mdot_context *pairs = NULL;
    mdot_gpu_load load = MDOT_INIT(mdot_gpu_load);
    mdot_beside answer = MDOT_INIT(mdot_beside);
    mdot_status status = mdot_predictor_open(interference, NULL, &slowdowns, err);
    if (status == MDOT_OK) status = mdot_context_create(slowdowns, &pairs, err);
    if (status == MDOT_OK) status = mdot_gpu_load_of(context, job, &small, &load, err);     /* once for each job */
    if (status == MDOT_OK) status = mdot_predict_beside(pairs, &load, &load, &answer, err); /* microseconds */
    if (status == MDOT_OK) printf("two share a V100: %s\n", 2 / answer.slowdown > 1 ? "packing pays" : "run in turn");
    mdot_context_destroy(pairs);
    mdot_predictor_close(slowdowns);
    return status;
}
/* [end of example] */

/* [example: mdot_plan_create, mdot_plan_get_info, mdot_plan_get_layout, mdot_training_cost_of,
 * mdot_training_cost_of_phases, mdot_steps_to_loss, mdot_plan_destroy] */
static mdot_status plan(mdot_context *context, const mdot_job *job, mdot_error *err)
{
    const mdot_configuration base = {.struct_size = sizeof base, .precision = MDOT_PRECISION_AMP};
    const uint32_t sizes[] = {8, 16};
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_status status = mdot_gpu_find("A100", &gpu, err);
    const mdot_plan_space space = {.struct_size = sizeof space,
                                   .base = &base,
                                   .gpus = &gpu,
                                   .gpu_model_count = 1,
                                   .sizes = sizes,
                                   .size_count = 2,
                                   .global_batch = 256};
    const mdot_training_run run = {.struct_size = sizeof run, .samples = 1e8, .price = 2.5};
    mdot_plan *found = NULL;
    mdot_plan_info info = MDOT_INIT(mdot_plan_info);
    if (status == MDOT_OK) status = mdot_plan_create(&context, 1, job, &space, &found, err);
    if (status == MDOT_OK) status = mdot_plan_get_info(found, &info);
    for (size_t i = 0; status == MDOT_OK && i < info.layout_count; i++) {
        mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
        mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
        status = mdot_plan_get_layout(found, i, &layout);
        if (status == MDOT_OK) status = mdot_training_cost_of(&run, &layout, &cost, err);
        if (status == MDOT_OK)
            printf("%u GPUs: %.1f hours, cost %.0f\n", layout.configuration.gpu_count, cost.hours, cost.cost);
        mdot_plan_layout smaller = layout; /* the first fifth has half the batch, and steps that take .6 of the time */
        smaller.samples /= 2;
        smaller.prediction.step_ms *= .6;
        const mdot_training_phase phases[] = {{&smaller, .2}, {&layout, .8}};
        if (status == MDOT_OK) status = mdot_training_cost_of_phases(&run, phases, 2, &cost, err);
    }
    mdot_plan_destroy(found);
    const double steps[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, losses[] = {9, 5, 3.7, 3, 2.6, 2.3, 2.1, 2, 1.9, 1.8};
    mdot_convergence convergence = MDOT_INIT(mdot_convergence);
    if (status == MDOT_OK) status = mdot_steps_to_loss(steps, losses, 10, 1.5, &convergence, err);
    return status;
}
/* [end of example] */

/* [example: mdot_explain, mdot_explanation_get_info, mdot_explanation_get_operator, mdot_explanation_destroy] */
static mdot_status explain(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_error *err)
{
    mdot_explanation *explanation = NULL;
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_status status = mdot_explain(context, job, configuration, &explanation, err);
    if (status == MDOT_OK) status = mdot_explanation_get_info(explanation, &info);
    if (status == MDOT_OK) printf("the GPU waits %.1f of %.1f ms for its host\n", info.host_ms, info.step_ms);
    double slowest_ms = 0;
    for (size_t i = 0; status == MDOT_OK && i < info.operator_count; i++) {
        mdot_operator_time time = MDOT_INIT(mdot_operator_time);
        status = mdot_explanation_get_operator(explanation, i, &time);
        if (time.forward_ms > slowest_ms) slowest_ms = time.forward_ms;
    }
    printf("the slowest operator takes %.2f ms forward\n", slowest_ms);
    mdot_explanation_destroy(explanation);
    return status;
}
/* [end of example] */

static mdot_status apply(const mdot_calibration *calibration, mdot_context *context, const mdot_job *job,
                         const mdot_configuration *configuration, mdot_error *err)
{
    /* [example: mdot_calibration_apply_to_job, mdot_calibration_explain, mdot_calibration_effect_name] */
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    mdot_calibration_factors factors = MDOT_INIT(mdot_calibration_factors);
    mdot_explanation *explanation = NULL;
    mdot_status status = mdot_predict(context, job, configuration, &prediction, err);
    if (status == MDOT_OK) status = mdot_explain(context, job, configuration, &explanation, err);
    if (status == MDOT_OK)
        status = mdot_calibration_explain(calibration, configuration, explanation, &prediction, &factors, err);
    if (status == MDOT_OK) status = mdot_calibration_apply_to_job(calibration, job, configuration, &prediction, err);
    for (int i = 0; status == MDOT_OK && i < MDOT_CALIBRATION_EFFECT_COUNT; i++)
        printf("%s: times %.3f\n", mdot_calibration_effect_name((mdot_calibration_effect)i), factors.by_effect[i]);
    mdot_explanation_destroy(explanation);
    /* [end of example] */
    return status;
}

static mdot_status keep(const mdot_calibration *calibration, const char *path, mdot_error *err)
{
    /* [example: mdot_calibration_save, mdot_calibration_load, mdot_calibration_get_info, mdot_calibration_get_gpu] */
    mdot_calibration *again = NULL;
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    mdot_status status = mdot_calibration_save(calibration, path, err);
    if (status == MDOT_OK) status = mdot_calibration_load(path, &again, err);
    if (status == MDOT_OK) status = mdot_calibration_get_info(again, &info);
    if (status == MDOT_OK) status = mdot_calibration_get_gpu(again, 0, &gpu);
    if (status == MDOT_OK)
        printf("%zu rows, times on %s are multiplied by %.2f\n", info.row_count, gpu.name, gpu.factor);
    mdot_calibration_destroy(again);
    /* [end of example] */

    char text[1 << 14];
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(text, 1, sizeof text, file) : 0;
    if (file != NULL) fclose(file);
    /* [example: mdot_calibration_parse] */
    mdot_calibration *parsed = NULL;
    if (status == MDOT_OK) status = mdot_calibration_parse(text, size, &parsed, err);
    mdot_calibration_destroy(parsed);
    /* [end of example] */
    return status;
}

static mdot_status calibrate(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                             const char *path, mdot_error *err)
{
    /* [example: mdot_calibrate_measured, mdot_calibrate, mdot_calibration_destroy] */
    const mdot_measurement row = {
        .struct_size = sizeof row, .job = job, .configuration = configuration, .step_ms = 250, .memory_bytes = 4e9};
    mdot_calibration *calibration = NULL, *times_only = NULL;
    mdot_status status = mdot_calibrate_measured(context, &row, 1, &calibration, err);
    if (status == MDOT_OK) status = mdot_calibrate(context, &job, configuration, &row.step_ms, 1, &times_only, err);
    mdot_calibration_destroy(times_only);
    /* [end of example] */
    if (status == MDOT_OK) status = apply(calibration, context, job, configuration, err);
    if (status == MDOT_OK) status = keep(calibration, path, err);
    mdot_calibration_destroy(calibration);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: predictions JOB.job PREDICTOR.mdot FOLDER\n"), 2;
    mdot_job *job = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_error err = {0};
    char calibration[4096], interference[4096];
    const char *slash = strrchr(argv[2], '/');
    snprintf(interference, sizeof interference, "%.*s/interference.mdot", slash != NULL ? (int)(slash - argv[2]) : 1,
             slash != NULL ? argv[2] : ".");
    snprintf(calibration, sizeof calibration, "%s/site.cal", argv[3]);
    const mdot_configuration on_t4 = {.struct_size = sizeof on_t4, .batch = 32, .gpu = "T4"};

    mdot_status status = mdot_job_load(argv[1], &job, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(argv[2], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) status = predict(context, job, &err);
    if (status == MDOT_OK) status = pack(context, job, interference, &err);
    if (status == MDOT_OK) status = plan(context, job, &err);
    if (status == MDOT_OK) status = explain(context, job, &on_t4, &err);
    if (status == MDOT_OK) status = calibrate(context, job, &on_t4, calibration, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
