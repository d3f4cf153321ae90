/* promote_f16.c — computes in f32 the operators that a model computes in 16 bits, so all kernels and later passes
 * apply.
 *
 * Each node is rebuilt on f32 operands, and the results are cast back. A node that reads such a result reads the f32
 * value instead. Therefore values are rounded to 16 bits only at the model's inputs and outputs, where the model
 * decides by a value, and where it asks for the rounding itself: it narrows a value and widens the same value again.
 * Other results differ from the model's by at most the rounding of the type, and are closer to the exact result. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

static bool is_narrow(const ir_value *value)
{
    return value != NULL && (value->type.dtype == MDOT_DTYPE_F16 || value->type.dtype == MDOT_DTYPE_BF16);
}

/* Set on such a cast while the pass runs. */
static const char rounds[] = "mdot.rounds";

static bool is_cast(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Cast] || node->op == &ir_ops[IR_OP_CastLike];
}

/* Does a reader widen the value, or moved elements? */
static bool is_widened(const ir_value *value, const bool *widened_later)
{
    for (const ir_use *use = value->uses; use != NULL; use = use->next) {
        const ir_node *reader = use->node;
        if (reader == NULL || reader->op == NULL || reader->outputs[0] == NULL) continue;
        bool is_cast_value = is_cast(reader) && use->index == 0; /* CastLike reads only the other operand's type */
        if (is_cast_value && ir_dtype_is_float(reader->outputs[0]->type.dtype) && !is_narrow(reader->outputs[0]))
            return true;
        bool moves = reader->op->lowering == IR_LOWER_MOVE || reader->op->lowering == IR_LOWER_ALIAS;
        for (int i = 0; moves && i < reader->output_count; i++)
            if (reader->outputs[i] != NULL && widened_later[reader->outputs[i]->id]) return true;
    }
    return false;
}

/* Marks the casts that narrow a value which is widened again. Walks from the last node to the first, so readers are
 * visited before their operands. */
static bool mark_rounding(ir_graph *graph)
{
    ir_arena *scratch = ir_arena_create(0);
    bool *widened_later = scratch != NULL ? IR_NEW_ARRAY(scratch, bool, graph->value_count + 1) : NULL;
    bool done = widened_later != NULL;
    for (ir_node *node = graph->last; node != NULL && done; node = node->prev) {
        for (int i = 0; i < node->output_count && done; i++) {
            const ir_value *output = node->outputs[i];
            if (!is_narrow(output)) continue;
            widened_later[output->id] = is_widened(output, widened_later);
            if (widened_later[output->id] && node->op != NULL && is_cast(node))
                done = ir_node_set(graph, node, IR_INT(rounds, 1));
        }
    }
    ir_arena_destroy(scratch);
    return done;
}

/* The f32 or bool value that a cast narrowed, which gives f32 without rounding. NULL: the value has another origin, or
 * the model asks for the rounding. */
static ir_value *before_narrowing(const ir_value *value)
{
    const ir_node *node = value->def;
    if (!is_narrow(value) || node == NULL || node->op != &ir_ops[IR_OP_Cast]) return NULL;
    if (ir_node_attr(node, rounds) != NULL) return NULL;
    mdot_dtype dtype = node->inputs[0]->type.dtype;
    return dtype == MDOT_DTYPE_F32 || dtype == MDOT_DTYPE_BOOL ? node->inputs[0] : NULL;
}

/* The value in f32: the value before a narrowing cast, or a cast of the value. */
static ir_value *widened(ir_builder *b, ir_value *value)
{
    if (!is_narrow(value)) return value;
    ir_value *wide = before_narrowing(value);
    return ir_build_cast(b, wide != NULL ? wide : value, MDOT_DTYPE_F32);
}

/* Is the node kept as it is? Decisions are the model's own, so they read rounded values. IsNaN is an exception, because
 * rounding turns no number into NaN; exporters guard softmax with it. Scans and scatters have kernels for every
 * type. */
static bool is_kept(const ir_node *node)
{
    ir_lowering lowering = node->op->lowering;
    return lowering == IR_LOWER_SEQUENTIAL || lowering == IR_LOWER_FOLD || lowering == IR_LOWER_NONE ||
           IR_IS_ONE_OF(node, IR_OP_Cast, IR_OP_CastLike, IR_OP_Floor, IR_OP_Ceil, IR_OP_Round, IR_OP_Equal, IR_OP_Less,
                        IR_OP_LessOrEqual, IR_OP_Greater, IR_OP_GreaterOrEqual, IR_OP_IsInf);
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
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] == NULL) wide->outputs[i] = NULL;
    if (ir_build_infer(b, wide) == NULL && b->status != MDOT_OK) return;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL || node->outputs[i]->use_count == 0) continue;
        ir_replace(b, node->outputs[i], ir_build_cast(b, wide->outputs[i], node->outputs[i]->type.dtype));
    }
}

mdot_status ir_pass_promote_f16(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    if (!mark_rounding(graph)) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    mdot_status status = ir_rewrite(graph, widen, out_changed, err);
    for (ir_node *node = graph->first; node != NULL; node = node->next) ir_node_remove_attr(node, rounds);
    return status;
}
