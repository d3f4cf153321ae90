/* helpers.c — functions that the rules of all operator families share: messages, types, broadcasting, index walks,
 * costs. */
#include "ir/ops/families.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

mdot_status ir_fail(const ir_node *node, mdot_error *err, mdot_status status, const char *format, ...)
{
    char reason[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return mdot_fail(err, status, "node \"%s\" (%s): %s", node->name, node->op_type, reason);
}

mdot_status ir_fail_memory(const ir_node *node, mdot_error *err)
{
    return ir_fail(node, err, MDOT_OUT_OF_MEMORY, "memory ran out");
}

void ir_set_type(ir_node *node, int index, mdot_dtype dtype, int rank, const ir_dim *dims)
{
    assert(rank >= 0 && rank <= MDOT_MAX_RANK);
    if (index >= node->output_count || node->outputs[index] == NULL) return;
    ir_type *type = &node->outputs[index]->type;
    *type = (ir_type){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) type->dim[i] = dims[i];
}

mdot_status ir_set_known(ir_graph *graph, ir_node *node, int index, const ir_dim *elements, int count, mdot_error *err)
{
    if (count > IR_MAX_KNOWN || index >= node->output_count || node->outputs[index] == NULL) return MDOT_OK;
    ir_known *known = IR_NEW(graph->arena, ir_known);
    ir_dim *copy = IR_NEW_ARRAY(graph->arena, ir_dim, count);
    if (known == NULL || copy == NULL) return ir_fail_memory(node, err);
    if (count) memcpy(copy, elements, (size_t)count * sizeof *copy);
    *known = (ir_known){count, copy};
    node->outputs[index]->known = known;
    return MDOT_OK;
}

static mdot_status broadcast_dim(const ir_node *node, ir_dim a, ir_dim b, ir_dim *out, mdot_error *err)
{
    char a_text[IR_DIM_TEXT_BYTES], b_text[IR_DIM_TEXT_BYTES];
    if (ir_dim_equal(a, b) || ir_dim_is(b, 1)) {
        *out = a;
    } else if (ir_dim_is(a, 1)) {
        *out = b;
    } else {
        bool a_fixed = ir_dim_is_number(a), b_fixed = ir_dim_is_number(b);
        const char *remedy = "";
        if (a_fixed != b_fixed)
            remedy = "; if the number is the length of the export, the exporter fixed positions or masks to it: export "
                     "with a dynamic length";
        return ir_fail(node, err, a_fixed && b_fixed ? MDOT_MALFORMED : MDOT_UNSUPPORTED,
                       "dimensions %s and %s do not broadcast: they must be equal, or one of them 1%s",
                       ir_dim_text(a, NULL, a_text, sizeof a_text), ir_dim_text(b, NULL, b_text, sizeof b_text),
                       remedy);
    }
    return MDOT_OK;
}

mdot_status ir_broadcast_dims(const ir_node *node, const ir_dim *a, int a_rank, const ir_dim *b, int b_rank,
                              ir_dim *out, int *out_rank, mdot_error *err)
{
    ir_dim dims[MDOT_MAX_RANK];
    int rank = a_rank > b_rank ? a_rank : b_rank;
    for (int i = 1; i <= rank; i++) { /* counted from the end */
        ir_dim from_a = i <= a_rank ? a[a_rank - i] : ir_dim_number(1);
        ir_dim from_b = i <= b_rank ? b[b_rank - i] : ir_dim_number(1);
        BS_TRY(broadcast_dim(node, from_a, from_b, &dims[rank - i], err));
    }
    memcpy(out, dims, (size_t)rank * sizeof *out);
    *out_rank = rank;
    return MDOT_OK;
}

mdot_status ir_broadcast_inputs(const ir_node *node, int first, ir_dim *out, int *out_rank, mdot_error *err)
{
    ir_dim dims[MDOT_MAX_RANK];
    int rank = 0;
    for (int i = first; i < node->input_count; i++) {
        if (node->inputs[i] == NULL) continue;
        const ir_type *type = &node->inputs[i]->type;
        BS_TRY(ir_broadcast_dims(node, dims, rank, type->dim, type->rank, dims, &rank, err));
    }
    memcpy(out, dims, (size_t)rank * sizeof *out);
    *out_rank = rank;
    return MDOT_OK;
}

mdot_status ir_normalize_axis(const ir_node *node, int64_t axis, int rank, int *out_axis, mdot_error *err)
{
    if (axis < -rank || axis >= rank)
        return ir_fail(node, err, MDOT_MALFORMED, "axis %lld is outside of rank %d", (long long)axis, rank);
    *out_axis = (int)(axis < 0 ? axis + rank : axis);
    return MDOT_OK;
}

mdot_status ir_axes_mask(const ir_node *node, const int64_t *axes, int count, int rank, unsigned *out_mask,
                         mdot_error *err)
{
    unsigned mask = 0;
    for (int i = 0; i < count; i++) {
        int axis = 0;
        BS_TRY(ir_normalize_axis(node, axes[i], rank, &axis, err));
        if (mask >> axis & 1) return ir_fail(node, err, MDOT_MALFORMED, "axis %d occurs twice", axis);
        mask |= 1u << axis;
    }
    *out_mask = mask;
    return MDOT_OK;
}

mdot_status ir_input_ints(const ir_node *node, int index, int64_t out[static IR_MAX_KNOWN], int *out_count,
                          mdot_error *err)
{
    if (ir_node_input(node, index) == NULL) {
        *out_count = 0;
        return MDOT_OK;
    }
    if (ir_value_ints(node->inputs[index], out, out_count)) return MDOT_OK;
    return ir_fail(node, err, MDOT_UNSUPPORTED, "input %d, \"%s\", must be known when the model is compiled", index,
                   node->inputs[index]->name);
}

mdot_status ir_make_wide(ir_arena *arena, const ir_node *node, mdot_dtype dtype, int rank, const int64_t *dims,
                         ir_wide **out, mdot_error *err)
{
    for (int i = 0; i < rank; i++) {
        if (dims[i] >= 0) continue;
        return ir_fail(node, err, MDOT_MALFORMED, "dimension %d of the output is %lld", i, (long long)dims[i]);
    }
    ir_wide *wide = ir_wide_create(arena, dtype, rank, dims);
    if (wide == NULL) return ir_fail_memory(node, err);
    *out = wide;
    return MDOT_OK;
}

mdot_status ir_broadcast_shapes(const ir_node *node, const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                                int64_t *out, int *out_rank, mdot_error *err)
{
    ir_dim left[MDOT_MAX_RANK], right[MDOT_MAX_RANK];
    for (int i = 0; i < a_rank; i++) left[i] = ir_dim_number(a[i]);
    for (int i = 0; i < b_rank; i++) right[i] = ir_dim_number(b[i]);
    BS_TRY(ir_broadcast_dims(node, left, a_rank, right, b_rank, left, &a_rank, err));
    for (int i = 0; i < a_rank; i++) out[i] = left[i].offset;
    *out_rank = a_rank;
    return MDOT_OK;
}

/* In a shape with a 0, the product of the other dims may overflow, but its strides are unused. */
static int64_t next_stride(int64_t stride, int64_t dim) { return (int64_t)((uint64_t)stride * (uint64_t)dim); }

void ir_strides(int rank, const int64_t *dims, int64_t *out_strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        out_strides[i] = stride;
        stride = next_stride(stride, dims[i]);
    }
}

void ir_broadcast_strides(int rank, const int64_t *dims, int out_rank, int64_t *out_strides)
{
    int64_t stride = 1;
    for (int i = 1; i <= out_rank; i++) { /* counted from the end */
        int64_t dim = i <= rank ? dims[rank - i] : 1;
        out_strides[out_rank - i] = dim == 1 ? 0 : stride;
        stride = next_stride(stride, dim);
    }
}

bool ir_next_index(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i]) return true;
        index[i] = 0;
    }
    return false;
}

int64_t ir_dot_index(int rank, const int64_t *index, const int64_t *strides)
{
    int64_t sum = 0;
    for (int i = 0; i < rank; i++) sum += index[i] * strides[i];
    return sum;
}

double ir_value_elements(const ir_value *value, int64_t length)
{
    int64_t count = value != NULL ? ir_type_count_at(&value->type, length) : 0;
    return count < 0 ? 0 : (double)count;
}

double ir_value_bytes(const ir_value *value, int64_t length)
{
    return value != NULL ? ir_value_elements(value, length) * (double)mdot_dtype_size_bytes(value->type.dtype) : 0;
}

ir_cost ir_node_cost(const ir_node *node, int64_t length)
{
    ir_cost cost = {0};
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || ir_node_reads_before(node, i)) continue;
        cost.bytes_read += ir_value_bytes(value, length);
        /* A single number, for example an epsilon or a scale, is not a parameter. */
        double elements = ir_value_elements(value, length);
        if (value->constant != NULL && ir_dtype_is_float(value->type.dtype) && elements > 1)
            cost.parameters += elements;
    }
    for (int i = 0; i < node->output_count; i++) cost.bytes_written += ir_value_bytes(node->outputs[i], length);
    if (node->op->cost != NULL) node->op->cost(node, length, &cost);
    return cost;
}
