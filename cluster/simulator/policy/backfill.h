/* backfill.h — backfill: the common part of easy and conservative, with free GPUs over time, topology, priorities
 * and quotas. */
#ifndef SC_BACKFILL_H
#define SC_BACKFILL_H

#include "mdot/mdot_base.h"

#include "simulator/core/cluster.h"
#include "simulator/core/policy.h"

#include <stddef.h>

/* First come, first served, or by priority, with gaps filled.
 *
 * A job is planned for its time limit if limits are enforced, else for its estimated duration. A running job that
 * outlives an estimate without a limit is planned for 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50 and then 100 h more, one
 * after the other (Tsafrir et al., "Backfilling using system-generated predictions rather than user runtime estimates",
 * IEEE TPDS 18(6), 2007). */

/* sc_policy.variant */
enum {
    SC_BACKFILL_EASY,        /* only the first job that does not fit has a reservation */
    SC_BACKFILL_CONSERVATIVE /* every job has one, up to a depth of 500 (Slurm's bf_max_job_test) */
};

/* Create, decide and destroy for a policy. */
mdot_status sc_backfill_create(const sc_view *view, void **out_self, mdot_error *err);
mdot_status sc_backfill_decide(void *self, const sc_view *view, sc_plan *plan);
void sc_backfill_destroy(void *self);

/* ---- Profile ----------------------------------------------------------------------------------------------------- */

/* The number of free GPUs over future time, a step function. */

typedef struct sc_profile {
    double *from_s; /* beginning of each step, ascending; the last step lasts for ever */
    int *gpus;      /* free in it */
    size_t count, capacity;
} sc_profile;

void sc_profile_free(sc_profile *profile);

/* Begins with `gpus` free GPUs from `now_s` on. */
mdot_status sc_profile_begin(sc_profile *profile, double now_s, int gpus, mdot_error *err);
/* Adds GPUs, or takes them if negative, from one time until another, which may be INFINITY. */
mdot_status sc_profile_add(sc_profile *profile, double from_s, double until_s, int gpus, mdot_error *err);
/* Returns the first time from which so many GPUs are free for `span_s` seconds; INFINITY: never. */
double sc_profile_find(const sc_profile *profile, int gpus, double span_s);

/* ---- Topology ---------------------------------------------------------------------------------------------------- */

/* Nodes by topology, on a cluster with one GPU type, as Slurm's topology/tree and topology/block choose them: the
 * smallest part of the cluster that holds a job; among equals, the one with the fewest free GPUs. */

typedef struct sc_topology {
    int *domain_free, *rack_free; /* scratch: free GPUs of each domain and rack */
} sc_topology;

/* Grants the job GPUs in the smallest part with enough: a node, a domain, a rack, or the cluster. The plan must have
 * enough free GPUs, and the nodes of all earlier grants must be known. */
void sc_topology_run(sc_topology *topology, const sc_view *view, sc_plan *plan, uint32_t job);

/* ---- Fair tree --------------------------------------------------------------------------------------------------- */

/* Job priorities by age, fair share and size: Slurm's priority/multifactor with Fair Tree, the default algorithm.
 *
 * Usage is GPU-seconds, halved every half-life. An account's level fair share is the fraction of the siblings' shares
 * over the fraction of the siblings' usage. A walk from the root, with higher values first, ranks the users; accounts
 * of equal value are merged, and users of equal value have equal ranks. A user's factor is the rank from the end over
 * the number of users. Left out: partitions, QOS, nice values, TRES other than GPUs, and shares "parent". */

typedef struct sc_fair_tree sc_fair_tree;

/* The accounts must outlive the tree, which free() releases. */
mdot_status sc_fair_tree_create(const sc_accounts *accounts, sc_fair_tree **out_tree, mdot_error *err);

/* Adds usage to a user and all accounts above. */
void sc_fair_tree_use(sc_fair_tree *tree, uint32_t user, double gpu_s);
/* Lets usage decay by so many seconds. */
void sc_fair_tree_decay(sc_fair_tree *tree, double span_s);
/* Computes all users' factors from usage. */
void sc_fair_tree_rank(sc_fair_tree *tree);
/* Returns the factor of the last ranking: above 0, at most 1. */
double sc_fair_tree_factor(const sc_fair_tree *tree, uint32_t user);

/* Returns the priority of a job that has waited `age_s` seconds and will use `gpu_s` GPU-seconds by limit or estimate,
 * on `part` of the cluster's GPUs. */
double sc_fair_tree_priority(const sc_fair_tree *tree, uint32_t user, double age_s, double part, double gpu_s);

/* ---- Quota ------------------------------------------------------------------------------------------------------- */

/* GPUs and GPU-seconds held by running jobs, against the accounts' quotas. */

typedef struct sc_quota {
    const sc_accounts *accounts; /* NULL: no quotas */
    int *gpus;                   /* of each account */
    double *gpu_s;               /* that each account's running jobs may still use */
} sc_quota;

/* Forgets all jobs. */
void sc_quota_reset(sc_quota *quota);
/* Counts a job on `gpus` GPUs that may run for `seconds`. */
void sc_quota_take(sc_quota *quota, uint32_t job, int gpus, double seconds);
/* Returns whether the job would fit the quotas of the user and all accounts above. */
bool sc_quota_allows(const sc_quota *quota, uint32_t job, int gpus, double seconds);

#endif
