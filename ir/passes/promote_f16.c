/* promote_f16.c — computes in f32 what a model computes in 16 bits, so that every kernel and every pass behind serves it.
 *
 * Each node is made again on f32 operands and its results are cast back; a node that reads such a result reads what was
 * cast. So values are rounded to 16 bits where the model's inputs and outputs are, and where it decides by one: results
 * lie within the type's own rounding of what the model says, and nearer to what it means.
 */
#include "ir/ops.h"
#include "ir/passes/builder.h"
#include "ir/passes/pass.h"

static bool is_narrow(const ir_value *value)
{
    return value != NULL && (value->type.dtype == MDOT_DTYPE_F16 || value->type.dtype == MDOT_DTYPE_BF16);
}

/* What a cast of f32 or bool made narrow, from which f32 is had without rounding; NULL: the value is none such. */
static ir_value *before_narrowing(const ir_value *value)
{
    const ir_node *node = value->def;
    if (!is_narrow(value) || node == NULL || node->op != &ir_ops[IR_OP_Cast]) return NULL;
    mdot_dtype dtype = node->inputs[0]->type.dtype;
    return dtype == MDOT_DTYPE_F32 || dtype == MDOT_DTYPE_BOOL ? node->inputs[0] : NULL;
}

/* The value in f32: what a cast made narrow, or a cast of it. */
static ir_value *widened(ir_builder *b, ir_value *value)
{
    if (!is_narrow(value)) return value;
    ir_value *wide = before_narrowing(value);
    return ir_build_cast(b, wide != NULL ? wide : value, MDOT_DTYPE_F32);
}

/* Decisions are the model's own: they read rounded values. Scans and scatters have kernels of any type. */
static bool is_kept(const ir_node *node)
{
    switch (ir_node_opcode(node)) {
    case IR_OP_Cast:
    case IR_OP_CastLike:
    case IR_OP_Floor:
    case IR_OP_Ceil:
    case IR_OP_Round:
    case IR_OP_Equal:
    case IR_OP_Less:
    case IR_OP_LessOrEqual:
    case IR_OP_Greater:
    case IR_OP_GreaterOrEqual:
    case IR_OP_IsInf:
    case IR_OP_IsNaN:
        return true;
    default:
        return node->op->lowering == IR_LOWER_SEQUENTIAL || node->op->lowering == IR_LOWER_FOLD ||
               node->op->lowering == IR_LOWER_NONE;
    }
}

static void cast(ir_builder *b, ir_node *node)
{
    if (node->outputs[0]->type.dtype == MDOT_DTYPE_F32 && before_narrowing(node->inputs[0]) != NULL)
        ir_replace(b, node->outputs[0], widened(b, node->inputs[0]));
}

static void widen(ir_builder *b, ir_node *node)
{
    bool reads_narrow = false;
    if (node->op == &ir_ops[IR_OP_Cast]) cast(b, node);
    if (is_kept(node)) return;
    for (int i = 0; i < node->input_count; i++) reads_narrow = reads_narrow || is_narrow(node->inputs[i]);
    if (!reads_narrow) return;
    ir_value **inputs = ir_build_alloc(b, node->input_count, sizeof *inputs);
    if (inputs == NULL) return;
    for (int i = 0; i < node->input_count; i++) inputs[i] = widened(b, node->inputs[i]);
    ir_node *wide = ir_build_node(b, ir_node_opcode(node), inputs, node->input_count, node->output_count);
    if (wide == NULL) return;
    wide->attrs = node->attrs;
    wide->attr_count = node->attr_count;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL) wide->outputs[i] = NULL;
    }
    if (ir_build_infer(b, wide) == NULL && b->status != MDOT_OK) return;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL || node->outputs[i]->use_count == 0) continue;
        ir_replace(b, node->outputs[i], ir_build_cast(b, wide->outputs[i], node->outputs[i]->type.dtype));
    }
}

mdot_status ir_pass_promote_f16(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    return ir_rewrite(graph, widen, out_changed, err);
}
