/* mutate.h — changes each field in a plan's structures in every way that the field's kind allows, for tests that
 * distinguish two structures. */
#pragma once

#include "plan/plan.h"

/* Applies change number `step` to the field at `at`. With -1, returns the number of changes. */
typedef int (*mutate_fn)(void *at, int step);

typedef struct mutate_field {
    const char *name;
    size_t offset;
    mutate_fn mutate;
} mutate_field;

/* The replacement expressions that kernels get are allocated in this arena. */
void mutate_begin(ir_arena *arena);
extern const pl_expr *mutate_other_expr, *mutate_other_load;
/* The same load at another index, so the kernel touches the same buffers. */
const pl_expr *mutate_moved(const pl_expr *load);

/* Applies change number `step` over all fields of `object` in order. Sets *out_name to the field's name unless out_name
 * is NULL. With -1, returns the total number of changes. */
int mutate_fields(const mutate_field *fields, int count, void *object, int step, const char **out_name);

/* ---- Kinds of fields --------------------------------------------------------------------------------------------- */

int mutate_i64(void *at, int step);
int mutate_i32(void *at, int step);
/* For any enumeration. */
int mutate_choice(void *at, int step);
int mutate_flag(void *at, int step);
int mutate_real(void *at, int step);
int mutate_dim(void *at, int step);
/* Takes another operand's buffer, because code only depends on which operands share a buffer. */
int mutate_buffer(void *at, int step);
int mutate_optional(void *at, int step);
int mutate_expr(void *at, int step);
int mutate_optional_expr(void *at, int step);
