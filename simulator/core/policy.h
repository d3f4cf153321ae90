/* policy.h — the seam between the simulator and what is simulated: what a policy sees at a decision, and what it
 * answers.
 *
 * A policy is a row of constants (policy/policies.c). The simulator asks it at every arrival and completion, and when
 * it wished to be asked, which jobs shall run until the next decision; whatever ran and is not named again is
 * preempted. A policy with a round is asked every `round_s` seconds instead.
 */
#ifndef SC_POLICY_H
#define SC_POLICY_H

#include "simulator/core/cluster.h"
#include "simulator/core/estimate.h"

/* GPUs of a node that a job holds. */
typedef struct sc_part {
    uint32_t node;
    int gpus;
} sc_part;

typedef enum sc_phase { SC_AHEAD, SC_WAITING, SC_RUNNING, SC_DONE, SC_REJECTED } sc_phase;

typedef struct sc_state { /* of a job */
    sc_phase phase;
    unsigned type;     /* while it runs: where, */
    int gpus;          /* how wide, */
    size_t first_part; /* on which nodes: so many of the view's parts from this one, ascending, */
    size_t part_count;
    double speed;          /* work a second, */
    double busy_s;         /* until when it restores its state and does no work, */
    double due_s;          /* and when it will be done */
    double remaining;      /* work */
    double executed_s;     /* seconds for which it held GPUs */
    double attained_gpu_s; /* those times their number */
    double start_s, end_s; /* first start; INFINITY where there was none */
    uint32_t preemptions;
} sc_state;

/* What a job pays when it starts to run, resumes or changes its width: seconds in which it holds GPUs and does no work.
 * base_s + per_doubling_s * (log2(gpus) + 1) */
typedef struct sc_restart {
    double base_s, per_doubling_s;
    bool first; /* the first start pays, too */
} sc_restart;

double sc_restart_s(const sc_restart *restart, int gpus, bool is_first);

/* What there is to decide on. Arrays are lent for the duration of the call. */
typedef struct sc_view {
    const sc_workload *workload;
    const sc_cluster *cluster;
    const sc_estimate *estimate;
    const sc_restart *restart;
    const sc_state *states; /* of each job */
    double now_s;
    const uint32_t *arrived, *completed; /* since the last decision, in the trace's order */
    size_t arrived_count, completed_count;
    const uint32_t *running; /* in no order */
    size_t running_count;
    const sc_part *parts; /* of running jobs; states say which */
} sc_view;

/* Its answer. */
typedef struct sc_grant {
    uint32_t job;
    unsigned type;
    int gpus;
    size_t first_part, part_count; /* of the plan's parts; none: nobody chose nodes for it */
} sc_grant;

typedef struct sc_plan {
    sc_grant *grants; /* room for as many as the cluster has GPUs */
    size_t grant_count;
    int free[SC_MAX_TYPES]; /* GPUs not granted yet */
    sc_part *parts;         /* room for as many as the cluster has GPUs */
    size_t part_count;
    int *node_free;     /* GPUs of each node not taken yet */
    double wake_s;      /* ask again at this time, if nothing happens before; INFINITY */
    uint32_t *rejected; /* of those that arrived; room for as many */
    size_t rejected_count;
    const char *note; /* static text about this decision for the log, or NULL: a fallback that was taken */
} sc_plan;

/* Grants GPUs that are free. */
void sc_plan_run(sc_plan *plan, uint32_t job, unsigned type, int gpus);
/* So many of them are of this node, for the job that was granted GPUs last. A policy that says it of some of a job's
 * GPUs says it of all; where it says nothing, a job that runs stays on its nodes while they are free, and others take
 * what is free in the order of the cluster's file. */
void sc_plan_take(sc_plan *plan, uint32_t node, int gpus);
/* The job leaves without having run. */
void sc_plan_reject(sc_plan *plan, uint32_t job);

typedef struct sc_policy {
    const char *name;
    const char *summary; /* half a line */
    double round_s;      /* 0: events */
    bool uses_types;     /* false: knows one type of GPUs only */
    bool needs_kinds;    /* jobs with speeds */
    /* Called at 0 s; out_self stays NULL where nothing is kept. */
    mdot_status (*create)(const sc_view *view, void **out_self, mdot_error *err);
    mdot_status (*decide)(void *self, const sc_view *view, sc_plan *plan, mdot_error *err);
    void (*destroy)(void *self);
} sc_policy;

#endif
