/* policy.h — the interface between the simulator and policies: a policy's view at a decision, and its answer.
 *
 * A policy is a row of constants (policy/policies.c). The simulator calls it at every arrival and completion, and at
 * the time that the policy requested. The policy grants GPUs to jobs until the next decision; a running job without a
 * new grant is preempted. A policy with a round is called every `round_s` seconds instead. */
#ifndef SC_POLICY_H
#define SC_POLICY_H

#include "simulator/core/cluster.h"
#include "simulator/core/estimate.h"

/* GPUs that a job holds on a node. */
typedef struct sc_part {
    uint32_t node;
    int gpus;
} sc_part;

sc_level sc_level_of(const sc_cluster *cluster, const sc_part *parts, size_t part_count);

typedef enum sc_phase { SC_AHEAD, SC_WAITING, SC_RUNNING, SC_DONE, SC_REJECTED } sc_phase;

typedef struct sc_state { /* state of a job */
    sc_phase phase;
    unsigned type;     /* GPU type while running */
    int gpus;          /* GPU count while running */
    size_t first_part; /* nodes: part_count entries in the view's parts, ascending */
    size_t part_count;
    uint32_t partner;      /* while it runs: the job on the same GPUs, or SC_NONE */
    double speed;          /* work per second */
    double batch;          /* batch size that the policy chose; 0: the job's own */
    double clock;          /* GPU clock over the highest one; 0: the highest */
    double cpus;           /* CPUs for the loader; 0: a part of all CPUs like that of the GPUs */
    double busy_s;         /* end of the restart; the job does no work until then */
    double due_s;          /* time of completion */
    double limit_s;        /* seconds from start to cut; INFINITY: never */
    double cut_s;          /* while it runs: the time at which it is cut off; INFINITY: never */
    double remaining;      /* remaining work */
    double executed_s;     /* seconds for which it held GPUs */
    double attained_gpu_s; /* the same, times the number of GPUs */
    double used_gpu_s;     /* GPU-seconds that the work so far would have taken alone on one node */
    double efficiency;     /* speed over the speed alone on one node of as many GPUs */
    double start_s, end_s; /* first start, and end; INFINITY before they happen */
    uint32_t preemptions;
    uint32_t cuts;     /* cuts at the limit; each cut doubled it */
    double lost_gpu_s; /* GPU-seconds of these runs */
} sc_state;

/* Cost of a start, a resumption or a new width: base_s + per_doubling_s * (log2(gpus) + 1) seconds, in which the job
 * holds GPUs but does no work. */
typedef struct sc_restart {
    double base_s, per_doubling_s;
    bool first; /* the first start has this cost, too */
} sc_restart;

double sc_restart_s(const sc_restart *restart, int gpus, bool is_first);

/* State at a decision. Arrays are borrowed for the duration of the call. */
typedef struct sc_view {
    const sc_workload *workload;
    const sc_cluster *cluster;
    const sc_estimate *estimate;
    const sc_restart *restart;
    const sc_accounts *accounts;        /* NULL: none */
    const struct hs_row_model *learned; /* the network of mlfs; NULL: none */
    const struct sc_policy *policy;     /* the row whose functions are called */
    mdot_error *err;                    /* for the messages of decide */
    const sc_state *states;             /* one per job */
    double now_s;
    /* Jobs since the last decision, in the trace's order. A job that was cut off arrives again. */
    const uint32_t *arrived, *completed;
    size_t arrived_count, completed_count;
    const uint32_t *running; /* unordered */
    size_t running_count;
    const sc_part *parts; /* of running jobs, indexed by state */
} sc_view;

/* The GPUs granted to one job. */
typedef struct sc_grant {
    uint32_t job;
    unsigned type;
    int gpus;
    size_t first_part, part_count; /* range in the plan's parts; empty: nodes are still to be chosen */
    uint32_t partner;              /* the job on the same GPUs, or SC_NONE */
    bool shares;                   /* the GPUs are those of the grant before it */
    double batch;                  /* batch size of a job whose kind has a scaling; 0: the job's own */
    double clock;                  /* GPU clock over the highest one; 0: the highest */
    double cpus;                   /* CPUs for the loader; 0: a part of all CPUs like that of the GPUs */
} sc_grant;

/* Returns the work that a job still plans to do. It exceeds the remaining work if the job will end early; policies
 * cannot know that. */
double sc_view_planned_work(const sc_view *view, uint32_t job);

/* Returns the seconds that a job is estimated to need still, and the same times its GPUs. */
double sc_view_left_s(const sc_view *view, uint32_t job);
double sc_view_left_gpu_s(const sc_view *view, uint32_t job);

/* Returns the CPUs at which a job's loader keeps up with so many GPUs. */
double sc_loader_cpus(const sc_job *job, int gpus);

bool sc_view_is_running(const sc_view *view, uint32_t job);

typedef struct sc_plan {
    sc_grant *grants; /* capacity: twice the number of GPUs in the cluster */
    size_t grant_count;
    int free[SC_MAX_TYPES]; /* GPUs that are still free */
    sc_part *parts;         /* capacity: the number of GPUs in the cluster */
    size_t part_count;
    int *node_free;     /* free GPUs of each node */
    double wake_s;      /* time of the next call if no event comes before; INFINITY: only at events */
    uint32_t *rejected; /* rejected jobs among the arrived ones; capacity: their count */
    size_t rejected_count;
    const char *note; /* static text for the log about a fallback in this decision; may be NULL */
} sc_plan;

/* Grants free GPUs to a job. */
void sc_plan_run(sc_plan *plan, uint32_t job, unsigned type, int gpus);
/* Lets a job share the GPUs of the last grant's job, which must have no partner yet. Both run at the pair's speeds
 * until the next decision, also if one ends before. */
void sc_plan_share(sc_plan *plan, uint32_t job);
/* Takes GPUs on this node for the last grant's job. A policy takes either all GPUs of a job in this way, or none.
 * Without it, a running job stays on its nodes while they are free, and other jobs take free GPUs in the order of the
 * cluster's file. */
void sc_plan_take(sc_plan *plan, uint32_t node, int gpus);
/* Sets the batch size of the last granted job, without a restart. */
void sc_plan_set_batch(sc_plan *plan, double batch);
/* Sets the GPU clock of the last granted job, above 0 and at most 1, without a restart. */
void sc_plan_set_clock(sc_plan *plan, double clock);
/* Rejects a job, which leaves without running. */
void sc_plan_reject(sc_plan *plan, uint32_t job);

struct sc_time_fractions;
struct sc_adaptive_rule;

typedef struct sc_policy {
    const char *name;
    const char *summary;  /* half a line */
    double round_s;       /* 0: called at events */
    double period_s;      /* between the times that it requests while nothing happens; 0: it waits for events */
    bool one_type;        /* true: it sees one type of GPU, and decides for each type of a cluster apart */
    bool needs_kinds;     /* true: every job must have a kind with speeds */
    bool folds;           /* true: it may grant fewer GPUs than a job has tasks, which take turns on them */
    bool keeps_fractions; /* true: never splits a job that fits a node among several */
    bool plans_slots;     /* true: it plans slots ahead, so a job must not lose work at a time limit */
    int variant;          /* tells policies apart that share functions, and so does the rule */
    const struct sc_adaptive_rule *rule; /* pollux and sia */
    mdot_status (*allocate)(const struct sc_time_fractions *p, double *out_fractions, double *out_value,
                            mdot_error *err);         /* Gavel's program; NULL: equal parts */
    double (*key)(const sc_view *view, uint32_t job); /* by which a policy sorts jobs, the least first */
    /* Called at 0 s; out_self may stay NULL if the policy keeps no state. */
    mdot_status (*create)(const sc_view *view, void **out_self, mdot_error *err);
    mdot_status (*decide)(void *self, const sc_view *view, sc_plan *plan);
    void (*destroy)(void *self); /* NULL: free() */
} sc_policy;

#endif
