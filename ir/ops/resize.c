/* resize.c — Resize and GridSample: feature maps sampled at other positions. Shapes and costs only. */
#include "ir/ops/operands.h"

#include <math.h>
#include <string.h>

/* ---- Resize ----------------------------------------------------------------------------------------------------- */

enum { SCALES = 2, SIZES = 3 }; /* inputs */

static mdot_status scale_dim(const ir_graph *graph, const ir_node *node, ir_dim in, double scale, ir_dim *out,
                             mdot_error *err)
{
    if (!(scale >= 1e-6) || scale > 1e6)
        return ir_fail(node, err, MDOT_MALFORMED, "the scale %g is outside of the range from 1e-6 to 1e6", scale);
    if (ir_dim_is_number(in)) {
        /* f32 scales such as 1/3 are slightly below the intended value. */
        double extent = floor((double)in.offset * scale + 1e-4);
        if (extent >= 0x1p63)
            return ir_fail(node, err, MDOT_MALFORMED, "%lld elements scaled by %g overflow", (long long)in.offset,
                           scale);
        *out = ir_dim_number((int64_t)extent);
        return MDOT_OK;
    }
    if (scale == floor(scale) && ir_dim_mul(in, ir_dim_number((int64_t)scale), out)) return MDOT_OK;
    if (1 / scale == floor(1 / scale) && ir_dim_div_floor(graph, in, (int64_t)(1 / scale), out)) return MDOT_OK;
    return ir_fail(node, err, MDOT_UNSUPPORTED,
                   "a symbolic dimension is scaled by %g; supported are integers and their reciprocals", scale);
}

static mdot_status resize_by_scales(ir_graph *graph, const ir_node *node, const int *axes, int count, ir_type *type,
                                    mdot_error *err)
{
    const ir_tensor *scales = node->inputs[SCALES]->constant;
    if (scales == NULL || scales->data == NULL)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "the scales depend on data");
    const ir_wide *wide = ir_wide_from_tensor(graph->arena, scales);
    if (wide == NULL) return ir_fail_memory(node, err);
    if (wide->f == NULL || wide->count != count) {
        return ir_fail(node, err, MDOT_MALFORMED, "%lld scales for %d dimensions", (long long)wide->count, count);
    }
    mdot_status status = MDOT_OK;
    for (int i = 0; i < count && status == MDOT_OK; i++) {
        status = scale_dim(graph, node, type->dim[axes[i]], wide->f[i], &type->dim[axes[i]], err);
    }
    return status;
}

static mdot_status resize_to_sizes(const ir_node *node, const int *axes, int count, ir_type *type, mdot_error *err)
{
    ir_dim sizes[IR_MAX_KNOWN];
    int size_count;
    if (strcmp(ir_node_string(node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0) {
        return ir_fail(node, err, MDOT_UNSUPPORTED, "sizes that keep the aspect ratio are unsupported");
    }
    mdot_status status = ir_input_dims(node, SIZES, sizes, &size_count, err);
    if (status == MDOT_OK && size_count != count) {
        status = ir_fail(node, err, MDOT_MALFORMED, "%d sizes for %d dimensions", size_count, count);
    }
    for (int i = 0; i < count && status == MDOT_OK; i++) type->dim[axes[i]] = sizes[i];
    return status;
}

static bool is_given(const ir_node *node, int input)
{
    const ir_value *value = ir_node_input(node, input);
    return value != NULL && ir_type_count_at(&value->type, 1) != 0; /* an absent input used to be an empty tensor */
}

mdot_status ir_shape_resize(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_type type = node->inputs[0]->type;
    const ir_attr *attr = ir_node_ints(node, "axes");
    int axes[MDOT_MAX_RANK], count = type.rank;
    for (int i = 0; i < count; i++) axes[i] = i;
    if (attr != NULL && attr->count <= type.rank) {
        count = attr->count;
        for (int i = 0; i < count; i++) {
            mdot_status status = ir_normalize_axis(node, attr->ints[i], type.rank, &axes[i], err);
            if (status != MDOT_OK) return status;
        }
    }
    mdot_status status;
    if (is_given(node, SIZES)) {
        status = resize_to_sizes(node, axes, count, &type, err);
    } else if (is_given(node, SCALES)) {
        status = resize_by_scales(graph, node, axes, count, &type, err);
    } else {
        status = ir_fail(node, err, MDOT_MALFORMED, "scales or sizes are required");
    }
    if (status == MDOT_OK) ir_set_type(node, 0, type.dtype, type.rank, type.dim);
    return status;
}

/* Multiply-adds for the neighbours of each element of the result: two (linear) or four (cubic) in a resized
 * dimension. */
void ir_cost_resize(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_traffic(node, length, out_cost);
    const char *mode = ir_node_string(node, "mode", "nearest");
    double along = strcmp(mode, "linear") == 0 ? 2 : strcmp(mode, "cubic") == 0 ? 4 : 0, taps = along > 0;
    const ir_type *in = &node->inputs[0]->type, *out = &node->outputs[0]->type;
    for (int i = 0; i < in->rank && along > 0; i++) {
        if (ir_dim_at(in->dim[i], length) != ir_dim_at(out->dim[i], length)) taps *= along;
    }
    out_cost->flops = 2 * taps * ir_value_elements(node->outputs[0], length);
}

/* ---- GridSample ------------------------------------------------------------------------------------------------- */

/* X [N, C, D1 …], grid [N, E1 …, rank - 2] → [N, C, E1 …] */
static mdot_status grid_sample_result(const ir_operands *from, ir_type *out_type)
{
    ir_type grid;
    mdot_status status = ir_operand_need(from, 0, "input", -1, out_type);
    if (status == MDOT_OK) status = ir_operand_need(from, 1, "grid", out_type->rank, &grid);
    if (status != MDOT_OK) return status;
    if (out_type->rank < 3 || !ir_dim_is(grid.dim[grid.rank - 1], out_type->rank - 2)) {
        return ir_fail(from->node, from->err, MDOT_MALFORMED,
                       "the grid must have one coordinate for each spatial dimension of the input");
    }
    for (int i = 2; i < out_type->rank; i++) out_type->dim[i] = grid.dim[i - 1];
    return MDOT_OK;
}

mdot_status ir_shape_grid_sample(ir_graph *graph, ir_node *node, mdot_error *err)
{
    return ir_shape_by(graph, node, grid_sample_result, err);
}

void ir_cost_grid_sample(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_traffic(node, length, out_cost);
    const char *mode = ir_node_string(node, "mode", "linear");
    double along = strcmp(mode, "nearest") == 0 ? 1 : strcmp(mode, "cubic") == 0 ? 4 : 2;
    out_cost->flops = 2 * pow(along, node->inputs[0]->type.rank - 2) * ir_value_elements(node->outputs[0], length);
}
