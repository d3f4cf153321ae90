/* plan_matmul.h — MatMul, Einsum and other linears. */
#ifndef IR_PLAN_PLAN_MATMUL_H
#define IR_PLAN_PLAN_MATMUL_H

#include "plan/builder.h"

mdot_status pl_emit_matmul(pl_builder *b, const ir_node *node);

#endif
