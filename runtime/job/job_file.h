/* job_file.h — reads `.job` files. */
#ifndef RT_JOB_FILE_H
#define RT_JOB_FILE_H

#include "runtime/core/core.h"

/* mdot_job_parse and mdot_job_load with these components, which must outlive the job. */
mdot_status rt_job_parse(const rt_components *components, const void *bytes, size_t size_bytes, mdot_job **out_job,
                         mdot_error *err);
mdot_status rt_job_load(const rt_components *components, const char *path, mdot_job **out_job, mdot_error *err);

#endif
