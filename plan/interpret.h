/* interpret.h — runs a plan on concrete data, slowly and with checks. It tests the planner independently of any
 * backend.
 *
 * It uses double precision and naive loops. Every access is checked against its buffer's run-time size. Scratch
 * memory is shared according to the memory plan: a buffer that becomes live overwrites the buffers below it.
 */
#ifndef IR_PLAN_INTERPRET_H
#define IR_PLAN_INTERPRET_H

#include "plan/plan.h"

/* Inputs are in the graph's order, with the shapes for `length`. Outputs are allocated in `arena`. OUT_OF_RANGE names
 * the kernel and the access that left its buffer. */
mdot_status pl_interpret(const pl_plan *plan, int64_t length, const ir_wide *const *inputs, ir_arena *arena,
                         ir_wide **out_outputs, mdot_error *err);

/* Runs the plan like an image that computes in `half` (BF16, F16): factors of matrix kernels are rounded to it, and
 * buffers that the plan keeps in 16 bits hold it. F32 equals pl_interpret. */
mdot_status pl_interpret_in(const pl_plan *plan, mdot_dtype half, int64_t length, const ir_wide *const *inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err);

#endif
