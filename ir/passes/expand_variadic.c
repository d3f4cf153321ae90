/* expand_variadic.c — rewrites Sum, Mean, Min and Max of many inputs as trees of operators with few inputs. A kernel
 * computes one expression, which is processed recursively, so a sum of 60,000 inputs would overflow the stack. */
#include "ir/passes/pass_rules.h"

#include "ir/ops.h"

#include <string.h>

enum { FEW = 32 };

/* Replaces each FEW of the `count` values in `values` by one value, in place, and returns the new count. */
static int join_groups(ir_builder *b, ir_opcode op, ir_value **values, int count)
{
    int joined = 0;
    for (int first = 0; first < count; first += FEW, joined++) {
        int size = count - first < FEW ? count - first : FEW;
        ir_node *node = size > 1 ? ir_build_node(b, op, values + first, size, 1) : NULL;
        values[joined] = size > 1 ? ir_build_infer(b, node) : values[first];
    }
    return joined;
}

void ir_expand_variadic(ir_builder *b, ir_node *node)
{
    int count = node->input_count;
    if (count <= FEW) return;
    ir_opcode op = ir_node_opcode(node);
    ir_value **values = ir_build_alloc(b, count, sizeof *values);
    if (values == NULL) return;
    memcpy(values, node->inputs, (size_t)count * sizeof *values);
    for (int left = count; left > 1 && b->status == MDOT_OK;)
        left = join_groups(b, op == IR_OP_Mean ? IR_OP_Sum : op, values, left);
    ir_value *result = values[0];
    if (op == IR_OP_Mean) result = ir_build_div(b, result, ir_build_scalar(b, count));
    ir_replace(b, node->outputs[0], result);
}
