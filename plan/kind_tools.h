/* kind_tools.h — helpers of the files kind_<name>.c: visits, text, checks and units. */
#pragma once

#include "plan/kernel_kind.h"
#include "plan/plan.h"

/* ---- visit.c: passes buffers and the loads of expressions to a visitor, for the files of the kernel kinds -------- */

/* Passes a buffer, a factor or the loads of an expression to the visitor. Buffer -1 and expression NULL are absent. */
void pl_visit_read(const pl_visitor *visitor, int buffer);
void pl_visit_factor(const pl_visitor *visitor, int buffer);
void pl_visit_write(const pl_visitor *visitor, int buffer);
void pl_visit_loads(const pl_visitor *visitor, const pl_expr *expr);

/* ---- plan_text.c: the text form of expressions and of the parts that kernels share, for print_plan.c and the files of
 * the kernel kinds. */

enum { PL_F32_DIGITS = 9 }; /* enough digits to distinguish any two values */

void pl_put_real(FILE *t, const char *word, double value, int digits);
void pl_put_dim(FILE *t, ir_dim d);
void pl_put_named_dim(FILE *t, const char *name, ir_dim d);
void pl_put_expr(FILE *t, const pl_expr *e); /* text like "add(b3[i0*128 + i1], f32 1.0)" */
void pl_put_matrix(FILE *t, const pl_matrix *m);
/* A line each, if the kernel has an epilogue or the output. */
void pl_put_epilogue(FILE *t, const pl_expr *epilogue);
void pl_put_output(FILE *t, const char *name, const pl_matrix *m);
const char *pl_reducer_name(pl_reducer reducer);

/* ---- plan_checker.c: checks the rules of plan.h that kernel kinds share, for verify_plan.c and the files of the
 * kinds: buffer numbers, types, and index bounds that are affine in the loops. */

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
/* Checks an index against the buffer at the shortest and longest lengths. */
void pl_check_position(pl_checker *c, int number, const pl_expr *index);
/* Checks a matrix view against the buffer's bounds. */
void pl_check_matrix(pl_checker *c, const pl_matrix *m, ir_dim rows, ir_dim columns);
void pl_check_expr(pl_checker *c, const pl_expr *e);
/* Checks the element count; whole: also that the values are read without rounding. */
void pl_check_vector(pl_checker *c, int number, ir_dim count);
void pl_check_whole_vector(pl_checker *c, int number, ir_dim count);
/* Sets a matrix kernel's loops and accumulator. */
void pl_check_set_matrix_loops(pl_checker *c, ir_dim rows, ir_dim columns);

/* ---- units.c: how a kernel's accesses move from one unit of the length to the next, for the rule of row-wise kernels.
 *
 * Items are calls of one entry at individual lengths. Their tensors are concatenated without padding. A kernel that
 * computes each unit of the length from that unit alone sees them as one call at the sum of the lengths.
 *
 * A kernel can process items together if advancing by one unit moves every access of a tensor with the length by that
 * tensor's unit, and changes nothing else. Then each index differs between an item's own call and the joint call by
 * the units of the preceding items, which is the position of the item's tensor. Extents may exceed the length by a
 * number of units, for example behind a token that is put in front of the sequence. The number must be equal in the
 * kernel and in all its tensors.
 */

/* One unit of length in the current kernel. */
typedef struct pl_units {
    const pl_plan *plan;
    int loop;       /* the loop over the units */
    int64_t scale;  /* points of the loop per unit */
    int64_t offset; /* units beyond the length */
} pl_units;

/* Sets the loop over the units. False: its extent is not scale * (L + offset). */
bool pl_begin_units(pl_units *u, int loop, ir_dim extent);
/* Does the access advance by `step` elements per unit, as the tensor does? Constants are equal for every item. */
bool pl_access_follows(const pl_units *u, int buffer, int64_t step);
/* The same for an access at offset + unit * scale * stride. */
bool pl_stride_follows(const pl_units *u, int buffer, ir_dim offset, ir_dim stride);
bool pl_matrix_follows(const pl_units *u, const pl_matrix *m);
/* The same for the windows of `m`. False, for example, if they slide over the units, so windows at the end of an item
 * would reach into the next item. */
bool pl_windows_follow(const pl_units *u, const pl_matrix *m, const pl_windows *windows);
/* The increase of the expression's value from unit to unit. False: it is not a number, or unknown. */
bool pl_find_step(const pl_units *u, const pl_expr *e, int64_t *out_step);
/* Is the value equal for equal rows, at any position? */
bool pl_is_of_unit(const pl_units *u, const pl_expr *e);
