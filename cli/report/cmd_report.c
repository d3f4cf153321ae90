/* cmd_report.c — `mdot report`: jobs on GPUs as one HTML file. */
#include "base/file.h"
#include "base/text.h"
#include "base/training/job_argument.h"
#include "cli/cli.h"
#include "cli/gpu/gpu_argument.h"
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct report_request {
    cli_training training; /* must be first, where option calls expect it */
    cli_reading reading;
    cli_gpus gpus;
    int64_t batch; /* 0: the default */
    cli_total total;
    const char *output, *model_path, *calibration_path;
} report_request;

enum { DEFAULT_BATCH = 32, MOST_BATCH = 1024 };

static const cli_option options[] = {
    CLI_OUTPUT_OPTION(report_request, output, "FILE.html", "output file of the report (required)", "html"),
    CLI_WHOLE_ROW("batch", "N", report_request, batch, 1, CLI_MAX_BATCH, "batch size of one GPU (default: 32)",
                  .heading = "Jobs", .letter = 'b'),
    CLI_READING_OPTIONS(report_request, reading),
    CLI_LENGTH_OPTIONS(report_request, total),
    CLI_PRICE_OPTION(report_request, total),
#define TRAINING CLI_OPTION_ROW
#include "runtime/job/configuration.def"
    CLI_GPU_OPTION(report_request, gpus, "up to 16 GPUs (default: T4, L4, RTX-3090, A100, L40S, H100, H200)"),
    CLI_GPU_SPEC_OPTION(report_request, gpus, "a GPU described by its spec values, as for `mdot predict`"),
#define CLUSTER CLI_OPTION_ROW
#define GROUP CLI_GROUP_ROW
#include "runtime/job/configuration.def"
    PREDICT_MODEL_OPTION(report_request, model_path, "Predictor",
                         "a compiled predictor (default: the same as for `mdot predict`)"),
    PREDICT_CALIBRATION_OPTION(report_request, calibration_path),
    CLI_QUIET_OPTION(report_request, reading.quiet, "suppress warnings about the jobs"),
};
static const char *const synopsis[] = {"JOB… -o FILE.html [OPTION]…",
                                       "--plan JOB -o FILE.html [OPTION of `mdot plan`]…", NULL};

static void list_batches(report_job *job, int64_t unit)
{
    job->batch_count = 0;
    for (int64_t batch = unit; batch <= MOST_BATCH * unit && job->batch_count < REPORT_MAX_BATCHES; batch *= 2)
        job->batches[job->batch_count++] = batch;
}

typedef struct calibrated_model {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_calibration *calibration; /* may be NULL */
    mdot_predictor_info info;
    size_t calibrated_rows;
} calibrated_model;

/* Makes a calibrated prediction, and explains it if out_explanation is set. */
static mdot_status predict_one(const calibrated_model *model, const mdot_job *job, const mdot_configuration *c,
                               mdot_prediction *out, mdot_explanation **out_explanation, mdot_error *err)
{
    *out = MDOT_INIT(mdot_prediction);
    mdot_status status = mdot_predict(model->context, job, c, out, err);
    if (status == MDOT_OK && out_explanation != NULL)
        status = mdot_explain(model->context, job, c, out_explanation, err);
    if (status == MDOT_OK && model->calibration != NULL)
        status = mdot_calibration_apply_to_job(model->calibration, job, c, out, err);
    return status;
}

static mdot_status predict_result(const calibrated_model *model, const report_request *r, report_job *job,
                                  report_result *result, mdot_error *err)
{
    mdot_configuration *c = &result->configuration;
    *c = (mdot_configuration){.struct_size = sizeof *c, .gpu_spec = result->gpu};
    c->batch = r->batch > 0 ? r->batch : DEFAULT_BATCH;
    cli_training_apply(&r->training, &job->info, c);
    mdot_status status = predict_one(model, job->job, c, &result->prediction, &result->explanation, err);
    for (size_t b = 0; status == MDOT_OK && b < job->batch_count; b++) {
        mdot_configuration scaled = *c;
        scaled.batch = job->batches[b];
        status = predict_one(model, job->job, &scaled, &result->at[b], NULL, err);
        if (!result->at[b].fits) result->at[b].step_ms = 0;
    }
    for (size_t v = 0; status == MDOT_OK && v < r->training.torch_count; v++) {
        mdot_configuration changed = *c;
        changed.torch = r->training.torch[v];
        status = predict_one(model, job->job, &changed, &result->with[v], NULL, err);
    }
    return status;
}

static int64_t unit_of(const cli_training *t)
{
    int64_t micro_batches = t->value[RT_OPTION_micro_batches].whole;
    int64_t stages = t->value[RT_OPTION_pipeline_parallel].whole;
    if (micro_batches > 0) return micro_batches;
    return stages > 0 ? stages : 1;
}

static bool fits_batch(const report_job *job, size_t batch)
{
    for (size_t i = 0; i < job->result_count; i++)
        if (job->results[i].at[batch].fits) return true;
    return false;
}

static mdot_status predict_job(const calibrated_model *model, const report_request *r, const char *path,
                               report_job *job, mdot_error *err)
{
    *job = (report_job){.path = path,
                        .total = &r->total,
                        .info = MDOT_INIT(mdot_job_info),
                        .result_count = r->gpus.count,
                        .calibrated_rows = model->calibrated_rows};
    mdot_status status = cli_read_job("report", path, &r->reading, &job->job, err);
    if (status != MDOT_OK) return status;
    mdot_job_get_info(job->job, &job->info);
    job->choices = cli_choices_of(job->job);
    job->choices.torch = model->info.assumed_torch;
    list_batches(job, unit_of(&r->training));
    for (size_t i = 0; status == MDOT_OK && i < job->result_count; i++) {
        job->results[i].gpu = &r->gpus.item[i];
        status = predict_result(model, r, job, &job->results[i], err);
    }
    while (status == MDOT_OK && job->batch_count > 1 && !fits_batch(job, job->batch_count - 1)) job->batch_count--;
    return status;
}

/* The caller calls close_model, also after a failure. */
static mdot_status open_model(calibrated_model *model, const report_request *r, mdot_error *err)
{
    mdot_calibration_info calibration = MDOT_INIT(mdot_calibration_info);
    *model = (calibrated_model){.info = MDOT_INIT(mdot_predictor_info)};
    mdot_status status = predict_open_model(r->model_path, r->output, &model->predictor, &model->context, err);
    if (status == MDOT_OK) status = mdot_predictor_get_info(model->predictor, &model->info);
    if (status != MDOT_OK || r->calibration_path == NULL) return status;
    status = predict_load_calibration(r->calibration_path, model->info.name, &model->calibration, err);
    if (status == MDOT_OK) status = mdot_calibration_get_info(model->calibration, &calibration);
    model->calibrated_rows = calibration.row_count;
    return status;
}

static void close_model(calibrated_model *model)
{
    mdot_calibration_destroy(model->calibration);
    mdot_context_destroy(model->context);
    mdot_predictor_close(model->predictor);
}

static mdot_status write_report(const report_request *r, const cli_operands *jobs, FILE *out, mdot_error *err)
{
    static report_job job; /* too large for the stack */
    calibrated_model model;
    mdot_status status = open_model(&model, r, err);
    report_begin(out);
    for (int i = 0; status == MDOT_OK && i < jobs->count; i++) {
        status = predict_job(&model, r, jobs->item[i], &job, err);
        if (status == MDOT_OK && !report_write_job(out, &job, &r->training))
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        for (size_t k = 0; k < job.result_count; k++) mdot_explanation_destroy(job.results[k].explanation);
        mdot_job_destroy(job.job);
    }
    report_end(out, status == MDOT_OK ? model.info.name : "");
    close_model(&model);
    return status;
}

static int run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--plan") == 0) return cli_plan.run(argc - 1, argv + 1);
    static report_request request; /* too large for the stack */
    request = (report_request){.batch = 0};
    cli_training_begin(&request.training);
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_report_command, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error("report", "no job given");
    if (request.output == NULL) return cli_usage_error("report", "no output file given: use -o FILE.html");
    char fallback[] = "T4,L4,RTX-3090,A100,L40S,H100,H200";
    if (request.gpus.count == 0 && !cli_add_gpus("report", fallback, &request.gpus)) return CLI_USAGE;
    if (request.gpus.count > REPORT_MAX_GPUS)
        return cli_usage_error("report", "a report shows at most %d GPUs", REPORT_MAX_GPUS);
    request.reading.output = request.output;
    mdot_error err = {0};
    bs_memstream buffer;
    mdot_status status = bs_memstream_open(&buffer) ? MDOT_OK : mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = bs_check_output(request.output, &err);
    if (status == MDOT_OK) status = write_report(&request, &operands, buffer.file, &err);
    mdot_status saved = report_save(&buffer, status == MDOT_OK ? request.output : NULL, &err);
    if (status == MDOT_OK) status = saved;
    return status == MDOT_OK ? CLI_OK : cli_report("report", &err);
}

const cli_command cli_report_command = {
    .name = "report",
    .summary = "write an HTML report: time, memory and their breakdowns on several GPUs",
    .synopsis = synopsis,
    .description = "Writes one self-contained HTML file. For each job, it shows a table of the GPUs, step time "
                   "against batch, breakdowns of time and memory, and warnings. If several versions of PyTorch are "
                   "given, a table compares them, and the other sections use the first one.",
    CLI_OPTIONS(options),
    .option_words = rt_option_words,
    .files = "onnx|job",
    .run = run,
};
