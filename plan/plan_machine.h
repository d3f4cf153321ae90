/* plan_machine.h — the state of the plan interpreter, and its checked accesses, for interpret.c and the files of the
 * kernel kinds. */
#ifndef IR_PLAN_PLAN_MACHINE_H
#define IR_PLAN_PLAN_MACHINE_H

#include "plan/plan.h"
#include "plan/scalar.h"

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
/* Element `at` of a buffer. An access outside of the buffer sets OUT_OF_RANGE. */
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

#endif
