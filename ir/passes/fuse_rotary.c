/* fuse_rotary.c — recognises rotary embeddings by halves (Su et al., "RoFormer", 2021) in the form of PyTorch models,
 *
 *     x cos + concat(-x₂, x₁) sin      with x = concat(x₁, x₂)
 *
 * and rewrites them as concat(x₁ cos₁ - x₂ sin₁, x₂ cos₂ + x₁ sin₂): one loop over pairs, without a rotated copy of
 * x.
 */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

enum { X, SECOND, COSINE, SINE, ROTATED };

static const ir_pattern *const rotation =
    P(Add, P(Mul, P_ANY(X), P_ANY(COSINE)), P(Mul, P_LET(ROTATED, P(Concat, P(Neg, P_ANY(SECOND)))), P_ANY(SINE)));

/* Is `value` x[…, from:from + half] along the last axis? */
static bool is_half(const ir_value *value, const ir_value *x, int64_t source, int64_t half)
{
    const ir_node *node = value->def;
    int last_index = x->type.rank - 1;
    if (node == NULL || node->inputs[0] != x || !ir_dim_is(value->type.dim[last_index], half)) return false;
    if (node->op == &ir_ops[IR_OP_Split]) {
        int64_t axis = ir_node_int(node, "axis", 0);
        return (axis == -1 || axis == last_index) && node->output_count == 2 && value->output == (source > 0);
    }
    int64_t starts[IR_MAX_KNOWN], axes[IR_MAX_KNOWN], steps[IR_MAX_KNOWN];
    int count, axis_count, step_count;
    if (node->op != &ir_ops[IR_OP_Slice] || ir_node_input(node, 3) == NULL) return false;
    if (!ir_value_ints(node->inputs[1], starts, &count) || count != 1) return false;
    if (!ir_value_ints(node->inputs[3], axes, &axis_count) || (axes[0] != -1 && axes[0] != last_index)) return false;
    if (ir_node_input(node, 4) != NULL && (!ir_value_ints(node->inputs[4], steps, &step_count) || steps[0] != 1))
        return false;
    return (starts[0] < 0 ? starts[0] + 2 * half : starts[0]) == source;
}

/* One half of a factor, or all of it if it is equal for all channels. Models repeat the angles for both halves before
 * computing cosines and sines, so both halves are equal. */
static ir_value *half_of(ir_builder *b, ir_value *factor, int64_t source, int64_t half)
{
    const ir_node *node = factor->def;
    int last_index = factor->type.rank - 1;
    if (last_index < 0 || ir_dim_is(factor->type.dim[last_index], 1)) return factor;
    if (node != NULL && (node->op == &ir_ops[IR_OP_Cos] || node->op == &ir_ops[IR_OP_Sin]))
        return ir_build_op1(b, ir_node_opcode(node), half_of(b, node->inputs[0], source, half));
    if (node != NULL && node->op == &ir_ops[IR_OP_Concat] && node->input_count == 2) {
        int64_t axis = ir_node_int(node, "axis", 0);
        bool in_halves = ir_dim_is(node->inputs[0]->type.dim[last_index], half);
        if ((axis == -1 || axis == last_index) && in_halves) return node->inputs[source > 0];
    }
    return ir_build_slice(b, factor, last_index, source, source + half);
}

void ir_rule_fuse_rotary(ir_builder *b, ir_node *node)
{
    ir_match m;
    if (node->op != &ir_ops[IR_OP_Add] || !ir_dtype_is_float(b->dtype)) return;
    if (!ir_match_value(rotation, node->outputs[0], &m)) return;
    ir_value *x = m.slot[X];
    const ir_node *rotated = m.slot[ROTATED]->def;
    int last_index = x->type.rank - 1;
    if (last_index < 0 || !ir_type_equal(&x->type, &node->outputs[0]->type) || rotated->input_count != 2) return;
    if (!ir_type_equal(&x->type, &m.slot[ROTATED]->type) || !ir_dim_is_number(x->type.dim[last_index])) return;
    int64_t half = x->type.dim[last_index].offset / 2, axis = ir_node_int(rotated, "axis", 0);
    ir_value *one = rotated->inputs[1], *two = m.slot[SECOND], *cosine = m.slot[COSINE], *sine = m.slot[SINE];
    if ((axis != -1 && axis != last_index) || !is_half(two, x, half, half) || !is_half(one, x, 0, half)) return;
    ir_value *parts[2];
    ir_value *kept = ir_build_mul(b, one, half_of(b, cosine, 0, half));
    ir_value *crossed = ir_build_mul(b, two, half_of(b, sine, 0, half));
    parts[0] = ir_build_sub(b, kept, crossed);
    kept = ir_build_mul(b, two, half_of(b, cosine, half, half));
    crossed = ir_build_mul(b, one, half_of(b, sine, half, half));
    parts[1] = ir_build_add(b, kept, crossed);
    ir_replace(b, node->outputs[0], ir_build_concat(b, last_index, parts, 2));
}
