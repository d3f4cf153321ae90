/* plan_oracle.h — compares a plan with the graph's reference evaluation, before any code exists. */
#pragma once

#include "plan/plan.h"

/* Verifies the plan, interprets it and evaluates `graph` on the same random inputs. Asserts equal shapes, and elements
 * within `tolerance` relative to max(1, |wanted|). */
void assert_plan_agrees(const ir_graph *graph, const pl_plan *plan, int64_t length, double tolerance);

/* The same with given inputs. `outputs` are the expected values. */
void assert_plan_computes(const pl_plan *plan, int64_t length, const ir_wide *const *inputs,
                          const ir_wide *const *outputs, double relative, double absolute);
