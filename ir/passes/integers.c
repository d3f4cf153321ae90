/* integers.c — Min and Max take integers since opset 12 only; before, exporters cast shapes to float and back around
 * them (integers.h). Shape rules follow integers, not floats, so the detour is taken out before shapes are inferred.
 */
#include "ir/passes/integers.h"

#include <math.h>

enum { MAX_OPERANDS = 4 };

/* An i64 value with the same content as `operand`, a float: the integer that was cast to it, or a whole constant. */
static ir_value *as_integer(ir_builder *b, const ir_value *operand)
{
    const ir_node *cast = operand->def;
    if (cast && cast->op == &ir_ops[IR_OP_Cast] && cast->inputs[0]->known) {
        return b_cast(b, cast->inputs[0], MDOT_DTYPE_I64);
    }
    const ir_tensor *tensor = operand->constant;
    if (!tensor || !tensor->data || tensor->count > IR_MAX_KNOWN) return NULL;
    ir_wide *wide = ir_wide_from_tensor(b->graph->arena, tensor);
    int64_t *whole = b_alloc(b, tensor->count ? tensor->count : 1, sizeof *whole);
    if (!wide || !wide->f || !whole) return NULL;
    for (int64_t i = 0; i < wide->count; i++) {
        if (wide->f[i] != floor(wide->f[i]) || fabs(wide->f[i]) > 0x1p24) return NULL; /* f32 is exact up to 2^24 */
        whole[i] = (int64_t)wide->f[i];
    }
    return b_constant(b, MDOT_DTYPE_I64, tensor->dims, tensor->rank, whole);
}

bool ir_take_integers(ir_builder *b, ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_Cast] || ir_dtype_is_float((mdot_dtype)ir_node_int(node, "to", 0))) return false;
    const ir_node *choice = node->inputs[0]->def;
    bool is_choice = choice && (choice->op == &ir_ops[IR_OP_Min] || choice->op == &ir_ops[IR_OP_Max]);
    if (!is_choice || choice->input_count > MAX_OPERANDS) return false;
    ir_value *operands[MAX_OPERANDS];
    for (int i = 0; i < choice->input_count; i++) {
        operands[i] = as_integer(b, choice->inputs[i]);
        if (!operands[i]) return false;
    }
    ir_value *chosen = b_infer(b, b_node(b, ir_node_opcode(choice), operands, choice->input_count, 1));
    chosen = b_cast(b, chosen, (mdot_dtype)ir_node_int(node, "to", 0));
    return b->status == MDOT_OK && b_replace(b, node->outputs[0], chosen);
}
