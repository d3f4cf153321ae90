/* job_reader.h — the job reader for ONNX. Options are complete (job_source.c). */
#ifndef FE_JOB_JOB_READER_H
#define FE_JOB_JOB_READER_H

#include "mdot/mdotjob.h"

mdot_status fe_read_onnx(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err);
mdot_status fe_read_onnx_bytes(const void *bytes, size_t size_bytes, const char *name, const mdot_job_options *options,
                               mdot_job **out_job, mdot_error *err);

#endif
