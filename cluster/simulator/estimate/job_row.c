/* job_row.c — reads jobs and configurations from tables. */
#include "base/status.h"
#include "base/training/training_options.h"
#include "simulator/estimate/estimators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads an option's value from the table column. */
static mdot_status choose(const bs_csv *csv, int column, int option, mdot_configuration *out, mdot_error *err)
{
    int choice = rt_option_find_choice(&rt_options[option], csv->field[column]);
    if (choice < 0)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s is \"%.40s\"", csv->header[column], csv->field[column]);
    rt_option_set(out, &rt_options[option], choice);
    return MDOT_OK;
}

static mdot_status read_file(const bs_csv *csv, const char *file, mdot_job **out_job, mdot_error *err)
{
    const char *slash = strrchr(csv->path, '/');
    int folder = file[0] == '/' || slash == NULL ? 0 : (int)(slash - csv->path) + 1;
    char *path = NULL;
    mdot_error reason = {0};
    if (asprintf(&path, "%.*s%s", folder, csv->path, file) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    size_t length = strlen(path);
    bool is_job = length > 4 && strcmp(path + length - 4, ".job") == 0;
    mdot_status status = is_job ? mdot_job_load(path, out_job, &reason) : mdot_job_read(path, NULL, out_job, &reason);
    free(path);
    return status == MDOT_OK ? MDOT_OK : bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
}

mdot_status sc_job_row_read(const bs_csv *csv, const int *at, mdot_job **out_job, mdot_configuration *out_configuration,
                            mdot_error *err)
{
    enum { JOB, BATCH, PRECISION, LAYOUT, OPTIMIZER };
    mdot_configuration c = {.struct_size = sizeof c};
    int batch, most = (int)rt_options[RT_OPTION_batch].most;
    BS_TRY(bs_csv_integer(csv, at[BATCH], 1, most, &batch, err));
    BS_TRY(choose(csv, at[PRECISION], RT_OPTION_precision, &c, err));
    BS_TRY(choose(csv, at[LAYOUT], RT_OPTION_layout, &c, err));
    BS_TRY(choose(csv, at[OPTIMIZER], RT_OPTION_optimizer, &c, err));
    BS_TRY(read_file(csv, csv->field[at[JOB]], out_job, err));
    c.batch = batch;
    *out_configuration = c;
    return MDOT_OK;
}
