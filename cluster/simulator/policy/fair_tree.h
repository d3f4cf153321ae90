/* fair_tree.h — priorities of jobs by age, fair share and size: Slurm's priority/multifactor with the Fair Tree
 * algorithm, which is its default.
 *
 * Usage is GPU-seconds, halved every half-life. The level fair share of an account is its part of its siblings' shares
 * over its part of their usage. Walking the tree from the root, siblings with the higher value first, ranks the users;
 * accounts of equal value are merged, and users of equal value have equal ranks. The factor of a user is its rank from
 * the end over the number of users. Left out: partitions, QOS, nice values, TRES other than GPUs, and shares
 * "parent".
 */
#ifndef SC_FAIR_TREE_H
#define SC_FAIR_TREE_H

#include "simulator/core/policy.h"

typedef struct sc_fair_tree sc_fair_tree;

/* The accounts must outlive the tree. */
mdot_status sc_fair_tree_create(const sc_accounts *accounts, sc_fair_tree **out_tree, mdot_error *err);
void sc_fair_tree_destroy(sc_fair_tree *tree);

/* Adds usage of a user, which counts for all accounts above it. */
void sc_fair_tree_use(sc_fair_tree *tree, uint32_t user, double gpu_s);
/* Lets usage decay by so many seconds. */
void sc_fair_tree_decay(sc_fair_tree *tree, double span_s);
/* Computes the factors of all users from their usage. */
void sc_fair_tree_rank(sc_fair_tree *tree);
/* Returns the factor of the last ranking: above 0, at most 1. */
double sc_fair_tree_factor(const sc_fair_tree *tree, uint32_t user);

/* Returns the priority of a job that has waited `age_s` seconds and will use `gpu_s` GPU-seconds by its limit or
 * estimate. `part` is its part of the cluster's GPUs. */
double sc_fair_tree_priority(const sc_fair_tree *tree, uint32_t user, double age_s, double part, double gpu_s);

#endif
