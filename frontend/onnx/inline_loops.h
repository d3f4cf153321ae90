/* inline_loops.h — Loop and Scan in a predictor. Private to frontend/onnx.
 *
 * If the number of steps is constant and at most FE_MOST_UNROLLED_NODES nodes result, the body is inlined once for each
 * step. Otherwise it is inlined once, between an mdot.LoopBegin and an mdot.LoopEnd (ir/loop_nodes.h). The number of
 * steps of a Loop then comes from a node LoopSteps, which is replaced when the graph is imported (loop_steps.h).
 *
 * States that the body passes on unchanged are no states: the body reads their initial values.
 * inline_loops.c and functions.c call each other, because a loop's body contains calls of functions, and a function's
 * body contains loops.
 */
#ifndef FE_INLINE_LOOPS_H
#define FE_INLINE_LOOPS_H

#include "frontend/onnx/flatten.h"

enum {
    FE_MOST_UNROLLED_NODES = 512,   /* of one loop: steps times the nodes of the body */
    FE_MOST_UNROLLED_TOTAL = 16384, /* of all loops of a model, so that nested ones cannot exhaust memory */
};

bool fe_is_loop(const fe_node *node);
/* Adds the nodes of the loop to the flat model. A form that mdot lacks is added as one node, whose type states the
 * reason. */
mdot_status fe_inline_loop(const fe_flattener *f, const fe_scope *in, const fe_node *node);

/* Adds a Constant for each initializer of a branch or a body. */
mdot_status fe_add_initializers(const fe_flattener *f, const fe_scope *in, const Onnx__GraphProto *graph);

#endif
