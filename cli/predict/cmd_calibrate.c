/* cmd_calibrate.c — `mdot calibrate`: makes a calibration from measured steps, for `mdot predict --calibration`.
 *
 * A table row has a job, a GPU, a batch and the measured milliseconds. Each option of `mdot predict` is a column with
 * the same name (measurements_csv.h).
 */
#include "base/training/job_argument.h"
#include "base/training/measurements_csv.h"
#include "cli/cli.h"

#include <math.h>

typedef struct calibrate_request {
    const char *output, *model_path;
    bool quiet;
} calibrate_request;

static const cli_option options[] = {
    CLI_OUTPUT_OPTION(calibrate_request, output, "FILE.cal", "output file of the calibration (required)", "cal"),
    PREDICT_MODEL_OPTION(calibrate_request, model_path, NULL,
                         "the compiled predictor to calibrate (default: the same as for `mdot predict`)"),
    CLI_QUIET_OPTION(calibrate_request, quiet, "suppress warnings about the jobs"),
};
/* Sums the absolute errors of predictions, as logarithms, over every second row; `calibration` may be NULL. */
static mdot_status measure_half(mdot_context *context, const measured_steps *m, size_t first,
                                const mdot_calibration *calibration, double *io_sum, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = first; status == MDOT_OK && i < m->count; i += 2) {
        mdot_prediction p = MDOT_INIT(mdot_prediction);
        status = mdot_predict(context, m->jobs[i], &m->item[i].configuration, &p, err);
        if (status == MDOT_OK && calibration != NULL)
            status = mdot_calibration_apply_to_job(calibration, m->jobs[i], &m->item[i].configuration, &p, err);
        if (status == MDOT_OK && m->item[i].ms > 0) *io_sum += fabs(log(p.step_ms / m->item[i].ms));
    }
    return status;
}

static size_t count_timed(const measured_steps *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) count += m->item[i].ms > 0;
    return count;
}

/* Predicts each half of the rows with a calibration fitted to the other half, and also uncalibrated. */
static mdot_status leave_out(mdot_context *context, const measured_steps *m, double *out_before, double *out_after,
                             mdot_error *err)
{
    double before = 0, after = 0;
    mdot_status status = MDOT_OK;
    for (size_t half = 0; status == MDOT_OK && half < 2; half++) {
        mdot_calibration *rest = NULL;
        status = measured_calibrate(context, m, 1 - half, 2, &rest, err);
        if (status == MDOT_OK) status = measure_half(context, m, half, NULL, &before, err);
        if (status == MDOT_OK) status = measure_half(context, m, half, rest, &after, err);
        mdot_calibration_destroy(rest);
    }
    double timed = (double)count_timed(m);
    *out_before = 100 * expm1(before / timed);
    *out_after = 100 * expm1(after / timed);
    return status;
}

static void print_correction(const char *name, const char *precision, size_t rows, double factor, double interval)
{
    cli_text text;
    printf("    %-24s %-10s %6zu %10.3f %10.2f\n", cli_printable(&text, name), precision, rows, factor, interval);
}

static void print_calibration(const mdot_calibration *calibration)
{
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_get_info(calibration, &info);
    printf("  %-26s %-10s %6s %10s %10s\n", "GPU", "precision", "rows", "factor", "interval");
    for (size_t i = 0; i < info.gpu_count; i++) {
        mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
        mdot_calibration_get_gpu(calibration, i, &gpu);
        print_correction(gpu.name, "fp32, tf32", gpu.row_count, gpu.factor, gpu.interval);
        print_correction(gpu.name, "half", gpu.half_row_count, gpu.half_factor, gpu.half_interval);
    }
    print_correction("others", "", 0, info.factor, info.interval);
    if (info.several_row_count > 0)
        printf("  %zu of the steps ran on several GPUs, which multiplies by another %.3f\n", info.several_row_count,
               info.several_factor);
    printf("\n  These are the corrections of a job that shares nothing with the %zu measured one%s. The measured\n"
           "  jobs have corrections of their own: see `mdot predict --calibration FILE.cal --explain`.\n",
           info.job_count, info.job_count == 1 ? "" : "s");
    if (info.memory_row_count > 0) printf("  %zu rows correct the predicted memory.\n", info.memory_row_count);
}

static mdot_status calibrate(const calibrate_request *r, const measured_steps *m, mdot_error *err)
{
    enum { LEAST_FOR_HALVES = 4 };
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_calibration *calibration = NULL;
    double before = 0, after = 0;
    mdot_status status = predict_open_model(r->model_path, r->output, &predictor, &context, err);
    if (status == MDOT_OK) status = measured_calibrate(context, m, 0, 1, &calibration, err);
    bool halves = count_timed(m) >= LEAST_FOR_HALVES;
    if (status == MDOT_OK && halves) status = leave_out(context, m, &before, &after, err);
    if (status == MDOT_OK) status = mdot_calibration_save(calibration, r->output, err);
    if (status == MDOT_OK) {
        print_calibration(calibration);
        if (halves)
            printf("\n  cross-validated error: %.1f %% before calibration, %.1f %% after (two folds)\n", before, after);
    }
    mdot_calibration_destroy(calibration);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}

static int run(int argc, char **argv)
{
    calibrate_request request = {0};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_calibrate, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count != 1) return cli_usage_error("calibrate", "expected one table of measured steps (MEASURED.csv)");
    if (request.output == NULL) return cli_usage_error("calibrate", "no output file given: use -o FILE.cal");
    mdot_error err = {0};
    measured_steps steps;
    mdot_status status = measured_read("calibrate", operands.item[0], request.output, request.quiet, &steps, &err);
    if (status == MDOT_OK) status = calibrate(&request, &steps, &err);
    measured_free(&steps);
    return status == MDOT_OK ? CLI_OK : cli_report("calibrate", &err);
}

const cli_command cli_calibrate = {
    .name = "calibrate",
    .summary = "fit predictions to your own measured training steps",
    .synopsis = "MEASURED.csv -o FILE.cal [OPTION]…",
    .description =
        "Reads measured training steps and writes a calibration for `mdot predict --calibration`. One row is enough: "
        "it corrects its own job on its GPU most, at any batch, and related jobs on this GPU a little. Rows of several "
        "jobs correct other jobs on the GPU. A job's correction is carried to another GPU model only if three or more "
        "jobs have rows on both, and their errors agree.\n\nThe first line of the table names its columns: job, gpu, "
        "batch, ms (milliseconds of a step) or gib (peak of allocated memory in GiB) or both, and any of dim, frozen, "
        "trained and the options of `mdot predict` under \"Training\" and \"Several GPUs\", for example precision or "
        "parallel. An empty cell selects the default. mdot ignores the column `note` and lines that begin with #. "
        "Paths of jobs are relative to the folder of the table.",
    CLI_OPTIONS(options),
    .notes = "For example:\n\njob,gpu,batch,precision,gpus,ms\nbert.onnx,A100,32,amp-bf16,8,161.5",
    .files = "csv",
    .run = run,
};
