/* recognise_attention.c — recognises attention written as MatMul, Softmax, MatMul (read by attention_scores.c) and
 * makes ONNX's Attention of it, in the form of recognise_attention.h.
 *
 * All operands are first seen as [batch, heads, rows, channels], whatever the model's products see. Where they are
 * heads split off rows (Reshape and Transpose), the 3-D form reads the rows where they lie; else the 4-D form reads
 * heads. The layout changes made here cancel against the model's, at once or in `simplify`.
 */
#include "ir/passes/recognise_attention.h"

#include "ir/ops.h"
#include "ir/ops/operands.h"
#include "ir/passes/attention_scores.h"
#include "ir/passes/pass.h"

typedef struct extents {
    ir_dim batch;
    int64_t heads;
} extents;

/* ---- Batch and heads -------------------------------------------------------------------------------------------- */

/* Batch and heads of products in three dimensions, batch · heads first: as the reshapes around the softmax tell, or
 * those that made the operand; else there is one head. */
static extents extents_of_joined(const ir_scores *s)
{
    const ir_type *q = &s->q->type, *split = s->split;
    for (const ir_value *value = s->q;
         split == NULL && value->def != NULL && value->def->op == &ir_ops[IR_OP_Reshape];) {
        value = value->def->inputs[0];
        const ir_type *type = &value->type;
        bool rows_stay =
            type->rank == 4 && ir_dim_equal(type->dim[2], q->dim[1]) && ir_dim_equal(type->dim[3], q->dim[2]);
        if (rows_stay) split = type;
    }
    if (split != NULL && ir_dim_is_number(split->dim[1])) return (extents){split->dim[0], split->dim[1].offset};
    return (extents){q->dim[0], 1};
}

/* Whatever stands before the heads (windows, groups of windows) is batch. False: a symbol that no product holds. */
static bool extents_of_split(const ir_type *q, extents *out)
{
    ir_dim batch = q->dim[0];
    for (int i = 1; i < q->rank - 3; i++) {
        if (!ir_dim_mul(batch, q->dim[i], &batch)) return false;
    }
    *out = (extents){batch, q->dim[q->rank - 3].offset};
    return ir_dim_is_number(q->dim[q->rank - 3]);
}

/* Masks broadcast from the last dimension: with more than one dimension before the heads, those that have none. */
static bool masks_fit(const ir_scores *s, int rank)
{
    for (int i = 0; i < s->mask_count && rank > 4; i++) {
        const ir_mask *mask = &s->masks[i];
        if (mask->added->type.rank > 3 || (mask->condition != NULL && mask->condition->type.rank > 3)) return false;
    }
    return true;
}

/* False: the operands' shapes are beyond the kernel. */
static bool read_extents(const ir_scores *s, extents *out)
{
    const ir_type *q = &s->q->type, *k = &s->k_transposed->type, *v = &s->v->type;
    int rank = q->rank;
    if (rank < 2 || rank > 5 || !masks_fit(s, rank) || k->rank != rank || v->rank != rank) return false;
    if (!ir_dim_is_number(q->dim[rank - 1]) || !ir_dim_is_number(v->dim[rank - 1])) return false;
    for (int i = 0; i < rank - 2; i++) {
        if (!ir_dim_equal(q->dim[i], k->dim[i]) || !ir_dim_equal(q->dim[i], v->dim[i])) return false;
    }
    if (rank == 2) *out = (extents){ir_dim_number(1), 1};
    if (rank == 3) *out = extents_of_joined(s);
    return rank < 4 || extents_of_split(q, out);
}

/* ---- Operands --------------------------------------------------------------------------------------------------- */

static ir_value *as_heads(ir_builder *b, ir_value *value, extents e)
{
    if (value == NULL) return NULL;
    const ir_type *type = &value->type;
    ir_dim dims[] = {e.batch, ir_dim_number(e.heads), type->dim[type->rank - 2], type->dim[type->rank - 1]};
    return ir_build_reshape(b, value, dims, 4);
}

/* Keys or values that were repeated for each query head of a group (Unsqueeze, Expand, Reshape) → what was repeated;
 * else the value itself. */
static ir_value *ungrouped(ir_value *heads)
{
    const ir_node *join = heads->def;
    const ir_node *expand = join != NULL && join->op == &ir_ops[IR_OP_Reshape] ? join->inputs[0]->def : NULL;
    const ir_node *unsqueeze = expand != NULL && expand->op == &ir_ops[IR_OP_Expand] ? expand->inputs[0]->def : NULL;
    if (unsqueeze == NULL || !ir_is_reshaped(expand->inputs[0])) return heads;
    const ir_type *each = &join->inputs[0]->type, *one = &expand->inputs[0]->type, *all = &heads->type;
    ir_value *source = unsqueeze->inputs[0];
    if (each->rank != 5 || one->rank != 5 || source->type.rank != 4 || !ir_dim_is(one->dim[2], 1)) return heads;
    for (int i = 0; i < 4; i++) {
        static const int axis_of_five[] = {0, 1, 3, 4};
        ir_dim want = source->type.dim[i];
        if (!ir_dim_equal(one->dim[axis_of_five[i]], want) || !ir_dim_equal(each->dim[axis_of_five[i]], want))
            return heads;
        if (i != 1 && !ir_dim_equal(all->dim[i], want)) return heads;
    }
    return ir_dim_is_number(source->type.dim[1]) ? source : heads;
}

/* Whether [B, H, rows, D] is a view of [B, rows, H · D]: transposed out of it, or with nothing to transpose. */
static bool is_split_off_rows(const ir_value *heads)
{
    static const int64_t swapped[] = {0, 2, 1, 3};
    const ir_node *node = heads->def;
    const ir_attr *perm = node != NULL && node->op == &ir_ops[IR_OP_Transpose] ? ir_node_attr(node, "perm") : NULL;
    bool is_swap = perm != NULL && perm->count == 4;
    for (int i = 0; is_swap && i < 4; i++) is_swap = perm->ints[i] == swapped[i];
    return is_swap || ir_dim_is(heads->type.dim[1], 1);
}

/* ---- Masks ------------------------------------------------------------------------------------------------------ */

/* A mask over scores [batch · heads, N, M], against [batch, heads, N, M]. */
static ir_value *as_heads_mask(ir_builder *b, ir_value *mask, extents e)
{
    if (mask == NULL || mask->type.rank != 3 || ir_dim_is(mask->type.dim[0], 1)) return mask;
    ir_dim dims[] = {e.batch, ir_dim_number(e.heads), mask->type.dim[1], mask->type.dim[2]};
    return ir_build_reshape(b, mask, dims, 4);
}

/* The masks as one additive one; NULL: there is none, or building failed. */
static ir_value *additive_mask(ir_builder *b, const ir_scores *s, extents e)
{
    ir_value *sum = NULL;
    for (int i = 0; i < s->mask_count; i++) {
        const ir_mask *mask = &s->masks[i];
        ir_value *added = mask->added, *zero = ir_build_scalar(b, 0);
        if (mask->condition != NULL && mask->masks_where) added = ir_build_where(b, mask->condition, added, zero);
        if (mask->condition != NULL && !mask->masks_where) added = ir_build_where(b, mask->condition, zero, added);
        if (mask->joined) added = as_heads_mask(b, added, e);
        sum = i ? ir_build_add(b, sum, added) : added;
    }
    return sum != NULL ? ir_build_attention_mask(b, sum, s->k_transposed->type.dim[s->k_transposed->type.rank - 1])
                       : NULL;
}

/* ---- Rewriting -------------------------------------------------------------------------------------------------- */

static ir_value *fused(ir_builder *b, const ir_scores *s, extents e)
{
    ir_attention_spec spec = {.heads = e.heads, .scale = s->scale};
    spec.mask = additive_mask(b, s, e);
    spec.q = as_heads(b, s->q, e);
    spec.k = as_heads(b, ir_build_swap_last(b, s->k_transposed), e);
    spec.v = as_heads(b, s->v, e);
    if (spec.q == NULL || spec.k == NULL || spec.v == NULL || (s->mask_count && spec.mask == NULL)) return NULL;
    ir_value *k = ungrouped(spec.k), *v = ungrouped(spec.v);
    if (ir_dim_equal(k->type.dim[1], v->type.dim[1])) {
        spec.k = k;
        spec.v = v;
    }
    spec.kv_heads = spec.k->type.dim[1].offset;
    bool rows = is_split_off_rows(spec.q) && is_split_off_rows(spec.k) && is_split_off_rows(spec.v);
    if (rows) {
        spec.q = ir_build_join_heads(b, spec.q);
        spec.k = ir_build_join_heads(b, spec.k);
        spec.v = ir_build_join_heads(b, spec.v);
    }
    if (spec.q == NULL || spec.k == NULL) return NULL;
    spec.q = ir_without_scale(spec.q, &spec.scale); /* scales from before the heads were split */
    spec.k = ir_without_scale(spec.k, &spec.scale);
    ir_value *result = ir_build_attention(b, &spec);
    return rows ? ir_build_split_heads(b, result, e.heads) : result;
}

static void recognise(ir_builder *b, ir_node *node)
{
    ir_scores s;
    extents e;
    if (node->op != &ir_ops[IR_OP_MatMul] || b->dtype != MDOT_DTYPE_F32) return;
    if (!ir_read_attention(node, &s) || !read_extents(&s, &e)) return;
    ir_value *result = node->outputs[0];
    ir_replace(b, result, ir_build_reshape(b, fused(b, &s, e), result->type.dim, result->type.rank));
}

mdot_status ir_pass_attention(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    return ir_rewrite(graph, recognise, out_changed, err);
}
