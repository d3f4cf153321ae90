/* job_report.h — warnings of the job reader. Private to frontend/job. */
#ifndef FE_JOB_REPORT_H
#define FE_JOB_REPORT_H

#include "frontend/job/fe_job.h"

void fe_job_warn(const fe_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
