/* visit.c — passes buffers and the loads of expressions to a visitor; the files of the kernel kinds call it. */
#include "plan/kind_tools.h"

#include "plan/expr.h"
#include "plan/kernel_kind.h"

void pl_visit_read(const pl_visitor *visitor, int buffer)
{
    if (buffer >= 0) visitor->visit(visitor->user, buffer, false);
}

void pl_visit_factor(const pl_visitor *visitor, int buffer)
{
    if (buffer >= 0 && visitor->visit_factor != NULL)
        visitor->visit_factor(visitor->user, buffer);
    else
        pl_visit_read(visitor, buffer);
}

void pl_visit_write(const pl_visitor *visitor, int buffer)
{
    if (buffer >= 0) visitor->visit(visitor->user, buffer, true);
}

void pl_visit_loads(const pl_visitor *visitor, const pl_expr *expr)
{
    if (expr == NULL) return;
    if (expr->op == PL_LOAD) pl_visit_read(visitor, expr->i);
    for (int k = 0; k < pl_expr_operand_count(expr->op); k++) pl_visit_loads(visitor, expr->arg[k]);
}
