/* interpret.h — runs a plan on concrete data, slowly and checked: the planner's test, before and beside any backend.
 *
 * Double precision, naive loops. Every access is held to its buffer's run-time size, and scratch memory is shared as
 * the memory plan says: a buffer that comes to life destroys what lies under it.
 */
#ifndef IR_PLAN_INTERPRET_H
#define IR_PLAN_INTERPRET_H

#include "ir/plan/plan.h"

/* Inputs are in the graph's order, with the shapes that `length` gives them; outputs are made in `arena`. OUT_OF_RANGE
 * names the kernel and the access that left its buffer. */
mdot_status pl_interpret(const pl_plan *plan, int64_t length, const ir_wide *const *inputs, ir_arena *arena,
                         ir_wide **out_outputs, mdot_error *err);

/* The same as an image does it that computes in `half` (BF16, F16): what matrix kernels multiply is rounded to it, and
 * buffers that the plan keeps in 16 bits hold it. F32: pl_interpret. */
mdot_status pl_interpret_in(const pl_plan *plan, mdot_dtype half, int64_t length, const ir_wide *const *inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err);

/* ---- Between interpret.c and interpret_sequential.c -------------------------------------------------------------- */

typedef struct pl_machine {
    const pl_plan *plan;
    mdot_dtype half; /* F32: there is none */
    int64_t length;
    ir_arena *arena;
    ir_wide **memory; /* by buffer */
    const pl_kernel *kernel;
    bool is_matrix;     /* the kernel */
    mdot_status status; /* of the first fault */
    mdot_error *err;
    int64_t step; /* of the recurrence that runs */
    int64_t index[PL_MAX_LOOPS];
    double acc_f;
    int64_t acc_n;
} pl_machine;

void pl_machine_fault(pl_machine *m, const char *what, int buffer, int64_t at, int64_t count);
void pl_run_sequential(pl_machine *m, const pl_sequential *k);

#endif
