/* plan_text.h — the text form of expressions and of the parts that kernels share, for print_plan.c and the files of the
 * kernel kinds. */
#ifndef IR_PLAN_PLAN_TEXT_H
#define IR_PLAN_PLAN_TEXT_H

#include "plan/plan.h"

/* A string that grows by doubling in the arena; `failed` is set when memory is exhausted. */
typedef struct pl_text {
    ir_arena *arena;
    char *bytes;
    size_t length, capacity;
    bool failed;
} pl_text;

void pl_put(pl_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *pl_text_finish(pl_text *t); /* NULL if memory is exhausted */

enum { PL_F32_DIGITS = 9 }; /* enough digits to distinguish any two values */

void pl_put_real(pl_text *t, const char *word, double value, int digits);
void pl_put_dim(pl_text *t, ir_dim d);
void pl_put_named_dim(pl_text *t, const char *name, ir_dim d);
void pl_put_expr(pl_text *t, const pl_expr *e); /* text like "add(b3[i0*128 + i1], f32 1.0)" */
void pl_put_matrix(pl_text *t, const pl_matrix *m);
/* A line each, if the kernel has an epilogue or the output. */
void pl_put_epilogue(pl_text *t, const pl_expr *epilogue);
void pl_put_output(pl_text *t, const char *name, const pl_matrix *m);
const char *pl_reducer_name(pl_reducer reducer);

#endif
