/* workload.c — jobs and speeds. */
#include "simulator/core/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sc_job_free(sc_job *job)
{
    free(job->id);
    free(job->group);
    free(job->user);
    free(job->name);
    free(job->gpu_type);
}

void sc_workload_free(sc_workload *workload)
{
    for (size_t i = 0; i < workload->job_count; i++) sc_job_free(&workload->jobs[i]);
    for (size_t i = 0; i < workload->kind_count; i++) {
        free(workload->kinds[i].name);
        sc_scaling_destroy(workload->kinds[i].scaling);
    }
    free(workload->jobs);
    free(workload->kinds);
    free(workload->pair_speeds);
    *workload = (sc_workload){0};
}

sc_kind *sc_workload_find_kind(const sc_workload *workload, const char *name, size_t length)
{
    length = strnlen(name, length);
    for (size_t i = 0; i < workload->kind_count; i++)
        if (strncmp(workload->kinds[i].name, name, length) == 0 && workload->kinds[i].name[length] == '\0')
            return &workload->kinds[i];
    return NULL;
}

unsigned sc_width_of(int gpus)
{
    for (unsigned width = 0; width < SC_WIDTHS; width++)
        if (gpus == 1 << width) return width;
    return SC_WIDTHS;
}

unsigned sc_speed_index(int gpus)
{
    if (gpus == 3) return SC_WIDTHS;
    if (gpus == 7) return SC_WIDTHS + 1;
    unsigned width = sc_width_of(gpus);
    return width < SC_WIDTHS ? width : SC_SPEEDS;
}

bool sc_job_allows(const sc_job *job, int gpus)
{
    if (job->least_gpus > 0) return gpus >= job->least_gpus && gpus <= job->most_gpus;
    return job->kind != SC_NONE || gpus == job->gpus;
}

double sc_workload_step_samples(const sc_workload *workload, const sc_job *job)
{
    unsigned width = sc_speed_index(job->gpus);
    double samples = width < SC_SPEEDS ? workload->kinds[job->kind].step_samples[width] : 0;
    return samples > 0 ? samples : 1;
}

double sc_workload_speed(const sc_workload *workload, const sc_job *job, unsigned type, int gpus)
{
    if (!sc_job_allows(job, gpus)) return 0;
    if (job->kind == SC_NONE) return gpus == job->gpus ? 1 : pow((double)gpus / job->gpus, job->scaling);
    const sc_kind *kind = &workload->kinds[job->kind];
    if (kind->scaling != NULL)
        return sc_scaling_mean_speed(kind->scaling, type + workload->first_type, gpus, job->batch, job->work);
    unsigned width = sc_speed_index(gpus);
    return width < SC_SPEEDS ? kind->speed[type + workload->first_type][width] / sc_workload_step_samples(workload, job)
                             : 0;
}

static size_t pair_at(const sc_workload *workload, uint32_t kind, uint32_t partner, unsigned type, unsigned width)
{
    return ((kind * workload->kind_count + partner) * SC_MAX_TYPES + type + workload->first_type) * SC_WIDTHS + width;
}

double sc_workload_pair_speed(const sc_workload *workload, uint32_t kind, uint32_t partner, unsigned type, int gpus)
{
    unsigned width = sc_width_of(gpus);
    if (workload->pair_speeds == NULL || kind == SC_NONE || partner == SC_NONE || width == SC_WIDTHS) return 0;
    return workload->pair_speeds[pair_at(workload, kind, partner, type, width)];
}

mdot_status sc_workload_set_pair_speed(sc_workload *workload, uint32_t kind, uint32_t partner, unsigned type,
                                       unsigned width, double speed, mdot_error *err)
{
    if (workload->pair_speeds == NULL) {
        size_t count = workload->kind_count * workload->kind_count * SC_MAX_TYPES * SC_WIDTHS;
        workload->pair_speeds = calloc(count, sizeof *workload->pair_speeds);
        if (workload->pair_speeds == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    workload->pair_speeds[pair_at(workload, kind, partner, type, width)] = speed;
    return MDOT_OK;
}

double sc_workload_spread(const sc_workload *workload, const sc_job *job, unsigned type, int gpus)
{
    if (gpus < 2) return 1;
    if (job->spread > 0) return job->spread;
    if (job->kind == SC_NONE) return 1;
    const sc_kind *kind = &workload->kinds[job->kind];
    if (kind->scaling != NULL) return sc_scaling_spread(kind->scaling, type + workload->first_type, gpus, job->batch);
    unsigned width = sc_speed_index(gpus);
    return width < SC_SPEEDS ? fmax(1, kind->spread[type + workload->first_type][width]) : 1;
}

double sc_workload_clock_slowdown(const sc_job *job, double clock)
{
    double share = job->clock_share > 0 ? job->clock_share : 1;
    return clock > 0 ? 1 - share + share / clock : 1;
}

double sc_workload_planned(const sc_job *job) { return fmax(1, job->planned); }

double sc_workload_rack_spread(const sc_job *job) { return fmax(1, job->rack_spread); }

double sc_workload_duration_s(const sc_workload *workload, const sc_job *job, unsigned type_count)
{
    double fastest = 0;
    for (unsigned type = 0; type < type_count; type++)
        fastest = fmax(fastest, sc_workload_speed(workload, job, type, job->gpus));
    return fastest > 0 ? job->work / fastest : INFINITY;
}
