/* recognise_attention.c — recognises the attention pattern MatMul, Softmax, MatMul (read by attention_scores.c) and
 * replaces it by ONNX's Attention in the form of attention_patterns.h.
 *
 * All operands are first viewed as [batch, heads, rows, channels], regardless of the shapes in the model's matmuls.
 * If they are heads split from rows (Reshape and Transpose), the 3-D form reads the rows in place; otherwise the 4-D
 * form reads heads. The layout changes made here cancel against the model's, at once or in `simplify`.
 */
#include "ir/passes/attention_patterns.h"

#include "ir/ops.h"
#include "ir/ops/families.h"
#include "ir/passes.h"
#include "ir/passes/match.h"

#include <math.h>

typedef struct extents {
    ir_dim batch;
    int64_t heads;
} extents;

/* Batch and heads of matmuls in three dimensions, with batch · heads first. They are derived from the reshapes around
 * the softmax, or from those that produced the operand. Otherwise there is one head. */
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

/* All dimensions before the heads (windows, groups of windows) count as batch. False: the product with a symbol is
 * not affine. */
static bool extents_of_split(const ir_type *q, extents *out)
{
    ir_dim batch = q->dim[0];
    for (int i = 1; i < q->rank - 3; i++)
        if (!ir_dim_mul(batch, q->dim[i], &batch)) return false;
    *out = (extents){batch, q->dim[q->rank - 3].offset};
    return ir_dim_is_number(q->dim[q->rank - 3]);
}

/* Masks broadcast from the last dimension. If there are several dimensions before the heads, masks must lack those. */
static bool masks_fit(const ir_scores *s, int rank)
{
    for (int i = 0; i < s->mask_count && rank > 4; i++) {
        const ir_mask *mask = &s->masks[i];
        const ir_value *value = mask->condition != NULL ? mask->condition : mask->added;
        if (value->type.rank > 3) return false;
    }
    return true;
}

/* False: the kernel does not support the operands' shapes. */
static bool read_extents(const ir_scores *s, extents *out)
{
    const ir_type *q = &s->q->type, *k = &s->k_transposed->type, *v = &s->v->type;
    int rank = q->rank;
    if (rank < 2 || rank > 5 || !masks_fit(s, rank) || k->rank != rank || v->rank != rank) return false;
    if (!ir_dim_is_number(q->dim[rank - 1]) || !ir_dim_is_number(v->dim[rank - 1])) return false;
    for (int i = 0; i < rank - 2; i++)
        if (!ir_dim_equal(q->dim[i], k->dim[i]) || !ir_dim_equal(q->dim[i], v->dim[i])) return false;
    if (rank == 2) *out = (extents){ir_dim_number(1), 1};
    if (rank == 3) *out = extents_of_joined(s);
    return rank < 4 || extents_of_split(q, out);
}

static ir_value *as_heads(ir_builder *b, ir_value *value, extents e)
{
    if (value == NULL) return NULL;
    const ir_type *type = &value->type;
    ir_dim dims[] = {e.batch, ir_dim_number(e.heads), type->dim[type->rank - 2], type->dim[type->rank - 1]};
    return ir_build_reshape(b, value, dims, 4);
}

/* Keys or values before they were repeated for each query head of a group (Unsqueeze, Expand or Tile, Reshape).
 * Otherwise the value itself. */
static ir_value *ungrouped(ir_builder *b, ir_value *heads)
{
    const ir_node *join = heads->def;
    const ir_node *expand = join != NULL && join->op == &ir_ops[IR_OP_Reshape] ? join->inputs[0]->def : NULL;
    bool repeats = expand != NULL && (expand->op == &ir_ops[IR_OP_Expand] || expand->op == &ir_ops[IR_OP_Tile]);
    if (!repeats || heads->type.rank != 4) return heads;
    const ir_type *part = &join->inputs[0]->type, *one = &expand->inputs[0]->type, *whole = &heads->type;
    if (part->rank != 5 || one->rank != 5 || !ir_dim_is(one->dim[2], 1)) return heads;
    ir_dim source[4] = {one->dim[0], one->dim[1], one->dim[3], one->dim[4]};
    for (int i = 0; i < 4; i++) {
        static const int axis_of_five[] = {0, 1, 3, 4};
        if (!ir_dim_equal(part->dim[axis_of_five[i]], source[i])) return heads;
        if (i != 1 && !ir_dim_equal(whole->dim[i], source[i])) return heads;
    }
    return ir_dim_is_number(source[1]) ? ir_build_reshape(b, expand->inputs[0], source, 4) : heads;
}

/* Is the value a part of every head's channels? Then heads are not adjacent in memory. */
static bool is_cut_in_channels(const ir_value *value)
{
    const ir_node *node = value->def;
    if (node == NULL || (node->op != &ir_ops[IR_OP_Slice] && node->op != &ir_ops[IR_OP_Split])) return false;
    const ir_type *whole = &node->inputs[0]->type;
    return !ir_dim_equal(whole->dim[whole->rank - 1], value->type.dim[value->type.rank - 1]);
}

/* Is [B, H, rows, D] a view of [B, rows, H · D], by a transpose or because a transpose would change nothing? */
static bool is_split_off_rows(const ir_value *heads)
{
    static const int in_rows[] = {0, 2, 1, 3};
    const ir_node *node = heads->def;
    const ir_dim *dim = heads->type.dim;
    if (ir_dim_is(dim[1], 1)) return true;
    if (node == NULL || node->op != &ir_ops[IR_OP_Transpose] || is_cut_in_channels(node->inputs[0])) return false;
    int64_t perm[MDOT_MAX_RANK], last_index = -1;
    ir_node_perm(node, 4, perm);
    for (int i = 0; i < 4; i++) { /* dimensions of extent one may be anywhere */
        if (ir_dim_is(dim[in_rows[i]], 1)) continue;
        if (perm[in_rows[i]] < last_index) return false;
        last_index = perm[in_rows[i]];
    }
    return true;
}

/* Reshapes a mask over scores [batch · heads, N, M] to match [batch, heads, N, M]. */
static ir_value *as_heads_mask(ir_builder *b, ir_value *mask, extents e)
{
    if (mask == NULL || mask->type.rank != 3 || ir_dim_is(mask->type.dim[0], 1)) return mask;
    ir_dim dims[] = {e.batch, ir_dim_number(e.heads), mask->type.dim[1], mask->type.dim[2]};
    return ir_build_reshape(b, mask, dims, 4);
}

/* Sums up to this size round like ordinary scores, in any order. */
static const double small = 128;

/* The kernel's masks, from the innermost outwards. They are applied in the model's order, because f32 rounds
 * (s + a) - 1e9 and s + (a - 1e9) differently, which shows where a whole row is masked. Small ones are added to each
 * other before. A selected number joins a mask whose added elements are all greater, because the kernel replaces the
 * score by elements up to it. False: building failed. */
static bool build_masks(ir_builder *b, const ir_scores *s, extents e, ir_attention_spec *spec)
{
    ir_bounds sum = {0, 0};
    for (int i = s->mask_count - 1; i >= 0; i--) {
        const ir_mask *mask = &s->masks[i];
        ir_value *value = mask->condition != NULL ? mask->condition : mask->added, *before = NULL;
        if (mask->joined) value = as_heads_mask(b, value, e);
        int last = spec->mask_count - 1;
        ir_bounds both = {sum.least + mask->bounds.least, sum.greatest + mask->bounds.greatest};
        bool joins = mask->condition != NULL
                         ? mask->number < sum.least
                         : spec->replaces[last < 0 ? 0 : last] == 0 && both.least >= -small && both.greatest <= small;
        if (last >= 0 && joins)
            before = spec->mask[last];
        else
            last = spec->mask_count++;
        sum = before != NULL ? both : mask->bounds;
        if (mask->condition != NULL) {
            ir_value *number = ir_build_scalar(b, mask->number),
                     *kept = before != NULL ? before : ir_build_scalar(b, 0);
            value = mask->masks_where ? ir_build_where(b, value, number, kept) : ir_build_where(b, value, kept, number);
            spec->replaces[last] = spec->replaces[last] == 0 ? mask->number : fmax(spec->replaces[last], mask->number);
        } else {
            if (mask->factor != 1) value = ir_build_mul(b, value, ir_build_scalar(b, mask->factor));
            if (mask->subtracted) value = ir_build_op1(b, IR_OP_Neg, value);
            if (before != NULL) value = ir_build_add(b, before, value);
        }
        spec->mask[last] = value;
    }
    for (int i = 0; i < spec->mask_count; i++) {
        spec->mask[i] =
            ir_build_attention_mask(b, spec->mask[i], s->k_transposed->type.dim[s->k_transposed->type.rank - 1]);
        if (spec->mask[i] == NULL) return false;
    }
    return true;
}

static ir_value *fused(ir_builder *b, const ir_scores *s, extents e)
{
    ir_attention_spec spec = {.heads = e.heads, .scale = s->scale, .softcap = s->softcap};
    if (!build_masks(b, s, e, &spec)) return NULL;
    spec.q = as_heads(b, s->q, e);
    spec.k = as_heads(b, ir_build_swap_last(b, s->k_transposed), e);
    spec.v = as_heads(b, s->v, e);
    if (spec.q != NULL) spec.q = ir_without_scale(spec.q, &spec.scale);
    if (spec.k != NULL) spec.k = ir_without_scale(spec.k, &spec.scale); /* scales below the transpose of the keys */
    if (spec.q == NULL || spec.k == NULL || spec.v == NULL) return NULL;
    ir_value *k = ungrouped(b, spec.k), *v = ungrouped(b, spec.v);
    if (k == NULL || v == NULL) return NULL;
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

/* A factor or zeroing of weights that depends on the key alone or the query alone moves to the values or to the
 * result: Σ p m v. Then the weights themselves are those of attention. */
static bool moves_to(const ir_value *mask, const ir_type *weights, bool *out_to_values)
{
    int rank = mask->type.rank;
    if (rank > weights->rank) return false;
    bool by_query = rank >= 2 && !ir_dim_is(mask->type.dim[rank - 2], 1);
    bool by_key = rank >= 1 && !ir_dim_is(mask->type.dim[rank - 1], 1);
    *out_to_values = !by_query;
    return !(by_query && by_key);
}

/* Reshapes the mask to run along the values' rows: [M] or […, 1, M] → […, M, 1]. */
static ir_value *along_rows(ir_builder *b, ir_value *mask)
{
    if (mask->type.rank == 0) return mask;
    if (mask->type.rank == 1) return ir_build_reshape(b, mask, (ir_dim[]){mask->type.dim[0], ir_dim_number(1)}, 2);
    return ir_build_swap_last(b, mask);
}

static ir_value *moved(ir_builder *b, const ir_node *weighing, int inner, ir_value *value, bool to_values)
{
    ir_value *input[3] = {NULL};
    for (int i = 0; i < weighing->input_count; i++)
        input[i] = i == inner ? value : to_values ? along_rows(b, weighing->inputs[i]) : weighing->inputs[i];
    if (ir_node_opcode(weighing) == IR_OP_Where) return ir_build_where(b, input[0], input[1], input[2]);
    return ir_build_mul(b, input[0], input[1]);
}

static void move_weighing(ir_builder *b, ir_node *node)
{
    ir_scores known;
    if (node->op != &ir_ops[IR_OP_MatMul] || b->dtype != MDOT_DTYPE_F32 || ir_read_attention(node, &known)) return;
    ir_value *weights = node->inputs[0];
    const ir_node *weighing = weights->def;
    bool selects = weighing != NULL && weighing->op == &ir_ops[IR_OP_Where];
    if (weights->use_count != 1 || weighing == NULL || (!selects && weighing->op != &ir_ops[IR_OP_Mul])) return;
    for (int inner = selects; inner < weighing->input_count; inner++) {
        ir_value *probabilities = weighing->inputs[inner];
        const ir_value *mask = selects ? weighing->inputs[0] : weighing->inputs[1 - inner];
        bool to_values;
        if (!ir_type_equal(&probabilities->type, &weights->type) || ir_softmax_behind(probabilities) == NULL) continue;
        if (selects && !ir_value_is_filled(weighing->inputs[3 - inner], 0, 0)) continue;
        if (!moves_to(mask, &weights->type, &to_values)) continue;
        ir_value *values = node->inputs[1];
        if (to_values) values = moved(b, weighing, inner, values, true);
        if (values == NULL || values->type.rank != node->inputs[1]->type.rank) return;
        ir_value *matmul = ir_build_mat_mul(b, probabilities, values);
        if (!to_values && matmul != NULL) matmul = moved(b, weighing, inner, matmul, false);
        ir_replace(b, node->outputs[0], matmul);
        return;
    }
}

/* Up to this many channels of a value, a second matmul with the values costs less than weights in memory. At 32
 * channels of a key and 128 keys, two attentions take .62 of the time for 32 channels of a value, .79 for 64, and 1.06
 * for 128. */
enum { MOST_VALUE_CHANNELS = 96 };

/* The softmax of a term, and in *out_factor what it is multiplied by, which may depend on all but the key; NULL: 1.
 * NULL: the term has another form, or attention does not support its scores. */
static ir_value *softmax_of_term(ir_value *term, ir_value *values, ir_value **out_factor)
{
    const ir_node *node = term->def;
    bool is_product = node != NULL && node->op == &ir_ops[IR_OP_Mul] && term->use_count == 1;
    *out_factor = NULL;
    for (int side = 0; side < (is_product ? 2 : 1); side++) {
        ir_value *softmax = is_product ? node->inputs[side] : term, *operands[] = {softmax, values};
        ir_value *factor = is_product ? node->inputs[1 - side] : NULL;
        const ir_node matmul = {.op = &ir_ops[IR_OP_MatMul], .inputs = operands, .input_count = 2};
        ir_scores s;
        extents e;
        if (!ir_type_equal(&softmax->type, &term->type) || !ir_read_attention(&matmul, &s)) continue;
        if (!read_extents(&s, &e)) continue;
        if (factor != NULL && factor->type.rank > 0 && !ir_dim_is(factor->type.dim[factor->type.rank - 1], 1)) continue;
        *out_factor = factor;
        return softmax;
    }
    return NULL;
}

/* (p + c q) v and (p - c q) v of two softmaxes become p v + c (q v) and p v - c (q v), which are two attentions. */
static void distribute(ir_builder *b, ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_MatMul] || b->dtype != MDOT_DTYPE_F32) return;
    ir_value *weights = node->inputs[0], *values = node->inputs[1], *softmax[2], *factor[2], *product[2];
    const ir_node *sum = weights->def;
    if (sum == NULL || weights->use_count != 1 || values->type.rank < 2) return;
    if (sum->op != &ir_ops[IR_OP_Add] && sum->op != &ir_ops[IR_OP_Sub]) return;
    ir_dim channels = values->type.dim[values->type.rank - 1];
    if (!ir_dim_is_number(channels) || channels.offset > MOST_VALUE_CHANNELS) return;
    for (int i = 0; i < 2; i++) {
        if (!ir_type_equal(&sum->inputs[i]->type, &weights->type)) return;
        softmax[i] = softmax_of_term(sum->inputs[i], values, &factor[i]);
        if (softmax[i] == NULL) return;
    }
    for (int i = 0; i < 2; i++) {
        product[i] = ir_build_mat_mul(b, softmax[i], values);
        if (factor[i] != NULL) product[i] = ir_build_mul(b, product[i], factor[i]);
        if (product[i] == NULL) return;
    }
    ir_replace(b, node->outputs[0], ir_build_op2(b, ir_node_opcode(sum), product[0], product[1]));
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

mdot_status ir_pass_recognise_attention(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    bool distributed = false, moved_any = false, recognised = false;
    mdot_status status = ir_rewrite(graph, distribute, &distributed, err);
    if (status == MDOT_OK) status = ir_rewrite(graph, move_weighing, &moved_any, err);
    if (status == MDOT_OK) status = ir_rewrite(graph, recognise, &recognised, err);
    if (status == MDOT_OK) *out_changed = distributed || moved_any || recognised;
    return status;
}
