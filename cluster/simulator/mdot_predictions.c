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
#include "base/text.h"
#include "mdot/mdotjob.h"

#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    char *network;
    double step_ms, mdot_ms, roofline_ms;
} row;

typedef struct table {
    row *rows;
    size_t count;
} table;

typedef struct columns {
    sc_job_columns row;
    int network, gpu, gpus, step;
} columns;

static mdot_status find_columns(const bs_csv *csv, columns *out, mdot_error *err)
{
    mdot_status status = sc_job_columns_find(csv, &out->row, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "note", &out->network, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "gpu", &out->gpu, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "gpus", &out->gpus, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "ms", &out->step, err);
    return status;
}

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

static mdot_status predict_row(mdot_context *context, const bs_csv *csv, const columns *fields, row *out,
                               mdot_error *err)
{
    mdot_configuration configuration;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    mdot_error reason = {0};
    mdot_job *job = NULL;
    int gpus;
    mdot_status status = bs_csv_number(csv, fields->step, 1e-6, 1e9, &out->step_ms, err);
    if (status == MDOT_OK) status = bs_csv_integer(csv, fields->gpus, 1, 1 << 16, &gpus, err);
    if (status == MDOT_OK) status = sc_job_row_read(csv, &fields->row, &job, &configuration, err);
    if (status != MDOT_OK) return status;
    configuration.gpu = csv->field[fields->gpu];
    configuration.gpu_count = gpus;
    status = mdot_gpu_find(configuration.gpu, &gpu, &reason);
    if (status == MDOT_OK) status = mdot_predict(context, job, &configuration, &prediction, &reason);
    if (status == MDOT_OK) {
        out->mdot_ms = prediction.step_ms;
        out->roofline_ms = roofline_ms(job, &configuration, &gpu);
        out->network = strdup(csv->field[fields->network]);
        if (out->network == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    } else {
        status = bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
    }
    mdot_job_destroy(job);
    return status;
}

static mdot_status read_table(const char *path, mdot_context *context, table *out, mdot_error *err)
{
    bs_csv csv;
    columns fields;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = find_columns(&csv, &fields, err);
    for (bool is_row = true; status == MDOT_OK;) {
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        row *rows = realloc(out->rows, (out->count + 1) * sizeof *rows);
        if (rows == NULL) {
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
            break;
        }
        out->rows = rows;
        rows[out->count] = (row){0};
        status = predict_row(context, &csv, &fields, &rows[out->count], err);
        if (status == MDOT_OK) out->count++;
    }
    bs_csv_close(&csv);
    if (status == MDOT_OK && out->count == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no jobs", path);
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static mdot_status print(const table *t, mdot_error *err)
{
    double *ratios = calloc(t->count, sizeof *ratios), mean = 0;
    if (ratios == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < t->count; i++) {
        ratios[i] = t->rows[i].step_ms / t->rows[i].roofline_ms;
        mean += log(t->rows[i].step_ms) / (double)t->count;
    }
    qsort(ratios, t->count, sizeof *ratios, by_size);
    double constant = ratios[t->count / 2];
    free(ratios);
    puts("network,step_ms,mdot,roofline,mean");
    for (size_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];
        printf("%s,%.6g,%.6g,%.6g,%.6g\n", r->network, r->step_ms, r->mdot_ms, constant * r->roofline_ms, exp(mean));
    }
    return fflush(stdout) == 0 ? MDOT_OK : mdot_fail(err, MDOT_IO, "standard output cannot be written");
}

static const char usage[] =
    "usage: mdot-predictions MEASURED.csv PREDICTOR.mdot\n"
    "\n"
    "Reads a table of measured steps like that of `mdot calibrate`. Prints, for each row, the measured time and those\n"
    "by the predictor, by a roofline and by the mean, for `mdot-figure4 --predictions`.\n";

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0 || fflush(stdout) != 0;
    if (argc != 3) return fputs(usage, stderr), 2;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    table t = {0};
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(argv[2], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) status = read_table(argv[1], context, &t, &err);
    if (status == MDOT_OK) status = print(&t, &err);
    bs_make_printable(err.message);
    if (status != MDOT_OK) fprintf(stderr, "mdot-predictions: %s\n", err.message);
    for (size_t i = 0; i < t.count; i++) free(t.rows[i].network);
    free(t.rows);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status == MDOT_OK ? 0 : 1;
}
