/* move.h — definitions of operators that move data, one expression each. */
#ifndef IR_PLAN_MOVE_H
#define IR_PLAN_MOVE_H

#include "plan/builder.h"

const pl_expr *pl_define_move(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
const pl_expr *pl_define_alias(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
/* move.c: the index into a shape that differs from `from` only in dimensions of one element. */
void pl_transfer_index(pl_builder *b, const ir_type *from, const pl_expr *const *index, const ir_type *to,
                       const pl_expr **out_index);

#endif
