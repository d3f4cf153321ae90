/* bound_nonzero_axes.c — where operators leave the axis of selected elements (bound_nonzero.c). */
#include "ir/passes/pass_rules.h"

#include "ir/ops/families.h"

#include <string.h>

enum { LOST = -2 }; /* in place of an axis */

static const char combines[] = "it combines elements";
static const char counts[] = "it computes with the number of elements";
static const char mixes[] = "it combines other data, element by element, with elements";

static bool is_marked(const ir_mark *m) { return m->of != NULL && m->axis != IR_MARK_NUMBER; }

static ir_mark moved(const ir_mark *m, int axis) { return (ir_mark){m->of, axis}; }

/* Is an operand without a mark the same for every selected element? Operands are aligned at the last axis. */
static bool is_same_for_all(const ir_value *value, const ir_mark *m, int axis, int rank)
{
    if (value == NULL || is_marked(m)) return true;
    int own_index = axis - rank + value->type.rank;
    return own_index < 0 || ir_dim_is(value->type.dim[own_index], 1);
}

/* Each element of the result depends on the inputs' elements at the same place, with broadcasting. */
static const char *follow_elementwise(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    int rank = node->outputs[0]->type.rank, axis = LOST;
    for (int i = 0; i < node->input_count; i++) {
        if (!is_marked(&mark[i])) continue;
        int own_index = mark[i].axis + rank - node->inputs[i]->type.rank;
        if (axis != LOST && own_index != axis) return combines;
        axis = own_index;
        *out = moved(&mark[i], own_index);
    }
    for (int i = 0; i < node->input_count; i++)
        if (!is_same_for_all(node->inputs[i], &mark[i], axis, rank)) return mixes;
    return NULL;
}

/* The reshaped value's axis with the same elements: as many before and behind. */
static int reshaped_axis(const ir_type *source_type, int axis, const ir_type *target_type)
{
    for (int d = 0; d < target_type->rank; d++)
        if (ir_dim_equal(target_type->dim[d], source_type->dim[axis]) &&
            ir_dim_products_equal(target_type->dim, d, source_type->dim, axis) &&
            ir_dim_products_equal(target_type->dim + d + 1, target_type->rank - d - 1, source_type->dim + axis + 1,
                                  source_type->rank - axis - 1))
            return d;
    return LOST;
}

/* A reshape to one axis makes the elements of selected rows from the rows. NULL: no NonZero selects them. */
static const ir_selection *elements_of_rows(const ir_bounding *w, const ir_mark *m, const ir_type *source_type,
                                            const ir_type *target_type)
{
    for (const ir_selection *s = w->selections; s != NULL && target_type->rank == 1 && m->axis == 0; s = s->next)
        if (s->rows == m->of && ir_dim_equal(s->bound, target_type->dim[0]) &&
            ir_dim_products_equal(source_type->dim + 1, source_type->rank - 1, &s->width, 1))
            return s;
    return NULL;
}

static const char *follow_reshape(const ir_bounding *w, const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    if (!is_marked(&mark[0])) return counts;
    const ir_type *source_type = &node->inputs[0]->type, *target_type = &node->outputs[0]->type;
    int axis = reshaped_axis(source_type, mark[0].axis, target_type);
    const ir_selection *elements = axis == LOST ? elements_of_rows(w, &mark[0], source_type, target_type) : NULL;
    if (elements != NULL) {
        *out = (ir_mark){.of = elements, .axis = 0};
        return NULL;
    }
    if (axis == LOST) return "it merges with another axis the axis of elements";
    *out = moved(&mark[0], axis);
    return NULL;
}

static const char *follow_transpose(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    int64_t perm[MDOT_MAX_RANK];
    int rank = node->inputs[0]->type.rank;
    ir_node_perm(node, rank, perm);
    for (int d = 0; d < rank; d++)
        if (perm[d] == mark[0].axis) *out = moved(&mark[0], d);
    return NULL;
}

/* A value of one number, or of equal rows, in as many copies as there are elements. The axis is the only one that has
 * this extent and had it not before. */
static const char *follow_repetition(const ir_value *x, const ir_value *y, const ir_mark *number, ir_mark *out)
{
    int found = LOST;
    for (int d = 0; d < y->type.rank; d++) {
        int own_index = x != NULL ? d - y->type.rank + x->type.rank : -1;
        if (!ir_dim_equal(y->type.dim[d], number->of->bound)) continue;
        if (own_index >= 0 && !ir_dim_is(x->type.dim[own_index], 1)) continue;
        if (found != LOST) return counts;
        found = d;
    }
    if (found == LOST) return counts;
    *out = moved(number, found);
    return NULL;
}

static const char *follow_expand(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    const ir_value *x = node->inputs[0], *y = node->outputs[0];
    if (!is_marked(&mark[0])) return follow_repetition(x, y, &mark[1], out);
    *out = moved(&mark[0], mark[0].axis + y->type.rank - x->type.rank);
    return ir_dim_equal(y->type.dim[out->axis], x->type.dim[mark[0].axis]) ? NULL : combines;
}

static const char *follow_gather(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    const ir_type *data = &node->inputs[0]->type, *indices = &node->inputs[1]->type;
    int axis = ir_node_axis(node, 0, data->rank);
    if (is_marked(&mark[0]) && is_marked(&mark[1])) return combines;
    if (is_marked(&mark[1])) {
        *out = moved(&mark[1], axis + mark[1].axis);
        return NULL;
    }
    if (mark[0].axis == axis) return "it picks single elements of the elements";
    *out = moved(&mark[0], mark[0].axis < axis ? mark[0].axis : mark[0].axis - 1 + indices->rank);
    return NULL;
}

static const char *follow_gather_nd(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    if (is_marked(&mark[0]) || ir_node_int(node, "batch_dims", 0) != 0) return combines;
    if (mark[1].axis == node->inputs[1]->type.rank - 1) return combines;
    *out = moved(&mark[1], mark[1].axis);
    return NULL;
}

static const char *follow_gather_elements(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    bool pair = is_marked(&mark[0]) && is_marked(&mark[1]) && mark[0].axis == mark[1].axis;
    if (!pair || ir_node_axis(node, 0, node->inputs[0]->type.rank) == mark[0].axis) return combines;
    *out = moved(&mark[0], mark[0].axis);
    return NULL;
}

/* A slice along the axis of the selection alone, from 0 to the number of the elements, as TorchScript writes it. */
static bool is_whole_slice(const ir_node *node, const ir_mark *mark)
{
    int64_t start, axis = 0, step = 1;
    ir_dim end[IR_MAX_KNOWN];
    int count = 0;
    const ir_value *axes = ir_node_input(node, 3), *steps = ir_node_input(node, 4);
    if (ir_node_opcode(node) != IR_OP_Slice || !is_marked(&mark[0]) || mark[2].of != mark[0].of) return false;
    if (!ir_value_int(node->inputs[1], &start) || !ir_value_known(node->inputs[2], end, &count)) return false;
    if ((axes != NULL && !ir_value_int(axes, &axis)) || (steps != NULL && !ir_value_int(steps, &step))) return false;
    return start == 0 && step == 1 && axis == mark[0].axis && count == 1 && ir_dim_equal(end[0], mark[0].of->bound);
}

/* Split and Slice keep the axis if they leave all of the elements. */
static const char *follow_cut(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    const ir_type *type = &node->inputs[0]->type;
    if (is_whole_slice(node, mark)) {
        *out = mark[0];
        return NULL;
    }
    for (int i = 1; i < node->input_count; i++)
        if (mark[i].of != NULL) return counts;
    if (ir_node_opcode(node) == IR_OP_Split) {
        if (ir_node_axis(node, 0, type->rank) == mark[0].axis) return "it splits elements";
    } else {
        int64_t start[IR_MAX_KNOWN], end[IR_MAX_KNOWN], axes[IR_MAX_KNOWN], step[IR_MAX_KNOWN];
        int count = 0, others = 0;
        const ir_value *axis = ir_node_input(node, 3), *steps = ir_node_input(node, 4);
        if (!ir_value_ints(node->inputs[1], start, &count) || !ir_value_ints(node->inputs[2], end, &others))
            return combines;
        for (int i = 0; i < count; i++) {
            axes[i] = i;
            step[i] = 1;
        }
        if (axis != NULL && !ir_value_ints(axis, axes, &others)) return combines;
        if (steps != NULL && !ir_value_ints(steps, step, &others)) return combines;
        for (int i = 0; i < count; i++) {
            bool is_whole = start[i] == 0 && end[i] >= INT32_MAX && step[i] == 1;
            if ((axes[i] < 0 ? axes[i] + type->rank : axes[i]) == mark[0].axis && !is_whole)
                return "it picks single elements of the elements";
        }
    }
    *out = moved(&mark[0], mark[0].axis);
    return NULL;
}

static const char *follow_concat(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    int axis = ir_node_axis(node, 0, node->outputs[0]->type.rank);
    for (int i = 0; i < node->input_count; i++) {
        if (!is_marked(&mark[i]) || mark[i].axis != mark[0].axis) return mixes;
    }
    if (mark[0].axis == axis) return "it joins elements";
    *out = moved(&mark[0], mark[0].axis);
    return NULL;
}

static const char *follow_matmul(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    int rank = node->outputs[0]->type.rank, axis = LOST;
    for (int i = 0; i < 2; i++) {
        if (!is_marked(&mark[i])) continue;
        int own_index = node->inputs[i]->type.rank, summed = i == 0 || own_index == 1 ? own_index - 1 : own_index - 2;
        if (mark[i].axis == summed) return combines;
        bool is_vector = node->inputs[1 - i]->type.rank == 1;
        bool is_last = i == 1 && mark[i].axis == own_index - 1;
        int place = is_last ? rank - 1 : mark[i].axis + rank + is_vector - own_index;
        if (axis != LOST && place != axis) return combines;
        axis = place;
        *out = moved(&mark[i], place);
        bool is_batch = own_index > 2 && mark[i].axis < own_index - 2;
        if (is_batch && !is_same_for_all(node->inputs[1 - i], &mark[1 - i], place, rank + is_vector)) return mixes;
    }
    return NULL;
}

static const char *follow_gemm(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    int rows = ir_node_int(node, "transA", 0) != 0 ? 1 : 0;
    if (!is_marked(&mark[0]) || mark[0].axis != rows || is_marked(&mark[1])) return combines;
    *out = moved(&mark[0], 0);
    const ir_value *added = ir_node_input(node, 2);
    if (added == NULL) return NULL;
    if (is_marked(&mark[2]) && mark[2].axis + 2 - added->type.rank != 0) return combines;
    return is_same_for_all(added, &mark[2], 0, 2) ? NULL : mixes;
}

/* Normalisation over one axis, or over all from this axis on. */
static const char *follow_norm(const ir_node *node, const ir_mark *mark, bool from_axis_on, ir_mark *out)
{
    int axis = ir_node_axis(node, -1, node->inputs[0]->type.rank);
    for (int i = 1; i < node->input_count; i++)
        if (mark[i].of != NULL) return combines;
    if (from_axis_on ? mark[0].axis >= axis : mark[0].axis == axis) return combines;
    *out = moved(&mark[0], mark[0].axis);
    return NULL;
}

static const char *follow_reduction(ir_bounding *w, ir_node *node, const ir_mark *mark, ir_mark *out)
{
    const ir_type *type = &node->inputs[0]->type;
    int64_t axes[IR_MAX_KNOWN];
    bool reduced[MDOT_MAX_RANK] = {false}, keeps = ir_node_int(node, "keepdims", 1) != 0;
    int count = 0, before = 0;
    const ir_value *given = ir_node_input(node, 1);
    if (!is_marked(&mark[0]) || (given != NULL && !ir_value_ints(given, axes, &count))) return combines;
    for (int i = 0; i < count; i++) reduced[axes[i] < 0 ? axes[i] + type->rank : axes[i]] = true;
    bool is_complete = count == 0 && ir_node_int(node, "noop_with_empty_axes", 0) == 0;
    for (int d = 0; d < type->rank; d++) {
        reduced[d] = reduced[d] || is_complete;
        before += d < mark[0].axis && reduced[d] && !keeps;
    }
    if (reduced[mark[0].axis])
        ir_end_selection_in_reduction(w, node, &mark[0], reduced);
    else
        *out = moved(&mark[0], mark[0].axis - before);
    return NULL;
}

/* Indices and updates of a scatter have the selection at the same axis. */
static const char *follow_scatter(ir_bounding *w, ir_node *node, const ir_mark *mark)
{
    bool is_nd = ir_node_opcode(node) == IR_OP_ScatterND;
    int axis = ir_node_axis(node, 0, node->inputs[0]->type.rank);
    if (is_marked(&mark[0])) return "it scatters into elements";
    if (!is_marked(&mark[1])) return "it scatters to other places elements";
    if (is_nd ? mark[1].axis == node->inputs[1]->type.rank - 1 : mark[1].axis != axis) return combines;
    if (is_marked(&mark[2]) && mark[2].axis != mark[1].axis) return combines;
    if (!is_marked(&mark[2])) return mixes;
    ir_end_selection_in_scatter(w, node, &mark[2]);
    return NULL;
}

/* Part of a shape: known content, or a value's shape. */
static const char *follow_number(const ir_node *node, const ir_mark *mark, ir_mark *out)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->known == NULL) return counts;
    for (int i = 0; i < node->input_count; i++)
        if (mark[i].of != NULL) *out = moved(&mark[i], IR_MARK_NUMBER);
    return NULL;
}

/* Does Shape, which may read only some dimensions, read the selection's? */
static bool shape_has_axis(const ir_node *node, const ir_mark *mark)
{
    int rank = node->inputs[0]->type.rank;
    int64_t start = ir_node_int(node, "start", 0), end = ir_node_int(node, "end", rank);
    return !is_marked(&mark[0]) ||
           ((start < 0 ? start + rank : start) <= mark[0].axis && mark[0].axis < (end < 0 ? end + rank : end));
}

static bool any_is_marked(const ir_node *node, const ir_mark *mark)
{
    for (int i = 0; i < node->input_count; i++)
        if (is_marked(&mark[i])) return true;
    return false;
}

static bool any_is_number(const ir_node *node, const ir_mark *mark)
{
    for (int i = 0; i < node->input_count; i++)
        if (mark[i].of != NULL && mark[i].axis == IR_MARK_NUMBER) return true;
    return false;
}

const char *ir_follow_selection(ir_bounding *w, ir_node *node, const ir_mark *mark, ir_mark *out_mark)
{
    ir_opcode op = ir_node_opcode(node);
    bool shapes = op == IR_OP_Reshape || op == IR_OP_Expand || op == IR_OP_ConstantOfShape;
    if (op == IR_OP_Shape && !shape_has_axis(node, mark)) return NULL;
    if (is_whole_slice(node, mark)) shapes = true;
    if (node->op->traits & IR_SHAPE_ONLY || (any_is_number(node, mark) && !shapes)) {
        if (any_is_marked(node, mark) && any_is_number(node, mark)) return counts;
        return follow_number(node, mark, out_mark);
    }
    switch (op) {
    case IR_OP_Reshape:
    case IR_OP_Squeeze:
    case IR_OP_Unsqueeze:
    case IR_OP_Identity: return follow_reshape(w, node, mark, out_mark);
    case IR_OP_Expand: return follow_expand(node, mark, out_mark);
    case IR_OP_ConstantOfShape: return follow_repetition(NULL, node->outputs[0], &mark[0], out_mark);
    case IR_OP_Transpose: return follow_transpose(node, mark, out_mark);
    case IR_OP_Gather: return follow_gather(node, mark, out_mark);
    case IR_OP_GatherND: return follow_gather_nd(node, mark, out_mark);
    case IR_OP_GatherElements: return follow_gather_elements(node, mark, out_mark);
    case IR_OP_Split:
    case IR_OP_Slice: return follow_cut(node, mark, out_mark);
    case IR_OP_Concat: return follow_concat(node, mark, out_mark);
    case IR_OP_MatMul: return follow_matmul(node, mark, out_mark);
    case IR_OP_Gemm: return follow_gemm(node, mark, out_mark);
    case IR_OP_Softmax:
    case IR_OP_LogSoftmax: return follow_norm(node, mark, false, out_mark);
    case IR_OP_LayerNormalization:
    case IR_OP_RMSNormalization:
    case IR_OP_SimplifiedLayerNormalization: return follow_norm(node, mark, true, out_mark);
    case IR_OP_ScatterND:
    case IR_OP_ScatterElements: return follow_scatter(w, node, mark);
    default:
        if (strncmp(node->op->name, "Reduce", 6) == 0) return follow_reduction(w, node, mark, out_mark);
        return node->op->lowering == IR_LOWER_POINTWISE ? follow_elementwise(node, mark, out_mark) : combines;
    }
}
