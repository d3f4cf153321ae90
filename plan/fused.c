/* fused.c — kernels of fixed form: linear, norm and attention, with the surrounding operators as expressions.
 *
 * Linear and norm work on a matrix: INDEX 0 is the row, INDEX 1 the column. The index of any tensor in the chain
 * follows from the two, because the last dimensions are the columns. */
#include "ir/ops/attention.h"
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/kernel_kind.h"
#include "plan/plan_builder.h"

#include <math.h>

static mdot_status reject(pl_builder *b, const ir_node *node, const char *reason)
{
    pl_reject(b, node, "%s", reason);
    return pl_fault(b);
}

/* The product of dimensions as one dimension. False: it is not affine. */
static bool flatten_extents(const ir_dim *dims, int count, ir_dim *out)
{
    ir_dim result = ir_dim_number(1);
    for (int d = 0; d < count; d++)
        if (!ir_dim_mul(result, dims[d], &result)) return false;
    *out = result;
    return true;
}

/* The tensor index at (row, column) of the matrix whose columns are the last `trailing` dimensions. */
static bool matrix_index(pl_builder *b, const ir_type *type, int trailing, const pl_expr **out_index)
{
    int leading = type->rank - trailing;
    return pl_unflatten(b, pl_index(b->arena, 0), leading, type->dim, out_index) &&
           pl_unflatten(b, pl_index(b->arena, 1), trailing, type->dim + leading, out_index + leading);
}

/* Builds a chain's epilogue as a function of `result`, the root's value, and chooses the placement of the tail. */
static bool finish_matrix(pl_builder *b, const ir_node *node, int trailing, const pl_expr *result,
                          const pl_expr **out_epilogue, pl_matrix *out_matrix)
{
    const ir_value *root = node->outputs[0], *tail = pl_info(b, root)->tail;
    b->acc_value = root;
    b->acc_expr = result;
    const pl_expr *index[MDOT_MAX_RANK], *epilogue = result;
    if (tail != root) {
        if (!matrix_index(b, &tail->type, trailing, index)) return false;
        epilogue = pl_define(b, tail, index);
    }
    if (epilogue == NULL || !pl_place_output(b, tail, trailing)) return false;
    *out_epilogue = epilogue->op == PL_ACC ? NULL : epilogue;
    return pl_matrix_view(&pl_info(b, tail)->placement, &tail->type, trailing, out_matrix);
}

/* The buffer of a directly read vector with `count` elements. -1: there is none; use an expression. */
static int vector_buffer(pl_builder *b, const ir_value *v, ir_dim count, pl_weight_use use)
{
    ir_dim own_dim;
    if (!flatten_extents(v->type.dim, v->type.rank, &own_dim) || !ir_dim_equal(own_dim, count)) return -1;
    if (v->constant != NULL) return pl_constant_buffer(b, v->constant, v->name, use);
    const pl_value *info = pl_info(b, v);
    return use == PL_ELEMENTS && info->state == PL_PLACED && info->placement.dense ? info->placement.buffer : -1;
}

bool pl_is_linear(const ir_node *node)
{
    ir_dim rows;
    const ir_value *x = node->inputs[0], *weight = node->inputs[1];
    return x->type.rank >= 1 && x->type.dtype == MDOT_DTYPE_F32 && weight->constant != NULL && weight->type.rank == 2 &&
           flatten_extents(x->type.dim, x->type.rank - 1, &rows);
}

mdot_status pl_emit_linear(pl_builder *b, const ir_node *node)
{
    const ir_value *x = node->inputs[0], *weight = node->inputs[1], *bias = ir_node_input(node, 2);
    const ir_type *type = &node->outputs[0]->type;
    if (!pl_is_linear(node)) return pl_emit_matmul(b, node);
    pl_linear linear = {.k = weight->type.dim[0].offset, .columns = weight->type.dim[1].offset, .bias = -1};
    ir_dim columns = ir_dim_number(linear.columns);
    pl_begin_kernel(b, node);
    if (!flatten_extents(x->type.dim, x->type.rank - 1, &linear.rows))
        return reject(b, node, "the number of rows is not affine in the length");
    const pl_placement *placement = pl_placement_of(b, x);
    if (placement == NULL) return pl_fault(b);
    if (placement->windows != NULL) {
        linear.a = (pl_matrix){placement->buffer, placement->offset, ir_dim_number(0)};
        linear.windows = placement->windows;
    } else if (!pl_matrix_view(placement, &x->type, 1, &linear.a)) {
        return reject(b, node, "the input must be a matrix");
    }
    pl_taps taps;
    pl_weight_use use = !pl_taps_of(&linear, &taps) ? PL_MATRIX : taps.step == 1 ? PL_TAPS : PL_TAPS_BY_TWO;
    linear.weight = pl_constant_buffer(b, weight->constant, weight->name, use);
    if (linear.weight < 0) return pl_fault(b);
    const pl_expr *result = pl_acc(b->arena, 0, MDOT_DTYPE_F32);
    if (bias != NULL && bias->constant != NULL) linear.bias = vector_buffer(b, bias, columns, PL_MATRIX);
    if (bias != NULL && linear.bias < 0) {
        const pl_expr *index[MDOT_MAX_RANK];
        if (b->status != MDOT_OK || !matrix_index(b, type, 1, index)) return pl_fault(b);
        result = pl_op2(b, PL_ADD, result, pl_operand_at(b, bias, type->rank, index));
    }
    if (!finish_matrix(b, node, 1, result, &linear.epilogue, &linear.out)) return pl_fault(b);
    if (ir_dim_is(linear.rows, 0) || linear.columns == 0) return MDOT_OK;
    return pl_end_kernel(b, PL_LINEAR, node->name, &(pl_kernel){.linear = linear});
}

int pl_norm_trailing(const ir_node *node)
{
    int rank = node->inputs[0]->type.rank;
    return rank - ir_node_axis(node, -1, rank);
}

static const struct norm_row {
    pl_norm_mode mode;
    bool is_softmax;
} norm_rows[IR_OP_COUNT] = {
    [IR_OP_LayerNormalization] = {PL_NORM_LAYER, false},
    [IR_OP_RMSNormalization] = {PL_NORM_RMS, false},
    [IR_OP_Softmax] = {PL_NORM_SOFTMAX, true},
    [IR_OP_LogSoftmax] = {PL_NORM_LOG_SOFTMAX, true},
};

/* Uses buffers for scale and shift if both have one. Otherwise they begin the epilogue. */
static const pl_expr *scale_and_shift(pl_builder *b, const ir_node *node, pl_norm *norm, const pl_expr *const *index)
{
    const ir_value *gamma = ir_node_input(node, 1), *beta = ir_node_input(node, 2);
    int rank = node->outputs[0]->type.rank;
    const pl_expr *result = pl_acc(b->arena, 0, MDOT_DTYPE_F32);
    if (gamma != NULL) norm->gamma = vector_buffer(b, gamma, norm->columns, PL_ELEMENTS);
    if (beta != NULL && (gamma == NULL || norm->gamma >= 0))
        norm->beta = vector_buffer(b, beta, norm->columns, PL_ELEMENTS);
    if (b->status != MDOT_OK) return NULL;
    if (gamma != NULL && norm->gamma < 0) result = pl_op2(b, PL_MUL, result, pl_operand_at(b, gamma, rank, index));
    if (beta != NULL && norm->beta < 0) result = pl_op2(b, PL_ADD, result, pl_operand_at(b, beta, rank, index));
    return result;
}

bool pl_is_norm(const ir_node *node)
{
    ir_dim rows, columns;
    const ir_type *type = &node->inputs[0]->type;
    int trailing = pl_norm_trailing(node), leading = type->rank - trailing;
    bool is_softmax = norm_rows[ir_node_opcode(node)].is_softmax;
    return type->dtype == MDOT_DTYPE_F32 && (!is_softmax || trailing == 1) &&
           flatten_extents(type->dim, leading, &rows) && flatten_extents(type->dim + leading, trailing, &columns);
}

mdot_status pl_emit_norm(pl_builder *b, const ir_node *node)
{
    const struct norm_row *row = &norm_rows[ir_node_opcode(node)];
    const ir_value *x = node->inputs[0];
    int trailing = pl_norm_trailing(node), leading = x->type.rank - trailing;
    if (!pl_is_norm(node)) return pl_emit_norm_nests(b, node);
    pl_norm norm = {.mode = row->mode, .gamma = -1, .beta = -1, .sum = {.buffer = -1}};
    if (!row->is_softmax) norm.epsilon = ir_node_float(node, "epsilon", 1e-5);
    if (!flatten_extents(x->type.dim, leading, &norm.rows) ||
        !flatten_extents(x->type.dim + leading, trailing, &norm.columns))
        return reject(b, node, "the number of rows or columns is not affine in the length");
    const pl_expr *index[MDOT_MAX_RANK];
    pl_begin_kernel(b, node);
    if (!matrix_index(b, &x->type, trailing, index)) return pl_fault(b);
    norm.input = pl_value_at(b, x, index);
    const pl_expr *result = scale_and_shift(b, node, &norm, index);
    if (norm.input == NULL || result == NULL) return pl_fault(b);
    if (!finish_matrix(b, node, trailing, result, &norm.epilogue, &norm.out)) return pl_fault(b);
    if (ir_dim_is(norm.rows, 0) || ir_dim_is(norm.columns, 0)) return MDOT_OK;
    return pl_end_kernel(b, PL_NORM, node->name, &(pl_kernel){.norm = norm});
}

/* Shapes of an operand in either form, (batch, positions, heads · channels) or (batch, heads, positions, channels). */
static bool read_heads(const ir_node *node, int operand, int64_t *out_heads, ir_dim *out_positions, int64_t *out_dim)
{
    const ir_type *type = &node->inputs[operand]->type;
    if (type->rank == 4) {
        *out_heads = type->dim[1].offset;
        *out_positions = type->dim[2];
        *out_dim = type->dim[3].offset;
        return ir_dim_is_number(type->dim[1]) && ir_dim_is_number(type->dim[3]);
    }
    *out_heads = ir_node_int(node, operand == 0 ? "q_num_heads" : "kv_num_heads", 0);
    if (type->rank != 3 || *out_heads <= 0 || !ir_dim_is_number(type->dim[2])) return false;
    *out_positions = type->dim[1];
    *out_dim = type->dim[2].offset / *out_heads;
    return true;
}

/* Do all readers of (batch, heads, queries, channels) move the heads back beside the channels? */
static bool is_read_in_rows(const pl_builder *b, const ir_value *v)
{
    static const int place_in_row[] = {0, 2, 1, 3}; /* order of batch, heads, queries, channels */
    const pl_value *info = pl_info(b, v);
    if (v->type.rank != 4 || info->output >= 0 || info->use_count == 0) return false;
    for (int u = 0; u < info->use_count; u++) {
        const ir_node *reader = info->uses[u].node;
        int64_t perm[MDOT_MAX_RANK];
        if (ir_node_opcode(reader) != IR_OP_Transpose) return false;
        ir_node_perm(reader, 4, perm);
        for (int k = 0, last_index = -1; k < 4; k++) { /* dimensions of extent one may be anywhere */
            if (pl_is_unit(v->type.dim[perm[k]])) continue;
            if (place_in_row[perm[k]] < last_index) return false;
            last_index = place_in_row[perm[k]];
        }
    }
    return true;
}

/* Stores the result as rows over all heads; the value is a view. */
static bool place_in_rows(pl_builder *b, const ir_value *v, pl_attention *attention)
{
    ir_dim channels = ir_dim_number(attention->value_dim);
    ir_dim width = ir_dim_number(attention->heads * attention->value_dim), plane;
    const ir_type rows = {v->type.dtype, 3, {v->type.dim[0], attention->queries, width}};
    if (!ir_dim_mul(attention->queries, width, &plane)) return false;
    int buffer = pl_add_buffer(b, PL_SCRATCH, v->name, &rows);
    if (buffer < 0) return false;
    pl_value *info = pl_info(b, v);
    info->state = PL_PLACED;
    info->placement = (pl_placement){.buffer = buffer, .stride = {plane, channels, width, ir_dim_number(1)}};
    attention->out = (pl_heads){.buffer = buffer, .batch_stride = plane, .head_stride = channels, .row_stride = width};
    return true;
}

/* The result is dense: (batch, queries, heads · channels) or (batch, heads, queries, channels). */
static bool place_result(pl_builder *b, const ir_node *node, pl_attention *attention)
{
    const ir_value *v = node->outputs[0];
    if (is_read_in_rows(b, v)) return place_in_rows(b, v, attention);
    if (!pl_place_output(b, v, PL_PLACEMENT_DENSE)) return false;
    ir_dim channels = ir_dim_number(attention->value_dim), plane;
    ir_dim width = ir_dim_number(attention->heads * attention->value_dim);
    pl_heads *out = &attention->out;
    bool is_flat = v->type.rank == 3;
    *out = (pl_heads){.buffer = pl_info(b, v)->placement.buffer};
    if (!ir_dim_mul(attention->queries, channels, &plane)) return false;
    out->head_stride = is_flat ? channels : plane;
    out->row_stride = is_flat ? width : channels;
    return ir_dim_mul(attention->queries, width, &out->batch_stride);
}

/* Copies a mask with the queries outermost. False: the strides are still not affine. */
static bool regroup_mask(pl_builder *b, const ir_node *node, const ir_value *mask, pl_placement *out)
{
    const ir_type *type = &mask->type;
    int keys = type->rank - 1, queries = keys - 1;
    ir_type grouped = {.dtype = type->dtype, .rank = type->rank};
    pl_placement placement = {.offset = ir_dim_number(0)};
    int source[MDOT_MAX_RANK] = {queries}; /* the mask's dimension for dimension k of the copy */
    for (int d = 0; d < queries; d++) source[d + 1] = d;
    source[keys] = keys;
    for (int k = 0; k < type->rank; k++) grouped.dim[k] = type->dim[source[k]];
    ir_dim step = ir_dim_number(1);
    for (int k = keys; k >= 0; k--) {
        placement.stride[source[k]] = step;
        if (k > 0 && !ir_dim_mul(step, grouped.dim[k], &step)) return false;
    }

    const pl_expr *index[MDOT_MAX_RANK], *position[MDOT_MAX_RANK];
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, grouped.rank, grouped.dim, index);
    for (int k = 0; k < type->rank; k++) position[source[k]] = index[k];
    placement.buffer = pl_add_buffer(b, PL_SCRATCH, mask->name, &grouped);
    if (placement.buffer < 0) return false;
    nest.store[nest.store_count++] =
        (pl_store){placement.buffer, pl_position(b, &placement, type, position), pl_value_at(b, mask, position)};
    if (pl_end_nest(b, mask->name, &nest) != MDOT_OK) return false;
    *out = placement;
    return true;
}

/* Checks the mask and computes its strides. A dense mask of several heads over all queries and keys has strides of
 * L², which kernels cannot express. It is copied, and later layers reuse the copy. */
static mdot_status settle_mask(pl_builder *b, const ir_node *node, const ir_value *mask, pl_attention *attention)
{
    pl_heads *view = &attention->mask[attention->mask_count++];
    ir_dim keys = mask->type.rank ? mask->type.dim[mask->type.rank - 1] : ir_dim_number(1);
    if (mask->type.dtype != MDOT_DTYPE_F32 || !ir_dim_equal(keys, attention->keys))
        return reject(b, node, "the mask must be f32, with the keys as last dimension");
    const pl_placement *found = pl_placement_of(b, mask);
    if (found == NULL) return pl_fault(b);
    pl_placement placement = *found;
    if (!pl_mask_view(&mask->type, &placement, view)) {
        if (mask->type.rank < 3 || !regroup_mask(b, node, mask, &placement) ||
            !pl_mask_view(&mask->type, &placement, view))
            return b->status != MDOT_OK ? pl_fault(b)
                                        : reject(b, node, "the mask's strides are not affine in the length");
        if (pl_info(b, mask)->output < 0) pl_info(b, mask)->placement = placement;
    }
    return MDOT_OK;
}

mdot_status pl_emit_attention(pl_builder *b, const ir_node *node)
{
    pl_attention attention = {.causal = ir_node_int(node, "is_causal", 0) != 0};
    pl_heads *const operands[] = {&attention.q, &attention.k, &attention.v};
    const ir_value *q = node->inputs[0];
    int64_t value_heads, key_dim;
    ir_dim positions;
    if (ir_node_int(node, "left_window_size", -1) >= 0 || ir_node_int(node, "right_window_size", -1) >= 0)
        return reject(b, node, "windowed attention is unsupported");
    for (int k = 4; k < node->input_count && k < ir_mask_input(1); k++)
        if (node->inputs[k] != NULL) return reject(b, node, "key and value caches and padding are unsupported");
    if (q->type.dtype != MDOT_DTYPE_F32) return reject(b, node, "attention supports only f32");
    if (!read_heads(node, 0, &attention.heads, &attention.queries, &attention.dim) ||
        !read_heads(node, 1, &attention.kv_heads, &attention.keys, &key_dim) ||
        !read_heads(node, 2, &value_heads, &positions, &attention.value_dim))
        return reject(b, node, "heads and channels must be numbers");
    if (attention.causal && !ir_dim_equal(attention.queries, attention.keys))
        return reject(b, node, "causal attention requires as many keys as queries");
    for (int k = 0; k < 3; k++) {
        const pl_placement *placement = pl_placement_of(b, node->inputs[k]);
        if (placement == NULL) return pl_fault(b);
        if (!pl_heads_view(node, k, placement, operands[k]))
            return reject(b, node, "an operand's strides are not affine in the length");
    }
    attention.batch = q->type.dim[0];
    attention.scale = ir_node_float(node, "scale", 1 / sqrt((double)attention.dim));
    attention.softcap = fmax(0, ir_node_float(node, "softcap", 0));
    for (int i = 0; i < IR_MAX_MASKS && ir_node_input(node, ir_mask_input(i)) != NULL; i++) {
        attention.replaces[i] = ir_node_float(node, ir_attention_replaces[i], 0);
        BS_TRY(settle_mask(b, node, node->inputs[ir_mask_input(i)], &attention));
    }
    pl_begin_kernel(b, node);
    if (!place_result(b, node, &attention)) return pl_fault(b);
    return pl_end_kernel(b, PL_ATTENTION, node->name, &(pl_kernel){.attention = attention});
}
