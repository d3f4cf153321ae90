/* accounts.h — the tree of accounts and users that share a cluster: shares and quotas, as Slurm's associations have
 * them.
 *
 * The leaves are users, named as the groups of jobs. A group that the tree lacks becomes a user with one share directly
 * below the root.
 */
#ifndef SC_ACCOUNTS_H
#define SC_ACCOUNTS_H

#include "simulator/core/workload.h"

typedef struct sc_account {
    char *name;
    uint32_t parent;   /* SC_NONE: the root, which is account 0 */
    double shares;     /* relative to its siblings */
    int most_gpus;     /* GPUs that its jobs hold at most (GrpTRES=gres/gpu); 0: unlimited */
    double most_gpu_s; /* GPU-seconds that its running jobs may still use, by limits or estimates (GrpTRESRunMins);
                           * 0: unlimited */
} sc_account;

/* Weights and times of Slurm's priority/multifactor. */
typedef struct sc_priority {
    double age_weight, fairshare_weight, size_weight;
    double length_weight; /* of the site factor that cluster/slurm sets: 1 for the shortest service, 0 for the
                           * longest (SL_ORDER_SERVICE) */
    double most_age_s;    /* age at which its factor is 1 (PriorityMaxAge) */
    double half_life_s;   /* of recorded usage (PriorityDecayHalfLife) */
    double period_s;      /* between calculations (PriorityCalcPeriod) */
} sc_priority;

typedef struct sc_accounts {
    sc_account *items; /* parents before children */
    size_t count;
    uint32_t *users; /* one per job of the workload: the leaf that it belongs to */
    sc_priority priority;
} sc_accounts;

/* Slurm's defaults, and weights of 1,000 for age, 10,000 for fair share and 0 for size and length. */
sc_priority sc_priority_default(void);

/* Makes a tree that has only the root. */
mdot_status sc_accounts_create(sc_accounts *out_accounts, mdot_error *err);
/* Adds an account below `parent`. INVALID_ARGUMENT for an unknown parent, or a name that exists. */
mdot_status sc_accounts_add(sc_accounts *accounts, const char *parent, sc_account account, mdot_error *err);
/* Finds the user of every job. Groups that the tree lacks are added. Jobs without a group belong to the user
 * `nobody`. INVALID_ARGUMENT if a group names an account that has children. */
mdot_status sc_accounts_assign(sc_accounts *accounts, const sc_workload *workload, mdot_error *err);
void sc_accounts_free(sc_accounts *accounts);

/* Returns the account's index, or SC_NONE. */
uint32_t sc_accounts_find(const sc_accounts *accounts, const char *name);

#endif
