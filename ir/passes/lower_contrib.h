/* lower_contrib.h — rules that rewrite ONNX Runtime's contributed operators (domain com.microsoft) in terms of
 * ONNX's. The table is in lower_contrib.c. Definitions: ONNX Runtime, docs/ContribOperators.md. */
#ifndef IR_PASSES_LOWER_CONTRIB_H
#define IR_PASSES_LOWER_CONTRIB_H

#include "ir/passes/builder.h"

/* lower_contrib_attention.c */
void ir_contrib_attention(ir_builder *b, ir_node *node);
void ir_contrib_multi_head_attention(ir_builder *b, ir_node *node);

#endif
