/* reduce_nests.c — reductions over axes: one nest each, with the operator's computation before and after the sum. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

/* Formulas of an element, and of the reduced value and the number of elements; NULL: x itself. */
static const struct {
    pl_reducer reducer;
    const char *before, *after;
} rows[IR_OP_COUNT] = {
    [IR_OP_ReduceSum] = {PL_REDUCE_SUM, NULL, NULL},          [IR_OP_ReduceMean] = {PL_REDUCE_SUM, NULL, "x / count"},
    [IR_OP_ReduceMax] = {PL_REDUCE_MAX, NULL, NULL},          [IR_OP_ReduceMin] = {PL_REDUCE_MIN, NULL, NULL},
    [IR_OP_ReduceProd] = {PL_REDUCE_PROD, NULL, NULL},        [IR_OP_ReduceL1] = {PL_REDUCE_SUM, "abs(x)", NULL},
    [IR_OP_ReduceL2] = {PL_REDUCE_SUM, "x * x", "sqrt(x)"},   [IR_OP_ReduceLogSum] = {PL_REDUCE_SUM, NULL, "log(x)"},
    [IR_OP_ReduceSumSquare] = {PL_REDUCE_SUM, "x * x", NULL},
};

/* For integers, functions of real numbers are computed in f64, and a mean in whole numbers. */
static const pl_expr *after(pl_builder *b, ir_opcode opcode, mdot_dtype dtype, const pl_expr *x, const pl_expr *count)
{
    bool is_direct = ir_dtype_is_float(dtype) || opcode == IR_OP_ReduceMean;
    mdot_dtype real = is_direct ? dtype : MDOT_DTYPE_F64;
    const pl_symbol symbols[] = {{"x", pl_cast(b->arena, x, real)}, {"count", pl_cast(b->arena, count, real)}};
    return pl_cast(b->arena, pl_formula(b->arena, rows[opcode].after, symbols, 2), dtype);
}

/* Reads the axes from the second input, or from the attribute of ArgMax. If the axes are absent, all are reduced, or
 * none if the node requests that. */
static bool reduced_axes(const ir_node *node, unsigned *out_mask)
{
    int rank = node->inputs[0]->type.rank, count = 0;
    int64_t axes[IR_MAX_KNOWN];
    const ir_value *axis_value = ir_node_input(node, 1);
    if (axis_value != NULL && !ir_value_ints(axis_value, axes, &count)) return false;
    if (ir_node_opcode(node) == IR_OP_ArgMax || ir_node_opcode(node) == IR_OP_ArgMin)
        axes[count++] = ir_node_int(node, "axis", 0);
    *out_mask = 0;
    for (int k = 0; k < count; k++) *out_mask |= 1u << (axes[k] < 0 ? axes[k] + rank : axes[k]);
    if (count == 0 && !ir_node_int(node, "noop_with_empty_axes", 0)) *out_mask = (1u << rank) - 1;
    return true;
}

/* Loops over the kept dimensions, then over the reduced ones; the index into the input and into the result. */
typedef struct geometry {
    const pl_expr *input[MDOT_MAX_RANK], *result[MDOT_MAX_RANK];
    const pl_expr *count;
} geometry;

static void make_loops(pl_builder *b, const ir_node *node, unsigned mask, pl_nest *nest, geometry *out)
{
    const ir_type *type = &node->inputs[0]->type;
    bool keep = ir_node_int(node, "keepdims", 1);
    int r = 0;
    for (int d = 0; d < type->rank; d++) {
        if (mask & 1u << d) {
            if (keep) out->result[r++] = b->zero;
        } else {
            pl_add_loops(b, nest, 1, &type->dim[d], &out->input[d]);
            out->result[r++] = out->input[d];
        }
    }
    out->count = pl_int(b, 1);
    for (int d = 0; d < type->rank; d++) {
        if (!(mask & 1u << d)) continue;
        out->input[d] = pl_add_reduction(b, nest, type->dim[d]);
        out->count = pl_op2(b, PL_MUL, out->count, pl_extent(b, type->dim[d]));
    }
}

/* Makes `body` the body of the reduction and returns the expression of the result. If there are no loops, that is
 * `body`. */
static const pl_expr *reduce_over(pl_builder *b, pl_nest *nest, pl_reducer reducer, const pl_expr *body)
{
    if (body == NULL || nest->reduce_count == 0) return body;
    nest->reducer = reducer;
    nest->body = body;
    return pl_acc(b->arena, 0, body->dtype);
}

/* Stores each group's maximum, or 0 if it is infinite, in its own buffer. */
static mdot_status emit_largest(pl_builder *b, const ir_node *node, unsigned mask, int *out_buffer)
{
    const ir_value *v = node->outputs[0];
    geometry g;
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    make_loops(b, node, mask, &nest, &g);
    const pl_expr *largest = reduce_over(b, &nest, PL_REDUCE_MAX, pl_value_at(b, node->inputs[0], g.input));
    const pl_expr *is_infinite = largest != NULL ? pl_op1(b, PL_ISINF, largest) : NULL;
    if (is_infinite == NULL) return pl_fault(b);
    const pl_expr *finite = pl_select(b->arena, is_infinite, pl_const_i(b->arena, v->type.dtype, 0), largest);
    int buffer = pl_add_buffer(b, PL_SCRATCH, v->name, &v->type);
    if (buffer < 0) return pl_fault(b);
    nest.store[nest.store_count++] = (pl_store){buffer, pl_flatten(b, v->type.rank, v->type.dim, g.result), finite};
    *out_buffer = buffer;
    return pl_end_nest(b, node->name, &nest);
}

static mdot_status emit_log_sum_exp(pl_builder *b, const ir_node *node, unsigned mask)
{
    const ir_value *v = node->outputs[0];
    int buffer = -1;
    geometry g;
    pl_nest nest = {0};
    BS_TRY(emit_largest(b, node, mask, &buffer));
    pl_begin_kernel(b, node);
    make_loops(b, node, mask, &nest, &g);
    pl_placement placement = {.buffer = buffer, .dense = true};
    const pl_expr *largest = pl_load_at(b, &placement, &v->type, g.result);
    const pl_expr *shifted = pl_op2(b, PL_SUB, pl_value_at(b, node->inputs[0], g.input), largest);
    const pl_expr *sum = reduce_over(b, &nest, PL_REDUCE_SUM, pl_op1(b, PL_EXP, shifted));
    return pl_finish_nest(b, node, &nest, pl_op2(b, PL_ADD, pl_op1(b, PL_LOG, sum), largest), g.result);
}

static mdot_status emit_arg(pl_builder *b, const ir_node *node, unsigned mask)
{
    static const pl_reducer reducers[2][2] = {{PL_REDUCE_ARGMAX_FIRST, PL_REDUCE_ARGMAX_LAST},
                                              {PL_REDUCE_ARGMIN_FIRST, PL_REDUCE_ARGMIN_LAST}};
    bool is_min = ir_node_opcode(node) == IR_OP_ArgMin, is_last = ir_node_int(node, "select_last_index", 0) != 0;
    geometry g;
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    make_loops(b, node, mask, &nest, &g);
    const pl_expr *position = b->zero;
    if (nest.reduce_count > 0) {
        nest.reducer = reducers[is_min][is_last];
        nest.body = pl_value_at(b, node->inputs[0], g.input);
        position = nest.body != NULL ? pl_acc(b->arena, 0, MDOT_DTYPE_I64) : NULL;
    }
    return pl_finish_nest(b, node, &nest, position, g.result);
}

mdot_status pl_emit_reduction(pl_builder *b, const ir_node *node)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (opcode == IR_OP_MatMul || opcode == IR_OP_Einsum) return pl_emit_matmul(b, node);
    unsigned mask;
    if (!reduced_axes(node, &mask)) {
        pl_reject(b, node, "the axes are known only at run time");
        return pl_fault(b);
    }
    if (opcode == IR_OP_ArgMax || opcode == IR_OP_ArgMin) return emit_arg(b, node, mask);
    if (opcode == IR_OP_ReduceLogSumExp) return emit_log_sum_exp(b, node, mask);
    if (rows[opcode].reducer == PL_REDUCE_NONE) {
        pl_reject(b, node, "has no reduction");
        return pl_fault(b);
    }
    geometry g;
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    make_loops(b, node, mask, &nest, &g);
    mdot_dtype dtype = node->outputs[0]->type.dtype;
    const pl_expr *x = pl_value_at(b, node->inputs[0], g.input);
    if (dtype == MDOT_DTYPE_BOOL) x = pl_cast(b->arena, x, MDOT_DTYPE_U8); /* compares false and true as 0 and 1 */
    if (rows[opcode].before != NULL) x = pl_formula(b->arena, rows[opcode].before, &(pl_symbol){"x", x}, 1);
    const pl_expr *result = reduce_over(b, &nest, rows[opcode].reducer, x);
    if (rows[opcode].after != NULL) result = after(b, opcode, dtype, result, g.count);
    return pl_finish_nest(b, node, &nest, pl_cast(b->arena, result, dtype), g.result);
}
