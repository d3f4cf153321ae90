/* workload.h — what is to be scheduled: jobs, as a trace has them, and how fast they run where.
 *
 * core/ is the simulator without any policy: workload.h (jobs), cluster.h (GPUs), job_order.h (jobs in an order), policy.h
 * (what a policy sees and answers), schedule_plan.h (the answer, made whole), estimate.h (what it believes), log.h (what was
 * decided), simulator.h (the clock).
 */
#ifndef SC_WORKLOAD_H
#define SC_WORKLOAD_H

#include "mdot/mdot_base.h"

enum {
    SC_NONE = 0xffffffff, /* no job, no kind */
    SC_MAX_TYPES = 16,    /* GPU types of a cluster */
    SC_WIDTHS = 8         /* 1, 2, 4 … 128 GPUs: widths that a kind's speeds are known for */
};

/* Jobs of one kind run equally fast: a network at a batch size. */
typedef struct sc_kind {
    char *name;
    double speed[SC_MAX_TYPES][SC_WIDTHS];  /* steps a second on 2^w GPUs of a node; 0: not possible, or not known */
    double spread[SC_MAX_TYPES][SC_WIDTHS]; /* how many times as long a step takes on several nodes; 0: as long */
    bool has_belief; /* policies are told of these instead, as factors of estimates are beside it */
    double believed[SC_MAX_TYPES][SC_WIDTHS], believed_spread[SC_MAX_TYPES][SC_WIDTHS];
} sc_kind;

typedef struct sc_job {
    char *id;
    char *group; /* whose job or of what name: what history goes by; NULL where the trace does not say */
    double submit_s;
    double deadline_s; /* on the clock of submit_s; INFINITY: none */
    double weight;     /* share that it deserves; 1 where the trace does not say */
    double work;       /* steps of a job that has a kind; seconds on `gpus` GPUs, which is its duration, of another */
    int gpus;
    uint32_t kind; /* SC_NONE: none */
    double spread; /* how many times as long it takes on several nodes as on one; 0: its kind says so */
} sc_job;

/* Jobs in order of arrival: by submit_s, and in the trace's order where that is equal. */
typedef struct sc_workload {
    sc_job *jobs;
    size_t job_count;
    sc_kind *kinds;
    size_t kind_count;
} sc_workload;

void sc_workload_free(sc_workload *workload);

/* log2 of a power of two below 2^SC_WIDTHS, else SC_WIDTHS. */
unsigned sc_width_of(int gpus);

/* Work done a second on `gpus` GPUs of a node of a type; 0 where it cannot run. A job without a kind runs on any type,
 * as wide as it is. */
double sc_workload_speed(const sc_workload *workload, const sc_job *job, unsigned type, int gpus);

/* How many times as long it takes where its GPUs are on several nodes of a type, at least 1. */
double sc_workload_spread(const sc_workload *workload, const sc_job *job, unsigned type, int gpus);

/* Seconds that a job takes on one node without interruption, as wide as it is, on the fastest type of the first
 * `type_count`; INFINITY where none can run it. */
double sc_workload_duration_s(const sc_workload *workload, const sc_job *job, unsigned type_count);

#endif
