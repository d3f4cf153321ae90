/* recognise_group_norms.c — recognises the GroupNormalization pattern of PyTorch's exporters: the groups become
 * channels of an InstanceNormalization without scale and bias. Then follow a reshape back, and a product and a sum
 * with one vector per channel each.
 *
 * As in recognise_norms.c, the core is recognised first. Then the product becomes its scale and the sum its bias.
 */
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

static ir_value *group_norm(ir_builder *b, const ir_node *like, ir_value *x, ir_value *scale, ir_value *bias,
                            int64_t groups)
{
    double epsilon = ir_node_float(like, "epsilon", 1e-5);
    return ir_build_with(b, IR_OP_GroupNormalization, IR_VALUES(x, scale, bias),
                         IR_ATTRS(IR_INT("num_groups", groups), IR_FLOAT("epsilon", epsilon)));
}

static bool is_used_once_by(const ir_value *value, const ir_op *op)
{
    return value->use_count == 1 && value->def != NULL && value->def->op == op;
}

/* Reshape(InstanceNormalization([batch, groups, …])) to [batch, channels, …]. */
static void core(ir_builder *b, ir_node *node)
{
    const ir_type *type = &node->outputs[0]->type;
    if (!is_used_once_by(node->inputs[0], &ir_ops[IR_OP_InstanceNormalization])) return;
    const ir_node *norm = node->inputs[0]->def;
    const ir_type *grouped = &norm->inputs[0]->type;
    if (!ir_value_is_filled(norm->inputs[1], 1, 0) || !ir_value_is_filled(norm->inputs[2], 0, 0)) return;
    if (type->rank < 3 || grouped->rank < 3 || !ir_dim_equal(type->dim[0], grouped->dim[0])) return;
    if (!ir_dim_is_number(type->dim[1]) || !ir_dim_is_number(grouped->dim[1])) return;
    int64_t channels = type->dim[1].offset, groups = grouped->dim[1].offset;
    if (groups < 1 || channels < 1 || channels % groups) return;
    ir_value *x = ir_build_reshape(b, norm->inputs[0], type->dim, type->rank);
    ir_value *scale = ir_build_filled(b, &channels, 1, 1), *bias = ir_build_filled(b, &channels, 1, 0);
    ir_replace(b, node->outputs[0], group_norm(b, norm, x, scale, bias, groups));
}

/* A constant [channels, 1, …] as [channels]. NULL: the value has another form. */
static ir_value *channel_vector(ir_builder *b, const ir_type *x, ir_value *value)
{
    const ir_type *type = &value->type;
    int index = type->rank - (x->rank - 1);
    if (value->constant == NULL || index < 0 || type->dtype != x->dtype || !ir_dim_equal(type->dim[index], x->dim[1]))
        return NULL;
    if (value->constant->count != x->dim[1].offset) return NULL;
    return ir_build_reshape(b, value, &x->dim[1], 1);
}

static void affine(ir_builder *b, ir_node *node)
{
    bool scales = node->op == &ir_ops[IR_OP_Mul];
    for (int i = 0; i < 2; i++) {
        const ir_node *norm = node->inputs[i]->def;
        if (!is_used_once_by(node->inputs[i], &ir_ops[IR_OP_GroupNormalization])) continue;
        if (!ir_value_is_filled(norm->inputs[2], 0, 0)) continue;
        if (scales && !ir_value_is_filled(norm->inputs[1], 1, 0)) continue;
        ir_value *vector = channel_vector(b, &norm->inputs[0]->type, node->inputs[1 - i]);
        ir_value *scale = scales ? vector : norm->inputs[1], *bias = scales ? norm->inputs[2] : vector;
        int64_t groups = ir_node_int(norm, "num_groups", 1);
        if (ir_replace(b, node->outputs[0], group_norm(b, norm, norm->inputs[0], scale, bias, groups))) return;
    }
}

const ir_rule ir_rules_recognise_group_norms[IR_OP_COUNT] = {
    [IR_OP_Reshape] = core,
    [IR_OP_Mul] = affine,
    [IR_OP_Add] = affine,
};
