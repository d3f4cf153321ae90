/* mutate.h — the fields of a plan's structures, each changed in every way that its kind has: for tests of what must
 * tell two of them apart. */
#ifndef TEST_MUTATE_H
#define TEST_MUTATE_H

#include "ir/plan/plan.h"

/* Changes what is at `at` in its way number `step`; -1: how many ways there are. */
typedef int (*mutate_fn)(void *at, int step);

typedef struct mutate_field {
    const char *name;
    size_t offset;
    mutate_fn mutate;
} mutate_field;

/* Expressions that kernels get instead of theirs live in this arena. */
void mutate_begin(ir_arena *arena);
extern const pl_expr *mutate_other_expr, *mutate_other_load;
/* The same load at another index: the kernel touches the same buffers. */
const pl_expr *mutate_moved(const pl_expr *load);

/* Way number `step` of all fields of `object`, one after the other, and the field's name where *out_name is wanted; -1:
 * how many ways they have together. */
int mutate_fields(const mutate_field *fields, int count, void *object, int step, const char **out_name);

/* ---- Kinds of fields --------------------------------------------------------------------------------------------- */

int mutate_i64(void *at, int step);
int mutate_i32(void *at, int step);
/* Of enumerations, whatever they are. */
int mutate_choice(void *at, int step);
int mutate_flag(void *at, int step);
int mutate_real(void *at, int step);
int mutate_dim(void *at, int step);
/* A buffer that another operand has already: which are one is what code sees of their numbers. */
int mutate_buffer(void *at, int step);
int mutate_optional(void *at, int step);
int mutate_expr(void *at, int step);
int mutate_optional_expr(void *at, int step);

#endif
