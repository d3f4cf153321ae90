/* build.h — builds the plan of a graph. */
#ifndef IR_PLAN_BUILD_H
#define IR_PLAN_BUILD_H

#include "plan/plan.h"

/* Plans a graph after all passes: types are inferred, operators are supported, every symbol except L is bound.
 * UNSUPPORTED names the node. */
mdot_status pl_build(const ir_graph *graph, ir_arena *arena, pl_plan **out_plan, mdot_error *err);

#endif
