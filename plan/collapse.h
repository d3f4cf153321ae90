/* collapse.h — merges loops that can run as one. */
#ifndef IR_PLAN_COLLAPSE_H
#define IR_PLAN_COLLAPSE_H

#include "plan/builder.h"

/* Merges loops that can run as one (collapse.c). */
void pl_collapse_loops(pl_builder *b, pl_nest *nest);

#endif
