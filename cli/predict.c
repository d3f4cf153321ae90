/* predict.c — `mdot predict`: how long a training step of a job takes, on which GPU, at which batch. */
#include "cli/predict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 1 << 16 };
static const int64_t max_steps = INT64_C(1) << 50; /* exact in a double with room for a product */

static const char help[] =
    "Usage: mdot predict JOB.onnx --gpu NAME [OPTION]…\n"
    "       mdot predict JOB.job --gpu NAME [OPTION]…\n"
    "\n"
    "Predicts how long one training step of a job takes (forward, backward, optimizer) with a 90 %\n"
    "interval, and the memory that it needs. Several GPUs or batches give a table.\n"
    "\n"
    "The job:\n"
    "  -b, --batch N          samples a step on one GPU (default: the file's batch, or 1)\n"
    "      --sweep batch=A..B every batch of A, the powers of two between, and B; or batch=A,B,C\n"
    "      --precision P      fp32, tf32, amp (default fp32)\n"
    "      --layout L         of images in memory: nchw, nhwc (default nchw)\n"
    "      --optimizer O      sgd, adam, adamw (default: the file's, or sgd)\n"
    "  -d, --dim NAME=N       fix a symbolic dimension other than the batch (or NAME=OTHER)\n"
    "      --steps N          also the time of N steps\n"
    "      --epochs E --dataset N\n"
    "                         also the time of E passes over N samples\n"
    "Where it runs:\n"
    "  -g, --gpu NAME,…       one or several GPUs, or \"all\" (needed)\n"
    "      --gpus N           so many of them share a step, each with its own batch (default 1)\n"
    "What answers:\n"
    "  -m, --model FILE       a compiled predictor (default: that of the environment variable\n"
    "                         MDOT_PREDICTOR, or the one that mdot comes with)\n"
    "      --json             print everything as JSON\n"
    "  -q, --quiet            no warnings\n"
    "  -h, --help             show this help\n"
    "\n"
    "Exit status: 0 it worked, 1 failed, 2 usage.\n";

const char *const predict_precision_names[PREDICT_PRECISION_COUNT] = {
    [MDOT_PRECISION_FP32] = "fp32", [MDOT_PRECISION_TF32] = "tf32", [MDOT_PRECISION_AMP] = "amp"};
const char *const predict_layout_names[PREDICT_LAYOUT_COUNT] = {
    [MDOT_LAYOUT_NCHW] = "nchw", [MDOT_LAYOUT_NHWC] = "nhwc"};

/* ---- The command line ------------------------------------------------------------------------------------------- */

/* CLI_USAGE after a message that ends in the names of all GPUs. */
static int refuse_gpu(const char *reason)
{
    fprintf(stderr, "mdot predict: %s", reason);
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++)
        fprintf(stderr, "%s%s", name == mdot_gpu_names() ? " " : ", ", *name);
    fputs("; or \"all\"\n", stderr);
    return CLI_USAGE;
}

static bool parse_gpus(predict_request *r, char *text)
{
    const char *items[PREDICT_MAX_GPUS];
    size_t count = 0;
    if (strcmp(text, "all") == 0) {
        for (const char *const *name = mdot_gpu_names(); *name != NULL && count < PREDICT_MAX_GPUS; name++)
            items[count++] = *name;
    } else if (!cli_split_list("predict", "--gpu", text, PREDICT_MAX_GPUS, items, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        mdot_error err = {0};
        if (mdot_gpu_find(items[i], &gpu, &err) != MDOT_OK) {
            cli_usage_error("predict", "%s", err.message);
            return false;
        }
        r->gpus[i] = gpu.name;
    }
    r->gpu_count = count;
    return true;
}

static bool add_batch(predict_request *r, int64_t batch)
{
    if (r->batch_count == PREDICT_MAX_BATCHES) return false;
    r->batches[r->batch_count++] = batch;
    return true;
}

/* "16..512" or "16,32,48". */
static bool parse_batches(predict_request *r, char *text)
{
    static const char what[] = "--sweep batch";
    char *dots = strstr(text, "..");
    r->batch_count = 0;
    if (dots != NULL) {
        int64_t first, last;
        *dots = '\0';
        if (!cli_parse_int("predict", what, text, 1, CLI_MAX_BATCH, &first) ||
            !cli_parse_int("predict", what, dots + 2, 1, CLI_MAX_BATCH, &last))
            return false;
        if (first > last) {
            cli_usage_error("predict", "%s ascends: %" PRId64 " stands before %" PRId64, what, first, last);
            return false;
        }
        add_batch(r, first);
        for (int64_t power = 1; power < last; power *= 2)
            if (power > first) add_batch(r, power);
        return first == last || add_batch(r, last);
    }
    const char *items[PREDICT_MAX_BATCHES];
    size_t count;
    if (!cli_split_list("predict", what, text, PREDICT_MAX_BATCHES, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        int64_t batch;
        if (!cli_parse_int("predict", what, items[i], 1, CLI_MAX_BATCH, &batch)) return false;
        add_batch(r, batch);
    }
    return true;
}

static bool parse_sweep(predict_request *r, char *text)
{
    static const char prefix[] = "batch=";
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) return parse_batches(r, text + sizeof prefix - 1);
    cli_usage_error("predict", "--sweep takes batch=A..B or batch=A,B,C, not \"%s\"", text);
    return false;
}

enum { SWEEP = 256, PRECISION, LAYOUT, OPTIMIZER, GPUS, STEPS, EPOCHS, DATASET, JSON };

static bool parse_option(predict_request *r, int option, char *value)
{
    switch (option) {
    case 'b':
        r->batch_count = 1;
        return cli_parse_int("predict", "--batch", value, 1, CLI_MAX_BATCH, &r->batches[0]);
    case 'd':
        return cli_parse_dim("predict", value, &r->dims);
    case 'g':
        return parse_gpus(r, value);
    case 'm':
        r->model_path = value;
        return true;
    case 'q':
        r->quiet = true;
        return true;
    case SWEEP:
        return parse_sweep(r, value);
    case PRECISION:
        return cli_parse_choice("predict", "--precision", value, predict_precision_names, PREDICT_PRECISION_COUNT,
                                &r->precision);
    case LAYOUT:
        return cli_parse_choice("predict", "--layout", value, predict_layout_names, PREDICT_LAYOUT_COUNT, &r->layout);
    case OPTIMIZER:
        return cli_parse_choice("predict", "--optimizer", value, cli_optimizer_names, CLI_OPTIMIZER_COUNT,
                                &r->optimizer);
    case GPUS:
        return cli_parse_int("predict", "--gpus", value, 1, MAX_WORKERS, &r->workers);
    case STEPS:
        return cli_parse_int("predict", "--steps", value, 1, max_steps, &r->steps);
    case EPOCHS:
        return cli_parse_int("predict", "--epochs", value, 1, max_steps, &r->epochs);
    case DATASET:
        return cli_parse_int("predict", "--dataset", value, 1, max_steps, &r->dataset);
    case JSON:
        r->json = true;
        return true;
    default:
        return false;
    }
}

/* What only the whole line shows. */
static int check_request(const predict_request *r, bool has_batch, bool has_sweep)
{
    if (has_batch && has_sweep) return cli_usage_error("predict", "--batch and --sweep batch exclude each other");
    if (r->steps > 0 && r->epochs > 0) return cli_usage_error("predict", "--steps and --epochs exclude each other");
    if ((r->epochs > 0) != (r->dataset > 0)) return cli_usage_error("predict", "--epochs and --dataset go together");
    if (r->gpu_count == 0) return refuse_gpu("no GPU given: --gpu takes");
    return CLI_OK;
}

/* CLI_OK to go on, else the exit status; *out_help says that help was shown. */
static int parse_arguments(int argc, char **argv, predict_request *r, bool *out_help)
{
    static const struct option options[] = {{"batch", required_argument, NULL, 'b'},
                                            {"sweep", required_argument, NULL, SWEEP},
                                            {"precision", required_argument, NULL, PRECISION},
                                            {"layout", required_argument, NULL, LAYOUT},
                                            {"optimizer", required_argument, NULL, OPTIMIZER},
                                            {"dim", required_argument, NULL, 'd'},
                                            {"steps", required_argument, NULL, STEPS},
                                            {"epochs", required_argument, NULL, EPOCHS},
                                            {"dataset", required_argument, NULL, DATASET},
                                            {"gpu", required_argument, NULL, 'g'},
                                            {"gpus", required_argument, NULL, GPUS},
                                            {"model", required_argument, NULL, 'm'},
                                            {"json", no_argument, NULL, JSON},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool has_batch = false, has_sweep = false;
    for (int option; (option = cli_next_option(argc, argv, ":b:d:g:m:qh", options)) != -1;) {
        if (option == 'h') {
            fputs(help, stdout);
            *out_help = true;
            return CLI_OK;
        }
        if (!parse_option(r, option, optarg)) return CLI_USAGE;
        has_batch |= option == 'b';
        has_sweep |= option == SWEEP;
    }
    if (optind == argc) return cli_usage_error("predict", "no job given");
    if (argc - optind > 1) return cli_usage_error("predict", "one job at a time");
    r->job_path = argv[optind];
    return check_request(r, has_batch, has_sweep);
}

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

int cli_predict(int argc, char **argv)
{
    predict_request request = {.precision = CLI_NO_CHOICE, .layout = CLI_NO_CHOICE, .optimizer = CLI_NO_CHOICE};
    bool helped = false;
    int usage = parse_arguments(argc, argv, &request, &helped);
    if (usage != CLI_OK || helped) return usage;

    mdot_error err = {0};
    mdot_job *job = NULL;
    predict_answers answers = {.job = MDOT_INIT(mdot_job_info)};
    mdot_status status = cli_read_job("predict", request.job_path, &request.dims, request.quiet, &job, &err);
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
