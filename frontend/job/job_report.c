/* job_report.c — messages that every stage of the job reader shares. */
#include "frontend/job/job_reader.h"

#include "frontend/onnx/context.h"

#include <stdarg.h>

void fe_job_warn(const fe_job *job, const char *format, ...)
{
    if (job->options->warning == NULL) return;
    va_list args;
    va_start(args, format);
    fe_warn_to(job->options->warning, job->options->user, format, args);
    va_end(args);
}

mdot_status fe_job_out_of_memory(const fe_job *job)
{
    return mdot_fail(job->err, MDOT_OUT_OF_MEMORY, "%s: memory ran out", job->graph->name);
}
