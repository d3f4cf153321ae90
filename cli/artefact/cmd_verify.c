/* cmd_verify.c — `mdot verify`: compares compiled code with the double-precision evaluation of the model. */
#include "base/text.h"
#include "base/training/job_argument.h"
#include "cli/cli.h"
#include "mdot/mdotc.h"

#include <math.h>
#include <stdlib.h>

typedef struct report {
    bool json;
    size_t rows;
} report;

static void print_row(void *user, const mdotc_verify_row *row)
{
    report *r = user;
    if (r->json) {
        char error[32] = "null"; /* JSON has no infinity */
        if (isfinite(row->worst_error)) snprintf(error, sizeof error, "%.3e", row->worst_error);
        cli_json_member(stdout, r->rows == 0 ? "[\n  {" : ",\n  {", "entry", row->entry);
        cli_json_member(stdout, ", ", "level", row->level);
        printf(", \"bucket\": %lld, \"worst_length\": %lld, \"worst_error\": %s, \"bound\": %.0e, "
               "\"passed\": %s}",
               (long long)row->max_length, (long long)row->worst_length, error, row->bound,
               row->passed ? "true" : "false");
    } else {
        if (r->rows == 0)
            printf("%-12s %-16s %7s %12s %7s %9s\n", "entry", "level", "bucket", "worst error", "bound", "at length");
        printf("%-12s %-16s %7lld %12.2e %7.0e %9lld  %s\n", row->entry, row->level, (long long)row->max_length,
               row->worst_error, row->bound, (long long)row->worst_length, row->passed ? "pass" : "FAIL");
        fflush(stdout);
    }
    r->rows++;
}

static void show_warning(void *user, const char *message) { cli_message("verify", "warning: %s", message); }

typedef struct verify_request {
    cli_dims dims;
    const char *entry;
    const char *inputs;
    cli_texts jobs, gpus;
    int64_t batch; /* 0: each job's own */
    double tolerance;
    int64_t seed;
    bool json;
} verify_request;

/* Every job on every GPU. */
typedef struct pairs {
    size_t count;
    mdot_job **made; /* one per file */
    const mdot_job **jobs;
    mdot_configuration *configurations;
} pairs;

static void free_pairs(pairs *p, size_t job_count)
{
    for (size_t i = 0; p->made != NULL && i < job_count; i++) mdot_job_destroy(p->made[i]);
    free(p->made);
    free(p->jobs);
    free(p->configurations);
}

static void add_pairs(pairs *p, const verify_request *r, const mdot_job *job, const char *const *gpus)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    for (; *gpus != NULL; gpus++) {
        p->jobs[p->count] = job;
        p->configurations[p->count++] = (mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                                             .batch = r->batch > 0 ? r->batch : cli_job_batch(&info),
                                                             .gpu = *gpus,
                                                             .optimizer = info.optimizer};
    }
}

static mdot_status read_pairs(const verify_request *r, pairs *out, mdot_error *err)
{
    const char *selected[CLI_MAX_TEXTS + 1] = {NULL};
    for (size_t i = 0; i < r->gpus.count; i++) selected[i] = r->gpus.item[i];
    const char *const *gpus = r->gpus.count > 0 ? selected : mdot_gpu_names();
    size_t jobs = r->jobs.count, gpu_count = 0;
    while (gpus[gpu_count] != NULL) gpu_count++;
    out->made = calloc(jobs + 1, sizeof *out->made);
    out->jobs = calloc(jobs * gpu_count + 1, sizeof *out->jobs);
    out->configurations = calloc(jobs * gpu_count + 1, sizeof *out->configurations);
    if (out->made == NULL || out->jobs == NULL || out->configurations == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const cli_reading reading = {.quiet = true};
    for (size_t i = 0; i < jobs; i++) {
        BS_TRY(cli_read_job("verify", r->jobs.item[i], &reading, &out->made[i], err));
        add_pairs(out, r, out->made[i], gpus);
    }
    return MDOT_OK;
}

static int run(int argc, char **argv)
{
    verify_request request = {.seed = 1};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_verify, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 2 && bs_ends_with(operands.item[0], ".onnx") && bs_ends_with(operands.item[1], ".mdot"))
        return cli_usage_error("verify", "the arguments are swapped: the artefact comes first (MODEL.mdot MODEL.onnx)");
    if (operands.count != 2)
        return cli_usage_error("verify", "expected an artefact and its model (MODEL.mdot MODEL.onnx)");
    report state = {.json = request.json};
    mdotc_verify_options verify = {.struct_size = sizeof verify,
                                   .dims = request.dims.item,
                                   .dim_count = request.dims.count,
                                   .entry = request.entry,
                                   .tolerance = request.tolerance,
                                   .seed = (uint64_t)request.seed,
                                   .row = print_row,
                                   .warning = show_warning,
                                   .user = &state,
                                   .inputs = request.inputs};
    mdot_error err = {0};
    bool passed = false;
    pairs p = {0};
    mdot_status status = read_pairs(&request, &p, &err);
    verify.jobs = p.jobs;
    verify.configurations = p.configurations;
    verify.job_count = p.count;
    if (status == MDOT_OK) status = mdotc_verify(operands.item[0], operands.item[1], &verify, &passed, &err);
    free_pairs(&p, request.jobs.count);
    if (state.json && state.rows > 0) puts("\n]");
    if (status != MDOT_OK) return cli_report("verify", &err);
    return passed ? CLI_OK : CLI_FAILED;
}

static const cli_option options[] = {
    CLI_TEXT_ROW("entry", "NAME", verify_request, entry,
                 "the entry point that was compiled from MODEL.onnx (default \"predict\")"),
    CLI_DIM_OPTION(verify_request, dims, 0, "the same dimensions that `mdot compile` fixed"),
    CLI_VALUE_ROW(
        CLI_REAL, "tolerance", "X", verify_request, tolerance,
        "maximum error relative to the magnitude of an element's column and row, up to 1 (default 1e-4). The limit "
        "is higher where rounding, in f32 or of 16-bit factors, changes the model's own results by more"),
    CLI_TEXT_ROW("inputs", "FOLDER", verify_request, inputs,
                 "verify on input_0.pb, input_1.pb, … (TensorProto) instead of random inputs", .excludes = "job"),
    CLI_VALUE_ROW(CLI_TEXTS, "job", "JOB", verify_request, jobs,
                  "verify a predictor of training jobs on the operators of this job instead of random inputs. If "
                  "the job has symbolic dimensions, bind them first: `mdot extract --dim NAME=N -o FILE.job`",
                  .repeats = true, .files = "onnx|job"),
    CLI_WHOLE_ROW("batch", "N", verify_request, batch, 1, CLI_MAX_BATCH,
                  "batch size of the jobs (default: the file's, or 1)", .letter = 'b', .needs = "job"),
    CLI_VALUE_ROW(CLI_TEXTS, "gpu", "NAME", verify_request, gpus,
                  "GPU of the jobs (default: all GPUs that mdot knows, in turn)", .names = mdot_gpu_names,
                  .repeats = true, .needs = "job"),
    CLI_WHOLE_ROW("seed", "N", verify_request, seed, 1, (INT64_C(1) << 53) - 1,
                  "seed of the random inputs (default 1)"),
    CLI_JSON_OPTION(verify_request, json, "print the rows as JSON"),
};
const cli_command cli_verify = {
    .name = "verify",
    .summary = "compare an artefact with the double-precision evaluation of its model",
    .synopsis = "MODEL.mdot MODEL.onnx [OPTION]…",
    .description =
        "Runs an artefact on random inputs and compares every output with the reference evaluator, which computes the "
        "ONNX model in double precision. It verifies each bucket at full and partial lengths, on each ISA level that "
        "this machine supports and on its first GPU if the artefact has code for it. Random inputs are also positive, "
        "between 0 and 1, or wide where the model needs it. Masks are random, and once leave out a whole row. Indices "
        "cover the tables that they address. If all values of an output of the model are NaN on random inputs or on "
        "jobs, the bucket fails. If random inputs say little about the model, a warning names --inputs.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, 1 a bucket failed or could not run, 2 usage error",
    .files = "mdot|onnx",
    .run = run,
};
