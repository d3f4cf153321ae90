/* rewrites_meaning.c — upgrades of operators whose defaults or meaning changed. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/graph_edit.h"

#include <string.h>

/* Appends `count` dimensions of size 1 to input 1. */
static bool append_ones(fe_upgrader *u, ir_node *node, int rank, int count)
{
    int64_t axes[MDOT_MAX_RANK];
    for (int i = 0; i < count; i++) axes[i] = rank + i;
    ir_value *list = fe_add_ints(u, node, "axes", axes, count);
    return fe_set_input(u, node, 1, fe_add(u, node, IR_OP_Unsqueeze, IR_VALUES(node->inputs[1], list), IR_NO_ATTRS));
}

/* Aligns the second operand's first dimension with dimension `axis` of the first operand. */
static bool align_operand(fe_upgrader *u, ir_node *node, int64_t axis)
{
    ir_value *a = ir_node_input(node, 0), *b = ir_node_input(node, 1);
    if (a == NULL || b == NULL) return true; /* a node error, reported with the arity */
    int rank = fe_type_of(u, a)->rank, other_index = fe_type_of(u, b)->rank;
    if (rank < 0 || other_index < 0) return fe_give_up(u, node, "broadcast along an axis of an input of unknown rank");
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank - other_index)
        return fe_give_up(u, node, "broadcast along an axis that its inputs lack");
    int missing = rank - other_index - (int)axis;
    return missing == 0 || append_ones(u, node, other_index, missing);
}

/* If the axis is absent, shapes are aligned at their ends, as they are since opset 7. */
bool fe_rewrite_broadcast(fe_upgrader *u, ir_node *node, int64_t opset)
{
    const ir_attr *axis = ir_node_attr(node, "axis");
    bool aligned = ir_node_int(node, "broadcast", 0) != 0 && axis != NULL && axis->kind == IR_ATTR_INT;
    if (aligned && !align_operand(u, node, axis->i)) return false;
    ir_node_remove_attr(node, "broadcast");
    ir_node_remove_attr(node, "axis");
    return true;
}

/* PRelu-7 broadcasts. Before, a slope of several elements had one element per channel (dimension 1). */
bool fe_rewrite_prelu(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_value *slope = ir_node_input(node, 1);
    if (slope == NULL) return true;
    const ir_type *type = fe_type_of(u, slope);
    if (type->rank == 0 || (type->rank == 1 && ir_dim_is(type->dim[0], 1))) return true;
    return align_operand(u, node, 1);
}

/* Gemm-7 always broadcasts C. */
bool fe_rewrite_gemm(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_node_remove_attr(node, "broadcast");
    return true;
}

/* Selu-6 added digits to the default constants. */
bool fe_rewrite_selu(fe_upgrader *u, ir_node *node, int64_t opset)
{
    return (ir_node_attr(node, "alpha") != NULL || ir_node_set(u->graph, node, IR_FLOAT("alpha", (double)1.6732f))) &&
           (ir_node_attr(node, "gamma") != NULL || ir_node_set(u->graph, node, IR_FLOAT("gamma", (double)1.0507f)));
}

/* Concat-4 requires the axis. */
bool fe_rewrite_concat(fe_upgrader *u, ir_node *node, int64_t opset)
{
    return ir_node_attr(node, "axis") != NULL || ir_node_set(u->graph, node, IR_INT("axis", 1));
}

/* Cast-6 names types by number. */
bool fe_rewrite_cast(fe_upgrader *u, ir_node *node, int64_t opset)
{
    static const struct {
        const char *name;
        mdot_dtype dtype;
    } types[] = {{"FLOAT", MDOT_DTYPE_F32},   {"UINT8", MDOT_DTYPE_U8},      {"INT8", MDOT_DTYPE_I8},
                 {"UINT16", MDOT_DTYPE_U16},  {"INT16", MDOT_DTYPE_I16},     {"INT32", MDOT_DTYPE_I32},
                 {"INT64", MDOT_DTYPE_I64},   {"STRING", MDOT_DTYPE_STRING}, {"BOOL", MDOT_DTYPE_BOOL},
                 {"FLOAT16", MDOT_DTYPE_F16}, {"DOUBLE", MDOT_DTYPE_F64},    {"UINT32", MDOT_DTYPE_U32},
                 {"UINT64", MDOT_DTYPE_U64}};
    const char *name = ir_node_string(node, "to", NULL);
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return ir_node_set(u->graph, node, IR_INT("to", types[i].dtype));
    return true;
}

/* The default is one f32 zero. It is made explicit in every opset, so readers can ignore the default. */
bool fe_rewrite_constant_of_shape(fe_upgrader *u, ir_node *node, int64_t opset)
{
    if (ir_node_attr(node, "value") != NULL) return true;
    static const int64_t one[] = {1};
    const ir_wide *zero = ir_wide_create(u->graph->arena, MDOT_DTYPE_F32, 1, one);
    return zero != NULL && fe_set_tensor(u, node, "value", ir_tensor_from_wide(u->graph->arena, zero));
}

/* Softmax-13 works along one axis. Before, all axes from `axis` on were flattened into one. A node on the last axis
 * keeps its meaning; others are reshaped to a matrix and back. */
bool fe_rewrite_softmax(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_value *x = ir_node_input(node, 0);
    if (x == NULL) return true;
    int64_t axis = ir_node_int(node, "axis", 1);
    int rank = axis == -1 ? -1 : fe_type_of(u, x)->rank;
    if (!ir_node_set(u->graph, node, IR_INT("axis", -1))) return false;
    if (axis == -1 || (rank > 0 && axis == rank - 1)) return true;
    ir_value *shape = fe_add(u, node, IR_OP_Shape, &x, 1, IR_NO_ATTRS);
    ir_value *flat = fe_add(u, node, IR_OP_Flatten, &x, 1, IR_ATTRS(IR_INT("axis", axis)));
    if (!fe_set_input(u, node, 0, flat)) return false;
    ir_node *back = fe_insert_after(u, node, IR_OP_Reshape, IR_VALUES(node->outputs[0], shape));
    if (back == NULL) return false;
    fe_swap_output(node, 0, back);
    return true;
}

/* BatchNormalization-14 states the mode. From opset 7 on, further outputs implied training; before opset 7, the
 * attribute is_test (default: training) selected it. BatchNormalization-9 dropped `spatial`. */
bool fe_rewrite_batch_normalization(fe_upgrader *u, ir_node *node, int64_t opset)
{
    if (opset < 9 && ir_node_int(node, "spatial", 1) == 0) return fe_give_up(u, node, "with spatial=0");
    if (node->output_count > 3) return fe_give_up(u, node, "with saved mean and variance");
    bool training = opset < 7 ? ir_node_int(node, "is_test", 0) == 0 : node->output_count > 1;
    ir_node_remove_attr(node, "spatial");
    ir_node_remove_attr(node, "is_test");
    return ir_node_set(u->graph, node, IR_INT("training_mode", training));
}

/* Expands one element per group to one per channel: [G] → [G, 1] → [G, C / G] → [C]. */
static bool repeat_per_channel(fe_upgrader *u, ir_node *node, int index, int64_t groups, int64_t channels)
{
    int64_t axis = 1, grid[] = {groups, channels / groups};
    ir_value *axes = fe_add_ints(u, node, "axes", &axis, 1);
    ir_value *x = fe_add(u, node, IR_OP_Unsqueeze, IR_VALUES(node->inputs[index], axes), IR_NO_ATTRS);
    x = fe_add(u, node, IR_OP_Expand, IR_VALUES(x, fe_add_ints(u, node, "grid", grid, 2)), IR_NO_ATTRS);
    x = fe_add(u, node, IR_OP_Reshape, IR_VALUES(x, fe_add_ints(u, node, "channels", &channels, 1)), IR_NO_ATTRS);
    return fe_set_input(u, node, index, x);
}

/* GroupNormalization-21 has scale and bias per channel rather than per group. */
bool fe_rewrite_group_normalization(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_value *x = ir_node_input(node, 0);
    if (x == NULL || ir_node_input(node, 1) == NULL || ir_node_input(node, 2) == NULL) return true;
    const ir_type *type = fe_type_of(u, x);
    int64_t groups = ir_node_int(node, "num_groups", 0);
    bool known = type->rank > 1 && ir_dim_is_number(type->dim[1]);
    int64_t channels = known ? type->dim[1].offset : 0;
    if (groups < 1 || channels < 1 || channels % groups != 0)
        return fe_give_up(u, node, "of an opset below 21, with unknown channels or groups that do not divide them");
    return repeat_per_channel(u, node, 1, groups, channels) && repeat_per_channel(u, node, 2, groups, channels);
}
