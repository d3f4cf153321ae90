/* gather_nests.c — operators that read at indices given by data.
 *
 * A negative index counts from the end. A wrong input may hold any index. Therefore an index is clamped into its
 * dimension, so a kernel always reads inside the buffer. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

typedef const pl_expr *const *indices;

/* An index known to be in range needs no clamp. */
static bool is_in_range(const ir_value *positions, ir_dim extent)
{
    int64_t known[IR_MAX_KNOWN];
    int count;
    if (!ir_dim_is_number(extent) || !ir_value_ints(positions, known, &count)) return false;
    for (int k = 0; k < count; k++)
        if (known[k] < 0 || known[k] >= extent.offset) return false;
    return true;
}

static const pl_expr *position(pl_builder *b, const ir_value *positions, indices index, ir_dim extent)
{
    const pl_expr *value = pl_cast(b->arena, pl_value_at(b, positions, index), MDOT_DTYPE_I64);
    if (is_in_range(positions, extent)) return value;
    const pl_expr *size = pl_extent(b, extent);
    const pl_expr *from_end = pl_op2(b, PL_ADD, value, size);
    value = pl_select(b->arena, pl_op2(b, PL_LT, value, b->zero), from_end, value);
    const pl_expr *last_index = pl_op2(b, PL_ADD, size, pl_int(b, -1));
    return pl_op2(b, PL_MAX, pl_op2(b, PL_MIN, value, last_index), b->zero);
}

static const pl_expr *define_gather(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *table = node->inputs[0], *positions = node->inputs[1];
    int axis = ir_node_axis(node, 0, table->type.rank), rank = positions->type.rank;
    const pl_expr *source_index[MDOT_MAX_RANK];
    for (int d = 0; d < axis; d++) source_index[d] = index[d];
    for (int d = axis + 1; d < table->type.rank; d++) source_index[d] = index[d + rank - 1];
    source_index[axis] = position(b, positions, index + axis, table->type.dim[axis]);
    return pl_value_at(b, table, source_index);
}

static const pl_expr *define_gather_elements(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *table = node->inputs[0];
    int axis = ir_node_axis(node, 0, table->type.rank);
    const pl_expr *source_index[MDOT_MAX_RANK];
    for (int d = 0; d < table->type.rank; d++) source_index[d] = index[d];
    source_index[axis] = position(b, node->inputs[1], index, table->type.dim[axis]);
    return pl_value_at(b, table, source_index);
}

/* The positions' last dimension holds coordinates for table dimensions batch_dims …. */
static const pl_expr *define_gather_nd(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *table = node->inputs[0], *positions = node->inputs[1];
    int batch = (int)ir_node_int(node, "batch_dims", 0), rank = positions->type.rank;
    ir_dim tuple = positions->type.dim[rank - 1];
    if (!ir_dim_is_number(tuple)) return pl_reject(b, node, "the length of the index tuples must be a number");
    const pl_expr *source_index[MDOT_MAX_RANK], *where[MDOT_MAX_RANK];
    for (int d = 0; d < rank - 1; d++) where[d] = index[d];
    for (int d = 0; d < table->type.rank; d++) {
        if (d < batch) {
            source_index[d] = index[d];
        } else if (d < batch + tuple.offset) {
            where[rank - 1] = pl_int(b, d - batch);
            source_index[d] = position(b, positions, where, table->type.dim[d]);
        } else {
            source_index[d] = index[rank - 1 + d - batch - (int)tuple.offset];
        }
    }
    return pl_value_at(b, table, source_index);
}

/* ONNX OneHot: negative positions count from the end. Positions out of range give rows without the hot value. */
static const pl_expr *define_one_hot(pl_builder *b, const ir_node *node, int output, indices index)
{
    const ir_value *positions = node->inputs[0], *values = node->inputs[2];
    const ir_type *type = &node->outputs[output]->type;
    int axis = ir_node_axis(node, -1, type->rank);
    const pl_expr *source_index[MDOT_MAX_RANK];
    for (int d = 0; d < positions->type.rank; d++) source_index[d] = index[d < axis ? d : d + 1];
    const pl_expr *position = pl_cast(b->arena, pl_value_at(b, positions, source_index), MDOT_DTYPE_I64);
    const pl_expr *from_end = pl_op2(b, PL_ADD, position, pl_extent(b, type->dim[axis]));
    position = pl_select(b->arena, pl_op2(b, PL_LT, position, b->zero), from_end, position);
    const pl_expr *off[] = {b->zero}, *on_value[] = {pl_int(b, 1)};
    return pl_select(b->arena, pl_op2(b, PL_EQ, position, index[axis]), pl_value_at(b, values, on_value),
                     pl_value_at(b, values, off));
}

const pl_define_fn pl_gathers[IR_OP_COUNT] = {
    [IR_OP_Gather] = define_gather,
    [IR_OP_GatherElements] = define_gather_elements,
    [IR_OP_GatherND] = define_gather_nd,
    [IR_OP_OneHot] = define_one_hot,
};
