/* bound_nonzero_ends.c — ends a selection where the elements are combined (bound_nonzero.c): a reduction gets a
 * neutral number for each element outside the mask, and a scatter gets the number of elements inside. */
#include "ir/passes/pass_rules.h"

#include "ir/ops/families.h"

#include <math.h>

void ir_refuse_selection(ir_builder *b, const ir_node *node, const ir_selection *s, const char *reason)
{
    b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                        "%s, which NonZero at \"%s\" selects; their number depends on data, therefore only row-wise "
                        "operators, sums, extremes, means and scatters of them compile: instead of x[mask], keep the "
                        "shape and write torch.where(mask, x, 0)",
                        reason, s->name);
    b->status = ir_fail_in_file(b->graph, b->status, b->err);
}

/* The values where the mask is set along the axis, and `number` elsewhere. */
static ir_value *masked(ir_builder *b, const ir_mark *m, ir_value *x, double number)
{
    ir_dim dims[MDOT_MAX_RANK];
    for (int d = 0; d < x->type.rank; d++) dims[d] = d == m->axis ? m->of->bound : ir_dim_number(1);
    b->dtype = x->type.dtype;
    ir_value *mask = ir_build_reshape(b, m->of->mask, dims, x->type.rank);
    return ir_build_where(b, mask, x, ir_build_scalar(b, number));
}

static bool neutral_number(const ir_node *node, double *out)
{
    bool is_float = ir_dtype_is_float(node->inputs[0]->type.dtype);
    *out = 0;
    switch (ir_node_opcode(node)) {
    case IR_OP_ReduceProd: *out = 1; return true;
    case IR_OP_ReduceMax: *out = -INFINITY; return is_float;
    case IR_OP_ReduceMin: *out = INFINITY; return is_float;
    default:
        return IR_IS_ONE_OF(node, IR_OP_ReduceSum, IR_OP_ReduceMean, IR_OP_ReduceL1, IR_OP_ReduceL2,
                            IR_OP_ReduceSumSquare);
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
    ir_value *sum = ir_build_reduce(b, IR_OP_ReduceSum, masked(b, m, x, 0), axes, count);
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
        ir_value *x = masked(b, m, node->inputs[0], number);
        if (x != NULL) ir_node_set_input(node, 0, x);
        b->changed = true;
    }
}

void ir_end_selection_in_scatter(ir_bounding *w, ir_node *node, const ir_mark *m)
{
    ir_builder *b = &w->b;
    ir_value *const *in = node->inputs;
    const ir_attr attrs[] = {IR_STRING("reduction", ir_node_string(node, "reduction", "none")),
                             IR_INT("axis", m->axis)};
    ir_value *inputs[] = {in[0], in[1], in[2], m->of->count};
    ir_replace(b, node->outputs[0], ir_build_with(b, ir_node_opcode(node), inputs, 4, attrs, 2));
}
