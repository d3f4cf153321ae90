/* nest.c — loop nests that store a value's elements in a buffer, and the ends of reductions' nests. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

#include <string.h>

void pl_add_loops(pl_builder *b, pl_nest *nest, int rank, const ir_dim *dims, const pl_expr **out_index)
{
    for (int d = 0; d < rank; d++) {
        if (pl_is_unit(dims[d])) {
            out_index[d] = b->zero;
        } else {
            nest->extent[nest->loop_count] = dims[d];
            out_index[d] = pl_index(b->arena, nest->loop_count++);
        }
    }
}

const pl_expr *pl_add_reduction(pl_builder *b, pl_nest *nest, ir_dim dim)
{
    if (pl_is_unit(dim)) return b->zero;
    int loop = nest->loop_count + nest->reduce_count++;
    nest->extent[loop] = dim;
    return pl_index(b->arena, loop);
}

static bool is_empty(const pl_nest *nest)
{
    for (int k = 0; k < nest->loop_count; k++)
        if (ir_dim_is(nest->extent[k], 0)) return true;
    return false;
}

static void add_store(pl_builder *b, pl_nest *nest, const pl_placement *placement, const ir_type *type,
                      const pl_expr *const *index, const pl_expr *value)
{
    nest->store[nest->store_count++] = (pl_store){placement->buffer, pl_position(b, placement, type, index), value};
}

/* If an expression of the nest could not be built, this is an error. A nest without points becomes no kernel. */
mdot_status pl_end_nest(pl_builder *b, const char *name, const pl_nest *nest)
{
    for (int k = 0; k < nest->store_count; k++)
        if (nest->store[k].index == NULL || nest->store[k].value == NULL) return pl_fault(b);
    if (is_empty(nest)) return MDOT_OK;
    pl_kernel kernel = {.nest = *nest};
    pl_collapse_loops(b, &kernel.nest);
    return pl_end_kernel(b, PL_NEST, name, &kernel);
}

mdot_status pl_finish_nest(pl_builder *b, const ir_node *node, pl_nest *nest, const pl_expr *result,
                           const pl_expr *const *index)
{
    const ir_value *root = node->outputs[0], *tail = pl_info(b, root)->tail;
    const pl_expr *source_index[MDOT_MAX_RANK];
    pl_transfer_index(b, &root->type, index, &tail->type, source_index);
    b->acc_value = root;
    b->acc_expr = result;
    const pl_expr *value = tail == root ? result : pl_define(b, tail, source_index);
    if (value == NULL || !pl_place_output(b, tail, PL_PLACEMENT_ANYWHERE)) return pl_fault(b);
    add_store(b, nest, &pl_info(b, tail)->placement, &tail->type, source_index, value);
    return pl_end_nest(b, node->name, nest);
}

/* Can one nest write all parts? They must have equal shapes, and all must still be uncomputed. */
static bool parts_are_alike(const pl_builder *b, const ir_node *node)
{
    int buffer = pl_info(b, node->outputs[0])->placement.buffer;
    if (node->input_count > PL_MAX_STORES) return false;
    for (int k = 0; k < node->input_count; k++) {
        const pl_value *part = pl_info(b, node->inputs[k]);
        if (!ir_type_equal(&node->inputs[k]->type, &node->inputs[0]->type)) return false;
        if (part->state == PL_PLACED && part->placement.buffer == buffer) return false;
    }
    return true;
}

/* Loads and computes common subexpressions of the parts once. For example, a rotation reads both halves for each
 * half. */
static mdot_status emit_alike(pl_builder *b, const ir_node *node)
{
    const ir_value *v = node->outputs[0];
    const ir_type *part = &node->inputs[0]->type;
    int axis = ir_node_axis(node, 0, v->type.rank);
    const pl_expr *index[MDOT_MAX_RANK] = {NULL}, *target[MDOT_MAX_RANK];
    pl_nest nest = {0};
    ir_dim begin = ir_dim_number(0);
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, part->rank, part->dim, index);
    for (int k = 0; k < node->input_count; k++) {
        memcpy(target, index, sizeof target);
        target[axis] = pl_op2(b, PL_ADD, index[axis], pl_extent(b, begin));
        add_store(b, &nest, &pl_info(b, v)->placement, &v->type, target, pl_value_at(b, node->inputs[k], index));
        if (!ir_dim_add(begin, part->dim[axis], &begin)) {
            pl_reject(b, node, "the dimensions overflow");
            return pl_fault(b);
        }
    }
    return pl_end_nest(b, node->name, &nest);
}

/* Emits one nest per operand for its part of the result. Parts computed in place are skipped. */
static mdot_status emit_concat(pl_builder *b, const ir_node *node)
{
    const ir_value *v = node->outputs[0];
    const pl_value *info = pl_info(b, v);
    int axis = ir_node_axis(node, 0, v->type.rank);
    ir_dim begin = ir_dim_number(0);
    if (info->state != PL_PLACED && !pl_place_output(b, v, PL_PLACEMENT_ANYWHERE)) return pl_fault(b);
    if (parts_are_alike(b, node)) return emit_alike(b, node);
    for (int k = 0; k < node->input_count; k++) {
        const ir_value *part = node->inputs[k];
        const pl_value *part_info = pl_info(b, part);
        const pl_expr *index[MDOT_MAX_RANK];
        pl_nest nest = {0};
        pl_begin_kernel(b, NULL);
        pl_add_loops(b, &nest, part->type.rank, part->type.dim, index);
        bool is_there = part_info->state == PL_PLACED && part_info->placement.buffer == info->placement.buffer;
        const pl_expr *value = pl_value_at(b, part, index);
        index[axis] = pl_op2(b, PL_ADD, index[axis], pl_extent(b, begin));
        pl_note_origin(b, node);
        add_store(b, &nest, &info->placement, &v->type, index, value);
        BS_TRY(is_there ? MDOT_OK : pl_end_nest(b, node->name, &nest));
        if (!ir_dim_add(begin, part->type.dim[axis], &begin)) {
            pl_reject(b, node, "the dimensions overflow");
            return pl_fault(b);
        }
    }
    return MDOT_OK;
}

/* Adds a nest that stores value(index) for the box of `dims` elements at each of the `starts`. */
static mdot_status emit_boxes(pl_builder *b, const ir_node *node, const ir_dim *dims,
                              const ir_dim (*starts)[MDOT_MAX_RANK], int count)
{
    const ir_value *v = node->outputs[0];
    const pl_expr *index[MDOT_MAX_RANK], *target[MDOT_MAX_RANK];
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, v->type.rank, dims, index);
    for (int k = 0; k < count; k++) {
        for (int d = 0; d < v->type.rank; d++) target[d] = pl_op2(b, PL_ADD, index[d], pl_extent(b, starts[k][d]));
        const pl_expr *value = count == 1 ? pl_value_at(b, node->inputs[0], index) : pl_pad_constant(b, node);
        add_store(b, &nest, &pl_info(b, v)->placement, &v->type, target, value);
    }
    return pl_end_nest(b, node->name, &nest);
}

/* A padded tensor of which sliding windows are read: the inside is a copy, which may be a transpose, and each border a
 * constant. So no element is compared with the borders. Borders along an axis span the inside of the axes before. */
static bool has_boxes(pl_builder *b, const ir_node *node, ir_dim *before)
{
    const ir_value *v = node->outputs[0];
    const pl_value *info = pl_info(b, v);
    bool is_windowed = false, fits = strcmp(ir_node_string(node, "mode", "constant"), "constant") == 0;
    for (int u = 0; u < info->use_count; u++)
        is_windowed = is_windowed || ir_node_opcode(info->uses[u].node) == IR_OP_Windows;
    if (!is_windowed || !fits || !pl_read_pads(node, v->type.rank, before)) return false;
    for (int d = 0; d < v->type.rank && fits; d++) {
        ir_dim after;
        fits = ir_dim_is_number(before[d]) && before[d].offset >= 0 &&
               ir_dim_sub(v->type.dim[d], node->inputs[0]->type.dim[d], &after) &&
               ir_dim_is(after, 2 * before[d].offset);
    }
    return fits;
}

static mdot_status emit_pad(pl_builder *b, const ir_node *node, const ir_dim *before)
{
    const ir_type *inside = &node->inputs[0]->type, *whole = &node->outputs[0]->type;
    ir_dim dims[MDOT_MAX_RANK], starts[2][MDOT_MAX_RANK];
    if (!pl_place_output(b, node->outputs[0], PL_PLACEMENT_ANYWHERE)) return pl_fault(b);
    memcpy(starts[0], before, sizeof starts[0]);
    BS_TRY(emit_boxes(b, node, inside->dim, (const ir_dim(*)[MDOT_MAX_RANK])starts, 1));
    for (int axis = 0; axis < whole->rank; axis++) {
        if (ir_dim_is(before[axis], 0)) continue;
        for (int d = 0; d < whole->rank; d++) {
            dims[d] = d < axis ? inside->dim[d] : d == axis ? before[d] : whole->dim[d];
            starts[0][d] = starts[1][d] = d < axis ? before[d] : ir_dim_number(0);
        }
        if (!ir_dim_add(inside->dim[axis], before[axis], &starts[1][axis])) return pl_fault(b);
        BS_TRY(emit_boxes(b, node, dims, (const ir_dim(*)[MDOT_MAX_RANK])starts, 2));
    }
    return MDOT_OK;
}

/* A nest of reshapes around an operator is named after the operator. */
static const char *name_of(const ir_value *v)
{
    while (v->def->op->lowering == IR_LOWER_ALIAS && v->def->inputs[0]->def != NULL) v = v->def->inputs[0];
    return v->def->name;
}

mdot_status pl_emit_value(pl_builder *b, const ir_value *v)
{
    ir_dim before[MDOT_MAX_RANK];
    if (ir_node_opcode(v->def) == IR_OP_Concat) return emit_concat(b, v->def);
    if (ir_node_opcode(v->def) == IR_OP_Pad && has_boxes(b, v->def, before)) return emit_pad(b, v->def, before);
    const pl_expr *index[MDOT_MAX_RANK];
    pl_nest nest = {0};
    pl_begin_kernel(b, NULL);
    pl_add_loops(b, &nest, v->type.rank, v->type.dim, index);
    const pl_expr *value = pl_define(b, v, index);
    if (value == NULL || !pl_place_output(b, v, PL_PLACEMENT_ANYWHERE)) return pl_fault(b);
    add_store(b, &nest, &pl_info(b, v)->placement, &v->type, index, value);
    return pl_end_nest(b, name_of(v), &nest);
}

mdot_status pl_emit_copy(pl_builder *b, const ir_value *v, int output)
{
    const pl_expr *index[MDOT_MAX_RANK];
    pl_placement placement = {.buffer = b->graph->input_count + output, .dense = true};
    pl_nest nest = {0};
    pl_begin_kernel(b, NULL);
    pl_add_loops(b, &nest, v->type.rank, v->type.dim, index);
    add_store(b, &nest, &placement, &v->type, index, pl_value_at(b, v, index));
    return pl_end_nest(b, v->name, &nest);
}
