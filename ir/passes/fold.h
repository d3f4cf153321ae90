/* fold.h — constant folding of one node, for the passes that do it in their own walk. */
#ifndef IR_PASSES_FOLD_H
#define IR_PASSES_FOLD_H

#include "ir/passes/builder.h"

/* Replaces those outputs of a typed node that are known at compile time by constants. */
void ir_fold_node(ir_builder *b, ir_node *node);

#endif
