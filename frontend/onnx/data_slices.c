/* data_slices.c — slices whose bounds depend on data: rows by a loop's counter, and bags of rows that are reduced. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/ml_writer.h"
#include "ir/ops/families.h"

#include <math.h>

/* sign * base + offset; a known number has sign 0. */
typedef struct linear {
    const ir_value *base;
    int sign;
    ir_dim offset;
} linear;

static bool read_known(fe_upgrader *u, const ir_value *value, ir_dim *out)
{
    ir_dim content[IR_MAX_KNOWN];
    int count;
    (void)fe_type_of_upgraded(u, value);
    if (!ir_value_known(value, content, &count) || count != 1) return false;
    *out = content[0];
    return true;
}

/* An absent value is `*out` as it is. */
static bool read_number(fe_upgrader *u, const ir_value *value, int64_t *out)
{
    ir_dim known;
    if (value == NULL) return true;
    if (!read_known(u, value, &known) || !ir_dim_is_number(known)) return false;
    *out = known.offset;
    return true;
}

static linear read_linear(fe_upgrader *u, const ir_value *value, int depth)
{
    enum { MAX_TERMS = 16 };
    linear sum = {.offset = ir_dim_number(0)}, whole = {.sign = 1, .offset = ir_dim_number(0)};
    value = fe_strip_shape(value);
    whole.base = value;
    if (read_known(u, value, &sum.offset)) return sum;
    bool subtracts = value->def != NULL && value->def->op == &ir_ops[IR_OP_Sub];
    if (depth == MAX_TERMS || value->def == NULL || (!subtracts && value->def->op != &ir_ops[IR_OP_Add])) return whole;
    linear a = read_linear(u, value->def->inputs[0], depth + 1), b = read_linear(u, value->def->inputs[1], depth + 1);
    if (subtracts) b.sign = -b.sign;
    bool fits = (a.sign == 0 || b.sign == 0) &&
                (subtracts ? ir_dim_sub(a.offset, b.offset, &sum.offset) : ir_dim_add(a.offset, b.offset, &sum.offset));
    sum.base = a.sign != 0 ? a.base : b.base;
    sum.sign = a.sign + b.sign;
    return fits ? sum : whole;
}

/* Reads a Slice along one axis, in steps of 1, of which a bound depends on data. */
static bool is_data_slice(fe_upgrader *u, const ir_node *node, int64_t *out_axis)
{
    ir_dim known;
    int64_t step = 1;
    *out_axis = 0;
    if (node == NULL || node->op != &ir_ops[IR_OP_Slice] || node->input_count < 3) return false;
    for (int i = 1; i < 3; i++)
        if (fe_type_of_upgraded(u, node->inputs[i])->rank != 1 || !ir_dim_is(node->inputs[i]->type.dim[0], 1))
            return false;
    if (read_known(u, node->inputs[1], &known) && read_known(u, node->inputs[2], &known)) return false;
    return read_number(u, ir_node_input(node, 3), out_axis) && read_number(u, ir_node_input(node, 4), &step) &&
           step == 1;
}

mdot_status fe_slice_by_counter(fe_upgrader *u, ir_node *node)
{
    const ml_writer w = {.u = u, .node = node};
    int64_t axis, numbers[IR_MAX_KNOWN];
    ir_dim width;
    if (!is_data_slice(u, node, &axis)) return MDOT_OK;
    linear start = read_linear(u, node->inputs[1], 0), end = read_linear(u, node->inputs[2], 0);
    bool is_counted = start.sign != 0 && start.sign == end.sign && start.base == end.base &&
                      ir_is_loop_begin(start.base->def) && ir_dim_sub(end.offset, start.offset, &width) &&
                      ir_dim_is_number(width) && width.offset > 0 && width.offset <= IR_MAX_KNOWN;
    const ir_type *type = fe_type_of(u, node->inputs[0]);
    if (axis < 0) axis += type->rank;
    if (!is_counted || axis < 0 || axis >= type->rank) return MDOT_OK;
    for (int64_t i = 0; i < width.offset; i++) numbers[i] = i;
    ir_value *index = node->inputs[1];
    if (width.offset > 1)
        index = fe_ml_add2(&w, IR_OP_Add, index, fe_add_ints(u, node, "rows", numbers, (int)width.offset));
    ir_value *gathered =
        fe_add(u, node, IR_OP_Gather, IR_VALUES(node->inputs[0], index), IR_ATTRS(IR_INT("axis", axis)));
    fe_counted_rows *rows = IR_NEW(u->context->scratch, fe_counted_rows);
    if (gathered == NULL || rows == NULL) return fe_out_of_memory(u->context);
    *rows = (fe_counted_rows){.gather = gathered->def,
                              .name = node->name,
                              .base = start.base,
                              .sign = start.sign,
                              .offset = start.offset,
                              .width = width.offset,
                              .extent = type->dim[axis],
                              .next = u->counted_rows};
    u->counted_rows = rows;
    return fe_ml_finish(&w, &gathered, 1);
}

void fe_check_counted_rows(const fe_upgrader *u, fe_counted_rows *rows, int64_t first, ir_dim steps)
{
    ir_dim one = ir_dim_number(first), last, low, high;
    bool counts_up = rows->sign > 0;
    bool fits = ir_dim_add(steps, ir_dim_number(first - 1), &last) &&
                (counts_up ? ir_dim_add(rows->offset, one, &low) : ir_dim_sub(rows->offset, last, &low)) &&
                (counts_up ? ir_dim_add(rows->offset, last, &high) : ir_dim_sub(rows->offset, one, &high)) &&
                ir_dim_add(high, ir_dim_number(rows->width), &high);
    rows->is_inside =
        fits && ir_dim_always_le(u->graph, ir_dim_number(0), low) && ir_dim_always_le(u->graph, high, rows->extent);
}

bool fe_refuse_counted_rows(const fe_upgrader *u)
{
    for (const fe_counted_rows *rows = u->counted_rows; rows != NULL; rows = rows->next) {
        if (rows->is_inside) continue;
        rows->gather->op_type = "Slice";
        rows->gather->name = rows->name;
        if (!fe_give_up(u, rows->gather, "its rows may lie outside of the tensor in a step of the loop")) return false;
    }
    return true;
}

/* ---- Bags of rows: the sum, mean or extreme of a slice along axis 0, as EmbeddingBag is exported ----------------- */

/* Computes the value from whole tensors instead of slices. All slices must have the bounds of *slice. */
static ir_value *unsliced(const ml_writer *w, fe_upgrader *u, ir_value *value, const ir_node **slice, int depth)
{
    enum { MAX_DEPTH = 8 };
    ir_node *node = value->def;
    int64_t axis = -1;
    if (node == NULL || node->op == NULL || depth == MAX_DEPTH) return NULL;
    switch (ir_node_opcode(node)) {
    case IR_OP_Slice:
        if (!is_data_slice(u, node, &axis) || axis != 0) return NULL;
        if (*slice != NULL && (node->inputs[1] != (*slice)->inputs[1] || node->inputs[2] != (*slice)->inputs[2]))
            return NULL;
        *slice = node;
        return node->inputs[0];
    case IR_OP_Gather: {
        ir_value *index = unsliced(w, u, node->inputs[1], slice, depth + 1);
        if (index == NULL || ir_node_int(node, "axis", 0) != 0) return NULL;
        return fe_ml_add2(w, IR_OP_Gather, node->inputs[0], index);
    }
    case IR_OP_Unsqueeze: {
        ir_value *x = unsliced(w, u, node->inputs[0], slice, depth + 1);
        if (x == NULL || !read_number(u, node->inputs[1], &axis) || axis < 1) return NULL;
        return fe_ml_add2(w, IR_OP_Unsqueeze, x, node->inputs[1]);
    }
    case IR_OP_Mul: {
        ir_value *a = unsliced(w, u, node->inputs[0], slice, depth + 1);
        ir_value *b = a != NULL ? unsliced(w, u, node->inputs[1], slice, depth + 1) : NULL;
        return b != NULL ? fe_ml_add2(w, IR_OP_Mul, a, b) : NULL;
    }
    default: return NULL;
    }
}

/* A bound of a Slice, counted from the start. */
static ir_value *from_start(const ml_writer *w, ir_value *bound, ir_value *extent)
{
    const int64_t zero = 0;
    bound = fe_ml_cast(w, bound, MDOT_DTYPE_I64);
    ir_value *is_negative = fe_ml_add2(w, IR_OP_Less, bound, fe_add_ints(w->u, w->node, "zero", &zero, 1));
    return fe_ml_where(w, is_negative, fe_ml_add2(w, IR_OP_Add, bound, extent), bound);
}

mdot_status fe_reduce_bag(fe_upgrader *u, ir_node *node)
{
    const ml_writer w = {.u = u, .node = node};
    const ir_node *slice = NULL;
    int64_t axis = -1, axes[MDOT_MAX_RANK];
    const int64_t zero = 0;
    bool is_mean = node->op == &ir_ops[IR_OP_ReduceMean], is_sum = node->op == &ir_ops[IR_OP_ReduceSum];
    bool is_maximum = node->op == &ir_ops[IR_OP_ReduceMax];
    if ((!is_mean && !is_sum && !is_maximum) || node->input_count < 2 || node->inputs[1] == NULL) return MDOT_OK;
    if (!read_number(u, node->inputs[1], &axis) || axis != 0) return MDOT_OK;
    ir_value *rows = unsliced(&w, u, node->inputs[0], &slice, 0);
    int rank = rows != NULL ? fe_type_of(u, rows)->rank : 0;
    if (rank < 1 || !ir_dtype_is_float(rows->type.dtype)) return MDOT_OK;
    ir_value *extent = fe_ml_add2(&w, IR_OP_Gather, fe_ml_add1(&w, IR_OP_Shape, slice->inputs[0]),
                                  fe_add_ints(u, node, "rows", &zero, 1));
    ir_value *position = fe_positions(&w, slice->inputs[0], 0);
    ir_value *is_behind = fe_ml_add2(&w, IR_OP_GreaterOrEqual, position, from_start(&w, slice->inputs[1], extent));
    ir_value *is_before = fe_ml_add2(&w, IR_OP_Less, position, from_start(&w, slice->inputs[2], extent));
    ir_value *is_member = fe_ml_add2(&w, IR_OP_And, is_behind, is_before);
    for (int i = 1; i < rank; i++) axes[i - 1] = i;
    if (rank > 1) is_member = fe_ml_add2(&w, IR_OP_Unsqueeze, is_member, fe_add_ints(u, node, "axes", axes, rank - 1));
    ir_value *neutral = fe_add_scalar(u, node, "neutral", rows->type.dtype, is_maximum ? -INFINITY : 0);
    ir_value *members = fe_ml_where(&w, is_member, rows, neutral);
    const ir_attr keepdims = IR_INT("keepdims", ir_node_int(node, "keepdims", 1));
    ir_value *result = fe_add(u, node, is_maximum ? IR_OP_ReduceMax : IR_OP_ReduceSum,
                              IR_VALUES(members, node->inputs[1]), &keepdims, 1);
    if (is_mean) {
        ir_value *number = fe_ml_cast(&w, is_member, rows->type.dtype);
        number = fe_add(u, node, IR_OP_ReduceSum, IR_VALUES(number, node->inputs[1]), &keepdims, 1);
        result = fe_ml_add2(&w, IR_OP_Div, result, number);
    }
    u->leaves_dead_nodes = true;
    return fe_ml_finish(&w, &result, 1);
}
