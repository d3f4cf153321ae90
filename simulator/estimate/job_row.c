/* job_row.c — reads jobs and configurations from tables. */
#include "simulator/estimate/job_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mdot_status sc_job_columns_find(const sc_csv *csv, sc_job_columns *out_columns, mdot_error *err)
{
    const struct {
        const char *name;
        int *at;
    } all[] = {{"job", &out_columns->job},
               {"batch", &out_columns->batch},
               {"precision", &out_columns->precision},
               {"layout", &out_columns->layout},
               {"optimizer", &out_columns->optimizer}};
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sizeof all / sizeof all[0]; i++)
        status = sc_csv_need(csv, all[i].name, all[i].at, err);
    return status;
}

static mdot_status choose(const sc_csv *csv, int column, const char *const *names, int *out_index, mdot_error *err)
{
    for (*out_index = 0; names[*out_index] != NULL; ++*out_index)
        if (strcmp(csv->field[column], names[*out_index]) == 0) return MDOT_OK;
    return sc_csv_fail(csv, err, "%s is \"%.40s\"", csv->header[column], csv->field[column]);
}

static mdot_status read_file(const sc_csv *csv, const char *file, mdot_job **out_job, mdot_error *err)
{
    const char *slash = strrchr(csv->path, '/');
    int folder = file[0] == '/' || slash == NULL ? 0 : (int)(slash - csv->path) + 1;
    char *path = NULL;
    mdot_error reason = {0};
    if (asprintf(&path, "%.*s%s", folder, csv->path, file) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory");
    size_t length = strlen(path);
    bool is_job = length > 4 && strcmp(path + length - 4, ".job") == 0;
    mdot_status status = is_job ? mdot_job_load(path, out_job, &reason) : mdot_job_read(path, NULL, out_job, &reason);
    free(path);
    return status == MDOT_OK ? MDOT_OK : sc_csv_fail(csv, err, "%s", reason.message);
}

mdot_status sc_job_row_read(const sc_csv *csv, const sc_job_columns *at, mdot_job **out_job,
                            mdot_configuration *out_configuration, mdot_error *err)
{
    static const char *const precisions[] = {"fp32", "tf32", "amp", "amp-fp16", "amp-bf16", "bf16", "pytorch", NULL};
    static const mdot_precision of_name[] = {MDOT_PRECISION_FP32,     MDOT_PRECISION_TF32,     MDOT_PRECISION_AMP,
                                             MDOT_PRECISION_AMP_FP16, MDOT_PRECISION_AMP_BF16, MDOT_PRECISION_BF16,
                                             MDOT_PRECISION_PYTORCH};
    static const char *const layouts[] = {"nchw", "nhwc", NULL}, *const optimizers[] = {"sgd", "adam", "adamw", NULL};
    int batch, precision, layout, optimizer;
    mdot_status status = sc_csv_whole(csv, at->batch, 1, 1 << 24, &batch, err);
    if (status == MDOT_OK) status = choose(csv, at->precision, precisions, &precision, err);
    if (status == MDOT_OK) status = choose(csv, at->layout, layouts, &layout, err);
    if (status == MDOT_OK) status = choose(csv, at->optimizer, optimizers, &optimizer, err);
    if (status == MDOT_OK) status = read_file(csv, csv->field[at->job], out_job, err);
    if (status == MDOT_OK)
        *out_configuration = (mdot_configuration){.struct_size = sizeof *out_configuration,
                                                  .batch = batch,
                                                  .precision = of_name[precision],
                                                  .layout = (mdot_layout)layout,
                                                  .optimizer = (mdot_optimizer)optimizer};
    return status;
}
