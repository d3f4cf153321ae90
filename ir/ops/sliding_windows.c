/* sliding_windows.c — mdot.Windows: the windows that slide along one dimension, in a dimension of their own.
 *
 *   [.., extent, ..] → [.., windows, size, ..]      element (w, k) is element w * stride + k * dilation
 *
 * The `expand` pass creates it from convolutions and poolings. If its input has an address, it moves no data, because
 * windows may overlap in memory.
 */
#include "ir/ops/operands.h"

typedef struct windows {
    ir_type input;
    int axis;
    int64_t size, stride, dilation;
} windows;

static mdot_status read_windows(const ir_operands *args, windows *out)
{
    windows w = {.size = ir_node_int(args->node, "size", 1),
                 .stride = ir_node_int(args->node, "stride", 1),
                 .dilation = ir_node_int(args->node, "dilation", 1)};
    BS_TRY(ir_operand_need(args, 0, "data", -1, &w.input));
    BS_TRY(ir_operand_axis(args, "axis", -1, w.input.rank, &w.axis));
    if (w.size < 1 || w.stride < 1 || w.dilation < 1)
        return ir_malformed(args, "size, stride and dilation must be at least 1");
    if (w.input.rank == MDOT_MAX_RANK) return ir_unsupported(args, "more than %d dimensions", MDOT_MAX_RANK);
    *out = w;
    return MDOT_OK;
}

mdot_status ir_result_windows(const ir_operands *args, ir_type *out_type)
{
    windows w;
    ir_dim slack, steps;
    int64_t reach, minimum, maximum;
    BS_TRY(read_windows(args, &w));
    bool fits = !__builtin_mul_overflow(w.size - 1, w.dilation, &reach) &&
                ir_dim_sub(w.input.dim[w.axis], ir_dim_number(reach), &slack) &&
                ir_dim_sub(slack, ir_dim_number(1), &slack) && ir_dim_div_floor(args->graph, slack, w.stride, &steps) &&
                ir_dim_add(steps, ir_dim_number(1), &steps);
    if (fits) ir_dim_bounds(args->graph, steps, &minimum, &maximum);
    if (!fits || minimum < 0) {
        char text[IR_SHAPE_TEXT_BYTES];
        return ir_refuse(
            args, ir_dims_fault(1, &w.input.dim[w.axis]),
            "windows of %lld over %s do not fit, or their number is no sum of a multiple of the length and one "
            "rounded quotient of it",
            (long long)w.size, ir_shape_text(args, 1, &w.input.dim[w.axis], text));
    }
    *out_type = w.input;
    out_type->rank++;
    for (int d = out_type->rank - 1; d > w.axis + 1; d--) out_type->dim[d] = w.input.dim[d - 1];
    out_type->dim[w.axis] = steps;
    out_type->dim[w.axis + 1] = ir_dim_number(w.size);
    return MDOT_OK;
}

mdot_status ir_eval_windows(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    windows w;
    int64_t strides[MDOT_MAX_RANK], own_index[MDOT_MAX_RANK];
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(read_windows(&args, &w));
    ir_strides(input[0]->rank, input[0]->dims, own_index);
    for (int d = 0; d < out[0]->rank; d++) strides[d] = own_index[d <= w.axis ? d : d - 1];
    strides[w.axis] = own_index[w.axis] * w.stride;
    strides[w.axis + 1] = own_index[w.axis] * w.dilation;
    ir_copy_strided(out[0], input[0], 0, strides);
    return MDOT_OK;
}
