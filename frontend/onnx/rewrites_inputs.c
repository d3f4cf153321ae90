/* rewrites_inputs.c — upgrades operators whose attributes became inputs, possibly computed. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/graph_edit.h"

/* Turns a list attribute into input `index`. An absent attribute leaves the input absent. */
static bool list_to_input(const fe_upgrader *u, ir_node *node, const char *name, int index)
{
    const ir_attr *attr = ir_node_attr(node, name);
    if (attr == NULL || attr->kind != IR_ATTR_INTS) return true;
    if (!fe_set_input(u, node, index, fe_add_ints(u, node, name, attr->ints, attr->count))) return false;
    ir_node_remove_attr(node, name);
    return true;
}

/* Does the same, but treats an empty list as absent. */
static bool optional_list_to_input(const fe_upgrader *u, ir_node *node, const char *name, int index)
{
    const ir_attr *attr = ir_node_attr(node, name);
    if (attr != NULL && attr->kind == IR_ATTR_INTS && attr->count == 0) ir_node_remove_attr(node, name);
    return list_to_input(u, node, name, index);
}

/* A number in input 0's element type; cast to the type if it is unknown here. */
static ir_value *scalar_like(fe_upgrader *u, ir_node *node, const char *name, double value)
{
    ir_value *like = ir_node_input(node, 0);
    mdot_dtype dtype = like != NULL ? fe_type_of(u, like)->dtype : MDOT_DTYPE_F32;
    if (dtype != MDOT_DTYPE_NONE && dtype != MDOT_DTYPE_STRING) return fe_add_scalar(u, node, name, dtype, value);
    ir_value *scalar = fe_add_scalar(u, node, name, MDOT_DTYPE_F32, value);
    return fe_add(u, node, IR_OP_CastLike, IR_VALUES(scalar, like), IR_NO_ATTRS);
}

static bool number_to_input(fe_upgrader *u, ir_node *node, const char *name, int index)
{
    const ir_attr *attr = ir_node_attr(node, name);
    if (attr == NULL || attr->kind != IR_ATTR_FLOAT) return true;
    bool ok = fe_set_input(u, node, index, scalar_like(u, node, name, attr->f));
    ir_node_remove_attr(node, name);
    return ok;
}

/* Squeeze-13, Unsqueeze-13, ReduceSum-13, the other reductions at 18. */
bool fe_rewrite_axes(fe_upgrader *u, ir_node *node, int64_t opset)
{
    return optional_list_to_input(u, node, "axes", 1);
}

/* Reshape-5. */
bool fe_rewrite_reshape(fe_upgrader *u, ir_node *node, int64_t opset) { return list_to_input(u, node, "shape", 1); }

/* Slice-10. */
bool fe_rewrite_slice(fe_upgrader *u, ir_node *node, int64_t opset)
{
    return list_to_input(u, node, "starts", 1) && list_to_input(u, node, "ends", 2) &&
           optional_list_to_input(u, node, "axes", 3);
}

/* Split-13 takes the sizes as an input. Split-18 requires the number of equal parts if the sizes are absent. */
bool fe_rewrite_split(fe_upgrader *u, ir_node *node, int64_t opset)
{
    if (opset < 13 && !optional_list_to_input(u, node, "split", 1)) return false;
    return ir_node_input(node, 1) != NULL || ir_node_set(u->graph, node, IR_INT("num_outputs", node->output_count));
}

/* Pad-2 renamed `paddings`. Pad-11 turned both attributes into inputs. */
bool fe_rewrite_pad(fe_upgrader *u, ir_node *node, int64_t opset)
{
    const char *pads = opset < 2 ? "paddings" : "pads";
    return list_to_input(u, node, pads, 1) && number_to_input(u, node, "value", 2);
}

/* Clip-11. Before, an absent bound was the lowest or highest f32, which left all floats unbounded. */
bool fe_rewrite_clip(fe_upgrader *u, ir_node *node, int64_t opset)
{
    return number_to_input(u, node, "min", 1) && number_to_input(u, node, "max", 2);
}

/* TopK-10. */
bool fe_rewrite_top_k(fe_upgrader *u, ir_node *node, int64_t opset)
{
    const ir_attr *k = ir_node_attr(node, "k");
    if (k == NULL || k->kind != IR_ATTR_INT) return true;
    if (!fe_set_input(u, node, 1, fe_add_ints(u, node, "k", &k->i, 1))) return false;
    ir_node_remove_attr(node, "k");
    return true;
}

/* Dropout-12 takes the ratio and the mode as inputs. Dropout-7 dropped is_test, whose default was training, and
 * always meant inference. Dropout-10 made the mask bool. */
bool fe_rewrite_dropout(fe_upgrader *u, ir_node *node, int64_t opset)
{
    double ratio = ir_node_float(node, "ratio", 0.5);
    if (!fe_set_input(u, node, 1, fe_add_scalar(u, node, "ratio", MDOT_DTYPE_F32, ratio))) return false;
    bool training = opset < 7 && ir_node_int(node, "is_test", 0) == 0;
    if (training && !fe_set_input(u, node, 2, fe_add_scalar(u, node, "training_mode", MDOT_DTYPE_BOOL, 1)))
        return false;
    ir_node_remove_attr(node, "ratio");
    ir_node_remove_attr(node, "is_test");
    ir_value *mask = node->output_count > 1 ? node->outputs[1] : NULL;
    if (opset >= 10 || mask == NULL || ir_node_input(node, 0) == NULL) return true;
    ir_node *cast = fe_insert_after(u, node, IR_OP_CastLike, IR_VALUES(mask, node->inputs[0]));
    if (cast == NULL) return false;
    fe_swap_output(node, 1, cast);
    return true;
}

/* Tile-6 repeats along every axis. Before, Tile repeated `tiles` times along one axis. */
bool fe_rewrite_tile(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_value *x = ir_node_input(node, 0), *tiles = ir_node_input(node, 1), *axis = ir_node_input(node, 2);
    double times, along;
    if (x == NULL || tiles == NULL || axis == NULL || !ir_value_scalar(tiles, &times) || !ir_value_scalar(axis, &along))
        return fe_give_up(u, node, "with computed tiles or axis, of an opset below 6");
    int rank = fe_type_of(u, x)->rank;
    if (rank < 0 || !(along >= 0 && along < rank))
        return fe_give_up(u, node, "with an input of unknown rank, of an opset below 6");
    int64_t repeats[MDOT_MAX_RANK];
    for (int i = 0; i < rank; i++) repeats[i] = i == (int)along ? ir_float_to_integer(MDOT_DTYPE_I64, times) : 1;
    if (!fe_set_input(u, node, 1, fe_add_ints(u, node, "repeats", repeats, rank))) return false;
    return ir_node_set_input_count(u->graph, node, 2);
}

/* Resize-11 has a region of interest before the scales, and names the mapping of coordinates. Before it, Resize and
 * Upsample had a fixed mapping, whose nearest neighbour is the one below. Upsample-7 had its scales as an attribute. */
bool fe_rewrite_resize(fe_upgrader *u, ir_node *node, int64_t opset)
{
    ir_value *scales = ir_node_input(node, 1);
    const ir_attr *attr = ir_node_attr(node, "scales");
    if (attr != NULL && attr->kind == IR_ATTR_FLOATS) {
        const int64_t count = attr->count;
        ir_wide *wide = ir_wide_create(u->graph->arena, MDOT_DTYPE_F32, 1, &count);
        for (int i = 0; wide != NULL && i < attr->count; i++) wide->f[i] = attr->floats[i];
        const ir_tensor *tensor = wide != NULL ? ir_tensor_from_wide(u->graph->arena, wide) : NULL;
        scales = tensor != NULL ? ir_graph_add_constant(u->graph, node->name, tensor) : NULL;
        if (scales == NULL) return false;
        ir_node_remove_attr(node, "scales");
    }
    if (scales == NULL) return true; /* an error of the node, reported with the shape */
    if (node->input_count > 1) ir_node_set_input(node, 1, NULL);
    return fe_set_input(u, node, 2, scales) && ir_node_set(u->graph, node, IR_STRING("nearest_mode", "floor")) &&
           ir_node_set(u->graph, node, IR_STRING("coordinate_transformation_mode", "asymmetric"));
}
