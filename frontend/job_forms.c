/* job_forms.c — one form for what exporters and models write in several, before anything is recognised.
 *
 *   - A pointwise operator broadcasts by itself: an Expand in front of it (PyTorch's expand_as) is no operator.
 *   - Picking one index of an axis (PyTorch's x[i]) is a Slice, like picking a range; Gather is left to tables.
 *   - A constant that is added between two reshapes that cancel (Swin's masks, for each window) is added without them.
 */
#include "frontend/job.h"

#include "ir/passes/builder.h"

/* ---- Broadcasts ------------------------------------------------------------------------------------------------- */

/* Another operand has the result's type already. */
static bool is_full_without(const ir_node *node, int operand)
{
    for (int i = 0; i < node->input_count; i++) {
        if (i == operand || !node->inputs[i]) continue;
        const ir_type *type = &node->inputs[i]->type, *result = &node->outputs[0]->type;
        bool same = type->rank == result->rank;
        for (int k = 0; same && k < type->rank; k++) same = ir_dim_equal(type->dim[k], result->dim[k]);
        if (same) return true;
    }
    return false;
}

static void pointwise(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (!value || !value->def || value->def->op != &ir_ops[IR_OP_Expand] || !is_full_without(node, i)) continue;
        ir_node_set_input(node, i, value->def->inputs[0]);
        b->changed = true;
    }
}

/* ---- Selections ------------------------------------------------------------------------------------------------- */

static void gather(ir_builder *b, ir_node *node)
{
    ir_value *data = node->inputs[0], *index = node->inputs[1], *result = node->outputs[0];
    int64_t number, axis = ir_node_int(node, "axis", 0);
    int count = 0;
    if (data->constant || index->type.rank != 0 || !ir_value_ints(index, &number, &count) || count != 1) return;
    if (axis < 0) axis += data->type.rank;
    if (number < 0) number += data->type.dim[axis].offset;
    ir_value *slice = b_slice(b, data, axis, number, number + 1);
    b_replace(b, result, b_reshape(b, slice, result->type.dim, result->type.rank));
}

/* ---- Sums between reshapes -------------------------------------------------------------------------------------- */

static ir_value *under_reshape(const ir_value *value)
{
    return value->def && value->def->op == &ir_ops[IR_OP_Reshape] ? value->def->inputs[0] : NULL;
}

/* `added`, which broadcasts against [A, B, …], against [A · B, …]; NULL: the types are no such pair. */
static ir_value *joined(ir_builder *b, ir_value *added, const ir_type *split, const ir_type *whole)
{
    ir_type type = added->type;
    if (split->rank != whole->rank + 1 || type.rank != split->rank) return NULL;
    for (int i = 2; i < split->rank; i++) {
        if (!ir_dim_equal(split->dim[i], whole->dim[i - 1])) return NULL;
    }
    type.dim[0] = split->dim[0];
    type.dim[1] = split->dim[1];
    ir_value *full = b_expand(b, added, type.dim, type.rank);
    type.dim[1] = whole->dim[0];
    return b_reshape(b, full, type.dim + 1, whole->rank);
}

static void reshape(ir_builder *b, ir_node *node)
{
    const ir_node *sum = node->inputs[0]->def;
    if (!sum || sum->op != &ir_ops[IR_OP_Add] || node->inputs[0]->use_count != 1) return;
    for (int i = 0; i < 2; i++) {
        ir_value *added = sum->inputs[1 - i], *x = under_reshape(sum->inputs[i]), *result = node->outputs[0];
        if (!x || !added->constant || !ir_type_equal(&x->type, &result->type)) continue;
        ir_value *whole = joined(b, added, &sum->inputs[i]->type, &result->type);
        if (whole && b_replace(b, result, b_add(b, x, whole))) return;
    }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static void rewrite(ir_builder *b, ir_node *node)
{
    if (node->op == &ir_ops[IR_OP_Gather]) gather(b, node);
    if (node->op == &ir_ops[IR_OP_Reshape]) reshape(b, node);
    if (node->op->lowering == IR_LOWER_POINTWISE) pointwise(b, node);
}

mdot_status fe_job_unify(fe_job *job)
{
    bool changed;
    return ir_rewrite(job->graph, rewrite, &changed, job->err);
}
