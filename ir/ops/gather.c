/* gather.c — operators that fetch elements at indices from data: Gather, GatherElements, GatherND, OneHot.
 *
 * Negative indices count from the end. An index out of range is an error of the evaluation, except in OneHot, which
 * defines it.
 */
#include "ir/ops/operands.h"

#include <math.h>

/* Data and indices: inputs 0 and 1. */
static mdot_status read_operands(const ir_operands *args, ir_type *out_data, ir_type *out_indices)
{
    mdot_status status = ir_operand_need(args, 0, "data", -1, out_data);
    if (status == MDOT_OK) status = ir_operand_need(args, 1, "indices", -1, out_indices);
    return status != MDOT_OK ? status : ir_operand_need_integers(args, 1, "tensor of indices");
}

/* Appends dimensions to a type. False: the rank would be too large. */
static bool append_dims(ir_type *type, const ir_dim *dims, int count)
{
    if (type->rank + count > MDOT_MAX_RANK) return false;
    for (int i = 0; i < count; i++) type->dim[type->rank++] = dims[i];
    return true;
}

static mdot_status too_many_dims(const ir_operands *args)
{
    return ir_unsupported(args, "the output has more than %d dimensions", MDOT_MAX_RANK);
}

mdot_status ir_result_gather(const ir_operands *args, ir_type *out_type)
{
    ir_type data, indices;
    int axis;
    BS_TRY(read_operands(args, &data, &indices));
    BS_TRY(ir_operand_axis(args, "axis", 0, data.rank, &axis));
    BS_TRY(ir_operand_need_indices(args, 1, 0, 1, data.dim[axis]));
    ir_type out = {data.dtype, 0, {{0}}};
    bool fits = append_dims(&out, data.dim, axis) && append_dims(&out, indices.dim, indices.rank) &&
                append_dims(&out, data.dim + axis + 1, data.rank - axis - 1);
    if (!fits) return too_many_dims(args);
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_gather(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), input[0]->rank, &axis, err));
    ir_axis_view view = ir_view_axis(input[0], axis);
    int64_t count = input[1]->count;
    for (int64_t o = 0; o < view.outer; o++) {
        for (int64_t k = 0; k < count; k++) {
            int64_t offset;
            BS_TRY(ir_wrap_index(node, input[1]->i[k], view.extent, &offset, err));
            ir_copy_elements(out[0], (o * count + k) * view.inner, input[0], (o * view.extent + offset) * view.inner,
                             view.inner);
        }
    }
    return MDOT_OK;
}

mdot_status ir_result_gather_elements(const ir_operands *args, ir_type *out_type)
{
    ir_type data, indices;
    int axis;
    BS_TRY(read_operands(args, &data, &indices));
    BS_TRY(ir_operand_axis(args, "axis", 0, data.rank, &axis));
    if (indices.rank != data.rank)
        return ir_malformed(args, "the indices have %d dimensions, but the data %d", indices.rank, data.rank);
    for (int i = 0; i < data.rank; i++) {
        if (i == axis || ir_dim_always_le(args->graph, indices.dim[i], data.dim[i])) continue;
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){indices.dim[i], data.dim[i]}),
                         "along axis %d, the indices may outnumber the data", i);
    }
    *out_type = indices;
    out_type->dtype = data.dtype;
    return ir_operand_need_indices(args, 1, 0, 1, data.dim[axis]);
}

mdot_status ir_eval_gather_elements(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                    mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), input[0]->rank, &axis, err));
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_strides(input[0]->rank, input[0]->dims, strides);
    for (int64_t k = 0; k < out[0]->count; k++) {
        int64_t offset;
        BS_TRY(ir_wrap_index(node, input[1]->i[k], input[0]->dims[axis], &offset, err));
        int64_t source = ir_dot_index(input[0]->rank, index, strides) + (offset - index[axis]) * strides[axis];
        ir_copy_element(out[0], k, input[0], source);
        ir_next_index(out[0]->rank, out[0]->dims, index);
    }
    return MDOT_OK;
}

/* The tuple length, a number: the last dimension of the indices. */
static mdot_status read_tuple(const ir_operands *args, const ir_type *data, const ir_type *indices, int *out_batch,
                              int *out_length)
{
    int64_t batch = ir_node_int(args->node, "batch_dims", 0);
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || batch > data->rank)
        return ir_malformed(args, "batch_dims %lld with data of %d and indices of %d dimensions", (long long)batch,
                            data->rank, indices->rank);
    ir_dim length = indices->dim[indices->rank - 1];
    if (!ir_dim_is_number(length)) return ir_unsupported(args, "the length of its index tuples depends on data");
    if (length.offset > data->rank - batch)
        return ir_malformed(args, "index tuples of %lld for %lld dimensions", (long long)length.offset,
                            (long long)(data->rank - batch));
    for (int i = 0; i < batch; i++) {
        if (ir_dim_equal(data->dim[i], indices->dim[i])) continue;
        return ir_malformed(args, "data and indices differ in batch dimension %d", i);
    }
    *out_batch = (int)batch;
    *out_length = (int)length.offset;
    return MDOT_OK;
}

mdot_status ir_result_gather_nd(const ir_operands *args, ir_type *out_type)
{
    ir_type data, indices;
    int batch = 0, length = 0;
    BS_TRY(read_operands(args, &data, &indices));
    BS_TRY(read_tuple(args, &data, &indices, &batch, &length));
    for (int d = 0; d < length; d++) BS_TRY(ir_operand_need_indices(args, 1, d, length, data.dim[batch + d]));
    ir_type out = {data.dtype, 0, {{0}}};
    int fixed = batch + length;
    if (!append_dims(&out, indices.dim, indices.rank - 1) || !append_dims(&out, data.dim + fixed, data.rank - fixed))
        return too_many_dims(args);
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_gather_nd(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *data = input[0], *indices = input[1];
    int batch = (int)ir_node_int(node, "batch_dims", 0), length = (int)indices->dims[indices->rank - 1];
    int64_t strides[MDOT_MAX_RANK];
    ir_strides(data->rank, data->dims, strides);
    int64_t batches = ir_product(data->dims, 0, batch);
    int64_t batch_size = ir_product(data->dims, batch, data->rank);
    int64_t slice = ir_product(data->dims, batch + length, data->rank);
    int64_t tuples = ir_product(indices->dims, batch, indices->rank - 1); /* per batch */
    for (int64_t t = 0; t < batches * tuples; t++) {
        int64_t source = t / tuples * batch_size;
        for (int i = 0; i < length; i++) {
            int64_t offset;
            BS_TRY(ir_wrap_index(node, indices->i[t * length + i], data->dims[batch + i], &offset, err));
            source += offset * strides[batch + i];
        }
        ir_copy_elements(out[0], t * slice, data, source, slice);
    }
    return MDOT_OK;
}

/* The class count: one integer, possibly stored as a float. */
static mdot_status read_depth(const ir_operands *args, ir_dim *out_depth)
{
    ir_dim element[IR_MAX_KNOWN];
    int count;
    if (!ir_operand_known(args, 1, element, &count))
        return ir_unsupported(args,
                              "the shape of its output depends on data: the depth, \"%s\", is unknown at compile time",
                              args->node->inputs[1]->name);
    if (count != 1 || !ir_dim_always_le(args->graph, ir_dim_number(0), element[0]))
        return ir_malformed(args, "the depth must be one positive number");
    *out_depth = element[0];
    return MDOT_OK;
}

mdot_status ir_result_one_hot(const ir_operands *args, ir_type *out_type)
{
    ir_type indices, values;
    ir_dim depth;
    int axis;
    BS_TRY(ir_operand_need(args, 0, "indices", -1, &indices));
    BS_TRY(ir_operand_need(args, 2, "values", 1, &values));
    BS_TRY(ir_operand_axis(args, "axis", -1, indices.rank + 1, &axis));
    BS_TRY(read_depth(args, &depth));
    if (!ir_dim_is(values.dim[0], 2)) return ir_malformed(args, "the values must be a pair: off and on");
    ir_type out = {values.dtype, 0, {{0}}};
    bool fits = append_dims(&out, indices.dim, axis) && append_dims(&out, &depth, 1) &&
                append_dims(&out, indices.dim + axis, indices.rank - axis);
    if (!fits) return too_many_dims(args);
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_one_hot(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), out[0]->rank, &axis, err));
    ir_axis_view view = ir_view_axis(out[0], axis);
    for (int64_t k = 0; k < out[0]->count; k++) {
        int64_t o = k / (view.extent * view.inner), depth = k / view.inner % view.extent, i = k % view.inner;
        double index = trunc(ir_wide_get(input[0], o * view.inner + i)); /* floating indices are cast to integers */
        if (index < 0) index += (double)view.extent;
        ir_copy_element(out[0], k, input[2], index == (double)depth); /* an index out of range is off in all classes */
    }
    return MDOT_OK;
}
