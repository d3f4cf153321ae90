/* plan_checker.h — checks the rules of plan.h that kernel kinds share, for verify_plan.c and the files of the kinds:
 * buffer numbers, types, and index bounds that are affine in the loops. */
#ifndef IR_PLAN_PLAN_CHECKER_H
#define IR_PLAN_PLAN_CHECKER_H

#include "plan/plan.h"

typedef struct pl_checker {
    const pl_plan *plan;
    const pl_kernel *kernel;     /* named in messages */
    bool is_matrix;              /* the kernel is a matrix kernel of the plan */
    ir_dim extent[PL_MAX_LOOPS]; /* extents of the kernel's loops */
    int loop_count;
    ir_dim steps; /* steps of the enclosing recurrence; 0: none */
    int acc_count;
    mdot_dtype acc_dtype;
    mdot_status status; /* status of the first error */
    mdot_error *err;
} pl_checker;

__extension__ typedef __int128 pl_wide_int; /* for sums and products of any two 64-bit numbers */

/* Records MALFORMED with the kernel's name. The first error counts. */
void pl_check_fail(pl_checker *c, const char *what, int buffer);
/* NULL: there is no such buffer, which is recorded. */
const pl_buffer *pl_check_buffer(pl_checker *c, int number);
/* Checks that the buffer's `reads` include this read, of whole values or of factors that a matrix kernel rounds,
 * because `reads` decided the buffer's element type. Buffer -1 is absent. */
void pl_check_read(pl_checker *c, int number, bool is_factor);
/* Checks that an index stays inside its buffer at the shortest and longest lengths. */
void pl_check_position(pl_checker *c, int number, const pl_expr *index);
/* Checks that a view of rows and columns is inside its buffer. */
void pl_check_matrix(pl_checker *c, const pl_matrix *m, ir_dim rows, ir_dim columns);
void pl_check_expr(pl_checker *c, const pl_expr *e);
/* Checks the number of elements; whole: also that the values are read without rounding. */
void pl_check_vector(pl_checker *c, int number, ir_dim count);
void pl_check_whole_vector(pl_checker *c, int number, ir_dim count);
/* Sets the loops of a kernel over rows and columns, and its accumulator. */
void pl_check_set_matrix_loops(pl_checker *c, ir_dim rows, ir_dim columns);

#endif
