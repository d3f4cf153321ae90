/* gavel.c — Gavel's policies over a matrix of throughputs (Narayanan et al., OSDI 2020), as linear programs.
 *
 *   gavel            max-min fairness: the largest least throughput over that on the mean GPU, by weight
 *   gavel-ftf        finish-time fairness (Themis' measure): the least of the largest ratio of (time since start +
 *                    remaining time) to the time in an equal part of the cluster
 *   gavel-makespan   the shortest time in which all present jobs end
 *   gavel-pairs, gavel-pairs-ftf, gavel-pairs-makespan
 *                    the same three with space sharing: two jobs may run on the same GPUs
 *   gavel-groups     max-min fairness among groups, and of the jobs in each: one level of the paper's hierarchy, by
 *                    weights instead of water filling
 *   gavel-cost       the most work per price of the GPUs (price in the cluster's file), without SLOs
 *   isolated         an equal part of every type for every job: the baseline of sharing without a program
 *
 * rounds.h describes how fractions become rounds, and the parts that are left out. Of the policies, deeper
 * hierarchies and FIFO over types are left out.
 */
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"

#define GAVEL_ROW(identifier, row_name, row_summary, row_allocate, row_variant)                                        \
    const sc_policy identifier = {                                                                                     \
        .name = (row_name),                                                                                            \
        .summary = (row_summary),                                                                                      \
        .round_s = SC_ROUND_S,                                                                                         \
        .needs_kinds = true,                                                                                           \
        .allocate = (row_allocate),                                                                                    \
        .variant = (row_variant),                                                                                      \
        .create = sc_rounds_create,                                                                                    \
        .decide = sc_rounds_decide,                                                                                    \
    }

GAVEL_ROW(sc_policy_gavel, "gavel", "max-min fairness over throughputs of GPU types, in rounds",
          sc_time_fractions_max_min, 0);
GAVEL_ROW(sc_policy_gavel_ftf, "gavel-ftf", "finish-time fairness over throughputs, in rounds",
          sc_time_fractions_finish_time, 0);
GAVEL_ROW(sc_policy_gavel_makespan, "gavel-makespan", "shortest makespan over throughputs, in rounds",
          sc_time_fractions_makespan, 0);
GAVEL_ROW(sc_policy_gavel_groups, "gavel-groups", "gavel among groups, and among the jobs of each",
          sc_time_fractions_max_min, SC_ROUNDS_GROUPS);
GAVEL_ROW(sc_policy_gavel_cost, "gavel-cost", "most work over the price of GPUs, in rounds", sc_time_fractions_sum,
          SC_ROUNDS_SPARSE);
GAVEL_ROW(sc_policy_isolated, "isolated", "an equal part of every GPU type for every job, in rounds", NULL, 0);
GAVEL_ROW(sc_policy_gavel_pairs, "gavel-pairs", "gavel with space sharing, by --pairs", sc_time_fractions_max_min,
          SC_ROUNDS_SHARE);
GAVEL_ROW(sc_policy_gavel_pairs_ftf, "gavel-pairs-ftf", "gavel-ftf with space sharing, by --pairs",
          sc_time_fractions_finish_time, SC_ROUNDS_SHARE);
GAVEL_ROW(sc_policy_gavel_pairs_makespan, "gavel-pairs-makespan", "gavel-makespan with space sharing, by --pairs",
          sc_time_fractions_makespan, SC_ROUNDS_SHARE);
