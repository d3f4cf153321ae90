/* job_row.h — a training job as a row of a table: its file and how it trains. What libmdot is asked about. */
#ifndef SC_JOB_ROW_H
#define SC_JOB_ROW_H

#include "mdot/mdotjob.h"

#include "simulator/input/csv.h"

typedef struct sc_job_columns {
    int job, batch, precision, layout, optimizer;
} sc_job_columns;

/* The columns job,batch,precision,layout,optimizer. */
mdot_status sc_job_columns_find(const sc_csv *csv, sc_job_columns *out_columns, mdot_error *err);

/* Reads the row's job, a .job or ONNX file beside the table unless its path is whole, and its configuration but for the
 * GPU. The caller destroys the job. Faults name the row's line. */
mdot_status sc_job_row_read(const sc_csv *csv, const sc_job_columns *at, mdot_job **out_job,
                            mdot_configuration *out_configuration, mdot_error *err);

#endif
