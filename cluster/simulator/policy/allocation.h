/* allocation.h — common parts of policies: job orders, job lists and node choice. */
#ifndef SC_ALLOCATION_H
#define SC_ALLOCATION_H

#include "simulator/core/job_order.h"
#include "simulator/core/policy.h"

/* A job order, processed from the front, at the jobs' own widths. */

/* Returns the type with enough free GPUs on which a job is predicted to end first; type_count: none. A restart counts
 * unless it stays where it runs. */
unsigned sc_fastest_free(const sc_view *view, const sc_plan *plan, uint32_t job);
/* Grants GPUs on this type; false: there is none. */
bool sc_plan_run_fastest(const sc_view *view, sc_plan *plan, uint32_t job);
/* Returns the free GPUs of the type with the most. */
int sc_plan_most_free(const sc_view *view, const sc_plan *plan);

/* Grants GPUs to each job that fits, from the front. */
void sc_queue_fill(const sc_order *order, const sc_view *view, sc_plan *plan);

void sc_queue_keep_running(const sc_view *view, sc_plan *plan);

/* Starts jobs from the front and removes them from the order. It stops at the first job that does not fit, or skips
 * such jobs if `skips` is set. */
void sc_queue_start(sc_order *order, const sc_view *view, sc_plan *plan, bool skips);

/* Create for a policy whose only state is an order. */
mdot_status sc_queue_create(const sc_view *view, void **out_self, mdot_error *err);

/* ---- Outlook ----------------------------------------------------------------------------------------------------- */

/* The future of jobs that run in a fixed order, each on the type where it ends first. */
typedef struct sc_outlook_job {
    uint32_t job;
    bool holds;  /* it has its GPUs now, and keeps them until its lease or its life ends */
    bool runs;   /* it has run until now on this type; otherwise it has the cost of a restart */
    bool is_new; /* it has never run */
    unsigned type;
    double deadline_s;
    double left_s;             /* on its fastest type */
    double rate[SC_MAX_TYPES]; /* speed on each type over that on the fastest */
} sc_outlook_job;

/* Describes a job that is not held. */
sc_outlook_job sc_outlook_of(const sc_view *view, uint32_t job);

/* Returns whether all jobs meet their deadlines if they run in the array's order from now on and none arrives. Jobs
 * that hold GPUs keep them until `lease_end_s`; later leases end at multiples of `lease_s` (0: at once), but go on
 * while no job waits that came since. The array is used up. */
bool sc_outlook_meets(const sc_view *view, sc_outlook_job *jobs, size_t count, double lease_s, double lease_end_s);

/* Returns the end of a lease that begins now. */
double sc_lease_end_s(double now_s, double lease_s);

/* Returns the time for which a job should keep its GPUs before others take turns: 20 restarts, but 60 s to 20 min, and
 * at least twice the longest restart, because jobs would otherwise do no work in their turns. */
double sc_lease_s(const sc_view *view);

/* ---- Active ------------------------------------------------------------------------------------------------------ */

/* Active jobs (arrived, incomplete) by arrival. */

/* Drops completed and rejected jobs from the list, and appends arrivals. A job cut off at the limit arrives again and
 * moves to the end. Returns the new job count. `jobs` has room for the whole workload. */
size_t sc_active_update(const sc_view *view, uint32_t *jobs, size_t count);

/* Numbers the groups (or users) of all jobs in order of arrival. Returns how many there are. `scratch` has room for
 * every job. */
size_t sc_number_groups(const sc_workload *workload, uint32_t *out_groups, uint32_t *scratch);

/* Policy state with one item per job; free() releases it. */
typedef struct sc_active {
    uint32_t *jobs;
    size_t count;
    void *items; /* zero at first */
} sc_active;

mdot_status sc_active_create(const sc_view *view, size_t item_bytes, void **out_self, mdot_error *err);

/* A job and its key in a decision. */
typedef struct sc_ranked {
    uint32_t job;
    double rank;
} sc_ranked;

/* Compares two in ascending order of ranks, and jobs with equal ranks by arrival, for qsort. */
int sc_by_rank(const void *left, const void *right);

/* Create for sc_active with an sc_ranked for each job. */
mdot_status sc_ranked_create(const sc_view *view, void **out_self, mdot_error *err);

/* ---- Sorted jobs ------------------------------------------------------------------------------------------------- */

/* Preemptive policies that sort all jobs by a key at every event. */

/* Returns the current key of a job (sc_policy.key). It changes only while the job runs, and within a policy always in
 * one direction. */
typedef double sc_key_fn(const sc_view *view, uint32_t job);

typedef struct sc_sorted_jobs sc_sorted_jobs;

mdot_status sc_sorted_jobs_create(const sc_view *view, void **out_self, mdot_error *err);

/* Sorts the list stably, starting from the last decision's order. New jobs are at its end; completed jobs are
 * removed. */
void sc_sorted_jobs_sort(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key);
/* Sorts the list by the policy's key, then grants GPUs to each job that fits. */
mdot_status sc_sorted_jobs_decide(void *self, const sc_view *view, sc_plan *plan);

/* Jobs that are incomplete. */
const sc_order *sc_sorted_jobs_incomplete(const sc_sorted_jobs *self);

/* ---- Place ------------------------------------------------------------------------------------------------------- */

/* Nodes for jobs, on a cluster with one GPU type.
 *
 * `available` is the number of GPUs that may be taken from each node, at most plan->node_free. */

/* Returns the node with the fewest GPUs in `available` that still holds so many GPUs; SC_NONE if there is none. */
uint32_t sc_place_find_node(const int *available, size_t node_count, int gpus);

/* Each function grants a job GPUs, or returns false. */

/* Grants the GPUs on which it runs, if all are free. */
bool sc_place_as_it_is(const sc_view *view, sc_plan *plan, uint32_t job);
/* Grants GPUs on the node that sc_place_find_node finds. */
bool sc_place_on_one(const sc_view *view, sc_plan *plan, const int *available, uint32_t job, int gpus);
/* Grants fragments, first from nodes with the fewest GPUs in `available`, so that whole nodes stay free. */
bool sc_place_on_several(const sc_view *view, sc_plan *plan, const int *available, uint32_t job, int gpus);

/* ---- Packing ----------------------------------------------------------------------------------------------------- */

/* Nodes for policies that change widths. */

/* The GPUs that a policy gives to a job. */
typedef struct sc_share {
    uint32_t job;
    unsigned type;
    int gpus;     /* at least 1 */
    double batch; /* 0: the job's own */
} sc_share;

/* Grants all shares, which must fit the types' GPUs. A job with the same type and width keeps its nodes. Others get as
 * few nodes as possible: first jobs that fill whole nodes, wide ones first, then the fullest node that still holds a
 * job. If a job would be on more nodes than necessary, all jobs of its type are placed anew, because moves may let it
 * fit. Otherwise it gets fragments. */
mdot_status sc_pack(const sc_view *view, sc_plan *plan, const sc_share *shares, size_t count, mdot_error *err);

#endif
