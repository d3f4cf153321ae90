/* analytic_correction.h — analytic correction for the parts of a configuration that a predictor has no input for. */
#pragma once

#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/predictor_schema.h"

/* Projects a requested configuration onto the numbers that a predictor reads: the queried configuration. */
void rt_project_configuration(const rt_configuration *requested, const mdot_job *job, rt_configuration_set reads,
                              rt_configuration *out_queried);

/* Busy times of GPU and host. They overlap: a step takes (gpu^4 + host^4)^(1/4), and its waits. */
typedef struct rt_step_parts {
    double pass_ms[RT_PASS_COUNT][RT_WORK_COUNT]; /* the GPU's, for one micro-step */
    double host_ms;                               /* the host's launches, for one micro-step */
    double wait_ms;      /* the GPU's waits, for one micro-step, if the predictor does not divide its answer */
    double optimizer_ms; /* the GPU's, once per step */
    bool is_learned;     /* by a predictor that divides its answer */
} rt_step_parts;

/* The time of `micro_steps` and the update, one after the other. */
double rt_overlapped_ms(const rt_step_parts *parts, double micro_steps);
/* The step's change with the host's time, both as logarithms, 0 to 1, because a step is (gpu^4 + host^4)^(1/4). Without
 * the host's time, it is the part of the step in which the GPU waits. */
double rt_host_share(const rt_step_parts *parts, double micro_steps);
/* The parts of a step of `step_ms` from a predictor without the output part_ms, in proportion to rooflines. */
rt_step_parts rt_divide_step(const mdot_job *job, const rt_resolved_configuration *queried, double step_ms);

/* Converts the answer for the queried configuration to one for the requested configuration. */
typedef struct rt_correction {
    double step_ms;
    double interval_factor; /* factor by which the interval widens, each way */
    /* Half-widths are logarithms of independent errors: by an unknown host, to faster and to slower steps; and the one
     * that the GPU's part of such jobs needs in published steps (0: unknown), with that part. */
    double host_log, slow_host_log, known_log, gpu_share;
    bool is_analytic; /* estimated analytically by more than a negligible change */
    bool exchanges;
    double exchanged_ms;   /* part of step_ms in which GPUs wait for exchanges, if computed here (`exchanges`) */
    double transferred_ms; /* part of step_ms in which the GPU waits for host memory */
    double launched_ms;    /* part of step_ms in which the GPU waits for optimizer kernel launches */
    double shown_ms;       /* part of step_ms that no host hides, however slow it is */
    rt_step_parts parts;   /* the rest of step_ms is rt_overlapped_ms's, of the requested configuration's micro-steps */
} rt_correction;
/* Whether a correction replaces the time of operators outside matmuls by that of fused kernels, which predictors know
 * from inference alone, and mostly from image networks. */
bool rt_replaces_fused_kernels(const rt_resolved_configuration *requested, const mdot_job *job,
                               const rt_step_parts *parts);
/* Rooflines of a typical batch, of the last correction: layouts that differ in batches alone share them. Begins as
 * zeros, for each job again. */
typedef struct rt_typical_rooflines {
    struct rt_typical_roofline {
        rt_resolved_configuration key;
        rt_roofline roofline;
    } requested, queried, same_kernels;
} rt_typical_rooflines;
rt_correction rt_correct(const rt_resolved_configuration *requested, const rt_resolved_configuration *queried,
                         const mdot_job *job, const rt_step_parts *parts, rt_typical_rooflines *last);
