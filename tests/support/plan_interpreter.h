/* plan_interpreter.h — runs a plan on concrete data, slowly and with checks. It tests the planner independently of any
 * backend.
 *
 * It uses double precision and naive loops. Every access is checked against its buffer's run-time size. Scratch
 * memory is shared according to the memory plan: a buffer that becomes live overwrites the buffers below it.
 */
#pragma once

#include "plan/expr.h"
#include "plan/plan.h"

/* Inputs are in the graph's order, with the shapes for `length`. Outputs are allocated in `arena`. OUT_OF_RANGE names
 * the kernel and the access that left its buffer. */
mdot_status pl_interpret(const pl_plan *plan, int64_t length, const ir_wide *const *inputs, ir_arena *arena,
                         ir_wide **out_outputs, mdot_error *err);

/* Runs the plan like an image that computes in `half` (BF16, F16): factors of matrix kernels are rounded to it, and
 * buffers that the plan keeps in 16 bits hold it. F32 equals pl_interpret. */
mdot_status pl_interpret_in(const pl_plan *plan, mdot_dtype half, int64_t length, const ir_wide *const *inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err);

/* ---- For the files of the interpreter ---------------------------------------------------------------------------- */

typedef struct pl_machine {
    const pl_plan *plan;
    mdot_dtype half; /* F32: no 16-bit type */
    int64_t length;
    ir_arena *arena;
    ir_wide **memory; /* indexed by buffer */
    const pl_kernel *kernel;
    bool is_matrix;     /* the current kernel is a matrix kernel */
    mdot_status status; /* status of the first error */
    mdot_error *err;
    int64_t step; /* step of the running recurrence */
    int64_t index[PL_MAX_LOOPS];
    double acc_f;
    int64_t acc_n;
} pl_machine;

void pl_machine_out_of_memory(pl_machine *m);
/* Element `at` of a buffer. An access outside the buffer sets OUT_OF_RANGE. */
pl_scalar pl_machine_load(pl_machine *m, int buffer, int64_t at);
void pl_machine_store(pl_machine *m, int buffer, int64_t at, pl_scalar value);
/* A factor of a product, which matrix kernels round. */
double pl_machine_factor(const pl_machine *m, double value);
double pl_machine_load_factor(pl_machine *m, int buffer, int64_t at);
int64_t pl_machine_dim(const pl_machine *m, ir_dim d); /* its value at the run-time length */
pl_scalar pl_machine_evaluate(pl_machine *m, const pl_expr *e);
void pl_machine_store_matrix(pl_machine *m, const pl_matrix *out, int64_t row, int64_t column, double value);
/* Passes the value at (row, column) through the epilogue into the result. */
void pl_machine_finish_element(pl_machine *m, const pl_expr *epilogue, const pl_matrix *out, int64_t row,
                               int64_t column, double value);
/* In place: exp(x - log(sum of exp(x))), or its logarithm. */
void pl_machine_softmax(double *x, int64_t count, bool is_log);
void pl_machine_run(pl_machine *m, const pl_kernel *kernel);       /* plan_interpreter_kinds.c */
void interpret_sequential(const pl_kernel *kernel, pl_machine *m); /* plan_interpreter_sequential.c */
