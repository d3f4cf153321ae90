/* ops_table.c — the operator table, from ops.def (ops.h). */
#include "ir/ops/operands.h"

#include <limits.h>

#define SIF IR_STATELESS
#define COM (IR_STATELESS | IR_COMMUTATIVE)
#define VAR IR_VARIADIC
#define SHP IR_SHAPE_ONLY
#define MANY INT_MAX
#define ir_eval_none NULL
#define ir_cost_traffic NULL
#define SHAPE_RULE(name) ir_shape_##name, NULL, NULL
#define SHAPE_RESULT(name) ir_shape_by_result, ir_result_##name, NULL
#define SHAPE_OUTPUTS(name) ir_shape_by_outputs, NULL, ir_outputs_##name
#define SHAPE_MOVES(name) ir_shape_by_move, ir_result_##name, NULL

const ir_op ir_ops[IR_OP_COUNT] = {
#define OP(id, name, domain, least_in, most_in, least_out, most_out, traits, shape, cost, eval, slope, lowering, ...)  \
    [IR_OP_##id] = {IR_OP_##id, name,          domain,    least_in,  most_in, least_out,          most_out,            \
                    traits,     SHAPE_##shape, ir_##cost, ir_##eval, slope,   IR_LOWER_##lowering},
#include "ir/ops.def"
};
