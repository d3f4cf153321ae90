/* kernel.h — appends buffers and kernels to the plan that is being built, names kernels, and records errors. */
#ifndef IR_PLAN_KERNEL_H
#define IR_PLAN_KERNEL_H

#include "plan/builder.h"

/* Records UNSUPPORTED with the node's name. Returns NULL, so that expression functions can `return pl_reject(…)`. */
const void *pl_reject(pl_builder *b, const ir_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status behind a NULL result: the recorded error, or out of memory. */
mdot_status pl_fault(pl_builder *b);
/* -1: an error is recorded */
int pl_add_buffer(pl_builder *b, pl_buffer_kind kind, const char *name, const ir_type *type);
/* The buffer of a constant for one use, created at the first call. */
int pl_constant_buffer(pl_builder *b, const ir_tensor *constant, const char *name, pl_weight_use use);
void pl_begin_kernel(pl_builder *b);
void pl_note_origin(pl_builder *b, const ir_node *node);
/* Appends the kernel and names it after a node or value of that name. The specification is copied. */
mdot_status pl_end_kernel(pl_builder *b, pl_kind kind, const char *name, const pl_kernel *specification);
/* Turns the kernels from number `first` on into the steps of one recurrence, named after `node`. */
mdot_status pl_end_steps(pl_builder *b, const ir_node *node, ir_dim steps, int first);

#endif
