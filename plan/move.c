/* move.c — operators that move elements: maps an index of the output to an input's element.
 *
 * If the input has an address, such an operator is a strided view where possible (view.c). Here the same operators are
 * functions of the index, for inputs without an address. Indices that come from data are in gather_nests.c. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

#include <string.h>

typedef const pl_expr *const *indices;

static const pl_expr *define_transpose(pl_builder *b, const ir_node *node, int output, indices index)
{
    const pl_expr *source_index[MDOT_MAX_RANK];
    int64_t perm[MDOT_MAX_RANK];
    int rank = node->inputs[0]->type.rank;
    ir_node_perm(node, rank, perm);
    for (int d = 0; d < rank; d++) source_index[perm[d]] = index[d];
    return pl_value_at(b, node->inputs[0], source_index);
}

static const pl_expr *define_slice(pl_builder *b, const ir_node *node, int output, indices index)
{
    ir_dim start[MDOT_MAX_RANK];
    int64_t step[MDOT_MAX_RANK];
    const pl_expr *source_index[MDOT_MAX_RANK];
    const ir_value *source = node->inputs[0];
    if (!pl_slice(b, node, start, step)) return pl_reject(b, node, "the start of the slice is known only at run time");
    for (int d = 0; d < source->type.rank; d++)
        source_index[d] = pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, index[d], pl_int(b, step[d])), pl_extent(b, start[d]));
    return pl_value_at(b, source, source_index);
}

static const pl_expr *define_windows(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_type *type = &node->inputs[0]->type;
    int axis = ir_node_axis(node, -1, type->rank);
    const pl_expr *source_index[MDOT_MAX_RANK];
    const pl_expr *begin = pl_op2(b, PL_MUL, index[axis], pl_int(b, ir_node_int(node, "stride", 1)));
    const pl_expr *tap = pl_op2(b, PL_MUL, index[axis + 1], pl_int(b, ir_node_int(node, "dilation", 1)));
    for (int d = 0; d < type->rank; d++) source_index[d] = index[d <= axis ? d : d + 1];
    source_index[axis] = pl_op2(b, PL_ADD, begin, tap);
    return pl_value_at(b, node->inputs[0], source_index);
}

static const pl_expr *define_split(pl_builder *b, const ir_node *node, int output, indices index)
{
    int axis;
    ir_dim begin;
    const pl_expr *source_index[MDOT_MAX_RANK];
    const ir_value *source = node->inputs[0];
    if (!pl_split(b, node, output, &axis, &begin))
        return pl_reject(b, node, "the sizes of the parts are known only at run time");
    for (int d = 0; d < source->type.rank; d++) source_index[d] = index[d];
    source_index[axis] = pl_op2(b, PL_ADD, source_index[axis], pl_extent(b, begin));
    return pl_value_at(b, source, source_index);
}

static const pl_expr *define_expand(pl_builder *b, const ir_node *node, int output, indices index)
{
    return pl_operand_at(b, node->inputs[0], node->outputs[output]->type.rank, index);
}

static const pl_expr *define_tile(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_type *source_type = &node->inputs[0]->type, *target_type = &node->outputs[output]->type;
    const pl_expr *source_index[MDOT_MAX_RANK];
    for (int d = 0; d < source_type->rank; d++) {
        bool repeats = !ir_dim_equal(source_type->dim[d], target_type->dim[d]);
        source_index[d] = repeats ? pl_op2(b, PL_PYMOD, index[d], pl_extent(b, source_type->dim[d])) : index[d];
    }
    return pl_value_at(b, node->inputs[0], source_index);
}

/* Pixel (y, x) is in block (y / s, x / s) at (y % s, x % s). The modes differ in the order of channel and position
 * within the depth. */
static const pl_expr *define_depth_to_space(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *source = node->inputs[0];
    const pl_expr *size = pl_int(b, ir_node_int(node, "blocksize", 1));
    const pl_expr *y = pl_op2(b, PL_PYMOD, index[2], size), *x = pl_op2(b, PL_PYMOD, index[3], size);
    const pl_expr *channels = pl_extent(b, node->outputs[0]->type.dim[1]);
    bool channel_first = strcmp(ir_node_string(node, "mode", "DCR"), "CRD") == 0;
    const pl_expr *high = channel_first ? index[1] : y;
    const pl_expr *middle = channel_first ? y : x;
    const pl_expr *low = channel_first ? x : index[1];
    const pl_expr *low_size = channel_first ? size : channels;
    const pl_expr *depth = pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, high, size), middle);
    depth = pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, depth, low_size), low);
    const pl_expr *source_index[] = {index[0], depth, pl_op2(b, PL_FLOORDIV, index[2], size),
                                     pl_op2(b, PL_FLOORDIV, index[3], size)};
    return pl_value_at(b, source, source_index);
}

/* Output channel (y s + x) C + c holds channel c of the pixels at (y, x) of each block. */
static const pl_expr *define_space_to_depth(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *source = node->inputs[0];
    const pl_expr *size = pl_int(b, ir_node_int(node, "blocksize", 1));
    const pl_expr *channels = pl_extent(b, source->type.dim[1]);
    const pl_expr *place = pl_op2(b, PL_FLOORDIV, index[1], channels);
    const pl_expr *y = pl_op2(b, PL_FLOORDIV, place, size), *x = pl_op2(b, PL_PYMOD, place, size);
    const pl_expr *source_index[] = {index[0], pl_op2(b, PL_PYMOD, index[1], channels),
                                     pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, index[2], size), y),
                                     pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, index[3], size), x)};
    return pl_value_at(b, source, source_index);
}

static const pl_expr *last_of(pl_builder *b, ir_dim extent)
{
    return pl_op2(b, PL_ADD, pl_extent(b, extent), pl_int(b, -1));
}

static const pl_expr *clamp_to(pl_builder *b, const pl_expr *position, ir_dim extent)
{
    return pl_op2(b, PL_MAX, pl_op2(b, PL_MIN, position, last_of(b, extent)), b->zero);
}

/* Mirrors with period 2 (extent - 1), without repeating the borders. A single element repeats. */
static const pl_expr *reflect(pl_builder *b, const pl_expr *position, ir_dim extent)
{
    const pl_expr *period = pl_op2(b, PL_MUL, last_of(b, extent), pl_int(b, 2));
    const pl_expr *place = pl_op2(b, PL_PYMOD, position, pl_op2(b, PL_MAX, period, pl_int(b, 1)));
    return pl_op2(b, PL_MIN, place, pl_op2(b, PL_SUB, period, place));
}

static const pl_expr *wrap(pl_builder *b, const pl_expr *position, ir_dim extent)
{
    return pl_op2(b, PL_PYMOD, position, pl_extent(b, extent));
}

bool pl_read_pads(const ir_node *node, int rank, ir_dim *out_before)
{
    ir_dim pads[IR_MAX_KNOWN];
    int64_t axes[IR_MAX_KNOWN];
    int pad_count, axis_count = rank;
    const ir_value *axis_value = ir_node_input(node, 3);
    if (!ir_value_known(node->inputs[1], pads, &pad_count)) return false;
    if (axis_value != NULL && !ir_value_ints(axis_value, axes, &axis_count)) return false;
    if (pad_count != 2 * axis_count) return false;
    for (int d = 0; d < rank; d++) out_before[d] = ir_dim_number(0);
    for (int k = 0; k < axis_count; k++) {
        int64_t axis = axis_value != NULL ? axes[k] : k;
        out_before[axis < 0 ? axis + rank : axis] = pads[k];
    }
    return true;
}

/* The value of a one-element tensor, of any rank. */
static const pl_expr *only_value(pl_builder *b, const ir_value *value)
{
    const pl_expr *first[MDOT_MAX_RANK];
    for (int d = 0; d < MDOT_MAX_RANK; d++) first[d] = b->zero;
    return pl_value_at(b, value, first);
}

/* The value of elements outside: the given constant or zero. */
const pl_expr *pl_pad_constant(pl_builder *b, const ir_node *node)
{
    const ir_value *value = ir_node_input(node, 2);
    if (value == NULL) return pl_const_i(b->arena, node->outputs[0]->type.dtype, 0);
    return only_value(b, value);
}

static const pl_expr *define_pad(pl_builder *b, const ir_node *node, int output, indices index)
{
    typedef const pl_expr *(*border_fn)(pl_builder *, const pl_expr *, ir_dim);
    static const struct {
        const char *mode;
        border_fn border;
    } modes[] = {{"constant", clamp_to}, {"edge", clamp_to}, {"reflect", reflect}, {"wrap", wrap}};

    const ir_value *source = node->inputs[0];
    const ir_type *source_type = &source->type, *target_type = &node->outputs[output]->type;
    const char *name = ir_node_string(node, "mode", "constant");
    size_t m = 0;
    while (m < sizeof modes / sizeof *modes && strcmp(modes[m].mode, name) != 0) m++;
    if (m == sizeof modes / sizeof *modes) return pl_reject(b, node, "pad mode \"%s\" is unknown", name);

    ir_dim before[MDOT_MAX_RANK];
    if (!pl_read_pads(node, source_type->rank, before))
        return pl_reject(b, node, "the pads are known only at run time");
    const pl_expr *source_index[MDOT_MAX_RANK], *inside = NULL;
    for (int d = 0; d < source_type->rank; d++) {
        source_index[d] = index[d];
        if (ir_dim_is(before[d], 0) && ir_dim_equal(source_type->dim[d], target_type->dim[d])) continue;
        const pl_expr *position = pl_op2(b, PL_SUB, index[d], pl_extent(b, before[d]));
        source_index[d] = modes[m].border(b, position, source_type->dim[d]);
        if (m > 0) continue;
        const pl_expr *within = pl_op2(b, PL_AND, pl_op2(b, PL_LE, b->zero, position),
                                       pl_op2(b, PL_LT, position, pl_extent(b, source_type->dim[d])));
        inside = inside != NULL ? pl_op2(b, PL_AND, inside, within) : within;
    }
    const pl_expr *element = pl_value_at(b, source, source_index);
    return inside != NULL ? pl_select(b->arena, inside, element, pl_pad_constant(b, node)) : element;
}

/* Concatenation inside another kernel: a chain of selections, where each operand is read within its range. A
 * concatenation with its own buffer uses one nest per operand instead (nest.c). */
static const pl_expr *define_concat(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_type *target_type = &node->outputs[output]->type;
    int axis = ir_node_axis(node, 0, target_type->rank);
    const pl_expr *result = NULL, *source_index[MDOT_MAX_RANK];
    ir_dim begin = ir_dim_number(0);
    for (int d = 0; d < target_type->rank; d++) source_index[d] = index[d];
    for (int k = 0; k < node->input_count; k++) {
        ir_dim extent = node->inputs[k]->type.dim[axis];
        if (ir_dim_is(extent, 0)) continue;
        const pl_expr *from_here = pl_op2(b, PL_SUB, index[axis], pl_extent(b, begin));
        source_index[axis] = clamp_to(b, from_here, extent);
        const pl_expr *element = pl_value_at(b, node->inputs[k], source_index);
        const pl_expr *is_before = pl_op2(b, PL_LT, from_here, b->zero);
        result = result != NULL ? pl_select(b->arena, is_before, result, element) : element;
        if (!ir_dim_add(begin, extent, &begin)) return pl_reject(b, node, "the dimensions overflow");
    }
    return result != NULL ? result : pl_const_i(b->arena, target_type->dtype, 0);
}

static const pl_expr *define_trilu(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_type *type = &node->outputs[output]->type;
    const ir_value *diagonal = ir_node_input(node, 1);
    const pl_expr *row = index[type->rank - 2], *column = index[type->rank - 1];
    const pl_expr *shift = diagonal != NULL ? pl_cast(b->arena, only_value(b, diagonal), MDOT_DTYPE_I64) : b->zero;
    const pl_expr *edge = pl_op2(b, PL_ADD, row, shift);
    bool upper = ir_node_int(node, "upper", 1);
    const pl_expr *keep = upper ? pl_op2(b, PL_LE, edge, column) : pl_op2(b, PL_LE, column, edge);
    return pl_select(b->arena, keep, pl_value_at(b, node->inputs[0], index), pl_const_i(b->arena, type->dtype, 0));
}

static const pl_expr *define_eye(pl_builder *b, const ir_node *node, int output, indices index)
{
    const pl_expr *edge = pl_op2(b, PL_ADD, index[0], pl_int(b, ir_node_int(node, "k", 0)));
    return pl_cast(b->arena, pl_op2(b, PL_EQ, edge, index[1]), node->outputs[output]->type.dtype);
}

static const pl_expr *define_constant_of_shape(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_attr *value = ir_node_attr(node, "value");
    mdot_dtype dtype = node->outputs[output]->type.dtype;
    if (value == NULL || value->kind != IR_ATTR_TENSOR) return pl_const_i(b->arena, dtype, 0);
    const ir_wide *wide = ir_wide_from_tensor(b->arena, value->tensor);
    if (wide == NULL) return NULL;
    return wide->f != NULL ? pl_const_f(b->arena, dtype, wide->f[0]) : pl_const_i(b->arena, dtype, wide->i[0]);
}

static const pl_expr *define_range(pl_builder *b, const ir_node *node, int output, indices index)
{
    const pl_expr *start = only_value(b, node->inputs[0]), *step = only_value(b, node->inputs[2]);
    const pl_expr *number = pl_cast(b->arena, index[0], node->outputs[output]->type.dtype);
    return pl_op2(b, PL_ADD, start, pl_op2(b, PL_MUL, number, step));
}

static const pl_define_fn moves[IR_OP_COUNT] = {
    [IR_OP_Transpose] = define_transpose,
    [IR_OP_Windows] = define_windows,
    [IR_OP_Slice] = define_slice,
    [IR_OP_Split] = define_split,
    [IR_OP_Expand] = define_expand,
    [IR_OP_Tile] = define_tile,
    [IR_OP_DepthToSpace] = define_depth_to_space,
    [IR_OP_SpaceToDepth] = define_space_to_depth,
    [IR_OP_Pad] = define_pad,
    [IR_OP_Concat] = define_concat,
    [IR_OP_Trilu] = define_trilu,
    [IR_OP_EyeLike] = define_eye,
    [IR_OP_ConstantOfShape] = define_constant_of_shape,
    [IR_OP_Range] = define_range,
};

const pl_expr *pl_define_move(pl_builder *b, const ir_node *node, int output, indices index)
{
    ir_opcode opcode = ir_node_opcode(node);
    pl_define_fn define = moves[opcode] != NULL ? moves[opcode] : pl_gathers[opcode];
    return define != NULL ? define(b, node, output, index) : pl_reject(b, node, "has no element rule");
}

void pl_transfer_index(pl_builder *b, const ir_type *source_type, indices index, const ir_type *target_type,
                       const pl_expr **out_index)
{
    int f = 0;
    for (int t = 0; t < target_type->rank; t++) {
        out_index[t] = b->zero;
        if (pl_is_unit(target_type->dim[t])) continue;
        while (pl_is_unit(source_type->dim[f])) f++;
        out_index[t] = index[f++];
    }
}

const pl_expr *pl_define_alias(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *source = node->inputs[0];
    const ir_type *source_type = &source->type, *target_type = &node->outputs[output]->type;
    const pl_expr *source_index[MDOT_MAX_RANK];
    if (ir_only_units_differ(source_type, target_type)) {
        pl_transfer_index(b, target_type, index, source_type, source_index);
    } else {
        const pl_expr *flat = pl_flatten(b, target_type->rank, target_type->dim, index);
        if (flat == NULL || !pl_unflatten(b, flat, source_type->rank, source_type->dim, source_index)) return NULL;
    }
    return pl_value_at(b, source, source_index);
}
