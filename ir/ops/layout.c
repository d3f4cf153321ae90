/* layout.c — operators that change the shape or order of elements: Reshape and similar ones, Transpose, Expand, Tile,
 * DepthToSpace, SpaceToDepth, Trilu. */
#include "ir/ops/operands.h"

#include <stdio.h>
#include <string.h>

/* The one length at which the shapes agree, if an exporter wrote the length of its example into the target; 0: none. */
static int64_t example_length(const ir_type *input, int count, const ir_dim *target)
{
    int64_t wanted = 1, others = 1;
    ir_dim open = ir_dim_number(0);
    for (int i = 0; i < count; i++)
        if (!ir_dim_is_number(target[i]) || __builtin_mul_overflow(wanted, target[i].offset, &wanted)) return 0;
    for (int d = 0; d < input->rank; d++) {
        if (ir_dim_is_number(input->dim[d])) {
            if (__builtin_mul_overflow(others, input->dim[d].offset, &others)) return 0;
        } else if (ir_dim_is_number(open)) {
            open = input->dim[d];
        } else {
            return 0;
        }
    }
    if (ir_dim_is_number(open) || !ir_dim_is_affine(open) || others <= 0 || wanted <= 0 || wanted % others != 0)
        return 0;
    int64_t left = wanted / others - open.offset;
    return left % open.scale == 0 && left / open.scale > 0 ? left / open.scale : 0;
}

static mdot_status no_such_reshape(const ir_operands *args, const ir_type *input, int count, const ir_dim *target)
{
    char was[IR_SHAPE_TEXT_BYTES], becomes[IR_SHAPE_TEXT_BYTES];
    mdot_status status = ir_dims_fault(input->rank, input->dim);
    if (status == MDOT_MALFORMED) status = ir_dims_fault(count, target);
    char remedy[256] = "";
    int64_t example = example_length(input, count, target);
    if (status == MDOT_UNSUPPORTED) snprintf(remedy, sizeof remedy, " at every length");
    int open_count = 0;
    for (int i = 0; i < input->rank; i++) open_count += !ir_dim_is_number(input->dim[i]);
    if (status == MDOT_UNSUPPORTED && open_count > 1)
        snprintf(remedy, sizeof remedy,
                 ", but a product of lengths is no extent here: keep the axes apart, or reduce the joined one (by "
                 "Softmax, ArgMax, a sum …) before the result leaves the model");
    if (status == MDOT_UNSUPPORTED && example > 0)
        snprintf(remedy, sizeof remedy,
                 " at every length, but is equal only at the length %lld of the export: torch.onnx.export(…, "
                 "dynamo=True, dynamic_shapes=…) keeps the length open, as does writing the shape with -1",
                 (long long)example);
    return ir_refuse(args, status, "the number of elements of %s must equal that of %s%s",
                     ir_shape_text(args, input->rank, input->dim, was), ir_shape_text(args, count, target, becomes),
                     remedy);
}

/* Resolves the zeros of a target shape, which mean the input's dimension at the same position, and finds the -1. */
static mdot_status resolve_target(const ir_operands *args, const ir_type *in, int count, ir_dim *target,
                                  int *out_inferred)
{
    bool allow_zero = ir_node_int(args->node, "allowzero", 0) != 0;
    bool has_zero = false;
    int inferred = -1;
    for (int i = 0; i < count; i++) {
        int64_t minimum, maximum;
        ir_dim_bounds(args->graph, target[i], &minimum, &maximum);
        if (ir_dim_is(target[i], 0) && !allow_zero) {
            if (i >= in->rank)
                return ir_malformed(args, "dimension %d is copied from the input, which has %d dimensions", i,
                                    in->rank);
            target[i] = in->dim[i];
        } else if (ir_dim_is(target[i], -1) && inferred < 0) {
            inferred = i;
        } else if (minimum < 0) {
            return ir_malformed(args, "dimension %d of the target shape is negative or a second -1", i);
        }
        has_zero = has_zero || ir_dim_is(target[i], 0);
    }
    if (allow_zero && has_zero && inferred >= 0)
        return ir_malformed(args, "with allowzero, a shape may contain 0 or -1, but not both");
    *out_inferred = inferred;
    return MDOT_OK;
}

mdot_status ir_result_reshape(const ir_operands *args, ir_type *out_type)
{
    ir_type input;
    ir_dim target[IR_MAX_KNOWN];
    int count, inferred = -1;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    BS_TRY(ir_operand_dims(args, 1, "target dimensions", target, &count));
    if (count > MDOT_MAX_RANK) return ir_unsupported(args, "%d dimensions, more than %d", count, MDOT_MAX_RANK);
    BS_TRY(resolve_target(args, &input, count, target, &inferred));
    bool possible;
    if (inferred >= 0) {
        ir_dim others[MDOT_MAX_RANK];
        int other_count = 0;
        for (int i = 0; i < count; i++)
            if (i != inferred) others[other_count++] = target[i];
        possible = ir_dim_quotient(input.dim, input.rank, others, other_count, &target[inferred]);
    } else {
        possible = ir_dim_products_equal(input.dim, input.rank, target, count);
    }
    if (!possible) return no_such_reshape(args, &input, count, target);
    *out_type = (ir_type){input.dtype, count, {{0}}};
    memcpy(out_type->dim, target, (size_t)count * sizeof *target);
    return MDOT_OK;
}

mdot_status ir_result_flatten(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    BS_TRY(ir_operand_need(args, 0, "input", -1, &in));
    int64_t axis = ir_node_int(args->node, "axis", 1); /* an axis equal to the rank is allowed: all dimensions are
                                                        * before the cut */
    if (axis < -in.rank || axis > in.rank)
        return ir_malformed(args, "axis %lld of an input of %d dimensions", (long long)axis, in.rank);
    if (axis < 0) axis += in.rank;
    ir_type out = {in.dtype, 2, {{.offset = 1}, {.offset = 1}}};
    for (int i = 0; i < in.rank; i++) {
        ir_dim *product = &out.dim[i >= axis];
        if (!ir_dim_mul(*product, in.dim[i], product))
            return ir_unsupported(args, "the product of its dimensions grows with the square of the length");
    }
    *out_type = out;
    return MDOT_OK;
}

/* The axes input as a mask over `rank` dimensions. */
static mdot_status axes_operand(const ir_operands *args, int rank, unsigned *out_mask, int *out_count)
{
    int64_t axes[IR_MAX_KNOWN];
    mdot_status status = ir_operand_ints(args, 1, "axes", axes, out_count);
    return status != MDOT_OK ? status : ir_axes_mask(args->node, axes, *out_count, rank, out_mask, args->err);
}

mdot_status ir_result_squeeze(const ir_operands *args, ir_type *out_type)
{
    ir_type input;
    unsigned dropped = 0;
    int count;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    if (ir_operand_given(args, 1)) {
        BS_TRY(axes_operand(args, input.rank, &dropped, &count));
    } else {
        for (int i = 0; i < input.rank; i++) dropped |= (unsigned)ir_dim_is(input.dim[i], 1) << i;
    }
    ir_type out = {input.dtype, 0, {{0}}};
    for (int i = 0; i < input.rank; i++) {
        if (!(dropped >> i & 1)) {
            out.dim[out.rank++] = input.dim[i];
        } else if (!ir_dim_is(input.dim[i], 1)) {
            char text[IR_DIM_TEXT_BYTES];
            return ir_refuse(args, ir_dims_fault(1, &input.dim[i]), "dimension %d is %s instead of 1", i,
                             ir_dim_text(input.dim[i], args->graph->symbol, text, sizeof text));
        }
    }
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_result_unsqueeze(const ir_operands *args, ir_type *out_type)
{
    ir_type input;
    int64_t axes[IR_MAX_KNOWN];
    int count;
    unsigned added;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    BS_TRY(ir_operand_ints(args, 1, "axes", axes, &count));
    if (input.rank + count > MDOT_MAX_RANK)
        return ir_unsupported(args, "%d dimensions, more than %d", input.rank + count, MDOT_MAX_RANK);
    BS_TRY(ir_axes_mask(args->node, axes, count, input.rank + count, &added, args->err));
    ir_type out = {input.dtype, input.rank + count, {{0}}};
    for (int i = 0, k = 0; i < out.rank; i++) out.dim[i] = added >> i & 1 ? ir_dim_number(1) : input.dim[k++];
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_reshape(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_copy_elements(out[0], 0, input[0], 0, input[0]->count);
    return MDOT_OK;
}

static mdot_status read_permutation(const ir_operands *args, int rank, int64_t *out_perm)
{
    const ir_attr *attr = ir_node_ints(args->node, "perm");
    if (attr != NULL) {
        if (attr->count != rank) return ir_malformed(args, "perm names %d of %d axes", attr->count, rank);
        unsigned axes;
        BS_TRY(ir_axes_mask(args->node, attr->ints, rank, rank, &axes, args->err));
    }
    ir_node_perm(args->node, rank, out_perm);
    return MDOT_OK;
}

mdot_status ir_result_transpose(const ir_operands *args, ir_type *out_type)
{
    ir_type input;
    int64_t perm[MDOT_MAX_RANK];
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    BS_TRY(read_permutation(args, input.rank, perm));
    *out_type = (ir_type){input.dtype, input.rank, {{0}}};
    for (int i = 0; i < input.rank; i++) out_type->dim[i] = input.dim[perm[i]];
    return MDOT_OK;
}

/* Fills `out` with `input`, viewed in shape `dims`, after permuting the axes. Only the element order of `out` matters,
 * not the shape. */
static void copy_permuted(ir_wide *out, const ir_wide *input, int rank, const int64_t *dims, const int64_t *perm)
{
    int64_t strides[MDOT_MAX_RANK], permuted[MDOT_MAX_RANK];
    ir_wide view = *out;
    view.rank = rank;
    ir_strides(rank, dims, strides);
    for (int i = 0; i < rank; i++) {
        view.dims[i] = dims[perm[i]];
        permuted[i] = strides[perm[i]];
    }
    ir_copy_strided(&view, input, 0, permuted);
}

mdot_status ir_eval_transpose(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int64_t perm[MDOT_MAX_RANK];
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(read_permutation(&args, input[0]->rank, perm));
    copy_permuted(out[0], input[0], input[0]->rank, input[0]->dims, perm);
    return MDOT_OK;
}

/* DepthToSpace and SpaceToDepth exchange channels and blocksize × blocksize pixels. `grow` selects the direction. */
static mdot_status block_result(const ir_operands *args, bool grow, ir_type *out_type)
{
    ir_type in;
    BS_TRY(ir_operand_need(args, 0, "input", 4, &in));
    int64_t block = ir_node_int(args->node, "blocksize", 0);
    if (block <= 0 || block > INT32_MAX)
        return ir_malformed(args, "blocksize is %lld, but must be between 1 and %d", (long long)block, INT32_MAX);
    ir_dim side = ir_dim_number(block), area = ir_dim_number(block * block);
    ir_type out = in;
    bool possible = grow ? ir_dim_div_exact(in.dim[1], area, &out.dim[1]) && ir_dim_mul(in.dim[2], side, &out.dim[2]) &&
                               ir_dim_mul(in.dim[3], side, &out.dim[3])
                         : ir_dim_mul(in.dim[1], area, &out.dim[1]) && ir_dim_div_exact(in.dim[2], side, &out.dim[2]) &&
                               ir_dim_div_exact(in.dim[3], side, &out.dim[3]);
    if (!possible) {
        char text[IR_SHAPE_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(4, in.dim), "%s does not divide into blocks of %lld × %lld",
                         ir_shape_text(args, 4, in.dim, text), (long long)block, (long long)block);
    }
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_result_depth_to_space(const ir_operands *args, ir_type *out_type)
{
    return block_result(args, true, out_type);
}

mdot_status ir_result_space_to_depth(const ir_operands *args, ir_type *out_type)
{
    return block_result(args, false, out_type);
}

mdot_status ir_eval_depth_to_space(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                   mdot_error *err)
{
    const int64_t *dims = input[0]->dims;
    int64_t b = ir_node_int(node, "blocksize", 0), channels = out[0]->dims[1];
    if (strcmp(ir_node_string(node, "mode", "DCR"), "CRD") == 0)
        copy_permuted(out[0], input[0], 6, (int64_t[]){dims[0], channels, b, b, dims[2], dims[3]},
                      (int64_t[]){0, 1, 4, 2, 5, 3});
    else
        copy_permuted(out[0], input[0], 6, (int64_t[]){dims[0], b, b, channels, dims[2], dims[3]},
                      (int64_t[]){0, 3, 4, 1, 5, 2});
    return MDOT_OK;
}

mdot_status ir_eval_space_to_depth(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                   mdot_error *err)
{
    int64_t b = ir_node_int(node, "blocksize", 0);
    const int64_t *dims = out[0]->dims;
    copy_permuted(out[0], input[0], 6, (int64_t[]){dims[0], input[0]->dims[1], dims[2], b, dims[3], b},
                  (int64_t[]){0, 3, 5, 1, 2, 4});
    return MDOT_OK;
}

mdot_status ir_result_expand(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    ir_dim target[IR_MAX_KNOWN];
    int count;
    BS_TRY(ir_operand_need(args, 0, "input", -1, &in));
    BS_TRY(ir_operand_dims(args, 1, "target dimensions", target, &count));
    if (count > MDOT_MAX_RANK) return ir_unsupported(args, "%d dimensions, more than %d", count, MDOT_MAX_RANK);
    ir_type out = {in.dtype, 0, {{0}}};
    mdot_status status = ir_broadcast_dims(args->node, in.dim, in.rank, target, count, out.dim, &out.rank, args->err);
    if (status == MDOT_OK) *out_type = out;
    return status;
}

mdot_status ir_eval_expand(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int64_t strides[MDOT_MAX_RANK];
    ir_broadcast_strides(input[0]->rank, input[0]->dims, out[0]->rank, strides);
    ir_copy_strided(out[0], input[0], 0, strides);
    return MDOT_OK;
}

mdot_status ir_result_tile(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    ir_dim repeats[IR_MAX_KNOWN];
    int count;
    BS_TRY(ir_operand_need(args, 0, "input", -1, &in));
    BS_TRY(ir_operand_dims(args, 1, "repeats", repeats, &count));
    if (count != in.rank) return ir_malformed(args, "%d repeats for %d dimensions", count, in.rank);
    ir_type out = in;
    for (int i = 0; i < in.rank; i++) {
        int64_t minimum, maximum;
        ir_dim_bounds(args->graph, repeats[i], &minimum, &maximum);
        if (minimum < 0) return ir_malformed(args, "repeat %d is negative", i);
        if (!ir_dim_mul(in.dim[i], repeats[i], &out.dim[i]))
            return ir_unsupported(
                args,
                "dimension %d times its repeats is not a sum of a multiple of the length and one rounded "
                "quotient of it",
                i);
    }
    *out_type = out;
    return MDOT_OK;
}

mdot_status ir_eval_tile(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *source = input[0];
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_strides(source->rank, source->dims, strides);
    for (int64_t k = 0; k < out[0]->count; k++) {
        int64_t offset = 0;
        for (int i = 0; i < source->rank; i++) offset += index[i] % source->dims[i] * strides[i];
        ir_copy_element(out[0], k, source, offset);
        ir_next_index(out[0]->rank, out[0]->dims, index);
    }
    return MDOT_OK;
}

mdot_status ir_result_trilu(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    BS_TRY(ir_operand_need(args, 0, "input", -1, &in));
    if (in.rank < 2) return ir_malformed(args, "an input of %d dimensions is not a matrix", in.rank);
    *out_type = in;
    return ir_operand_need_one(args, 1, "number of the diagonal");
}

/* Keeps the elements on and above diagonal k (upper) or on and below it. The rest of the new tensor is zero. */
mdot_status ir_eval_trilu(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *diagonal = ir_tensor_input(node, input, 1);
    if (diagonal != NULL && diagonal->i == NULL) return ir_fail(node, err, MDOT_MALFORMED, "k must be an integer");
    bool upper = ir_node_int(node, "upper", 1) != 0;
    double k = diagonal != NULL ? ir_wide_get(diagonal, 0) : 0; /* an integer could overflow for extreme diagonals */
    int64_t rows = input[0]->dims[input[0]->rank - 2], columns = input[0]->dims[input[0]->rank - 1];
    for (int64_t offset = 0; offset < input[0]->count; offset++) {
        double above = (double)(offset % columns) - (double)(offset / columns % rows);
        if (upper ? above >= k : above <= k) ir_copy_element(out[0], offset, input[0], offset);
    }
    return MDOT_OK;
}

/* Zero FLOPs. Of each input at most as much is read as is written, because a gather or a slice skips the rest of its
 * table. */
void ir_cost_move(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    for (int i = 0; i < node->input_count; i++) {
        double bytes = ir_value_bytes(node->inputs[i], length);
        if (bytes > out_cost->bytes_written) out_cost->bytes_read -= bytes - out_cost->bytes_written;
    }
}
