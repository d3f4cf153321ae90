/* mdot_predictions.c — mdot-predictions: predictions of libmdot for jobs whose step time was measured, beside two
 * simpler guesses.
 *
 * It reads a table of measured steps like that of `mdot calibrate`:
 * note,job,gpu,batch,precision,layout,optimizer,gpus,ms. `job` is a .job or ONNX file beside the table and `note` is
 * the network's name. It prints the input of mdot-figure4 --predictions: network,step_ms,mdot,roofline,mean.
 *
 *   roofline   for each operator and phase, the longer of FLOPs over the rate of the precision and bytes over the
 *              memory rate; summed, and multiplied by the constant that makes the median right over the table
 *   mean       the geometric mean of all measured steps: a guess that ignores the job
 */
#include "base/command/command.h"
#include "mdot/mdotjob.h"

#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    char *network;
    double step_ms, mdot_ms, roofline_ms;
} row;

typedef struct table {
    mdot_context *context;
    row *rows;
    size_t count;
} table;

static double roofline_ms(const mdot_job *job, const mdot_configuration *c, const mdot_gpu *gpu)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    bool is_half = c->precision != MDOT_PRECISION_FP32 && c->precision != MDOT_PRECISION_TF32 &&
                   c->precision != MDOT_PRECISION_PYTORCH;
    double sum_s = 0, element = is_half ? .5 : 1;
    double tflops = is_half                               ? gpu->fp16_tflops
                    : c->precision == MDOT_PRECISION_TF32 ? gpu->tf32_tflops
                                                          : gpu->fp32_tflops;
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            const mdot_load *sample = &op.per_sample[phase], *step = &op.per_step[phase];
            double flops = (double)c->batch * sample->flops + step->flops;
            double bytes = (double)c->batch * (sample->bytes_read + sample->bytes_written) + step->bytes_read +
                           step->bytes_written;
            sum_s += fmax(flops / (1e12 * fmax(tflops, gpu->fp32_tflops)), bytes * element / (1e9 * gpu->memory_gbps));
        }
    }
    return 1e3 * sum_s;
}

static mdot_status predict_row(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    enum { NETWORK = 5, GPU, GPUS, STEP };
    table *t = context;
    row out;
    mdot_configuration configuration;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    mdot_error reason = {0};
    mdot_job *job = NULL;
    int gpus;
    BS_TRY(bs_csv_number(csv, at[STEP], 1e-6, 1e9, &out.step_ms, err));
    BS_TRY(bs_csv_integer(csv, at[GPUS], 1, 1 << 16, &gpus, err));
    BS_TRY(sc_job_row_read(csv, at, &job, &configuration, err));
    configuration.gpu = csv->field[at[GPU]];
    configuration.gpu_count = gpus;
    mdot_status status = mdot_gpu_find(configuration.gpu, &gpu, &reason);
    if (status == MDOT_OK) status = mdot_predict(t->context, job, &configuration, &prediction, &reason);
    if (status == MDOT_OK) {
        out.mdot_ms = prediction.step_ms;
        out.roofline_ms = roofline_ms(job, &configuration, &gpu);
        out.network = strdup(csv->field[at[NETWORK]]);
        if (out.network == NULL || !sc_grow(&t->rows, t->count, sizeof out)) {
            free(out.network);
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        } else {
            t->rows[t->count++] = out;
        }
    } else {
        status = bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
    }
    mdot_job_destroy(job);
    return status;
}

static mdot_status print(const table *t, mdot_error *err)
{
    double *ratios = calloc(t->count, sizeof *ratios), mean = 0;
    if (ratios == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < t->count; i++) {
        ratios[i] = t->rows[i].step_ms / t->rows[i].roofline_ms;
        mean += log(t->rows[i].step_ms) / (double)t->count;
    }
    qsort(ratios, t->count, sizeof *ratios, sc_by_value);
    double constant = ratios[t->count / 2];
    free(ratios);
    puts("network,step_ms,mdot,roofline,mean");
    for (size_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];
        printf("%s,%.6g,%.6g,%.6g,%.6g\n", r->network, r->step_ms, r->mdot_ms, constant * r->roofline_ms, exp(mean));
    }
    return MDOT_OK;
}

static int run_program(int argc, char **argv)
{
    mdot_predictor *predictor = NULL;
    table t = {0};
    mdot_error err = {0};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_program, argc, argv, NULL, &operands, &usage)) return usage;
    if (operands.count != 2) return cli_usage_error(cli_program.name, "expected a table and a predictor");
    const char *path = operands.item[0];
    mdot_status status = mdot_predictor_open(operands.item[1], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &t.context, &err);
    if (status == MDOT_OK) status = sc_read_rows(path, SC_JOB_NAMES ",note,gpu,gpus,ms", predict_row, &t, &err);
    if (status == MDOT_OK && t.count == 0) status = mdot_fail(&err, MDOT_MALFORMED, "%s: holds no jobs", path);
    if (status == MDOT_OK) status = print(&t, &err);
    for (size_t i = 0; i < t.count; i++) free(t.rows[i].network);
    free(t.rows);
    mdot_context_destroy(t.context);
    mdot_predictor_close(predictor);
    return status == MDOT_OK ? CLI_OK : cli_report(cli_program.name, &err);
}

const cli_command cli_program = {
    .name = "mdot-predictions",
    .summary = "predict measured steps, beside two simpler guesses",
    .synopsis = "MEASURED.csv PREDICTOR.mdot",
    .description =
        "Reads a table of measured steps like that of `mdot calibrate`. Prints, for each row, the measured time "
        "and those by the predictor, by a roofline and by the mean, for `mdot-figure4 --predictions`.",
    .files = "csv|mdot",
    .run = run_program};

int main(int argc, char **argv) { return cli_run_program(argc, argv); }
