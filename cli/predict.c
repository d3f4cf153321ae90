/* predict.c — `mdot predict`: how long a training step of a job takes, on which GPU, at which batch. */
#include "cli/predict.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 1 << 16 };
#define MAX_STEPS (INT64_C(1) << 50) /* exact in a double with room for a product */

/* ---- Options ------------------------------------------------------------------------------------------- */

/* CLI_USAGE after a message that ends in the names of all GPUs. */
static int refuse_gpu(const char *reason)
{
    fprintf(stderr, "mdot predict: %s", reason);
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++)
        fprintf(stderr, "%s%s", name == mdot_gpu_names() ? " " : ", ", *name);
    fputs("; or \"all\"\n", stderr);
    return CLI_USAGE;
}

static bool add_gpus(const char *command, char *text, void *request)
{
    predict_request *r = request;
    size_t most = PREDICT_MAX_GPUS - r->gpu_count, count = 0;
    const char *items[PREDICT_MAX_GPUS];
    if (strcmp(text, "all") == 0) {
        for (const char *const *name = mdot_gpu_names(); *name != NULL && count < most; name++) items[count++] = *name;
    } else if (!cli_split_list(command, "--gpu", text, most, items, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        mdot_error err = {0};
        if (mdot_gpu_find(items[i], &gpu, &err) != MDOT_OK) {
            cli_usage_error(command, "%s", err.message);
            return false;
        }
        r->gpus[r->gpu_count++] = gpu.name;
    }
    return true;
}

static bool add_batch(predict_request *r, int64_t batch)
{
    if (r->batch_count == PREDICT_MAX_BATCHES) return false;
    r->batches[r->batch_count++] = batch;
    return true;
}

/* "16..512" or "16,32,48". */
static bool parse_batches(const char *command, char *text, predict_request *r)
{
    static const char what[] = "--sweep batch";
    char *dots = strstr(text, "..");
    r->batch_count = 0;
    if (dots != NULL) {
        int64_t first, last;
        *dots = '\0';
        if (!cli_parse_int(command, what, text, 1, CLI_MAX_BATCH, &first) ||
            !cli_parse_int(command, what, dots + 2, 1, CLI_MAX_BATCH, &last))
            return false;
        if (first > last) {
            cli_usage_error(command, "%s ascends: %" PRId64 " stands before %" PRId64, what, first, last);
            return false;
        }
        add_batch(r, first);
        for (int64_t power = 1; power < last; power *= 2)
            if (power > first) add_batch(r, power);
        return first == last || add_batch(r, last);
    }
    const char *items[PREDICT_MAX_BATCHES];
    size_t count;
    if (!cli_split_list(command, what, text, PREDICT_MAX_BATCHES, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        int64_t batch;
        if (!cli_parse_int(command, what, items[i], 1, CLI_MAX_BATCH, &batch)) return false;
        add_batch(r, batch);
    }
    return true;
}

static bool parse_sweep(const char *command, char *text, void *request)
{
    static const char prefix[] = "batch=";
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) return parse_batches(command, text + sizeof prefix - 1, request);
    cli_usage_error(command, "--sweep takes batch=A..B or batch=A,B,C, not \"%s\"", text);
    return false;
}

static bool parse_batch(const char *command, char *text, void *request)
{
    predict_request *r = request;
    r->batch_count = 1;
    return cli_parse_int(command, "--batch", text, 1, CLI_MAX_BATCH, &r->batches[0]);
}

static const cli_option options[] = {
    {.heading = "The job",
     .name = "batch",
     .letter = 'b',
     .value = "N",
     .help = "samples a step on one GPU (default: the file's batch, or 1)",
     .kind = CLI_CALL,
     .call = parse_batch,
     .excludes = "sweep"},
    {.name = "sweep",
     .value = "batch=A..B",
     .help = "every batch of A, the powers of two between, and B; or batch=A,B,C",
     .kind = CLI_CALL,
     .call = parse_sweep},
    {.name = "precision",
     .value = "P",
     .help = "fp32, tf32, amp (default fp32)",
     .kind = CLI_CHOICE,
     .at = offsetof(predict_request, precision),
     .choices = predict_precision_names},
    {.name = "layout",
     .value = "L",
     .help = "of images in memory: nchw, nhwc (default nchw)",
     .kind = CLI_CHOICE,
     .at = offsetof(predict_request, layout),
     .choices = predict_layout_names},
    {.name = "optimizer",
     .value = "O",
     .help = "sgd, adam, adamw (default: the file's, or sgd)",
     .kind = CLI_CHOICE,
     .at = offsetof(predict_request, optimizer),
     .choices = cli_optimizer_names},
    {.name = "dim",
     .letter = 'd',
     .value = "NAME=N",
     .help = "fix a symbolic dimension other than the batch (or NAME=OTHER)",
     .kind = CLI_DIM,
     .at = offsetof(predict_request, dims),
     .repeats = true},
    {.name = "steps",
     .value = "N",
     .help = "also the time of N steps",
     .kind = CLI_WHOLE,
     .at = offsetof(predict_request, steps),
     .least = 1,
     .most = MAX_STEPS,
     .excludes = "epochs"},
    {.name = "epochs",
     .value = "E",
     .help = "also the time of E passes over the samples of --dataset",
     .kind = CLI_WHOLE,
     .at = offsetof(predict_request, epochs),
     .least = 1,
     .most = MAX_STEPS,
     .needs = "dataset"},
    {.name = "dataset",
     .value = "N",
     .help = "samples of a pass, for --epochs",
     .kind = CLI_WHOLE,
     .at = offsetof(predict_request, dataset),
     .least = 1,
     .most = MAX_STEPS,
     .needs = "epochs"},
    {.heading = "Where it runs",
     .name = "gpu",
     .letter = 'g',
     .value = "NAME,…",
     .help = "one or several GPUs, or \"all\" (needed)",
     .kind = CLI_CALL,
     .call = add_gpus,
     .repeats = true,
     .names = mdot_gpu_names,
     .is_list = true},
    {.name = "gpus",
     .value = "N",
     .help = "so many of them share a step, each with its own batch (default 1)",
     .kind = CLI_WHOLE,
     .at = offsetof(predict_request, workers),
     .least = 1,
     .most = MAX_WORKERS},
    {.heading = "What answers",
     .name = "model",
     .letter = 'm',
     .value = "FILE",
     .help =
         "a compiled predictor (default: that of the environment variable MDOT_PREDICTOR, or the one that mdot comes "
         "with)",
     .kind = CLI_TEXT,
     .at = offsetof(predict_request, model_path),
     .files = "mdot"},
    {.name = "json", .help = "print everything as JSON", .kind = CLI_FLAG, .at = offsetof(predict_request, json)},
    {.name = "quiet", .letter = 'q', .help = "no warnings", .kind = CLI_FLAG, .at = offsetof(predict_request, quiet)},
};
static const char *const synopsis[] = {"JOB.onnx --gpu NAME [OPTION]…", "JOB.job --gpu NAME [OPTION]…", NULL};

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

/* A job whose tensors are all empty takes no time that could be predicted. */
static mdot_status check_work(const predict_request *r, const mdot_job *job, const mdot_job_info *info, mdot_error *err)
{
    for (size_t i = 0; i < info->operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        const mdot_load *sample = &op.per_sample[MDOT_PHASE_FORWARD], *step = &op.per_step[MDOT_PHASE_FORWARD];
        if (sample->bytes_read + sample->bytes_written + step->bytes_read + step->bytes_written > 0) return MDOT_OK;
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: there is nothing to compute: every tensor is empty", r->job_path);
}

/* One configuration for each GPU and batch, GPU by GPU, with defaults from the job. */
static mdot_status list_configurations(const predict_request *r, predict_answers *answers, mdot_error *err)
{
    size_t batch_count = r->batch_count > 0 ? r->batch_count : 1;
    answers->count = r->gpu_count * batch_count;
    answers->configurations = calloc(answers->count, sizeof *answers->configurations);
    answers->predictions = calloc(answers->count, sizeof *answers->predictions);
    if (answers->configurations == NULL || answers->predictions == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu predictions", answers->count);
    answers->predictions[0] = MDOT_INIT(mdot_prediction);
    for (size_t i = 0; i < answers->count; i++)
        answers->configurations[i] = (mdot_configuration){
            .struct_size = sizeof(mdot_configuration),
            .batch = r->batch_count > 0 ? r->batches[i % batch_count] : cli_job_batch(&answers->job),
            .gpu = r->gpus[i / batch_count],
            .gpu_count = r->workers > 0 ? (int)r->workers : 1,
            .precision = r->precision == CLI_NO_CHOICE ? MDOT_PRECISION_FP32 : (mdot_precision)r->precision,
            .layout = r->layout == CLI_NO_CHOICE ? MDOT_LAYOUT_NCHW : (mdot_layout)r->layout,
            .optimizer = r->optimizer == CLI_NO_CHOICE ? answers->job.optimizer : (mdot_optimizer)r->optimizer};
    return MDOT_OK;
}

/* Opens the predictor and has it answer every configuration of `job`. */
static mdot_status ask(const predict_request *r, const mdot_job *job, predict_answers *answers, mdot_error *err)
{
    char *shipped = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = r->model_path == NULL ? predict_find_model(&shipped, err) : MDOT_OK;
    if (status == MDOT_OK)
        status = mdot_predictor_open(shipped != NULL ? shipped : r->model_path, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    if (status == MDOT_OK)
        status = mdot_sweep(context, job, answers->configurations, answers->count, answers->predictions, err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    free(shipped);
    return status;
}

/* ---- The subcommand --------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    predict_request request = {.precision = CLI_NO_CHOICE, .layout = CLI_NO_CHOICE, .optimizer = CLI_NO_CHOICE};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_predict, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error("predict", "no job given");
    if (operands.count > 1) return cli_usage_error("predict", "one job at a time");
    if (request.gpu_count == 0) return refuse_gpu("no GPU given: --gpu takes");
    request.job_path = operands.item[0];

    mdot_error err = {0};
    mdot_job *job = NULL;
    predict_answers answers = {.job = MDOT_INIT(mdot_job_info)};
    mdot_status status =
        cli_read_job("predict", request.job_path, &request.dims, request.quiet, false, NULL, &job, &err);
    if (status == MDOT_OK) {
        mdot_job_get_info(job, &answers.job);
        status = check_work(&request, job, &answers.job, &err);
    }
    if (status == MDOT_OK) status = list_configurations(&request, &answers, &err);
    if (status == MDOT_OK) status = ask(&request, job, &answers, &err);
    if (status == MDOT_OK) predict_print(&request, &answers);
    free(answers.configurations);
    free(answers.predictions);
    mdot_job_destroy(job);
    return status == MDOT_OK ? CLI_OK : cli_report("predict", &err);
}

const cli_command cli_predict = {
    .name = "predict",
    .summary = "predict a training job's step time, throughput and memory on GPUs",
    .synopsis = synopsis,
    .description =
        "Predicts how long one training step of a job takes (forward, backward, optimizer) with a 90 % interval, "
        "and the memory that it needs. Several GPUs or batches give a table.",
    CLI_OPTIONS(options),
    .exit_status = "0 it worked, 1 failed, 2 usage",
    .files = "onnx|job",
    .run = run,
};
