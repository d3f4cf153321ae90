/* attention.c — recognises attention written as MatMul, Softmax, MatMul.
 *
 * From the second product downwards: softmax over the keys; masks that are added (any broadcastable shape) or selected
 * (Where with a large negative number); scales on the scores or on either operand; the first product. What is found
 * becomes ONNX's Attention in the form of attention.h: the 3-D one where all operands are heads split off a row
 * (Reshape and Transpose), so that the kernel reads rows where they lie, else the 4-D one. The transposes and reshapes
 * made here cancel against the model's in `simplify`.
 */
#include "ir/passes/attention.h"

#include "ir/ops.h"
#include "ir/passes/match.h"
#include "ir/passes/passes.h"

/* Selecting this number or less equals adding it: exp(s - 1e9) is zero beside any unmasked score, and in a row without
 * one s - 1e9 rounds to the same f32 for every ordinary score s, as the selection would give. */
static const double least_selected = -1e9;

enum { MAX_MASKS = 3 };

typedef struct scores {
    ir_value *q, *k_transposed;
    double scale;
    int mask_count;
    struct {
        ir_value *condition; /* NULL: `added` is an additive mask */
        ir_value *added;     /* with a condition: the number that it selects instead of the score */
        bool masks_where;    /* the condition says where the number goes, not where the score stays */
    } masks[MAX_MASKS];
} scores;

/* ---- Reading the scores ----------------------------------------------------------------------------------------- */

enum { X, FACTOR };
static const ir_pattern *const times = P(Mul, P_ANY(X), P_SCALAR(FACTOR));
static const ir_pattern *const over = P(Div, P_ANY(X), P_SCALAR(FACTOR));
/* With this, PyTorch gives rows that are masked whole the weight 0, as the kernel does. */
static const ir_pattern *const safe_softmax = P(Where, P(IsNaN, P_ANY(X)), P_NUMBER(0), P_ANY(X));

/* x·c, c·x and x/c → x; *scale takes the factor. Any number of them. */
static ir_value *without_scale(ir_value *value, double *scale)
{
    for (ir_match m;; value = m.slot[X]) {
        bool multiplied = ir_match_value(times, value, &m);
        if (!multiplied && !ir_match_value(over, value, &m)) return value;
        if (!ir_type_equal(&value->type, &m.slot[X]->type)) return value;
        double factor = ir_match_scalar(&m, FACTOR);
        *scale = multiplied ? *scale * factor : *scale / factor;
    }
}

static bool read_scores(ir_value *value, scores *s);

/* A mask is outside of the scale: once a factor was seen on the way down, no mask may follow. */
static bool add_mask(scores *s, ir_value *condition, ir_value *added, bool masks_where)
{
    if (s->mask_count == MAX_MASKS || s->scale != 1) return false;
    s->masks[s->mask_count].condition = condition;
    s->masks[s->mask_count].added = added;
    s->masks[s->mask_count++].masks_where = masks_where;
    return true;
}

static bool read_sum(ir_node *node, scores *s)
{
    for (int side = 0; side < 2; side++) {
        scores tried = *s;
        ir_value *inner = node->inputs[side];
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        if (add_mask(&tried, NULL, node->inputs[1 - side], false) && read_scores(inner, &tried)) {
            *s = tried;
            return true;
        }
    }
    return false;
}

static bool read_selection(ir_node *node, scores *s)
{
    for (int side = 1; side <= 2; side++) {
        ir_value *inner = node->inputs[side], *other = node->inputs[3 - side];
        double number;
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        if (!ir_value_scalar(other, &number) || number > least_selected) continue;
        return add_mask(s, node->inputs[0], other, side == 2) && read_scores(inner, s);
    }
    return false;
}

static bool read_scores(ir_value *value, scores *s)
{
    if (value->use_count != 1 || !value->def) return false;
    ir_node *node = value->def;
    switch (ir_node_opcode(node)) {
    case IR_OP_MatMul:
        s->q = without_scale(node->inputs[0], &s->scale);
        s->k_transposed = without_scale(node->inputs[1], &s->scale);
        return true;
    case IR_OP_Mul:
    case IR_OP_Div: {
        double factor = 1;
        ir_value *inner = without_scale(value, &factor);
        s->scale *= factor;
        return inner != value && read_scores(inner, s);
    }
    case IR_OP_Add:
        return read_sum(node, s);
    case IR_OP_Where:
        return read_selection(node, s);
    default:
        return false;
    }
}

/* ---- Operands --------------------------------------------------------------------------------------------------- */

static const int64_t swap_heads[] = {0, 2, 1, 3}, heads_and_last[] = {0, 2, 3, 1};

static bool is_transpose(const ir_value *value, const int64_t *perm)
{
    const ir_node *node = value->def;
    const ir_attr *attr = node && node->op == &ir_ops[IR_OP_Transpose] ? ir_node_attr(node, "perm") : NULL;
    if (!attr || attr->count != 4) return false;
    for (int i = 0; i < 4; i++) {
        if (attr->ints[i] != perm[i]) return false;
    }
    return true;
}

/* Whether [B, H, rows, D] is a view of rows [B, rows, H · D]: transposed out of it, or with nothing to transpose. */
static bool is_split_off_rows(const ir_value *heads, const int64_t *perm)
{
    return is_transpose(heads, perm) || ir_dim_is(heads->type.dim[1], 1);
}

/* ---- Rewriting -------------------------------------------------------------------------------------------------- */

/* The masks as one additive one; NULL: there is none, or building failed. */
static ir_value *additive_mask(ir_builder *b, const scores *s, ir_dim keys, bool has_heads)
{
    ir_value *sum = NULL;
    for (int i = 0; i < s->mask_count; i++) {
        ir_value *added = s->masks[i].added, *condition = s->masks[i].condition;
        if (condition) {
            ir_value *zero = b_scalar(b, 0);
            added = s->masks[i].masks_where ? b_where(b, condition, added, zero) : b_where(b, condition, zero, added);
        }
        sum = sum ? b_add(b, sum, added) : added;
    }
    return sum ? b_attention_mask(b, sum, keys, has_heads) : NULL;
}

/* Equal batches and, in four dimensions, heads; channels are numbers. */
static bool operands_fit(const ir_type *q, const ir_type *k_transposed, const ir_type *v)
{
    int rank = q->rank;
    if (rank < 2 || rank > 4 || k_transposed->rank != rank || v->rank != rank) return false;
    for (int i = 0; i < rank - 2; i++) {
        if (!ir_dim_equal(q->dim[i], k_transposed->dim[i]) || !ir_dim_equal(q->dim[i], v->dim[i])) return false;
    }
    if (rank == 4 && !ir_dim_is_number(q->dim[1])) return false;
    return ir_dim_is_number(q->dim[rank - 1]) && ir_dim_is_number(v->dim[rank - 1]);
}

static ir_value *in_batch_of_one(ir_builder *b, ir_value *matrix)
{
    return b_reshape(b, matrix, (ir_dim[]){ir_dim_number(1), matrix->type.dim[0], matrix->type.dim[1]}, 3);
}

static ir_value *fused(ir_builder *b, const scores *s, ir_value *v)
{
    bool has_heads = s->q->type.rank == 4;
    ir_dim keys = s->k_transposed->type.dim[s->k_transposed->type.rank - 1];
    int64_t heads = has_heads ? s->q->type.dim[1].offset : 1;
    ir_attention_spec spec = {.q = s->q, .v = v, .heads = heads, .kv_heads = heads, .scale = s->scale};
    spec.mask = additive_mask(b, s, keys, has_heads);
    if (s->mask_count && !spec.mask) return NULL;
    spec.k = b_swap_last(b, s->k_transposed);
    bool rows = has_heads && is_split_off_rows(s->q, swap_heads) &&
                is_split_off_rows(s->k_transposed, heads_and_last) && is_split_off_rows(v, swap_heads);
    if (!rows) return b_attention(b, &spec);
    spec.q = b_join_heads(b, spec.q);
    spec.k = b_join_heads(b, spec.k);
    spec.v = b_join_heads(b, spec.v);
    return b_split_heads(b, b_attention(b, &spec), heads);
}

/* Softmax over the last axis whose result nobody else reads. */
static const ir_node *softmax_of(ir_value *probabilities)
{
    ir_match m;
    bool guarded = ir_match_value(safe_softmax, probabilities, &m);
    if (probabilities->use_count != 1) return NULL;
    if (guarded) probabilities = m.slot[X];
    const ir_node *node = probabilities->def;
    if (!node || node->op != &ir_ops[IR_OP_Softmax] || probabilities->use_count != (guarded ? 2 : 1)) return NULL;
    int64_t axis = ir_node_int(node, "axis", -1);
    return axis == -1 || axis == probabilities->type.rank - 1 ? node : NULL;
}

static void recognise(ir_builder *b, ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_MatMul] || b->dtype != MDOT_DTYPE_F32) return;
    const ir_node *softmax = softmax_of(node->inputs[0]);
    scores s = {.scale = 1};
    if (!softmax || !read_scores(softmax->inputs[0], &s)) return;
    ir_value *v = node->inputs[1], *result = node->outputs[0];
    if (!operands_fit(&s.q->type, &s.k_transposed->type, &v->type)) return;
    if (v->type.rank == 2) {
        s.q = in_batch_of_one(b, s.q);
        s.k_transposed = in_batch_of_one(b, s.k_transposed);
        v = in_batch_of_one(b, v);
        if (!s.q || !s.k_transposed || !v) return;
    }
    b_replace(b, result, b_reshape(b, fused(b, &s, v), result->type.dim, result->type.rank));
}

mdot_status pass_attention(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    return ir_rewrite(graph, recognise, out_changed, err);
}
