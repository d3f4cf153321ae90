/* kind_linear.h — the rule for dividing linear kernels among calls. */
#ifndef IR_PLAN_KIND_LINEAR_H
#define IR_PLAN_KIND_LINEAR_H

/* A linear with a constant number of rows is divided among calls if it has more rows than this. */
enum { PL_LINEAR_UNSPLIT_ROWS = 96 };

#endif
