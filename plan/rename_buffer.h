/* rename_buffer.h — lets a kernel use another buffer of the same type in place of one of its own. */
#ifndef IR_PLAN_RENAME_BUFFER_H
#define IR_PLAN_RENAME_BUFFER_H

#include "plan/builder.h"

/* Is the kernel of a kind that pl_rename_buffer changes? */
bool pl_can_rename(const pl_kernel *kernel);
/* Replaces buffer `from` by `to` in all accesses of a kernel. Shared sub-expressions stay shared. False: out of
 * memory. */
bool pl_rename_buffer(pl_builder *b, pl_kernel *kernel, int from, int to);

#endif
