/* sequential.c — operators that are not loop nests, because an output element depends on its neighbours or on a
 * position given by data: CumSum, TopK, ScatterElements, ScatterND, TensorScatter. */
#include "ir/ops/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

mdot_status ir_result_cum_sum(const ir_operands *args, ir_type *out_type)
{
    ir_type input, axis;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    BS_TRY(ir_operand_need(args, 1, "axis", -1, &axis));
    BS_TRY(ir_operand_need_integers(args, 1, "axis"));
    ir_dim element[IR_MAX_KNOWN];
    int count, normal;
    if (ir_operand_known(args, 1, element, &count)) { /* a known axis is checked, although the type does not depend on
                                                       * it */
        if (count != 1) return ir_malformed(args, "the axis has %d elements instead of 1", count);
        BS_TRY(ir_normalize_axis(args->node, element[0].offset, input.rank, &normal, args->err));
    }
    *out_type = input;
    return MDOT_OK;
}

/* Sets out[at] to the running sum, and adds in[at] to the sum before (inclusive) or afterwards. Integers wrap. */
static void cumulate(ir_wide *out, const ir_wide *input, int64_t offset, bool exclusive, double *sum,
                     int64_t *integer_sum)
{
    if (input->f != NULL) {
        double after = *sum + input->f[offset];
        out->f[offset] = exclusive ? *sum : after;
        *sum = after;
    } else {
        int64_t after = (int64_t)((uint64_t)*integer_sum + (uint64_t)input->i[offset]);
        out->i[offset] = ir_wrap_integer(input->dtype, exclusive ? *integer_sum : after);
        *integer_sum = after;
    }
}

mdot_status ir_eval_cum_sum(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, input[1]->i[0], input[0]->rank, &axis, err));
    bool exclusive = ir_node_int(node, "exclusive", 0) != 0, reverse = ir_node_int(node, "reverse", 0) != 0;
    ir_axis_view view = ir_view_axis(input[0], axis);
    for (int64_t row = 0; row < view.outer * view.inner; row++) {
        int64_t base = row / view.inner * view.extent * view.inner + row % view.inner;
        double sum = 0;
        int64_t integer_sum = 0;
        for (int64_t k = 0; k < view.extent; k++) {
            int64_t position = reverse ? view.extent - 1 - k : k;
            cumulate(out[0], input[0], base + position * view.inner, exclusive, &sum, &integer_sum);
        }
    }
    return MDOT_OK;
}

static mdot_status top_k_result(const ir_operands *args, ir_type *out_type, int *out_axis)
{
    ir_type input;
    ir_dim element[IR_MAX_KNOWN];
    int count;
    BS_TRY(ir_operand_need(args, 0, "data", -1, &input));
    BS_TRY(ir_operand_axis(args, "axis", -1, input.rank, out_axis));
    BS_TRY(ir_operand_dims(args, 1, "counts K", element, &count));
    if (count != 1 || !ir_dim_always_le(args->graph, ir_dim_number(0), element[0]) ||
        !ir_dim_always_le(args->graph, element[0], input.dim[*out_axis])) {
        char k_text[IR_DIM_TEXT_BYTES], text[IR_DIM_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){element[0], input.dim[*out_axis]}),
                         "K, %s, must be one number between 0 and the dimension's %s at every length",
                         ir_dim_text(element[0], args->graph->symbol, k_text, sizeof k_text),
                         ir_dim_text(input.dim[*out_axis], args->graph->symbol, text, sizeof text));
    }
    *out_type = input;
    out_type->dim[*out_axis] = element[0];
    return MDOT_OK;
}

mdot_status ir_outputs_top_k(const ir_operands *args, int output, ir_type *out_type)
{
    int axis;
    BS_TRY(top_k_result(args, out_type, &axis));
    if (output == 1) out_type->dtype = MDOT_DTYPE_I64;
    return MDOT_OK;
}

typedef struct candidate { /* floats rank by f, integers by i; the other field is 0 */
    double f;
    int64_t i;
    int64_t position;
} candidate;

/* NaN is above all. */
static int compare_values(const candidate *a, const candidate *b)
{
    int order = isnan(a->f) || isnan(b->f) ? isnan(a->f) - isnan(b->f) : (a->f > b->f) - (a->f < b->f);
    return order ? order : (a->i > b->i) - (a->i < b->i);
}

static int by_value_ascending(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    int order = compare_values(a, b);
    return order ? order : (a->position > b->position) - (a->position < b->position);
}

static int by_value_descending(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    int order = compare_values(b, a);
    return order ? order : (a->position > b->position) - (a->position < b->position);
}

static candidate candidate_at(const ir_wide *input, int64_t offset, int64_t position)
{
    if (input->f != NULL) return (candidate){input->f[offset], 0, position};
    /* With a flipped sign bit, unsigned bit patterns sort like signed ones. */
    int64_t bits = input->dtype == MDOT_DTYPE_U64 ? input->i[offset] ^ INT64_MIN : input->i[offset];
    return (candidate){0, bits, position};
}

mdot_status ir_eval_top_k(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -1), input[0]->rank, &axis, err));
    ir_axis_view view = ir_view_axis(input[0], axis);
    candidate *row = IR_NEW_ARRAY(arena, candidate, view.extent);
    if (row == NULL) return ir_fail_memory(node, err);
    int (*compare)(const void *, const void *) =
        ir_node_int(node, "largest", 1) ? by_value_descending : by_value_ascending;
    int64_t k = out[0]->dims[axis];
    for (int64_t r = 0; r < view.outer * view.inner; r++) { /* always sorted, because unsorted results may have any
                                                             * order */
        int64_t o = r / view.inner, i = r % view.inner;
        for (int64_t e = 0; e < view.extent; e++)
            row[e] = candidate_at(input[0], (o * view.extent + e) * view.inner + i, e);
        qsort(row, (size_t)view.extent, sizeof *row, compare);
        for (int64_t e = 0; e < k; e++) {
            int64_t target = (o * k + e) * view.inner + i;
            if (ir_node_wants(node, 1)) out[1]->i[target] = row[e].position;
            ir_copy_element(out[0], target, input[0], (o * view.extent + row[e].position) * view.inner + i);
        }
    }
    return MDOT_OK;
}

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN, REDUCTION_COUNT } reduction;

static mdot_status read_reduction(const ir_operands *args, reduction *out)
{
    static const char *const names[REDUCTION_COUNT] = {"none", "add", "mul", "max", "min"};
    int choice = 0;
    BS_TRY(ir_operand_choice(args, "reduction", names, REDUCTION_COUNT, &choice));
    *out = (reduction)choice;
    return MDOT_OK;
}

static double reduce_floats(reduction how, double old, double update)
{
    switch (how) {
    case REDUCE_ADD: return old + update;
    case REDUCE_MUL: return old * update;
    case REDUCE_MAX: return isnan(old) || old > update ? old : update;
    case REDUCE_MIN: return isnan(old) || old < update ? old : update;
    default: return update;
    }
}

static int64_t reduce_integers(reduction how, mdot_dtype dtype, int64_t old, int64_t update)
{
    bool greater = dtype == MDOT_DTYPE_U64 ? (uint64_t)old > (uint64_t)update : old > update;
    switch (how) {
    case REDUCE_ADD: return ir_wrap_integer(dtype, (int64_t)((uint64_t)old + (uint64_t)update));
    case REDUCE_MUL: return ir_wrap_integer(dtype, (int64_t)((uint64_t)old * (uint64_t)update));
    case REDUCE_MAX: return greater ? old : update;
    case REDUCE_MIN: return greater ? update : old;
    default: return update;
    }
}

static void reduce_element(reduction how, ir_wide *target, int64_t to, const ir_wide *updates, int64_t source)
{
    if (target->f != NULL)
        target->f[to] = reduce_floats(how, target->f[to], updates->f[source]);
    else
        target->i[to] = reduce_integers(how, target->dtype, target->i[to], updates->i[source]);
}

/* Data, indices and updates: inputs 0, 1 and 2. Only passes set input 3, a count: along the attribute "axis" of the
 * updates, only that many exist. */
static mdot_status read_scatter(const ir_operands *args, ir_type *out_data, ir_type *out_indices, ir_type *out_updates)
{
    reduction how = REDUCE_NONE;
    ir_type count;
    if (ir_operand_given(args, 3)) BS_TRY(ir_operand_need(args, 3, "count", 1, &count));
    BS_TRY(ir_operand_need(args, 0, "data", -1, out_data));
    BS_TRY(ir_operand_need(args, 1, "indices", -1, out_indices));
    BS_TRY(ir_operand_need(args, 2, "updates", -1, out_updates));
    BS_TRY(ir_operand_need_integers(args, 1, "tensor of indices"));
    BS_TRY(ir_operand_need_same(args, 2, 0));
    return read_reduction(args, &how);
}

mdot_status ir_result_scatter_elements(const ir_operands *args, ir_type *out_type)
{
    ir_type data, indices, updates;
    int axis;
    BS_TRY(read_scatter(args, &data, &indices, &updates));
    BS_TRY(ir_operand_axis(args, "axis", 0, data.rank, &axis));
    bool fits = indices.rank == data.rank && updates.rank == data.rank;
    for (int i = 0; i < data.rank && fits; i++)
        fits = ir_dim_equal(indices.dim[i], updates.dim[i]) &&
               (i == axis || ir_dim_always_le(args->graph, indices.dim[i], data.dim[i]));
    if (!fits) {
        char text[IR_SHAPE_TEXT_BYTES], data_text[IR_SHAPE_TEXT_BYTES];
        return ir_malformed(args, "indices of shape %s do not match data of shape %s and the updates",
                            ir_shape_text(args, indices.rank, indices.dim, text),
                            ir_shape_text(args, data.rank, data.dim, data_text));
    }
    *out_type = data;
    return ir_operand_need_indices(args, 1, 0, 1, data.dim[axis]);
}

/* Copies the data into the output of a scatter. */
static mdot_status begin_scatter(const ir_node *node, ir_inputs input, reduction *out_how, ir_wide *out,
                                 mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(read_reduction(&args, out_how));
    ir_copy_elements(out, 0, input[0], 0, input[0]->count);
    return MDOT_OK;
}

mdot_status ir_eval_scatter_elements(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                     mdot_error *err)
{
    int axis;
    reduction how = REDUCE_NONE;
    BS_TRY(begin_scatter(node, input, &how, out[0], err));
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", 0), input[0]->rank, &axis, err));
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_strides(input[0]->rank, input[0]->dims, strides);
    const ir_wide *count = ir_tensor_input(node, input, 3);
    for (int64_t k = 0; k < input[1]->count; k++, ir_next_index(input[1]->rank, input[1]->dims, index)) {
        int64_t offset;
        if (count != NULL && index[axis] >= count->i[0]) continue;
        BS_TRY(ir_wrap_index(node, input[1]->i[k], input[0]->dims[axis], &offset, err));
        int64_t target = ir_dot_index(input[0]->rank, index, strides) + (offset - index[axis]) * strides[axis];
        reduce_element(how, out[0], target, input[2], k);
    }
    return MDOT_OK;
}

/* Updates have the indices' shape without the last dimension (the tuples), followed by the slices' shape. */
mdot_status ir_result_scatter_nd(const ir_operands *args, ir_type *out_type)
{
    ir_type data, indices, updates;
    mdot_status status = read_scatter(args, &data, &indices, &updates);
    if (status != MDOT_OK) return status;
    ir_dim length = indices.rank > 0 ? indices.dim[indices.rank - 1] : ir_dim_number(-1);
    bool fits = ir_dim_is_number(length) && length.offset >= 0 && length.offset <= data.rank &&
                updates.rank == indices.rank - 1 + data.rank - length.offset;
    for (int i = 0; fits && i < updates.rank; i++) {
        int lead = indices.rank - 1;
        fits = ir_dim_equal(updates.dim[i], i < lead ? indices.dim[i] : data.dim[i - lead + length.offset]);
    }
    if (!fits) {
        char text[IR_SHAPE_TEXT_BYTES], data_text[IR_SHAPE_TEXT_BYTES], updates_text[IR_SHAPE_TEXT_BYTES];
        return ir_malformed(args, "the shapes of data, %s, indices, %s, and updates, %s, do not match",
                            ir_shape_text(args, data.rank, data.dim, data_text),
                            ir_shape_text(args, indices.rank, indices.dim, text),
                            ir_shape_text(args, updates.rank, updates.dim, updates_text));
    }
    for (int d = 0; d < length.offset && status == MDOT_OK; d++)
        status = ir_operand_need_indices(args, 1, d, length.offset, data.dim[d]);
    *out_type = data;
    return status;
}

mdot_status ir_eval_scatter_nd(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    reduction how = REDUCE_NONE;
    BS_TRY(begin_scatter(node, input, &how, out[0], err));
    const ir_wide *data = input[0], *indices = input[1], *count = ir_tensor_input(node, input, 3);
    ir_axis_view view = ir_view_axis(input[2], (int)ir_node_int(node, "axis", 0));
    int length = (int)indices->dims[indices->rank - 1];
    int64_t strides[MDOT_MAX_RANK];
    ir_strides(data->rank, data->dims, strides);
    int64_t slice = ir_product(data->dims, length, data->rank);
    int64_t tuples = ir_product(indices->dims, 0, indices->rank - 1);
    for (int64_t t = 0; t < tuples && slice > 0; t++) {
        int64_t target = 0;
        if (count != NULL && t * slice / view.inner % view.extent >= count->i[0]) continue;
        for (int i = 0; i < length; i++) {
            int64_t offset;
            BS_TRY(ir_wrap_index(node, indices->i[t * length + i], data->dims[i], &offset, err));
            target += offset * strides[i];
        }
        for (int64_t e = 0; e < slice; e++) reduce_element(how, out[0], target + e, input[2], t * slice + e);
    }
    return MDOT_OK;
}

/* ---- TensorScatter: writes an update into a cache, from one position along the sequence axis per batch element --- */

mdot_status ir_result_tensor_scatter(const ir_operands *args, ir_type *out_type)
{
    ir_type cache, update, starts;
    int axis;
    BS_TRY(ir_operand_need(args, 0, "cache", -1, &cache));
    BS_TRY(ir_operand_need(args, 1, "update", cache.rank, &update));
    BS_TRY(ir_operand_need_same(args, 1, 0));
    BS_TRY(ir_operand_axis(args, "axis", -2, cache.rank, &axis));
    bool fits = axis > 0;
    for (int i = 0; i < cache.rank && fits; i++)
        fits = i == axis ? ir_dim_always_le(args->graph, update.dim[i], cache.dim[i])
                         : ir_dim_equal(update.dim[i], cache.dim[i]);
    if (!fits) {
        char text[IR_SHAPE_TEXT_BYTES], cache_text[IR_SHAPE_TEXT_BYTES];
        return ir_malformed(args, "an update of shape %s does not match a cache of shape %s along axis %d",
                            ir_shape_text(args, update.rank, update.dim, text),
                            ir_shape_text(args, cache.rank, cache.dim, cache_text), axis);
    }
    const char *mode = ir_node_string(args->node, "mode", "linear");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return ir_unsupported(args, "mode \"%s\" is unknown; known are linear and circular", mode);
    if (ir_operand_given(args, 2)) {
        BS_TRY(ir_operand_need(args, 2, "write indices", 1, &starts));
        BS_TRY(ir_operand_need_integers(args, 2, "write indices"));
        if (!ir_dim_equal(starts.dim[0], cache.dim[0]))
            return ir_malformed(args, "the write indices must have one element for each sequence of the batch");
    }
    *out_type = cache;
    return MDOT_OK;
}

mdot_status ir_eval_tensor_scatter(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                   mdot_error *err)
{
    int axis;
    BS_TRY(ir_normalize_axis(node, ir_node_int(node, "axis", -2), input[0]->rank, &axis, err));
    ir_copy_elements(out[0], 0, input[0], 0, input[0]->count);
    const ir_wide *starts = ir_tensor_input(node, input, 2);
    bool circular = strcmp(ir_node_string(node, "mode", "linear"), "circular") == 0;
    ir_axis_view cache = ir_view_axis(input[0], axis), update = ir_view_axis(input[1], axis);
    int64_t per_batch = ir_product(input[0]->dims, 1, axis);
    for (int64_t o = 0; o < cache.outer && update.extent > 0; o++) {
        int64_t start = starts != NULL ? starts->i[o / per_batch] : 0;
        if (start < 0 || start > (circular ? INT64_MAX - update.extent : cache.extent - update.extent))
            return ir_fail(node, err, MDOT_OUT_OF_RANGE,
                           "write index %lld plus %lld new positions exceeds the cache of %lld", (long long)start,
                           (long long)update.extent, (long long)cache.extent);
        for (int64_t k = 0; k < update.extent; k++) {
            int64_t offset = (start + k) % cache.extent; /* a linear update stays below the extent */
            ir_copy_elements(out[0], (o * cache.extent + offset) * cache.inner, input[1],
                             (o * update.extent + k) * cache.inner, cache.inner);
        }
    }
    return MDOT_OK;
}

/* One FLOP per element that is added or otherwise combined. Comparing and moving cost nothing. */
void ir_cost_sequential(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    if (ir_node_opcode(node) == IR_OP_CumSum) out_cost->flops = ir_value_elements(node->inputs[0], length);
    const ir_value *updates = ir_node_input(node, 2); /* updates of a scatter; other operators may have the attribute,
                                                       * too */
    if (updates != NULL && strcmp(ir_node_string(node, "reduction", "none"), "none") != 0)
        out_cost->flops = ir_value_elements(updates, length);
}
