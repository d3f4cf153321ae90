/* job_row.h — a training job as a row of a table: its file and its training configuration, which are inputs of
 * libmdot. */
#ifndef SC_JOB_ROW_H
#define SC_JOB_ROW_H

#include "mdot/mdotjob.h"

#include "simulator/input/csv.h"

typedef struct sc_job_columns {
    int job, batch, precision, layout, optimizer;
} sc_job_columns;

/* Finds the columns job,batch,precision,layout,optimizer. */
mdot_status sc_job_columns_find(const sc_csv *csv, sc_job_columns *out_columns, mdot_error *err);

/* Reads the row's job and its configuration, except for the GPU. The job is a .job or ONNX file beside the table
 * unless its path is absolute. The caller destroys the job. Messages name the row's line. */
mdot_status sc_job_row_read(const sc_csv *csv, const sc_job_columns *at, mdot_job **out_job,
                            mdot_configuration *out_configuration, mdot_error *err);

#endif
