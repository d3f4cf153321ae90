/* bound_nonzero_ends.c — ends a selection where the elements are combined (bound_nonzero.c): a reduction or a scatter
 * gets a neutral number for each element outside the mask. */
#include "ir/passes/pass_rules.h"

#include "ir/ops/families.h"

#include <math.h>
#include <string.h>

void ir_refuse_selection(ir_builder *b, const ir_node *node, const ir_selection *s, const char *reason)
{
    b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                        "%s, which NonZero at \"%s\" selects; their number depends on data, therefore only row-wise "
                        "operators, sums, extremes, means and scatters of them compile: instead of x[mask], keep the "
                        "shape and write torch.where(mask, x, 0)",
                        reason, s->name);
    b->status = ir_fail_in_file(b->graph, b->status, b->err);
}

/* The values where the mask is set along the axis, and `other_value` elsewhere. */
static ir_value *masked(ir_builder *b, const ir_mark *m, ir_value *x, ir_value *other_value)
{
    ir_dim dims[MDOT_MAX_RANK];
    for (int d = 0; d < x->type.rank; d++) dims[d] = d == m->axis ? m->of->bound : ir_dim_number(1);
    return ir_build_where(b, ir_build_reshape(b, m->of->mask, dims, x->type.rank), x, other_value);
}

static ir_value *masked_by_number(ir_builder *b, const ir_mark *m, ir_value *x, double number)
{
    b->dtype = x->type.dtype;
    return masked(b, m, x, ir_build_scalar(b, number));
}

static bool neutral_number(const ir_node *node, double *out)
{
    bool is_float = ir_dtype_is_float(node->inputs[0]->type.dtype);
    *out = 0;
    switch (ir_node_opcode(node)) {
    case IR_OP_ReduceSum:
    case IR_OP_ReduceMean:
    case IR_OP_ReduceL1:
    case IR_OP_ReduceL2:
    case IR_OP_ReduceSumSquare: return true;
    case IR_OP_ReduceProd: *out = 1; return true;
    case IR_OP_ReduceMax: *out = -INFINITY; return is_float;
    case IR_OP_ReduceMin: *out = INFINITY; return is_float;
    default: return false;
    }
}

/* ReduceMean over the selection: the sum, divided by the number of selected elements. */
static void replace_mean(ir_builder *b, ir_node *node, const ir_mark *m, const bool *reduced)
{
    ir_value *x = node->inputs[0], *y = node->outputs[0];
    int64_t axes[MDOT_MAX_RANK], others = 1, first = 0;
    int count = 0;
    for (int d = 0; d < x->type.rank; d++) {
        if (!reduced[d]) continue;
        axes[count++] = d;
        if (d == m->axis) continue;
        if (!ir_dim_is_number(x->type.dim[d])) {
            ir_refuse_selection(b, node, m->of, "it averages elements over the length and over elements");
            return;
        }
        others *= x->type.dim[d].offset;
    }
    ir_value *sum = ir_build_reduce(b, IR_OP_ReduceSum, masked_by_number(b, m, x, 0), axes, count);
    ir_value *selected = ir_build_reduce(b, IR_OP_ReduceSum, ir_build_cast(b, m->of->mask, x->type.dtype), &first, 1);
    if (others != 1) selected = ir_build_mul(b, selected, ir_build_scalar(b, (double)others));
    ir_replace(b, y, ir_build_reshape(b, ir_build_div(b, sum, selected), y->type.dim, y->type.rank));
}

void ir_end_selection_in_reduction(ir_bounding *w, ir_node *node, const ir_mark *m, const bool *reduced)
{
    ir_builder *b = &w->b;
    double number;
    if (!neutral_number(node, &number)) {
        ir_refuse_selection(b, node, m->of, "it reduces elements");
    } else if (ir_node_opcode(node) == IR_OP_ReduceMean) {
        replace_mean(b, node, m, reduced);
    } else {
        ir_value *x = masked_by_number(b, m, node->inputs[0], number);
        if (x != NULL) ir_node_set_input(node, 0, x);
        b->changed = true;
    }
}

/* The elements that a scatter would overwrite. */
static ir_value *overwritten(ir_builder *b, const ir_node *node)
{
    bool is_nd = ir_node_opcode(node) == IR_OP_ScatterND;
    return ir_build_with(b, is_nd ? IR_OP_GatherND : IR_OP_GatherElements, node->inputs, 2,
                         &IR_INT("axis", ir_node_int(node, "axis", 0)), is_nd ? 0 : 1);
}

/* A scatter like this node, adding updates to 0. */
static ir_value *scattered_sum(ir_builder *b, const ir_node *node, ir_value *updates)
{
    const ir_type *type = &node->outputs[0]->type;
    b->dtype = type->dtype;
    ir_value *zeros = ir_build_expand(b, ir_build_scalar(b, 0), type->dim, type->rank);
    const ir_attr attrs[] = {IR_STRING("reduction", "add"), IR_INT("axis", ir_node_int(node, "axis", 0))};
    ir_opcode op = ir_node_opcode(node);
    return ir_build_with(b, op, IR_VALUES(zeros, node->inputs[1], updates), attrs, op == IR_OP_ScatterND ? 1 : 2);
}

/* A scatter without reduction at computed indices. ONNX requires that those of selected elements differ, but others may
 * equal them. Therefore updates are added to 0 instead, and elements that got one replace those of the data. */
static void replace_computed_scatter(ir_builder *b, ir_node *node, const ir_mark *m)
{
    ir_value *updates = node->inputs[2];
    ir_value *sums = scattered_sum(b, node, masked_by_number(b, m, updates, 0));
    ir_dim dims[MDOT_MAX_RANK];
    memcpy(dims, updates->type.dim, sizeof dims);
    ir_value *ones = ir_build_expand(b, ir_build_scalar(b, 1), dims, updates->type.rank);
    ir_value *hits = scattered_sum(b, node, ones != NULL ? masked_by_number(b, m, ones, 0) : NULL);
    ir_value *is_hit = ir_build_cast(b, hits, MDOT_DTYPE_BOOL);
    ir_replace(b, node->outputs[0], ir_build_where(b, is_hit, sums, node->inputs[0]));
}

void ir_end_selection_in_scatter(ir_bounding *w, ir_node *node, const ir_mark *m, bool is_distinct)
{
    ir_builder *b = &w->b;
    static const struct {
        const char *reduction;
        double neutral;
        bool needs_floats;
    } rows[] = {{"add", -0.0, false}, {"mul", 1, false}, {"max", -INFINITY, true}, {"min", INFINITY, true}};
    const char *reduction = ir_node_string(node, "reduction", "none");
    ir_value *updates = node->inputs[2], *kept = NULL;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(reduction, rows[k].reduction) != 0) continue;
        if (rows[k].needs_floats && !ir_dtype_is_float(updates->type.dtype)) {
            ir_refuse_selection(b, node, m->of, "it scatters extremes of integers");
            return;
        }
        kept = masked_by_number(b, m, updates, rows[k].neutral);
    }
    if (kept == NULL && b->status == MDOT_OK) { /* none: elements outside the mask write the old number again */
        if (!is_distinct) {
            if (updates->type.dtype == MDOT_DTYPE_BOOL)
                ir_refuse_selection(b, node, m->of, "it scatters booleans at computed indices from elements");
            else
                replace_computed_scatter(b, node, m);
            return;
        }
        kept = masked(b, m, updates, overwritten(b, node));
    }
    if (kept != NULL) ir_node_set_input(node, 2, kept);
    b->changed = true;
}
