/* analytic_correction.h — analytic correction for the parts of a configuration that a predictor has no input for. */
#ifndef RT_ANALYTIC_CORRECTION_H
#define RT_ANALYTIC_CORRECTION_H

#include "runtime/perf/resolved_configuration.h"
#include "runtime/predict/predictor_schema.h"

/* Projects a requested configuration onto the numbers that a predictor reads: the queried configuration. */
void rt_project_configuration(const rt_configuration *requested, const mdot_job *job, rt_configuration_set reads,
                              rt_configuration *out_queried);

/* Converts the answer for the queried configuration to one for the requested configuration. */
typedef struct rt_correction {
    double step_ms;
    double interval_factor; /* factor by which the interval widens, each way */
    bool is_analytic;       /* estimated analytically by more than a negligible change */
    bool differs;           /* the queried and requested configurations differ */
    bool exchanges;
    double exchanged_ms;   /* part of step_ms in which GPUs wait for exchanges, if computed here (`exchanges`) */
    double transferred_ms; /* part of step_ms in which the GPU waits for host memory */
    double launched_ms;    /* part of step_ms in which the GPU waits for optimizer kernel launches */
} rt_correction;
rt_correction rt_correct(const rt_resolved_configuration *requested, const rt_resolved_configuration *queried,
                         const mdot_job *job, double step_ms);

#endif
