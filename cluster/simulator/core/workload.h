/* workload.h — the workload: a trace's jobs, with speeds on each GPU type; and random numbers. */
#ifndef SC_WORKLOAD_H
#define SC_WORKLOAD_H

#include "history/mdot_history.h"
#include "simulator/core/arrays.h"
#include "simulator/core/scaling.h"

#include <stdint.h>

/* core/ is the simulator without policies: workload.h (jobs), scaling.h (speeds by placement and batch), cluster.h
 * (GPUs and accounts), job_order.h (an order of jobs), policy.h (a policy's view and answer), estimate.h (estimated
 * durations), simulator.h (the clock, the completed answer, the log). */

enum {
    SC_NONE = 0xffffffff, /* absent job or kind */
    SC_WIDTHS = 8,        /* 1, 2, 4 … 128 GPUs */
    SC_SPEEDS = 10        /* widths with stored speeds: these, and 3 and 7 GPU slices */
};

/* A kind of job, whose jobs run equally fast: a network at a batch size. */
typedef struct sc_kind {
    char *name;
    double speed[SC_MAX_TYPES][SC_SPEEDS];  /* samples per second at each index of sc_speed_index, on one node; 0:
                                             * impossible or unknown */
    double step_samples[SC_SPEEDS];         /* samples of a step at each width. 0: the table counts steps, and a step is
                                             * the same work at every width */
    double spread[SC_MAX_TYPES][SC_SPEEDS]; /* slowdown of a step on several nodes; 0: 1 */
    bool has_estimate; /* policies see these values instead of the true ones, just as estimates have factors */
    double estimated_speed[SC_MAX_TYPES][SC_SPEEDS], estimated_spread[SC_MAX_TYPES][SC_SPEEDS];
    sc_scaling *scaling; /* speeds by placement, batch and progress instead of these; NULL: none. Owned */
} sc_kind;

typedef struct sc_job {
    char *id;
    char *group; /* user or name, the key of the rolling mean; NULL if the trace omits it */
    double submit_s;
    double deadline_s; /* on the clock of submit_s; INFINITY: no deadline */
    double weight;     /* relative entitlement to GPU time; 1 if the trace omits it */
    double work;       /* steps on `gpus` GPUs if the job has a kind; otherwise seconds (duration) on them */
    int gpus;
    int least_gpus, most_gpus;    /* bounds of an elastic job, around `gpus`; 0: a job without a kind keeps `gpus`, and
                                   * a job with a kind takes any number */
    double scaling;               /* speed on g GPUs of an elastic job without a kind: (g / gpus)^scaling */
    double cpus, memory_gb;       /* for drf; 0: it needs none */
    double batch;                 /* batch size if the kind has a scaling; 0: as in the reference steps */
    double clock_share;           /* part of a step whose time follows the GPU's clock; 0: unknown, all of it */
    double fraction;              /* GPUs if they are no whole number, which `gpus` rounds up; 0: whole */
    double loader_cpus;           /* CPUs at which its loader is as fast as its `gpus` GPUs; 0: it needs few */
    bool is_online;               /* an inference service: it needs its GPUs at once, and nearly at full speed */
    uint32_t kind;                /* SC_NONE: no kind */
    double spread;                /* slowdown on several nodes relative to one; 0: as the kind */
    double rack_spread;           /* further slowdown on several racks relative to one; 0: none */
    char *user, *name, *gpu_type; /* keys of history; NULL if the trace omits them */
    mdot_ended outcome;           /* end in the trace */
    double limit_s;               /* requested time limit, at which the job is cut off; 0: none */
    double planned;               /* work without an early end, over actual work; 0: it ends as planned */
} sc_job;

/* Jobs by arrival: by submit_s, ties in trace order. */
typedef struct sc_workload {
    sc_job *jobs;
    size_t job_count;
    sc_kind *kinds;
    size_t kind_count;
    double *pair_speeds; /* pair speeds, read by sc_workload_pair_speed; NULL: unknown */
    unsigned first_type; /* type 0 of the functions below, in these tables */
} sc_workload;

void sc_workload_free(sc_workload *workload);
/* Frees the texts of a job. */
void sc_job_free(sc_job *job);

/* Returns the kind named by the first `length` bytes of `name`, or fewer if it ends before; NULL if there is none. */
sc_kind *sc_workload_find_kind(const sc_workload *workload, const char *name, size_t length);

/* Returns log2 of a power of two below 2^SC_WIDTHS, else SC_WIDTHS. */
unsigned sc_width_of(int gpus);

/* Returns the index of a width in sc_kind.speed, or SC_SPEEDS: 0 to 7 for powers of two, 8 and 9 for 3 and 7. */
unsigned sc_speed_index(int gpus);

/* Returns whether the job's bounds allow so many GPUs. */
bool sc_job_allows(const sc_job *job, int gpus);

/* Returns the samples of a step on the job's own GPUs, or 1 if the kind's table counts steps. Speeds in samples per
 * second, divided by it, are the job's work per second. */
double sc_workload_step_samples(const sc_workload *workload, const sc_job *job);

/* Work per second on `gpus` GPUs of one node of a type; 0 if the job cannot run there. A job without a kind runs on
 * any type, at its own width or within its bounds. With a scaling, the speed is the mean over the job's steps on as few
 * nodes as the table of step times has for so many GPUs. */
double sc_workload_speed(const sc_workload *workload, const sc_job *job, unsigned type, int gpus);

/* Slowdown on several nodes of a type, at least 1. */
double sc_workload_spread(const sc_workload *workload, const sc_job *job, unsigned type, int gpus);

/* Steps per second of kind `kind` if it shares GPUs with kind `other`; 0: unknown or impossible. */
double sc_workload_pair_speed(const sc_workload *workload, uint32_t kind, uint32_t other, unsigned type, int gpus);
/* Stores it. `width` is below SC_WIDTHS. */
mdot_status sc_workload_set_pair_speed(sc_workload *workload, uint32_t kind, uint32_t other, unsigned type,
                                       unsigned width, double speed, mdot_error *err);

/* Returns the slowdown of a job at a GPU clock relative to the highest one (0: the highest), at least 1. */
double sc_workload_clock_slowdown(const sc_job *job, double clock);

/* Returns planned work over true work, at least 1. */
double sc_workload_planned(const sc_job *job);

/* Slowdown if its GPUs are in several racks, relative to one rack, at least 1. */
double sc_workload_rack_spread(const sc_job *job);

/* Seconds on one node, uninterrupted and at the job's own width, on the fastest of the first `type_count` types;
 * INFINITY if it can run on none. */
double sc_workload_duration_s(const sc_workload *workload, const sc_job *job, unsigned type_count);

/* ---- Random ------------------------------------------------------------------------------------------------------ */

/* Random numbers that are the same on every machine, based on splitmix64. */

uint64_t sc_random_next(uint64_t *state);
double sc_random_unit(uint64_t *state);   /* above 0, below 1 */
double sc_random_normal(uint64_t *state); /* Box-Muller transform of two such numbers */

#endif
