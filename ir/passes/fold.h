/* fold.h — folds the constants of one node, for passes that fold during their own walk. */
#ifndef IR_PASSES_FOLD_H
#define IR_PASSES_FOLD_H

#include "ir/passes/builder.h"

/* Replaces the outputs of a typed node by constants if they are known at compile time. */
void ir_fold_node(ir_builder *b, ir_node *node);

#endif
