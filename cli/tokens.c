/* tokens.c — `mdot tokens`: a training job as the operator sequence that a predictor reads. */
#include "cli/job.h"

#include <inttypes.h>

static const char help[] =
    "Usage: mdot tokens JOB.onnx [OPTION]…\n"
    "       mdot tokens JOB.job [OPTION]…\n"
    "\n"
    "Prints the operators of a training job in canonical form: type, configuration, and what each\n"
    "costs in one training step, forward, backward and in the optimizer. Graphs exported for\n"
    "inference and for training give the same sequence. Weights are not read.\n"
    "\n"
    "Options:\n"
    "  -b, --batch N        count a step of N samples (default: the file's batch, or 1)\n"
    "  -d, --dim NAME=N     fix a symbolic dimension other than the batch (or NAME=OTHER)\n"
    "      --optimizer O    sgd, adam, adamw (default: the file's, or sgd)\n"
    "  -o, --output FILE    also write the sequence as a .job file, which holds no weights or names\n"
    "      --json           print everything as JSON\n"
    "  -q, --quiet          no warnings\n"
    "  -h, --help           show this help\n"
    "\n"
    "FLOPs count a multiply-add as two; bytes take floating elements as four bytes each.\n"
    "Exit status: 0 it worked, 1 failed, 2 usage.\n";

typedef struct arguments {
    const char *input, *output;
    cli_dims dims;
    int64_t batch; /* 0: the file's */
    int optimizer; /* CLI_NO_CHOICE: the file's */
    bool json, quiet;
} arguments;

/* ---- The command line ------------------------------------------------------------------------------------------- */

static bool parse_option(arguments *a, int option, char *value)
{
    switch (option) {
    case 'b':
        return cli_parse_int("tokens", "--batch", value, 1, CLI_MAX_BATCH, &a->batch);
    case 'd':
        return cli_parse_dim("tokens", value, &a->dims);
    case 'O':
        return cli_parse_choice("tokens", "--optimizer", value, cli_optimizer_names, CLI_OPTIMIZER_COUNT,
                                &a->optimizer);
    case 'o':
        a->output = value;
        return true;
    case 'j':
        a->json = true;
        return true;
    case 'q':
        a->quiet = true;
        return true;
    default:
        return false;
    }
}

/* CLI_OK to go on, else the exit status; *out_help says that help was shown. */
static int parse_arguments(int argc, char **argv, arguments *a, bool *out_help)
{
    static const struct option options[] = {{"batch", required_argument, NULL, 'b'},
                                            {"dim", required_argument, NULL, 'd'},
                                            {"optimizer", required_argument, NULL, 'O'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = cli_next_option(argc, argv, ":b:d:o:qh", options)) != -1;) {
        if (option == 'h') {
            fputs(help, stdout);
            *out_help = true;
            return CLI_OK;
        }
        if (!parse_option(a, option, optarg)) return CLI_USAGE;
    }
    if (optind == argc) return cli_usage_error("tokens", "no job given");
    if (argc - optind > 1) return cli_usage_error("tokens", "one job at a time");
    a->input = argv[optind];
    return CLI_OK;
}

/* ---- Printing --------------------------------------------------------------------------------------------------- */

static mdot_load load_at(const mdot_job_operator *op, mdot_phase phase, double batch)
{
    const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
    return (mdot_load){batch * sample->flops + step->flops, batch * sample->bytes_read + step->bytes_read,
                       batch * sample->bytes_written + step->bytes_written};
}

static void add_load(mdot_load *sum, mdot_load load)
{
    sum->flops += load.flops;
    sum->bytes_read += load.bytes_read;
    sum->bytes_written += load.bytes_written;
}

static mdot_load backward_at(const mdot_job_operator *op, double batch)
{
    mdot_load load = load_at(op, MDOT_PHASE_DATA_GRADIENT, batch);
    add_load(&load, load_at(op, MDOT_PHASE_WEIGHT_GRADIENT, batch));
    return load;
}

/* "1.23M": three digits and a decimal prefix. */
static const char *short_number(double number, char out[16])
{
    static const char prefixes[] = " kMGTPE";
    int prefix = 0;
    for (; number >= 999.5 && prefixes[prefix + 1] != '\0'; prefix++) number /= 1000;
    if (prefix == 0) {
        snprintf(out, 16, "%.0f", number);
    } else {
        snprintf(out, 16, "%.*f%c", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number, prefixes[prefix]);
    }
    return out;
}

static void print_settings(const mdot_job_operator *op)
{
    const char *space = "";
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        bool usual = s == MDOT_SETTING_INPUTS && op->setting[s] == 1;
        bool flat = (s == MDOT_SETTING_KERNEL_D || s == MDOT_SETTING_STRIDE_D || s == MDOT_SETTING_STRIDE_H ||
                     s == MDOT_SETTING_STRIDE_W || s == MDOT_SETTING_DILATION_H || s == MDOT_SETTING_DILATION_W ||
                     s == MDOT_SETTING_GROUPS) &&
                    op->setting[s] == 1;
        if (op->setting[s] == 0 || usual || flat) continue;
        printf("%s%s=%" PRId64, space, mdot_setting_name((mdot_setting)s), op->setting[s]);
        space = " ";
    }
}

static void print_load(mdot_load load)
{
    char flops[16], moved[16];
    printf(" %8s %8s", short_number(load.flops, flops), short_number(load.bytes_read + load.bytes_written, moved));
}

static void print_table(const mdot_job *job, double batch, mdot_optimizer optimizer)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_load forward = {0}, backward = {0};
    char parameters[16];
    mdot_job_get_info(job, &info);
    printf("%5s %-22s %17s %17s %8s %5s  %s\n", "", "", "forward", "backward", "", "", "");
    printf("%5s %-22s %8s %8s %8s %8s %8s %5s  %s\n", "#", "type", "FLOP", "bytes", "FLOP", "bytes", "params", "depth",
           "configuration");
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        cli_text type;
        printf("%5zu %-22.60s", i, cli_printable(&type, op.type));
        print_load(load_at(&op, MDOT_PHASE_FORWARD, batch));
        print_load(backward_at(&op, batch));
        printf(" %8s %5" PRIu32 "  ", short_number(op.parameters, parameters), op.depth);
        print_settings(&op);
        putchar('\n');
        add_load(&forward, load_at(&op, MDOT_PHASE_FORWARD, batch));
        add_load(&backward, backward_at(&op, batch));
    }
    printf("%5s %-22s", "", "total");
    print_load(forward);
    print_load(backward);
    printf(" %8s\n", short_number(info.parameters, parameters));
    printf("%5s %-22s", "", cli_optimizer_names[optimizer]);
    print_load(mdot_optimizer_load(optimizer, info.parameters));
    printf("\n%zu operators, %zu unknown; a step of %.0f sample%s\n", info.operator_count, info.unknown_count, batch,
           batch == 1 ? "" : "s");
}

static void print_json_load(const char *name, mdot_load load)
{
    printf("\"%s\": {\"flops\": %.0f, \"bytes_read\": %.0f, \"bytes_written\": %.0f}", name, load.flops,
           load.bytes_read, load.bytes_written);
}

static void print_json_operator(const mdot_job_operator *op, double batch, mdot_optimizer optimizer)
{
    printf("{\"type\": ");
    cli_json_string(stdout, op->type);
    printf(", \"known\": %s, \"configuration\": {", op->known ? "true" : "false");
    const char *comma = "";
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        if (op->setting[s] == 0) continue;
        printf("%s\"%s\": %" PRId64, comma, mdot_setting_name((mdot_setting)s), op->setting[s]);
        comma = ", ";
    }
    printf("}, ");
    print_json_load("forward", load_at(op, MDOT_PHASE_FORWARD, batch));
    printf(", ");
    print_json_load("data_gradient", load_at(op, MDOT_PHASE_DATA_GRADIENT, batch));
    printf(", ");
    print_json_load("weight_gradient", load_at(op, MDOT_PHASE_WEIGHT_GRADIENT, batch));
    printf(", ");
    print_json_load("optimizer", mdot_optimizer_load(optimizer, op->parameters));
    printf(", \"parameters\": %.0f, \"depth\": %" PRIu32 ", \"height\": %" PRIu32 ", \"out_degree\": %" PRIu32
           ", \"inputs\": [",
           op->parameters, op->depth, op->height, op->out_degree);
    for (size_t i = 0; i < op->input_count; i++) printf("%s%" PRIu32, i == 0 ? "" : ", ", op->inputs[i]);
    printf("]}");
}

static void print_json(const mdot_job *job, double batch, mdot_optimizer optimizer)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    printf("{\"batch\": %.0f, \"file_batch\": %" PRId64
           ", \"optimizer\": \"%s\", \"parameters\": %.0f, \"unknown\": %zu,\n"
           " \"operators\": [",
           batch, info.batch, cli_optimizer_names[optimizer], info.parameters, info.unknown_count);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_operator(&op, batch, optimizer);
    }
    printf("\n ]}\n");
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

int cli_tokens(int argc, char **argv)
{
    arguments a = {.optimizer = CLI_NO_CHOICE};
    bool helped = false;
    int status = parse_arguments(argc, argv, &a, &helped);
    if (status != CLI_OK || helped) return status;

    mdot_error err = {0};
    mdot_job *job = NULL;
    mdot_status read = cli_read_job("tokens", a.input, &a.dims, a.quiet, &job, &err);
    if (read == MDOT_OK && a.output != NULL) read = mdot_job_save(job, a.output, &err);
    if (read == MDOT_OK) {
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        double batch = (double)(a.batch > 0 ? a.batch : cli_job_batch(&info));
        mdot_optimizer optimizer = a.optimizer == CLI_NO_CHOICE ? info.optimizer : (mdot_optimizer)a.optimizer;
        if (a.json) {
            print_json(job, batch, optimizer);
        } else {
            print_table(job, batch, optimizer);
        }
    }
    mdot_job_destroy(job);
    return read == MDOT_OK ? CLI_OK : cli_report("tokens", &err);
}
