/* cluster.h — GPUs and the users sharing them: nodes with GPU types; accounts with shares and quotas. */
#ifndef SC_CLUSTER_H
#define SC_CLUSTER_H

#include "simulator/core/workload.h"

typedef struct sc_node {
    char *name;
    unsigned type;
    int gpus;
    uint32_t domain; /* nodes whose GPUs one fabric connects as fast as those of a node, for example by NVLink */
    uint32_t rack;   /* nodes below one switch; a domain lies within a rack */
} sc_node;

/* The smallest topology level containing given GPUs. */
typedef enum sc_level { SC_LEVEL_NODE, SC_LEVEL_DOMAIN, SC_LEVEL_RACK, SC_LEVEL_CLUSTER } sc_level;

typedef struct sc_type {
    char *name;
    int gpus;          /* in all nodes together */
    int widest_node;   /* GPUs of the largest node */
    double watts;      /* power of a GPU while a job holds it, at the highest clock; 0: unknown */
    double idle_watts; /* the part that does not depend on the clock; 0: unknown, the clock stays */
    double price;      /* of a GPU and hour while a job holds it, in any currency; 0: unknown */
} sc_type;

typedef struct sc_cluster {
    sc_type types[SC_MAX_TYPES]; /* in the order of the cluster's file */
    unsigned type_count;
    sc_node *nodes;
    size_t node_count;
    uint32_t domain_count, rack_count; /* at first every node is a domain, and all share one rack */
    int gpus;
    double cpus, memory_gb; /* of all nodes together; 0: unknown, unlimited */
    double power_w;         /* power limit of all GPUs together; 0: unlimited */
} sc_cluster;

/* Makes one node with `gpus` GPUs of the type "gpu". */
mdot_status sc_cluster_make_pool(int gpus, sc_cluster *out_cluster, mdot_error *err);

/* Adds a node, and the type if it is new. INVALID_ARGUMENT beyond SC_MAX_TYPES types. */
mdot_status sc_cluster_add_node(sc_cluster *cluster, const char *name, const char *type, int gpus, mdot_error *err);

/* Places the last node in a domain and a rack, counted from 0. INVALID_ARGUMENT if the domain is in another rack. */
mdot_status sc_cluster_locate(sc_cluster *cluster, uint32_t domain, uint32_t rack, mdot_error *err);

/* Returns the type's index, or type_count if it is unknown. Case does not matter: V100 and v100 are one type. */
unsigned sc_cluster_find_type(const sc_cluster *cluster, const char *name);

/* Returns a GPU's power at a clock relative to the highest one (0: the highest). The part above idle_watts follows the
 * third power of the clock, because voltage follows the clock and dynamic power is clock times voltage squared. */
double sc_cluster_watts(const sc_type *type, double clock);

/* Returns whether a job could ever run on `gpus` GPUs, all the same type. */
bool sc_cluster_holds(const sc_cluster *cluster, int gpus);

void sc_cluster_free(sc_cluster *cluster);

/* ---- Accounts ---------------------------------------------------------------------------------------------------- */

/* The tree of accounts and users that share a cluster, with shares and quotas, as Slurm's associations.
 *
 * The leaves are users, named as the groups of jobs. A group outside of the tree becomes a user with one share below
 * the root. */

typedef struct sc_account {
    char *name;
    uint32_t parent;   /* SC_NONE: the root, which is account 0 */
    double shares;     /* relative to its siblings */
    int most_gpus;     /* limit on held GPUs (GrpTRES=gres/gpu); 0: unlimited */
    double most_gpu_s; /* limit on running jobs' remaining GPU-seconds, by limits or estimates (GrpTRESRunMins); 0:
                        * unlimited */
} sc_account;

/* Weights and times of Slurm's priority/multifactor. */
typedef struct sc_priority {
    double age_weight, fairshare_weight, size_weight;
    double length_weight; /* of the site factor that cluster/slurm sets: 1 for the shortest service, 0 for the
                           * longest (SL_ORDER_SERVICE) */
    double most_age_s;    /* age with factor 1 (PriorityMaxAge) */
    double half_life_s;   /* of recorded usage (PriorityDecayHalfLife) */
    double period_s;      /* between calculations (PriorityCalcPeriod) */
} sc_priority;

typedef struct sc_accounts {
    sc_account *items; /* parents before children */
    size_t count;
    uint32_t *users; /* one per job: the user's leaf */
    sc_priority priority;
} sc_accounts;

/* Slurm's defaults, and weights of 1,000 for age, 10,000 for fair share and 0 for size and length. */
sc_priority sc_priority_default(void);

/* Makes a tree that has only the root. */
mdot_status sc_accounts_create(sc_accounts *out_accounts, mdot_error *err);
/* Adds an account below `parent`. INVALID_ARGUMENT for an unknown parent, or a name that exists. */
mdot_status sc_accounts_add(sc_accounts *accounts, const char *parent, sc_account account, mdot_error *err);
/* Finds every job's user. Groups outside of the tree are added. Jobs without a group belong to the user `nobody`.
 * INVALID_ARGUMENT if a group names an account with children. */
mdot_status sc_accounts_assign(sc_accounts *accounts, const sc_workload *workload, mdot_error *err);
void sc_accounts_free(sc_accounts *accounts);

/* Returns the account's index, or SC_NONE. */
uint32_t sc_accounts_find(const sc_accounts *accounts, const char *name);

#endif
