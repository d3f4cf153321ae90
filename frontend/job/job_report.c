/* job_report.c — warnings of the job reader. */
#include "frontend/job/fe_job.h"

#include "frontend/onnx/import_context.h"

#include <stdarg.h>

void fe_job_warn(const fe_job *job, const char *format, ...)
{
    if (job->options->warning == NULL) return;
    va_list args;
    va_start(args, format);
    fe_warn_to(job->options->warning, job->options->user, format, args);
    va_end(args);
}
