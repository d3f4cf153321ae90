/* attention_scores.c — reads attention off the graph from its second product downwards: softmax over the keys; masks
 * that are added (any broadcastable shape) or selected (Where with a large negative number); scales on the scores or on
 * either operand; reshapes between one dimension for batch and heads and two; the first product.
 */
#include "ir/passes/attention_scores.h"

#include "ir/ops.h"
#include "ir/passes/match.h"

/* Selecting this number or less equals adding it: exp(s - 1e9) is zero beside any unmasked score, and in a row without
 * one s - 1e9 rounds to the same f32 for every ordinary score s, as the selection would give. */
static const double least_selected = -1e9;

enum { X, FACTOR };
static const ir_pattern *const times = P(Mul, P_ANY(X), P_SCALAR(FACTOR));
static const ir_pattern *const over = P(Div, P_ANY(X), P_SCALAR(FACTOR));
/* With this, PyTorch gives rows that are masked whole the weight 0, as the kernel does. */
static const ir_pattern *const safe_softmax = P(Where, P(IsNaN, P_ANY(X)), P_NUMBER(0), P_ANY(X));

/* ---- Scales and reshapes ---------------------------------------------------------------------------------------- */

ir_value *ir_without_scale(ir_value *value, double *scale)
{
    for (ir_match m;; value = m.slot[X]) {
        bool multiplied = ir_match_value(times, value, &m);
        if (!multiplied && !ir_match_value(over, value, &m)) return value;
        if (!ir_type_equal(&value->type, &m.slot[X]->type)) return value;
        double factor = ir_match_scalar(&m, FACTOR);
        *scale = multiplied ? *scale * factor : *scale / factor;
    }
}

/* [B, H, N, M] ↔ [B · H, N, M]: a reshape that leaves the last two dimensions alone. What is under it, and the type of
 * four dimensions; NULL: `value` is no such reshape. */
static ir_value *without_split(ir_value *value, ir_scores *s)
{
    if (value->def == NULL || value->def->op != &ir_ops[IR_OP_Reshape] || value->use_count != 1) return NULL;
    ir_value *inner = value->def->inputs[0];
    int rank = value->type.rank, inner_rank = inner->type.rank;
    if (rank + inner_rank != 7 || (rank != 3 && rank != 4)) return NULL;
    for (int i = 1; i <= 2; i++) {
        if (!ir_dim_equal(value->type.dim[rank - i], inner->type.dim[inner_rank - i])) return NULL;
    }
    s->split = rank == 4 ? &value->type : &inner->type;
    return inner;
}

/* ---- Masks ------------------------------------------------------------------------------------------------------ */

static bool read_scores(ir_value *value, ir_scores *s);

/* A mask is outside of the scale: once a factor was seen on the way down, no mask may follow. */
static bool add_mask(ir_scores *s, ir_mask mask)
{
    if (s->mask_count == IR_MAX_MASKS || s->scale != 1) return false;
    s->masks[s->mask_count++] = mask;
    return true;
}

static bool read_sum(ir_node *node, ir_scores *s)
{
    for (int side = 0; side < 2; side++) {
        ir_scores tried = *s;
        ir_value *inner = node->inputs[side];
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        if (add_mask(&tried, (ir_mask){.added = node->inputs[1 - side], .joined = inner->type.rank == 3}) &&
            read_scores(inner, &tried)) {
            *s = tried;
            return true;
        }
    }
    return false;
}

static bool read_selection(ir_node *node, ir_scores *s)
{
    for (int side = 1; side <= 2; side++) {
        ir_value *inner = node->inputs[side], *other = node->inputs[3 - side];
        double number;
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        if (!ir_value_scalar(other, &number) || number > least_selected) continue;
        ir_mask mask = {node->inputs[0], other, side == 2, inner->type.rank == 3};
        return add_mask(s, mask) && read_scores(inner, s);
    }
    return false;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static bool read_scores(ir_value *value, ir_scores *s)
{
    if (value->use_count != 1 || value->def == NULL || value->def->op == NULL) return false;
    ir_node *node = value->def;
    ir_value *inner;
    switch (ir_node_opcode(node)) {
    case IR_OP_MatMul:
        s->q = ir_without_scale(node->inputs[0], &s->scale);
        s->k_transposed = ir_without_scale(node->inputs[1], &s->scale);
        return true;
    case IR_OP_Mul:
    case IR_OP_Div:
        inner = ir_without_scale(value, &s->scale);
        return inner != value && read_scores(inner, s);
    case IR_OP_Add:
        return read_sum(node, s);
    case IR_OP_Where:
        return read_selection(node, s);
    case IR_OP_Reshape:
        inner = without_split(value, s);
        return inner != NULL && read_scores(inner, s);
    default:
        return false;
    }
}

/* Softmax over the last axis whose result nobody else reads. */
static const ir_node *softmax_of(ir_value *probabilities, ir_scores *s)
{
    ir_match m;
    ir_value *inner = without_split(probabilities, s);
    if (inner != NULL) probabilities = inner;
    bool guarded = ir_match_value(safe_softmax, probabilities, &m);
    if (probabilities->use_count != 1) return NULL;
    if (guarded) probabilities = m.slot[X];
    const ir_node *node = probabilities->def;
    if (node == NULL || node->op != &ir_ops[IR_OP_Softmax] || probabilities->use_count != (guarded ? 2 : 1))
        return NULL;
    int64_t axis = ir_node_int(node, "axis", -1);
    return axis == -1 || axis == probabilities->type.rank - 1 ? node : NULL;
}

bool ir_read_attention(const ir_node *product, ir_scores *out)
{
    ir_scores s = {.scale = 1, .v = product->inputs[1]};
    const ir_node *softmax = softmax_of(product->inputs[0], &s);
    if (softmax == NULL || !read_scores(softmax->inputs[0], &s)) return false;
    *out = s;
    return true;
}
