/* components.c — the only file that knows every component of the runtime. It has the entry points that open a predictor
 * or make a job. core.h defines how the components connect. */
#include "runtime/core/core.h"
#include "runtime/cuda/cuda.h"
#include "runtime/job/job_file.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/predictor_tensors.h"

static const rt_device_ops *const devices[] = {&rt_cuda_ops, NULL};
static const rt_extension *const extensions[] = {&rt_predict_extension, NULL};
static const rt_components components = {devices, extensions, &rt_perf_analyzer};

mdot_status mdot_predictor_open(const char *path, const mdot_open_options *options, mdot_predictor **out_predictor,
                                mdot_error *err)
{
    return rt_predictor_open(&components, path, options, out_predictor, err);
}

mdot_status mdot_job_create(const mdot_job_description *description, mdot_job **out_job, mdot_error *err)
{
    return rt_job_create(&components, description, out_job, err);
}

mdot_status mdot_job_parse(const void *bytes, size_t size_bytes, mdot_job **out_job, mdot_error *err)
{
    return rt_job_parse(&components, bytes, size_bytes, out_job, err);
}

mdot_status mdot_job_load(const char *path, mdot_job **out_job, mdot_error *err)
{
    return rt_job_load(&components, path, out_job, err);
}

mdot_status mdot_job_freeze(const mdot_job *job, const mdot_job_freezing *freezing, mdot_job **out_job, mdot_error *err)
{
    return rt_job_freeze(&components, job, freezing, out_job, err);
}

mdot_status mdot_job_with_program(const mdot_job *job, const mdot_job_program *program, mdot_job **out_job,
                                  mdot_error *err)
{
    return rt_job_with_program(&components, job, program, out_job, err);
}

mdot_status mdot_job_of_lengths(const mdot_job *const jobs[3], const int64_t lengths[3], const char *name,
                                mdot_job **out_job, mdot_error *err)
{
    return rt_job_of_lengths(&components, jobs, lengths, name, out_job, err);
}

mdot_status mdot_job_with_length(const mdot_job *job, int64_t length, mdot_job **out_job, mdot_error *err)
{
    return rt_job_with_length(&components, job, length, out_job, err);
}
