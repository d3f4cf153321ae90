/* hoist_from_loops.c — moves linears of the elements that a loop reads in front of the loop:
 *
 *     for each step t: x[t] W + b      becomes      y = x W + b, and for each step t: y[t]
 *
 * The steps of a loop run one after the other, and a matmul of one row is limited by reading the weights. In front of
 * the loop, one matmul computes all rows. LSTM, GRU and RNN get the same form from expand_recurrent.c.
 */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

/* The one-element Gather multiplied by a linear, behind reshapes by one-element dimensions. NULL: the input is another
 * value. */
static ir_node *gather_of(const ir_node *linear)
{
    const ir_value *x = linear->inputs[0];
    while (ir_is_reshaped(x) && ir_only_units_differ(&x->type, &x->def->inputs[0]->type)) x = x->def->inputs[0];
    return x->def != NULL && x->def->op == &ir_ops[IR_OP_Gather] ? x->def : NULL;
}

static bool is_outside(const bool *inside, const ir_value *v)
{
    return v == NULL || v->constant != NULL || !inside[v->id];
}

/* Does the linear of the loop read each row once, from a tensor outside it? Its own rows are those of the tensor, and
 * the columns of both are the last dimension. */
static bool is_hoisted(const bool *inside, const ir_node *linear, ir_dim steps)
{
    const ir_node *gather = linear->op == &ir_ops[IR_OP_Linear] ? gather_of(linear) : NULL;
    if (gather == NULL || !ir_loop_holds(inside, linear) || gather->inputs[1]->type.rank != 0) return false;
    for (int i = 1; i < linear->input_count; i++)
        if (!is_outside(inside, linear->inputs[i])) return false;
    const ir_value *x = gather->inputs[0];
    int axis = ir_node_axis(gather, 0, x->type.rank), last_index = x->type.rank - 1;
    return is_outside(inside, x) && !is_outside(inside, gather->inputs[1]) && axis < last_index &&
           ir_dim_equal(x->type.dim[axis], steps) &&
           ir_dim_equal(x->type.dim[last_index], linear->inputs[0]->type.dim[linear->inputs[0]->type.rank - 1]);
}

static void hoist(ir_builder *b, ir_node *linear)
{
    const ir_node *gather = gather_of(linear);
    ir_value *operands[3] = {gather->inputs[0], linear->inputs[1], ir_node_input(linear, 2)};
    ir_value *whole = ir_build_with(b, IR_OP_Linear, operands, 3, IR_NO_ATTRS);
    int axis = ir_node_axis(gather, 0, gather->inputs[0]->type.rank);
    ir_value *row = ir_build_with(b, IR_OP_Gather, IR_VALUES(whole, gather->inputs[1]), IR_ATTRS(IR_INT("axis", axis)));
    const ir_type *type = &linear->outputs[0]->type;
    ir_replace(b, linear->outputs[0], ir_build_reshape(b, row, type->dim, type->rank));
}

static mdot_status hoist_from(ir_graph *graph, const ir_node *begin, const bool *inside, bool *out_changed,
                              mdot_error *err)
{
    ir_dim steps[IR_MAX_KNOWN];
    int count;
    const ir_node *end = ir_loop_end_of(begin);
    if (end == NULL || !ir_value_known(end->inputs[IR_LOOP_STEPS], steps, &count)) return MDOT_OK;
    for (ir_node *node = begin->next; node != NULL && node != end; node = node->next) {
        if (node->op == NULL || !is_hoisted(inside, node, steps[0])) continue;
        ir_builder b = {.graph = graph,
                        .at = node,
                        .name = node->name,
                        .dtype = node->outputs[0]->type.dtype,
                        .first_new = graph->value_count,
                        .err = err};
        hoist(&b, node);
        if (b.status != MDOT_OK) return b.status;
        *out_changed = *out_changed || b.changed;
    }
    return MDOT_OK;
}

mdot_status ir_pass_hoist_from_loops(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    *out_changed = false;
    for (ir_node *node = graph->first; node != NULL && status == MDOT_OK; node = node->next) {
        if (!ir_is_loop_begin(node)) continue;
        bool *inside = IR_NEW_ARRAY(graph->arena, bool, graph->value_count);
        if (inside == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
        ir_loop_mark(graph, node, inside);
        status = hoist_from(graph, node, inside, out_changed, err);
    }
    ir_graph_remove_dead(graph);
    return status;
}
