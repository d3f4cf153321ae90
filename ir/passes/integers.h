/* integers.h — integer arithmetic that exporters take through floating point. */
#ifndef IR_PASSES_INTEGERS_H
#define IR_PASSES_INTEGERS_H

#include "ir/passes/builder.h"

/* Cast(Min or Max of integers cast to floats and whole constants) to an integer type: the same on integers, typed, so
 * that a length survives it. True when the node was replaced. */
bool ir_take_integers(ir_builder *b, ir_node *node);

#endif
