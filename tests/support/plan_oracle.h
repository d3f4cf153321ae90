/* plan_oracle.h — a plan held to the reference evaluation of the graph that it stands for, before any code exists. */
#ifndef MDOT_TESTS_PLAN_ORACLE_H
#define MDOT_TESTS_PLAN_ORACLE_H

#include "ir/plan/plan.h"

/* Verifies the plan, interprets it and evaluates `graph` on the same random inputs, and asserts equal shapes and,
 * within `tolerance` relative to max(1, |wanted|), elements. */
void assert_plan_agrees(const ir_graph *graph, const pl_plan *plan, int64_t length, double tolerance);

/* The same with inputs given; `outputs` are the wanted ones. */
void assert_plan_computes(const pl_plan *plan, int64_t length, const ir_wide *const *inputs,
                          const ir_wide *const *outputs, double relative, double absolute);

#endif
