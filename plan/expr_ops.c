/* expr_ops.c — names and operand counts of the expression operators. */
#include "plan/expr.h"

static const struct {
    int operands;
    const char *text;
} operators[PL_EXPR_OP_COUNT] = {
#define PL_EXPR_ROW(name, operand_count, operator_text) {operand_count, operator_text},
    PL_EXPR_MAP(PL_EXPR_ROW)
#undef PL_EXPR_ROW
};

int pl_expr_operand_count(pl_expr_op op) { return operators[op].operands; }
const char *pl_expr_op_name(pl_expr_op op) { return operators[op].text; }
