/* cmd_extract.c — `mdot extract`: prints a training job as the operator sequence that a predictor reads. */
#include "base/training/job_argument.h"
#include "cli/cli.h"
#include "runtime/job/configuration_table.h"

#include <inttypes.h>

typedef struct extract_request {
    cli_reading reading;
    int64_t batch; /* 0: the file's batch */
    int optimizer; /* CLI_NO_CHOICE: the file's optimizer */
    bool json;
} extract_request;

static mdot_load load_at(const mdot_job_operator *op, mdot_phase phase, double batch)
{
    const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase], *square = &op->per_square[phase];
    return (mdot_load){batch * (sample->flops + batch * square->flops) + step->flops,
                       batch * (sample->bytes_read + batch * square->bytes_read) + step->bytes_read,
                       batch * (sample->bytes_written + batch * square->bytes_written) + step->bytes_written};
}

static int64_t setting_at(const mdot_job_operator *op, int setting, double batch)
{
    bool multiplies = (op->batch_settings >> setting & 1) != 0;
    return multiplies ? (int64_t)((double)op->setting[setting] * batch) : op->setting[setting];
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

static void print_settings(const mdot_job_operator *op, double batch)
{
    const char *space = "";
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        bool usual = s == MDOT_SETTING_INPUTS && op->setting[s] == 1;
        bool flat = (s == MDOT_SETTING_KERNEL_D || s == MDOT_SETTING_STRIDE_D || s == MDOT_SETTING_STRIDE_H ||
                     s == MDOT_SETTING_STRIDE_W || s == MDOT_SETTING_DILATION_H || s == MDOT_SETTING_DILATION_W ||
                     s == MDOT_SETTING_GROUPS) &&
                    op->setting[s] == 1;
        if (op->setting[s] == 0 || usual || flat) continue;
        printf("%s%s=%" PRId64, space, mdot_setting_name((mdot_setting)s), setting_at(op, s, batch));
        space = " ";
    }
}

static void print_load(mdot_load load)
{
    char flops[16], moved[16];
    printf(" %8s %8s", cli_short_number(load.flops, flops),
           cli_short_number(load.bytes_read + load.bytes_written, moved));
}

static void print_table(const mdot_job *job, double batch, mdot_optimizer optimizer)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_load forward = {0}, backward = {0};
    char parameters[16];
    mdot_job_get_info(job, &info);
    printf("%5s %-22s %17s %17s %8s %5s %5s  %s\n", "", "", "forward", "backward", "", "", "", "");
    printf("%5s %-22s %8s %8s %8s %8s %8s %5s %5s  %s\n", "#", "type", "FLOP", "bytes", "FLOP", "bytes", "params",
           "depth", "block", "configuration");
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        cli_text type;
        printf("%5zu%c%-22.60s", i, op.known ? ' ' : '?', cli_printable(&type, op.type));
        print_load(load_at(&op, MDOT_PHASE_FORWARD, batch));
        print_load(backward_at(&op, batch));
        printf(" %8s %5" PRIu32, cli_short_number(op.parameters, parameters), op.depth);
        if (op.block > 0)
            printf(" %5" PRIu32 "  ", op.block);
        else
            printf(" %5s  ", "");
        print_settings(&op, batch);
        putchar('\n');
        add_load(&forward, load_at(&op, MDOT_PHASE_FORWARD, batch));
        add_load(&backward, backward_at(&op, batch));
    }
    printf("%5s %-22s", "", "total");
    print_load(forward);
    print_load(backward);
    printf(" %8s\n", cli_short_number(info.parameters, parameters));
    printf("%5s %-22s", "", rt_optimizer_names[optimizer]);
    print_load(mdot_optimizer_load(optimizer, info.parameters));
    printf("\n%zu operators, %zu unknown%s; batch of %.0f sample%s\n", info.operator_count, info.unknown_count,
           info.unknown_count > 0 ? " (?)" : "", batch, batch == 1 ? "" : "s");
    if (info.length > 0)
        printf("%s = %" PRId64 "; --dim %s=N selects another length\n", info.length_name, info.length,
               info.length_name);
    cli_print_check(job, "");
}

static void print_json_load(const char *name, mdot_load load)
{
    printf("\"%s\": {\"flops\": %.0f, \"bytes_read\": %.0f, \"bytes_written\": %.0f}", name, load.flops,
           load.bytes_read, load.bytes_written);
}

static void print_json_operator(const mdot_job_operator *op, double batch, mdot_optimizer optimizer)
{
    cli_json_member(stdout, "{", "type", op->type);
    printf(", \"known\": %s, \"configuration\": {", op->known ? "true" : "false");
    const char *comma = "";
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        if (op->setting[s] == 0) continue;
        printf("%s\"%s\": %" PRId64, comma, mdot_setting_name((mdot_setting)s), setting_at(op, s, batch));
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
    if (op->frozen_parameters > 0) printf(", \"frozen_parameters\": %.0f", op->frozen_parameters);
    printf(", \"parameters\": %.0f, \"depth\": %" PRIu32 ", \"height\": %" PRIu32 ", \"out_degree\": %" PRIu32
           ", \"inputs\": [",
           op->parameters, op->depth, op->height, op->out_degree);
    for (size_t i = 0; i < op->input_count; i++) printf("%s%" PRIu32, i == 0 ? "" : ", ", op->inputs[i]);
    printf("], \"block\": %" PRIu32 ", \"equal_blocks\": %" PRIu32, op->block, op->equal_blocks);
    if (op->module != NULL) cli_json_member(stdout, ", ", "module", op->module);
    putchar('}');
}

static void print_json(const mdot_job *job, double batch, mdot_optimizer optimizer)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    printf("{\"batch\": %.0f, \"file_batch\": %" PRId64
           ", \"optimizer\": \"%s\", \"parameters\": %.0f, \"unknown\": %zu,\n",
           batch, info.batch, rt_optimizer_names[optimizer], info.parameters, info.unknown_count);
    if (info.length > 0) {
        cli_json_member(stdout, " \"length\": {", "name", info.length_name);
        printf(", \"value\": %" PRId64 "},\n", info.length);
    }
    printf(" \"operators\": [");
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_operator(&op, batch, optimizer);
    }
    printf("\n ]}\n");
}

static int run(int argc, char **argv)
{
    extract_request r = {.optimizer = CLI_NO_CHOICE};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_extract, argc, argv, &r, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error("extract", "no job given");
    if (operands.count > 1)
        return cli_usage_error("extract", "expected one job, not \"%s\" and \"%s\"", operands.item[0],
                               operands.item[1]);

    mdot_error err = {0};
    mdot_job *job = NULL;
    mdot_status status = cli_read_job("extract", operands.item[0], &r.reading, &job, &err);
    if (status == MDOT_OK && r.reading.output != NULL) status = mdot_job_save(job, r.reading.output, &err);
    if (status == MDOT_OK) {
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        double batch = (double)(r.batch > 0 ? r.batch : cli_job_batch(&info));
        if (info.parameters + info.frozen_parameters == 0 && !r.reading.quiet)
            cli_message("extract", "warning: %s", mdot_warning_text(MDOT_WARN_NO_PARAMETERS));
        mdot_optimizer optimizer = r.optimizer == CLI_NO_CHOICE ? info.optimizer : (mdot_optimizer)r.optimizer;
        if (r.json)
            print_json(job, batch, optimizer);
        else
            print_table(job, batch, optimizer);
    }
    mdot_job_destroy(job);
    return status == MDOT_OK ? CLI_OK : cli_report("extract", &err);
}

static const cli_option options[] = {
    CLI_WHOLE_ROW("batch", "N", extract_request, batch, 1, CLI_MAX_BATCH,
                  "count FLOPs and bytes for a batch of N samples (default: the file's batch, or 1)", .letter = 'b'),
    CLI_READING_OPTIONS(extract_request, reading),
    CLI_VALUE_ROW(CLI_CHOICE, "optimizer", "O", extract_request, optimizer,
                  "sgd, adam or adamw (default: the file's, or sgd)", .choices = rt_optimizer_names),
    CLI_OUTPUT_OPTION(
        extract_request, reading.output, "FILE",
        "also write the sequence as a .job file. It omits weights, and it omits names unless --keep-names is given",
        "job"),
    CLI_FLAG_ROW("keep-names", extract_request, reading.keep_names,
                 "keep the names of the modules that contain the operators, in --json and in the .job file"),
    CLI_JSON_OPTION(extract_request, json, "print everything as JSON"),
    CLI_QUIET_OPTION(extract_request, reading.quiet, "suppress warnings"),
};
const cli_command cli_extract = {
    .name = "extract",
    .summary = "show the operator sequence of a training job (ONNX)",
    .synopsis = "JOB [OPTION]…",
    .description = "Prints the operators of a training job in canonical form, as a predictor reads them: type, "
                   "attributes, and the FLOPs and bytes of each in one training step (forward, backward and "
                   "optimizer). A graph gives the same sequence whether it was exported for inference or for "
                   "training. The weights are ignored.",
    CLI_OPTIONS(options),
    .notes = "A multiply-add counts as two FLOPs. Floating-point elements count as four bytes.",
    .files = "onnx|job",
    .run = run,
};
