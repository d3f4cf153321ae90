/* gavel.c — Gavel's policies over a matrix of throughputs (Narayanan et al., OSDI 2020), as linear programs.
 *
 *   gavel            max-min fairness: the largest least throughput over that on the mean GPU, by weight
 *   gavel-ftf        finish-time fairness (Themis' measure): the least of the largest ratio of (time since start +
 *                    remaining time) to the time in an equal part of the cluster
 *   gavel-makespan   the shortest time in which all present jobs end
 *   gavel-pairs, gavel-pairs-ftf, gavel-pairs-makespan
 *                    the same three with space sharing: two jobs may run on the same GPUs
 *   isolated         an equal part of every type for every job: the baseline of sharing without a program
 *
 * rounds.h describes how fractions become rounds, and the parts that are left out. Of the policies, hierarchical ones,
 * cost and FIFO over types are left out.
 */
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"

static mdot_status allocate_max_min(const sc_round_problem *problem, double *out_fractions, mdot_error *err)
{
    double value;
    return sc_time_fractions_max_min(&problem->fractions, out_fractions, &value, err);
}

static mdot_status allocate_finish_time(const sc_round_problem *problem, double *out_fractions, mdot_error *err)
{
    double value;
    return sc_time_fractions_finish_time(&problem->fractions, out_fractions, &value, err);
}

static mdot_status allocate_makespan(const sc_round_problem *problem, double *out_fractions, mdot_error *err)
{
    double value;
    return sc_time_fractions_makespan(&problem->fractions, out_fractions, &value, err);
}

static mdot_status allocate_isolated(const sc_round_problem *problem, double *out_fractions, mdot_error *err)
{
    (void)err;
    sc_time_fractions_isolated(&problem->fractions, out_fractions);
    return MDOT_OK;
}

static mdot_status create_max_min(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create(view, allocate_max_min, true, out_self, err);
}

static mdot_status create_finish_time(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create(view, allocate_finish_time, true, out_self, err);
}

static mdot_status create_makespan(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create(view, allocate_makespan, true, out_self, err);
}

static mdot_status create_pairs_max_min(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create_sharing(view, allocate_max_min, out_self, err);
}

static mdot_status create_pairs_finish_time(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create_sharing(view, allocate_finish_time, out_self, err);
}

static mdot_status create_pairs_makespan(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create_sharing(view, allocate_makespan, out_self, err);
}

static mdot_status create_isolated(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_rounds_create(view, allocate_isolated, false, out_self, err);
}

#define GAVEL_ROW(identifier, row_name, row_summary, row_create)                                                       \
    const sc_policy identifier = {                                                                                     \
        .name = (row_name),                                                                                            \
        .summary = (row_summary),                                                                                      \
        .round_s = SC_ROUND_S,                                                                                         \
        .uses_types = true,                                                                                            \
        .needs_kinds = true,                                                                                           \
        .create = (row_create),                                                                                        \
        .decide = sc_rounds_decide,                                                                                    \
        .destroy = sc_rounds_destroy,                                                                                  \
    }

GAVEL_ROW(sc_policy_gavel, "gavel", "max-min fairness over throughputs of GPU types, in rounds", create_max_min);
GAVEL_ROW(sc_policy_gavel_ftf, "gavel-ftf", "finish-time fairness over throughputs, in rounds", create_finish_time);
GAVEL_ROW(sc_policy_gavel_makespan, "gavel-makespan", "shortest makespan over throughputs, in rounds", create_makespan);
GAVEL_ROW(sc_policy_isolated, "isolated", "an equal part of every GPU type for every job, in rounds", create_isolated);
GAVEL_ROW(sc_policy_gavel_pairs, "gavel-pairs", "gavel with space sharing, by --pairs", create_pairs_max_min);
GAVEL_ROW(sc_policy_gavel_pairs_ftf, "gavel-pairs-ftf", "gavel-ftf with space sharing, by --pairs",
          create_pairs_finish_time);
GAVEL_ROW(sc_policy_gavel_pairs_makespan, "gavel-pairs-makespan", "gavel-makespan with space sharing, by --pairs",
          create_pairs_makespan);
