/* select.c — operators that cut along axes and join again: Slice, Split, Concat, Pad. */
#include "ir/ops/operands.h"

typedef struct cut { /* along one axis: elements start, start + step, … */
    ir_dim start, count;
    int64_t step;
} cut;

static mdot_status undecided(const ir_operands *args, int axis, const char *what, ir_dim bound, ir_dim extent)
{
    char bound_text[IR_DIM_TEXT_BYTES], extent_text[IR_DIM_TEXT_BYTES];
    return ir_unsupported(args, "along axis %d, the effect of the %s, %s, on a dimension of %s depends on the length",
                          axis, what, ir_dim_text(bound, args->graph->symbol, bound_text, sizeof bound_text),
                          ir_dim_text(extent, args->graph->symbol, extent_text, sizeof extent_text));
}

/* Normalises a start or an end as in ONNX: negative values count from the end, then it is clamped to low … high. */
static bool clamp_bound(const ir_graph *graph, ir_dim bound, ir_dim extent, ir_dim low, ir_dim high, ir_dim *out)
{
    bool negative;
    if (!ir_dim_decide_less(graph, bound, ir_dim_number(0), &negative)) return false;
    if (negative && !ir_dim_add(bound, extent, &bound)) return false;
    return ir_dim_max(graph, bound, low, &bound) && ir_dim_min(graph, bound, high, out);
}

static mdot_status cut_axis(const ir_operands *args, int axis, ir_dim start, ir_dim end, int64_t step, ir_dim extent,
                            cut *out)
{
    ir_dim zero = ir_dim_number(0), before = ir_dim_number(-1), last_dim, first, stop, span, count;
    if (step == 0) return ir_malformed(args, "the step along axis %d is 0", axis);
    const int64_t longest = INT64_C(1) << 62; /* beyond every tensor's size: longer steps behave the same */
    if (step > longest) step = longest;
    if (step < -longest) step = -longest;
    bool back = step < 0;
    if (!ir_dim_add(extent, before, &last_dim)) last_dim = before;
    if (!clamp_bound(args->graph, start, extent, zero, back ? last_dim : extent, &first))
        return undecided(args, axis, "start", start, extent);
    if (!clamp_bound(args->graph, end, extent, back ? before : zero, back ? last_dim : extent, &stop))
        return undecided(args, axis, "end", end, extent);
    if (!(back ? ir_dim_sub(first, stop, &span) : ir_dim_sub(stop, first, &span)) ||
        !ir_dim_max(args->graph, span, zero, &span))
        return undecided(args, axis, "end", end, extent);
    if (!ir_dim_div_ceil(args->graph, span, back ? -step : step, &count)) {
        char text[IR_DIM_TEXT_BYTES];
        return ir_unsupported(
            args,
            "along axis %d, the count of steps of %lld in %s elements is not a sum of a multiple of the "
            "length and one rounded quotient of it",
            axis, (long long)step, ir_dim_text(span, args->graph->symbol, text, sizeof text));
    }
    *out = (cut){first, count, step};
    return MDOT_OK;
}

typedef struct slice_bounds { /* Slice's inputs; absent `axes` and `steps` have defaults */
    int count;
    ir_dim start[IR_MAX_KNOWN], end[IR_MAX_KNOWN];
    int64_t axis[IR_MAX_KNOWN], step[IR_MAX_KNOWN];
} slice_bounds;

static mdot_status read_bounds(const ir_operands *args, slice_bounds *out)
{
    int ends, axes, steps;
    BS_TRY(ir_operand_dims(args, 1, "starts", out->start, &out->count));
    BS_TRY(ir_operand_dims(args, 2, "ends", out->end, &ends));
    axes = steps = out->count;
    for (int i = 0; i < out->count; i++) {
        out->axis[i] = i;
        out->step[i] = 1;
    }
    if (ir_operand_given(args, 3)) BS_TRY(ir_operand_ints(args, 3, "axes", out->axis, &axes));
    if (ir_operand_given(args, 4)) BS_TRY(ir_operand_ints(args, 4, "steps", out->step, &steps));
    if (ends != out->count || axes != out->count || steps != out->count)
        return ir_malformed(args, "%d starts, %d ends, %d axes, %d steps", out->count, ends, axes, steps);
    return MDOT_OK;
}

/* A cut per input axis. */
static mdot_status read_cuts(const ir_operands *args, ir_type *out_in, cut *out_cuts)
{
    slice_bounds bounds;
    unsigned mask;
    mdot_status status = ir_operand_need(args, 0, "data", -1, out_in);
    if (status == MDOT_OK) status = read_bounds(args, &bounds);
    if (status == MDOT_OK) status = ir_axes_mask(args->node, bounds.axis, bounds.count, out_in->rank, &mask, args->err);
    if (status != MDOT_OK) return status;
    for (int i = 0; i < out_in->rank; i++) out_cuts[i] = (cut){ir_dim_number(0), out_in->dim[i], 1};
    for (int i = 0; i < bounds.count && status == MDOT_OK; i++) {
        int axis = (int)(bounds.axis[i] < 0 ? bounds.axis[i] + out_in->rank : bounds.axis[i]);
        status =
            cut_axis(args, axis, bounds.start[i], bounds.end[i], bounds.step[i], out_in->dim[axis], &out_cuts[axis]);
    }
    return status;
}

mdot_status ir_result_slice(const ir_operands *args, ir_type *out_type)
{
    ir_type input;
    cut cuts[MDOT_MAX_RANK];
    BS_TRY(read_cuts(args, &input, cuts));
    *out_type = input;
    for (int i = 0; i < input.rank; i++) out_type->dim[i] = cuts[i].count;
    return MDOT_OK;
}

mdot_status ir_eval_slice(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type type;
    cut cuts[MDOT_MAX_RANK];
    BS_TRY(read_cuts(&args, &type, cuts));
    int64_t strides[MDOT_MAX_RANK], base = 0;
    ir_strides(input[0]->rank, input[0]->dims, strides);
    for (int i = 0; i < input[0]->rank; i++) {
        base += cuts[i].start.offset * strides[i];
        strides[i] = cuts[i].count.offset > 1 ? strides[i] * cuts[i].step : 0; /* a huge step is not taken */
    }
    ir_copy_strided(out[0], input[0], base, strides);
    return MDOT_OK;
}

/* Sizes of `count` equal parts. If they do not divide the axis, the last one is smaller (opset 18). */
static mdot_status equal_parts(const ir_operands *args, ir_dim extent, int count, ir_dim *out_sizes)
{
    ir_dim size, before, rest;
    bool possible = ir_dim_div_exact(extent, ir_dim_number(count), &size) ||
                    (ir_dim_is_number(extent) && ir_dim_div_ceil(args->graph, extent, count, &size));
    if (!possible) {
        char text[IR_DIM_TEXT_BYTES];
        return ir_unsupported(args, "%s does not divide into %d parts at every length",
                              ir_dim_text(extent, args->graph->symbol, text, sizeof text), count);
    }
    for (int i = 0; i < count; i++) {
        possible = ir_dim_mul(size, ir_dim_number(i), &before) && ir_dim_sub(extent, before, &rest) &&
                   ir_dim_max(args->graph, rest, ir_dim_number(0), &rest) &&
                   ir_dim_min(args->graph, rest, size, &out_sizes[i]);
        if (!possible) return ir_unsupported(args, "the size of part %d overflows", i);
    }
    return MDOT_OK;
}

static mdot_status sizes_from_input(const ir_operands *args, ir_dim extent, int count, ir_dim *out_sizes)
{
    int size_count;
    ir_dim sum = ir_dim_number(0);
    BS_TRY(ir_operand_dims(args, 1, "sizes of the parts", out_sizes, &size_count));
    if (size_count != count) return ir_malformed(args, "%d sizes for %d outputs", size_count, count);
    for (int i = 0; i < count; i++) {
        int64_t minimum, maximum;
        ir_dim_bounds(args->graph, out_sizes[i], &minimum, &maximum);
        if (minimum < 0 || !ir_dim_add(sum, out_sizes[i], &sum))
            return ir_malformed(args, "the size of part %d is negative or overflows", i);
    }
    if (!ir_dim_equal(sum, extent)) {
        char sum_text[IR_DIM_TEXT_BYTES], extent_text[IR_DIM_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){sum, extent}),
                         "the parts have %s elements together instead of %s",
                         ir_dim_text(sum, args->graph->symbol, sum_text, sizeof sum_text),
                         ir_dim_text(extent, args->graph->symbol, extent_text, sizeof extent_text));
    }
    return MDOT_OK;
}

/* The axis and the sizes of the parts, one per output; there is space for IR_MAX_KNOWN. */
static mdot_status read_parts(const ir_operands *args, ir_type *out_in, int *out_axis, ir_dim *out_sizes)
{
    int count = args->node->output_count;
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_in));
    BS_TRY(ir_operand_axis(args, "axis", 0, out_in->rank, out_axis));
    if (count > IR_MAX_KNOWN) return ir_unsupported(args, "%d parts, more than %d", count, IR_MAX_KNOWN);
    if (ir_node_int(args->node, "num_outputs", count) != count)
        return ir_malformed(args, "num_outputs is %lld, but there are %d outputs",
                            (long long)ir_node_int(args->node, "num_outputs", count), count);
    ir_dim extent = out_in->dim[*out_axis];
    return ir_operand_given(args, 1) ? sizes_from_input(args, extent, count, out_sizes)
                                     : equal_parts(args, extent, count, out_sizes);
}

mdot_status ir_shape_split(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_operands args = ir_operands_of_graph(graph, node, err);
    ir_type type;
    ir_dim sizes[IR_MAX_KNOWN];
    int axis;
    BS_TRY(read_parts(&args, &type, &axis, sizes));
    for (int i = 0; i < node->output_count; i++) {
        type.dim[axis] = sizes[i];
        ir_set_type(node, i, type.dtype, type.rank, type.dim);
    }
    return ir_move_known(graph, node, 1u << 0, err);
}

mdot_status ir_eval_split(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type type;
    ir_dim sizes[IR_MAX_KNOWN];
    int axis;
    BS_TRY(read_parts(&args, &type, &axis, sizes));
    ir_axis_view view = ir_view_axis(input[0], axis);
    int64_t before = 0;
    for (int i = 0; i < node->output_count; i++) {
        int64_t run = sizes[i].offset * view.inner;
        type.dim[axis] = sizes[i];
        if (ir_node_wants(node, i)) {
            BS_TRY(ir_make_typed(arena, node, &type, &out[i], err));
            for (int64_t o = 0; o < view.outer; o++)
                ir_copy_elements(out[i], o * run, input[0], (o * view.extent + before) * view.inner, run);
        }
        before += sizes[i].offset;
    }
    return MDOT_OK;
}

mdot_status ir_result_concat(const ir_operands *args, ir_type *out_type)
{
    ir_type out, next_type;
    int axis;
    BS_TRY(ir_operand_need(args, 0, "first input", -1, &out));
    BS_TRY(ir_operand_axis(args, "axis", 0, out.rank, &axis));
    for (int i = 1; i < args->node->input_count; i++) {
        BS_TRY(ir_operand_need(args, i, "next input", out.rank, &next_type));
        BS_TRY(ir_operand_need_same(args, i, 0));
        for (int k = 0; k < out.rank; k++) {
            if (k == axis ? ir_dim_add(out.dim[k], next_type.dim[k], &out.dim[k])
                          : ir_dim_equal(out.dim[k], next_type.dim[k]))
                continue;
            char text[IR_SHAPE_TEXT_BYTES], first_text[IR_SHAPE_TEXT_BYTES];
            return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){out.dim[k], next_type.dim[k]}),
                             "input %d, %s, does not continue %s along axis %d", i,
                             ir_shape_text(args, next_type.rank, next_type.dim, text),
                             ir_shape_text(args, out.rank, out.dim, first_text), axis);
        }
    }
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_concat(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), out[0]->rank, &axis, err));
    ir_axis_view view = ir_view_axis(out[0], axis);
    int64_t before = 0;
    for (int i = 0; i < node->input_count; i++) {
        int64_t run = input[i]->dims[axis] * view.inner;
        for (int64_t o = 0; o < view.outer; o++)
            ir_copy_elements(out[0], (o * view.extent + before) * view.inner, input[i], o * run, run);
        before += input[i]->dims[axis];
    }
    return MDOT_OK;
}

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP, PAD_MODE_COUNT } pad_mode;

static const char *const pad_modes[PAD_MODE_COUNT] = {"constant", "reflect", "edge", "wrap"};

/* Numbers of elements to add before and after every axis; negative numbers remove elements. */
static mdot_status read_pads(const ir_operands *args, int rank, ir_dim *out_before, ir_dim *out_after)
{
    ir_dim pads[IR_MAX_KNOWN];
    int64_t axes[IR_MAX_KNOWN];
    int pad_count, axis_count = rank;
    unsigned mask;
    BS_TRY(ir_operand_dims(args, 1, "pads", pads, &pad_count));
    for (int i = 0; i < rank; i++) axes[i] = i;
    if (ir_operand_given(args, 3)) BS_TRY(ir_operand_ints(args, 3, "axes", axes, &axis_count));
    BS_TRY(ir_axes_mask(args->node, axes, axis_count, rank, &mask, args->err));
    if (pad_count != 2 * axis_count)
        return ir_malformed(args, "expected two pads per axis: %d pads for %d axes", pad_count, axis_count);
    for (int i = 0; i < rank; i++) out_before[i] = out_after[i] = ir_dim_number(0);
    for (int i = 0; i < axis_count; i++) {
        int axis = (int)(axes[i] < 0 ? axes[i] + rank : axes[i]);
        out_before[axis] = pads[i];
        out_after[axis] = pads[axis_count + i];
    }
    return MDOT_OK;
}

static mdot_status pad_result(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    ir_dim before[MDOT_MAX_RANK], after[MDOT_MAX_RANK];
    int mode = PAD_CONSTANT;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &in));
    BS_TRY(read_pads(args, in.rank, before, after));
    BS_TRY(ir_operand_choice(args, "mode", pad_modes, PAD_MODE_COUNT, &mode));
    BS_TRY(ir_operand_need_same(args, 2, 0));
    BS_TRY(ir_operand_need_one(args, 2, "constant value"));
    for (int i = 0; i < in.rank; i++) {
        int64_t minimum = -1, maximum;
        bool was_empty = ir_dim_is(in.dim[i], 0);
        /* Positions are counted from the first element: the first is -before, the last extent + after - 1. */
        ir_dim first;
        bool affine = ir_dim_sub(ir_dim_number(0), before[i], &first) && ir_dim_add(in.dim[i], after[i], &in.dim[i]) &&
                      ir_dim_add(in.dim[i], before[i], &in.dim[i]);
        if (affine) ir_dim_bounds(args->graph, in.dim[i], &minimum, &maximum);
        if (minimum < 0)
            return ir_refuse(args, ir_dims_fault(1, &in.dim[i]), "the pads take more from axis %d than it has", i);
        if (mode != PAD_CONSTANT && was_empty && !ir_dim_is(in.dim[i], 0))
            return ir_malformed(args, "an empty input has no elements to pad with along axis %d", i);
    }
    *out_type = in;
    return MDOT_OK;
}

mdot_status ir_shape_pad(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(ir_shape_by(graph, node, pad_result, err));
    return ir_move_known(graph, node, 1u << 0 | 1u << 2, err);
}

/* The non-negative remainder; divisor > 0. */
static int64_t floor_mod(int64_t value, int64_t divisor)
{
    int64_t rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}

/* An axis's element at position `at`, which is counted from the first element and may be outside; -1: the constant. */
static int64_t padded_source(pad_mode mode, int64_t at, int64_t extent)
{
    if (at >= 0 && at < extent) return at;
    switch (mode) {
    case PAD_REFLECT: { /* mirrors at the first and the last element, repeatedly */
        int64_t period = extent > 1 ? 2 * (extent - 1) : 1;
        int64_t offset = floor_mod(at, period);
        return offset < extent ? offset : period - offset;
    }
    case PAD_EDGE: return at < 0 ? 0 : extent - 1;
    case PAD_WRAP: return floor_mod(at, extent);
    default: return -1;
    }
}

/* Offset in the element's input at `index` of the output; -1: the constant. */
static int64_t padded_offset(pad_mode mode, const ir_wide *input, const int64_t *strides, const ir_dim *before,
                             const int64_t *index)
{
    int64_t offset = 0;
    for (int i = 0; i < input->rank; i++) {
        int64_t source = padded_source(mode, index[i] - before[i].offset, input->dims[i]);
        if (source < 0) return -1;
        offset += source * strides[i];
    }
    return offset;
}

mdot_status ir_eval_pad(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, in, err);
    ir_dim before[MDOT_MAX_RANK], after[MDOT_MAX_RANK];
    int mode = PAD_CONSTANT;
    BS_TRY(ir_make_by(arena, node, in, pad_result, &out[0], err));
    BS_TRY(read_pads(&args, in[0]->rank, before, after));
    BS_TRY(ir_operand_choice(&args, "mode", pad_modes, PAD_MODE_COUNT, &mode));
    const ir_wide *constant = ir_tensor_input(node, in, 2); /* absent: zeros, as in the new tensor */
    if (constant != NULL && constant->count != 1)
        return ir_fail(node, err, MDOT_MALFORMED, "the constant must be one number");
    if (mode != PAD_CONSTANT && in[0]->count == 0 && out[0]->count > 0)
        return ir_fail(node, err, MDOT_MALFORMED, "an empty input has no elements to pad with");
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_strides(in[0]->rank, in[0]->dims, strides);
    for (int64_t k = 0; k < out[0]->count; k++) {
        int64_t source = padded_offset((pad_mode)mode, in[0], strides, before, index);
        if (source >= 0)
            ir_copy_element(out[0], k, in[0], source);
        else if (constant != NULL)
            ir_copy_element(out[0], k, constant, 0);
        ir_next_index(out[0]->rank, out[0]->dims, index);
    }
    return MDOT_OK;
}
