/* visit.h — passes buffers and the loads of expressions to a visitor, for the files of the kernel kinds. */
#ifndef IR_PLAN_VISIT_H
#define IR_PLAN_VISIT_H

#include "plan/kernel_kind.h"

/* Passes a buffer, a factor or the loads of an expression to the visitor. Buffer -1 and expression NULL are absent. */
void pl_visit_read(const pl_visitor *visitor, int buffer);
void pl_visit_factor(const pl_visitor *visitor, int buffer);
void pl_visit_write(const pl_visitor *visitor, int buffer);
void pl_visit_loads(const pl_visitor *visitor, const pl_expr *expr);

#endif
