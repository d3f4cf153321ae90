/* view.c — strided views: a transpose, slice, split, expand or reshape of a placed value that moves no data.
 *
 * A view is a placement with one stride per dimension. Strides and offsets are affine in L. Operators that are not
 * affine, or that are not views (for example, a gather), become code instead. Kernels with operands of a fixed form
 * (matrix, heads) query whether a view has that form.
 */
#include "plan/plan_builder.h"

/* Row-major strides. Dimensions of one element need none, so the product before them may be non-affine. */
static bool dense_strides(const ir_type *type, ir_dim *out_stride)
{
    ir_dim step = ir_dim_number(1);
    bool is_affine = true;
    for (int d = type->rank - 1; d >= 0; d--) {
        if (!is_affine && !pl_is_unit(type->dim[d])) return false;
        out_stride[d] = is_affine ? step : ir_dim_number(0);
        is_affine = is_affine && ir_dim_mul(step, type->dim[d], &step);
    }
    return true;
}

/* A placement with explicit strides. False: the strides are not affine. */
static bool make_strided(const pl_placement *placement, const ir_type *type, pl_placement *out)
{
    pl_placement strided = *placement;
    if (placement->dense) {
        strided.dense = false;
        strided.offset = ir_dim_number(0);
        if (!dense_strides(type, strided.stride)) return false;
    }
    *out = strided;
    return true;
}

static bool move_start(pl_placement *placement, ir_dim steps, ir_dim stride)
{
    ir_dim distance;
    return ir_dim_mul(steps, stride, &distance) && ir_dim_add(placement->offset, distance, &placement->offset);
}

static bool view_transpose(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    int64_t perm[MDOT_MAX_RANK];
    pl_placement origin = *placement;
    ir_node_perm(node, type->rank, perm);
    for (int d = 0; d < type->rank; d++) placement->stride[d] = origin.stride[perm[d]];
    return true;
}

static bool view_slice(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    ir_dim start[MDOT_MAX_RANK];
    int64_t step[MDOT_MAX_RANK];
    if (!pl_slice(b, node, start, step)) return false;
    for (int d = 0; d < type->rank; d++) {
        if (!move_start(placement, start[d], placement->stride[d])) return false;
        if (!ir_dim_mul(placement->stride[d], ir_dim_number(step[d]), &placement->stride[d])) return false;
    }
    return true;
}

static bool view_split(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    int axis;
    ir_dim begin;
    return pl_split(b, node, k, &axis, &begin) && move_start(placement, begin, placement->stride[axis]);
}

static bool view_windows(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    int axis = ir_node_axis(node, -1, type->rank);
    ir_dim stride = placement->stride[axis];
    for (int d = type->rank; d > axis + 1; d--) placement->stride[d] = placement->stride[d - 1];
    return ir_dim_mul(stride, ir_dim_number(ir_node_int(node, "stride", 1)), &placement->stride[axis]) &&
           ir_dim_mul(stride, ir_dim_number(ir_node_int(node, "dilation", 1)), &placement->stride[axis + 1]);
}

static bool view_expand(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    const ir_type *target_type = &node->outputs[0]->type;
    pl_placement origin = *placement;
    int missing = target_type->rank - type->rank;
    for (int d = 0; d < target_type->rank; d++) {
        bool repeats = d < missing || pl_is_unit(type->dim[d - missing]);
        placement->stride[d] = repeats ? ir_dim_number(0) : origin.stride[d - missing];
    }
    return true;
}

/* The dimensions other than those of one element, and their strides. */
typedef struct axes {
    int count;
    ir_dim dim[MDOT_MAX_RANK], stride[MDOT_MAX_RANK];
} axes;

/* Do the dims from `begin` to `end` run through memory like one dimension, with the stride of the last? */
static bool is_contiguous(const axes *a, int begin, int end)
{
    for (int d = begin; d + 1 < end; d++) {
        ir_dim step;
        if (!ir_dim_mul(a->stride[d + 1], a->dim[d + 1], &step) || !ir_dim_equal(step, a->stride[d])) return false;
    }
    return true;
}

/* Finds the shortest runs of old and new dims, from `f` and `t`, with equal element counts. */
static bool next_group(const axes *origin, int f, const axes *result, int t, int *out_f_end, int *out_t_end)
{
    for (int f_end = f + 1; f_end <= origin->count; f_end++) {
        for (int t_end = t + 1; t_end <= result->count; t_end++) {
            if (!ir_dim_products_equal(&origin->dim[f], f_end - f, &result->dim[t], t_end - t)) continue;
            *out_f_end = f_end;
            *out_t_end = t_end;
            return true;
        }
    }
    return false;
}

/* If each group of old dims is contiguous, splits it into the new dims of the group and gives them strides. */
static bool restride(const axes *origin, axes *result)
{
    int f = 0, t = 0;
    while (f < origin->count || t < result->count) {
        int f_end, t_end;
        if (!next_group(origin, f, result, t, &f_end, &t_end) || !is_contiguous(origin, f, f_end)) return false;
        ir_dim step = origin->stride[f_end - 1];
        for (int d = t_end - 1; d >= t; d--) {
            result->stride[d] = step;
            if (d > t && !ir_dim_mul(step, result->dim[d], &step)) return false;
        }
        f = f_end;
        t = t_end;
    }
    return true;
}

static axes without_units(const ir_type *type, const ir_dim *stride)
{
    axes result = {0};
    for (int d = 0; d < type->rank; d++) {
        if (pl_is_unit(type->dim[d])) continue;
        result.dim[result.count] = type->dim[d];
        if (stride != NULL) result.stride[result.count] = stride[d];
        result.count++;
    }
    return result;
}

static bool view_reshape(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement)
{
    const ir_type *result = &node->outputs[0]->type;
    axes origin = without_units(type, placement->stride), to = without_units(result, NULL);
    if (!restride(&origin, &to)) return false;
    for (int d = 0, t = 0; d < result->rank; d++)
        placement->stride[d] = pl_is_unit(result->dim[d]) ? ir_dim_number(0) : to.stride[t++];
    return true;
}

void pl_transfer_strides(const ir_type *source_type, const ir_dim *stride, const ir_type *target_type,
                         ir_dim *out_stride)
{
    axes own_item = without_units(source_type, stride);
    for (int d = 0, k = 0; d < target_type->rank; d++)
        out_stride[d] = pl_is_unit(target_type->dim[d]) ? ir_dim_number(0) : own_item.stride[k++];
}

typedef bool (*view_fn)(pl_builder *b, const ir_node *node, int k, const ir_type *type, pl_placement *placement);

static const view_fn views[IR_OP_COUNT] = {
    [IR_OP_Transpose] = view_transpose, [IR_OP_Slice] = view_slice,      [IR_OP_Split] = view_split,
    [IR_OP_Expand] = view_expand,       [IR_OP_Identity] = view_reshape, [IR_OP_Reshape] = view_reshape,
    [IR_OP_Flatten] = view_reshape,     [IR_OP_Squeeze] = view_reshape,  [IR_OP_Unsqueeze] = view_reshape,
    [IR_OP_Windows] = view_windows,
};

bool pl_view_from(pl_builder *b, const ir_node *node, int k, const pl_placement *source, pl_placement *out)
{
    view_fn view = views[ir_node_opcode(node)];
    if (view == NULL) return false;
    if (view == view_reshape && source->dense) {
        *out = *source; /* for any strides */
        return true;
    }
    const ir_type *type = &node->inputs[0]->type;
    pl_placement placement;
    if (!make_strided(source, type, &placement) || !view(b, node, k, type, &placement)) return false;
    *out = placement;
    return true;
}

bool pl_view(pl_builder *b, const ir_node *node, int k, pl_placement *out)
{
    const pl_value *source = node->input_count ? pl_info(b, node->inputs[0]) : NULL;
    return source != NULL && source->state == PL_PLACED && pl_view_from(b, node, k, &source->placement, out);
}

bool pl_concat_part(pl_builder *b, const ir_node *node, int k, pl_placement *out)
{
    const ir_value *whole = node->outputs[0];
    int axis = ir_node_axis(node, 0, whole->type.rank);
    pl_placement part;
    if (!make_strided(&pl_info(b, whole)->placement, &whole->type, &part)) return false;
    for (int i = 0; i < k; i++)
        if (!move_start(&part, node->inputs[i]->type.dim[axis], part.stride[axis])) return false;
    *out = part;
    return true;
}

/* The row stride of a dense placement is the row's length, for any strides of the dimensions inside. */
static bool dense_matrix(const pl_placement *placement, const ir_type *type, int trailing, pl_matrix *out)
{
    ir_dim width = ir_dim_number(1);
    bool many = false;
    for (int d = type->rank - trailing; d < type->rank; d++)
        if (!ir_dim_mul(width, type->dim[d], &width)) return false;
    for (int d = 0; d < type->rank - trailing; d++) many = many || !pl_is_unit(type->dim[d]);
    *out = (pl_matrix){placement->buffer, ir_dim_number(0), many ? width : ir_dim_number(0)};
    return true;
}

bool pl_matrix_view(const pl_placement *placement, const ir_type *type, int trailing, pl_matrix *out)
{
    if (trailing > type->rank) return false;
    if (placement->dense) return dense_matrix(placement, type, trailing, out);
    ir_type leading = *type, columns = {.rank = trailing};
    leading.rank = type->rank - trailing;
    for (int d = 0; d < trailing; d++) columns.dim[d] = type->dim[leading.rank + d];
    axes rows = without_units(&leading, placement->stride);
    axes cells = without_units(&columns, placement->stride + leading.rank);
    if (!is_contiguous(&rows, 0, rows.count) || !is_contiguous(&cells, 0, cells.count)) return false;
    if (cells.count && !ir_dim_is(cells.stride[cells.count - 1], 1)) return false;
    *out = (pl_matrix){placement->buffer, placement->offset, ir_dim_number(0)};
    if (rows.count) out->row_stride = rows.stride[rows.count - 1];
    return true;
}

/* Fewer dimensions for the same addresses: those that run through memory like one dimension become one. */
static bool join_dims(const axes *origin, int begin, int end, pl_window_dims *out)
{
    pl_window_dims joined = {.count = 0};
    for (int d = begin; d < end; d++) {
        ir_dim product;
        int last_index = joined.count - 1;
        if (d > begin && is_contiguous(origin, d - 1, d + 1) &&
            ir_dim_mul(joined.extent[last_index], origin->dim[d], &product)) {
            joined.extent[last_index] = product;
            joined.stride[last_index] = origin->stride[d];
            continue;
        }
        if (joined.count == PL_MAX_WINDOW_DIMS) return false;
        joined.extent[joined.count] = origin->dim[d];
        joined.stride[joined.count++] = origin->stride[d];
    }
    if (joined.count == 0) joined = (pl_window_dims){1, {ir_dim_number(1)}, {ir_dim_number(1)}};
    *out = joined;
    return true;
}

/* The first of the last dimensions that have `count` elements together; -1: there are none. */
static int first_column(const axes *origin, ir_dim count)
{
    int64_t product = 1;
    int d = origin->count;
    if (!ir_dim_is_number(count)) return -1;
    while (product < count.offset && d > 0 && ir_dim_is_number(origin->dim[d - 1])) product *= origin->dim[--d].offset;
    return product == count.offset ? d : -1;
}

bool pl_window_view(pl_builder *b, const ir_node *node, const pl_placement *source, pl_placement *out)
{
    const ir_type *type = &node->inputs[0]->type, *result = &node->outputs[0]->type;
    pl_placement strided;
    pl_windows windows;
    if (result->rank < 1 || source->windows != NULL || !make_strided(source, type, &strided)) return false;
    axes origin = without_units(type, strided.stride);
    int column = first_column(&origin, result->dim[result->rank - 1]);
    if (column < 0 || !join_dims(&origin, 0, column, &windows.rows) ||
        !join_dims(&origin, column, origin.count, &windows.columns))
        return false;
    if (!ir_dim_is(windows.columns.stride[windows.columns.count - 1], 1)) return false;
    pl_windows *copy = IR_NEW(b->arena, pl_windows);
    if (copy == NULL) return false;
    *copy = windows;
    *out = (pl_placement){.buffer = strided.buffer, .offset = strided.offset, .windows = copy};
    return true;
}

bool pl_heads_view(const ir_node *node, int operand, const pl_placement *placement, pl_heads *out)
{
    const ir_type *type = &node->inputs[operand]->type;
    pl_placement strided;
    if (!make_strided(placement, type, &strided)) return false;
    const ir_dim *stride = strided.stride;
    int64_t heads = ir_node_int(node, operand == 0 ? "q_num_heads" : "kv_num_heads", 0);
    *out = (pl_heads){.buffer = placement->buffer, .offset = strided.offset, .batch_stride = stride[0]};
    if (type->rank == 4) {
        out->head_stride = stride[1];
        out->row_stride = stride[2];
        return ir_dim_is(stride[3], 1) || pl_is_unit(type->dim[3]);
    }
    if (heads <= 0 || !ir_dim_is_number(type->dim[2])) return false;
    out->head_stride = ir_dim_number(type->dim[2].offset / heads);
    out->row_stride = stride[1];
    return ir_dim_is(stride[2], 1) || pl_is_unit(type->dim[2]);
}

bool pl_mask_view(const ir_type *type, const pl_placement *placement, pl_heads *out)
{
    pl_placement strided;
    if (type->rank < 1 || type->rank > 4 || !make_strided(placement, type, &strided)) return false;
    if (!ir_dim_is(strided.offset, 0)) return false;
    int missing = 4 - type->rank;
    ir_dim stride[3];
    for (int d = 0; d < 3; d++) {
        bool repeats = d < missing || pl_is_unit(type->dim[d - missing]);
        stride[d] = repeats ? ir_dim_number(0) : strided.stride[d - missing];
    }
    *out = (pl_heads){placement->buffer, strided.offset, stride[0], stride[1], stride[2]};
    ir_dim keys = type->dim[type->rank - 1];
    return pl_is_unit(keys) || ir_dim_is(strided.stride[type->rank - 1], 1);
}

/* Normalises an ONNX start: negative values count from the end, and all are clamped to the range in which a slice of
 * that direction may begin. False: the result depends on L. */
static bool clamp_start(const ir_graph *graph, ir_dim start, ir_dim extent, int64_t step, ir_dim *out)
{
    ir_dim zero = ir_dim_number(0), last_dim = extent;
    if (ir_dim_always_lt(graph, start, zero)) {
        if (!ir_dim_add(start, extent, &start)) start = zero; /* INT64_MIN: from the first element */
    } else if (!ir_dim_always_le(graph, zero, start)) {
        return false;
    }
    if (step < 0 && !ir_dim_add(extent, ir_dim_number(-1), &last_dim)) return false;
    return ir_dim_max(graph, start, zero, &start) && ir_dim_min(graph, start, last_dim, out);
}

bool pl_slice(pl_builder *b, const ir_node *node, ir_dim *out_start, int64_t *out_step)
{
    const ir_type *type = &node->inputs[0]->type;
    ir_dim starts[IR_MAX_KNOWN];
    int64_t slice_axes[IR_MAX_KNOWN], steps[IR_MAX_KNOWN];
    int count, axis_count, step_count;
    if (!ir_value_known(node->inputs[1], starts, &count) || count > type->rank) return false;
    const ir_value *axis_value = ir_node_input(node, 3), *step_value = ir_node_input(node, 4);
    if (axis_value != NULL && (!ir_value_ints(axis_value, slice_axes, &axis_count) || axis_count != count))
        return false;
    if (step_value != NULL && (!ir_value_ints(step_value, steps, &step_count) || step_count != count)) return false;
    for (int d = 0; d < type->rank; d++) {
        out_start[d] = ir_dim_number(0);
        out_step[d] = 1;
    }
    for (int k = 0; k < count; k++) {
        int64_t axis = axis_value != NULL ? slice_axes[k] : k;
        if (axis < 0) axis += type->rank;
        out_step[axis] = step_value != NULL ? steps[k] : 1;
        if (!clamp_start(b->graph, starts[k], type->dim[axis], out_step[axis], &out_start[axis])) return false;
    }
    return true;
}

bool pl_split(pl_builder *b, const ir_node *node, int k, int *out_axis, ir_dim *out_begin)
{
    int axis = ir_node_axis(node, 0, node->inputs[0]->type.rank);
    ir_dim begin = ir_dim_number(0);
    for (int i = 0; i < k; i++) {
        /* The shape rule typed every part; an unread part may lack a value. */
        if (node->outputs[i] == NULL || !ir_dim_add(begin, node->outputs[i]->type.dim[axis], &begin)) return false;
    }
    *out_axis = axis;
    *out_begin = begin;
    return true;
}
