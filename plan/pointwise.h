/* pointwise.h — definitions of pointwise operators, one expression each. */
#ifndef IR_PLAN_POINTWISE_H
#define IR_PLAN_POINTWISE_H

#include "plan/builder.h"

const pl_expr *pl_define_pointwise(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
/* Size of a pointwise node's formula as a tree: its nodes, and the number of reads of operand `v`. Trees grow
 * multiplicatively along chains. */
typedef struct pl_growth {
    int nodes, copies;
} pl_growth;
pl_growth pl_pointwise_growth(pl_builder *b, const ir_node *node, const ir_value *v);

#endif
