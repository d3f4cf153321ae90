/* cmd_predict.c — `mdot predict`: how long a training step of a job takes, for each GPU and batch. */
#include "cli/cli.h"
#include "cli/predict/predict_request.h"

static const cli_option options[] = {
#define PREDICT_DEFAULT_BATCH "the file's batch, or 1"
#define PREDICT_DEFAULT_GPUS "required"
#include "cli/predict/predict_options.def"
    CLI_TEXT_ROW(
        "beside", "JOB", predict_request, beside_path,
        "a second job on the same GPU, as its file states it, with the same training options: slowdown and memory of "
        "both, and whether packing pays",
        .heading = "Output", .files = "onnx|job"),
    CLI_VALUE_ROW(CLI_WHOLE, "beside-batch", "N", predict_request, beside_batch,
                  "batch of the job in --beside (default: the file's batch, or 1)", .least = 1, .most = CLI_MAX_BATCH),
    CLI_FLAG_ROW("explain", predict_request, explain,
                 "break down the time and the memory of one prediction by phase, block, operator and module"),
    CLI_LENGTH_OPTION(predict_request, output_tokens, "output-tokens", "N",
                      "with --mode inference of a language model: also estimate the time for N output tokens after a "
                      "prompt of --length tokens, one after the other, and the cache of keys and values"),
    CLI_FLAG_ROW("wide", predict_request, wide, "show all columns of the table, beyond 80 characters per line"),
    CLI_JSON_OPTION(predict_request, json, "print everything as JSON"),
};

static bool is_swept_twice(const char *command, const char *text)
{
    return cli_refuse(command, "--sweep takes the batch and one dimension, not \"%s\" as well", text);
}

bool predict_parse_sweep(const char *command, char *text, void *request)
{
    predict_request *r = request;
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return cli_refuse(command, "--sweep takes batch=A..B, batch=A,B,C or a --dim's name instead, not \"%s\"", text);
    *equals = '\0';
    for (size_t i = 0; i < cli_predict.option_count; i++)
        if (cli_predict.options[i].takes_list && strcmp(cli_predict.options[i].name, text) == 0)
            return cli_refuse(command, "--sweep takes the batch or a dimension; --%s itself takes a list: --%s %s",
                              text, text, equals + 1);
    if (strcmp(text, "batch") == 0) {
        if (r->sweeps_batch) return is_swept_twice(command, text);
        if (r->batch_count > 0) return cli_refuse(command, "--batch and --sweep exclude each other");
        r->sweeps_batch = true;
        return cli_add_values(command, "--sweep batch", equals + 1, CLI_MAX_BATCH, false, PREDICT_MAX_BATCHES,
                              r->batches, &r->batch_count);
    }
    if (r->swept_dim != NULL) return is_swept_twice(command, text);
    r->swept_dim = text;
    return cli_add_values(command, "--sweep", equals + 1, INT32_MAX, false, PREDICT_MAX_BATCHES, r->dim_values,
                          &r->dim_value_count);
}

bool predict_parse_fit(const char *command, char *text, void *request)
{
    predict_request *r = request;
    if (strcmp(text, "batch") == 0) return r->fit = true;
    if (r->swept_dim != NULL) return is_swept_twice(command, text);
    r->swept_dim = text;
    r->dim_values[r->dim_value_count++] = 1; /* the first that is tried */
    return r->fits_dim = true;
}

static int run(int argc, char **argv)
{
    static predict_request request; /* too large for the stack */
    request = (predict_request){.command = "predict", .sort = CLI_NO_CHOICE};
    cli_training_begin(&request.training);
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_predict, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error("predict", "no job given");
    if (operands.count > 1)
        return cli_usage_error("predict", "expected one job, not \"%s\" and \"%s\"", operands.item[0],
                               operands.item[1]);
    if (request.gpus.count == 0)
        return cli_usage_error("predict",
                               "no GPU given: use --gpu NAME, for example A100, H100,L40S or all; `mdot gpus` "
                               "lists all names");
    request.job_path = operands.item[0];
    usage = predict_check(&request);
    if (usage != CLI_OK) return usage;
    bool several = predict_has_several(&request);
    if (request.explain && several && !request.json)
        return cli_usage_error("predict", "--explain requires a single prediction, or --json");
    if (request.beside_path != NULL && several)
        return cli_usage_error("predict",
                               "--beside requires a single prediction: one GPU model, batch and option value");
    if (request.beside_path == NULL && request.beside_batch > 0)
        return cli_usage_error("predict", "--beside-batch requires --beside JOB");
    if (request.explain) request.reading.keep_names = true;

    mdot_error err = {0};
    predict_answers answers = {.job = MDOT_INIT(mdot_job_info)};
    mdot_status status = predict_read(&request, &answers, &err);
    if (status == MDOT_OK) status = predict_answer(&request, &answers, &err);
    if (status == MDOT_OK && request.output_tokens > 0) status = predict_serve(&request, &answers, &err);
    if (status == MDOT_OK) status = predict_print(&request, &answers, &err);
    predict_free_rows(&answers);
    predict_free_jobs(&answers);
    return status == MDOT_OK ? CLI_OK : cli_report("predict", &err);
}

const cli_command cli_predict = {
    .name = "predict",
    .summary = "predict a training job's step time, throughput and memory on GPUs",
    .synopsis = "JOB --gpu NAME [OPTION]…",
    .description =
        "Predicts how long one training step of a job takes (forward, backward, optimizer) with a 90 % "
        "interval, and its peak memory. Several GPUs, batches or versions of PyTorch give a table of all "
        "combinations, and so do several values of a training option or of one for several GPUs: --gpus "
        "1..8, --precision bf16,fp8, --parallel dp=2,tp=1,2. Impossible combinations are left out. JOB is "
        "an ONNX or .job file, a Hugging Face model's config.json or folder, or a name that `mdot jobs` lists.",
    CLI_OPTIONS(options),
    .lists = offsetof(predict_request, lists),
    .option_words = rt_option_words,
    .wider = &cli_plan,
    .files = "onnx|job",
    .run = run,
};
