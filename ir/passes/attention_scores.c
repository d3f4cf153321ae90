/* attention_scores.c — reads attention from the graph, from its second matmul downwards. The steps are a softmax over
 * the keys; masks that are added or subtracted (any broadcastable shape) or selected (Where with a negative number);
 * a cap; scales on the scores, behind the masks or on either operand; reshapes between one dimension for batch and
 * heads and two; and the first matmul. If weights are zeroed behind the softmax where the scores were masked, the
 * mask becomes -inf. */
#include "ir/passes/attention_patterns.h"

#include "ir/ops.h"
#include "ir/passes/match.h"

#include <math.h>

/* A score masked by this number or a lesser one has no weight beside any score of an ordinary model, because exp(-1e4
 * + 104) is zero in f32. This is -1e4 as rounded to bf16. */
static const double surely_masked = -9984;

enum { X, FACTOR };
static const ir_pattern *const times = P(Mul, P_ANY(X), P_SCALAR(FACTOR));
static const ir_pattern *const over = P(Div, P_ANY(X), P_SCALAR(FACTOR));
/* PyTorch uses this to give fully masked rows the weight 0, as the kernel does. */
static const ir_pattern *const safe_softmax = P(Where, P(IsNaN, P_ANY(X)), P_NUMBER(0), P_ANY(X));

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

/* [B, H, N, M] ↔ [B · H, N, M]: a reshape that keeps the last two dimensions. Returns the value below it and records
 * the type with four dimensions. NULL: `value` is not such a reshape. */
static ir_value *without_split(ir_value *value, ir_scores *s)
{
    if (value->def == NULL || value->def->op != &ir_ops[IR_OP_Reshape] || value->use_count != 1) return NULL;
    ir_value *inner = value->def->inputs[0];
    int rank = value->type.rank, inner_rank = inner->type.rank;
    if (rank + inner_rank != 7 || (rank != 3 && rank != 4)) return NULL;
    for (int i = 1; i <= 2; i++)
        if (!ir_dim_equal(value->type.dim[rank - i], inner->type.dim[inner_rank - i])) return NULL;
    s->split = rank == 4 ? &value->type : &inner->type;
    return inner;
}

enum { MAX_DEPTH = 12 };

static const ir_bounds unknown = {-INFINITY, INFINITY};

static ir_bounds scaled(ir_bounds x, double factor)
{
    return factor < 0 ? (ir_bounds){factor * x.greatest, factor * x.least}
                      : (ir_bounds){factor * x.least, factor * x.greatest};
}

/* Bounds of the value's elements. */
static ir_bounds bounds_of(const ir_value *value, int depth)
{
    const ir_node *node = value->def;
    double number;
    if (value->constant != NULL && value->constant->data != NULL && ir_dtype_is_float(value->type.dtype)) {
        ir_bounds all = {INFINITY, -INFINITY};
        for (int64_t i = 0; i < value->constant->count; i++) {
            double element = ir_tensor_real(value->constant, i);
            if (isnan(element)) return unknown;
            all = (ir_bounds){fmin(all.least, element), fmax(all.greatest, element)};
        }
        return all;
    }
    if (node == NULL || node->op == NULL || depth == MAX_DEPTH) return unknown;
    switch (ir_node_opcode(node)) {
    case IR_OP_Add:
    case IR_OP_Where: {
        bool adds = ir_node_opcode(node) == IR_OP_Add;
        ir_bounds a = bounds_of(node->inputs[!adds], depth + 1), b = bounds_of(node->inputs[2 - adds], depth + 1);
        if (adds) return (ir_bounds){a.least + b.least, a.greatest + b.greatest};
        return (ir_bounds){fmin(a.least, b.least), fmax(a.greatest, b.greatest)};
    }
    case IR_OP_Mul:
        for (int i = 0; i < 2; i++)
            if (ir_value_scalar(node->inputs[i], &number) && number != 0)
                return scaled(bounds_of(node->inputs[1 - i], depth + 1), number);
        return unknown;
    default:
        if (!IR_IS_ONE_OF(node, IR_OP_Gather, IR_OP_Reshape, IR_OP_Transpose, IR_OP_Expand, IR_OP_Slice, IR_OP_Squeeze,
                          IR_OP_Unsqueeze))
            return unknown;
        return bounds_of(node->inputs[0], depth + 1);
    }
}

static bool read_scores(ir_value *value, ir_scores *s);

/* Removes Not: Not(c) becomes c. Each removal flips *negated. */
static ir_value *without_not(ir_value *condition, bool *negated)
{
    for (; condition->def != NULL && condition->def->op == &ir_ops[IR_OP_Not]; *negated = !*negated)
        condition = condition->def->inputs[0];
    return condition;
}

/* Adds a mask; masks are outside the cap. A factor above a mask applies to the mask, too. */
static bool add_mask(ir_scores *s, ir_mask mask)
{
    if (s->mask_count == IR_MAX_MASKS || s->softcap != 0 || !(s->scale > 0)) return false;
    mask.factor = s->scale;
    mask.number *= s->scale;
    if (mask.condition != NULL)
        mask.condition = without_not(mask.condition, &mask.masks_where);
    else
        mask.bounds = scaled(bounds_of(mask.added, 0), mask.subtracted ? -mask.factor : mask.factor);
    s->masks[s->mask_count++] = mask;
    return true;
}

static bool read_sum(ir_node *node, ir_scores *s)
{
    bool subtracts = ir_node_opcode(node) == IR_OP_Sub;
    for (int side = 0; side < (subtracts ? 1 : 2); side++) {
        ir_scores tried = *s;
        ir_value *inner = node->inputs[side];
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        ir_mask mask = {.added = node->inputs[1 - side], .subtracted = subtracts, .joined = inner->type.rank == 3};
        if (add_mask(&tried, mask) && read_scores(inner, &tried)) {
            *s = tried;
            return true;
        }
    }
    return false;
}

static bool read_selection(ir_node *node, ir_scores *s)
{
    for (int side = 1; side <= 2; side++) {
        ir_value *inner = node->inputs[side], *other_value = node->inputs[3 - side];
        double number;
        if (!ir_type_equal(&inner->type, &node->outputs[0]->type)) continue;
        if (!ir_value_scalar(other_value, &number) || !(number < 0)) continue;
        ir_mask mask = {
            .condition = node->inputs[0], .number = number, .masks_where = side == 2, .joined = inner->type.rank == 3};
        return add_mask(s, mask) && read_scores(inner, s);
    }
    return false;
}

/* Reads softcap * tanh(x / softcap) and separates the scale. False: `value` has another form. */
static bool read_cap(ir_value *value, ir_scores *s)
{
    if (s->softcap != 0 || value->use_count != 1 || value->def == NULL || value->def->op != &ir_ops[IR_OP_Tanh])
        return false;
    double outer = s->scale, inner = 1;
    ir_value *argument = ir_without_scale(value->def->inputs[0], &inner);
    /* outer * tanh(inner * x) = cap(outer * inner * x) with outer as the cap. Masks above already include their
     * factor. */
    for (int i = 0; i < s->mask_count; i++)
        if (s->masks[i].factor != 1) return false;
    if (!(outer > 0)) return false;
    s->softcap = outer;
    s->scale = outer * inner;
    return read_scores(argument, s);
}

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
    case IR_OP_Div: inner = ir_without_scale(value, &s->scale); return inner != value && read_scores(inner, s);
    case IR_OP_Tanh: return read_cap(value, s);
    case IR_OP_Add:
    case IR_OP_Sub: return read_sum(node, s);
    case IR_OP_Where: return read_selection(node, s);
    case IR_OP_Reshape: inner = without_split(value, s); return inner != NULL && read_scores(inner, s);
    default: return false;
    }
}

/* Weights that a condition zeroes, by Where or by a factor: returns the value below, and the condition in
 * *out_condition. NULL: `weights` have another form. */
static ir_value *without_zeroing(const ir_value *weights, ir_value **out_condition, bool *out_zeroes_where)
{
    const ir_node *node = weights->def;
    if (node == NULL || weights->use_count != 1) return NULL;
    if (node->op == &ir_ops[IR_OP_Where]) {
        for (int side = 1; side <= 2; side++) {
            ir_value *inner = node->inputs[3 - side];
            if (!ir_value_is_filled(node->inputs[side], 0, 0) || !ir_type_equal(&inner->type, &weights->type)) continue;
            *out_zeroes_where = side == 1;
            *out_condition = without_not(node->inputs[0], out_zeroes_where);
            return inner;
        }
    }
    for (int side = 0; node->op == &ir_ops[IR_OP_Mul] && side < 2; side++) {
        const ir_node *cast = node->inputs[side]->def;
        ir_value *inner = node->inputs[1 - side];
        if (cast == NULL || cast->op != &ir_ops[IR_OP_Cast] || cast->inputs[0]->type.dtype != MDOT_DTYPE_BOOL) continue;
        if (!ir_type_equal(&inner->type, &weights->type)) continue;
        *out_zeroes_where = false;
        *out_condition = without_not(cast->inputs[0], out_zeroes_where);
        return inner;
    }
    return NULL;
}

/* The Softmax over the last axis whose result has a single reader; NULL if there is none. */
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

/* Merges zeroing with a mask of the same condition. Masked keys have no weight, and a row of them alone becomes
 * zeros, which -inf gives. False: the condition masks no scores. */
static bool zero_masked(ir_scores *s, const ir_value *condition, bool zeroes_where)
{
    for (int i = 0; i < s->mask_count; i++) {
        ir_mask *mask = &s->masks[i];
        if (mask->condition != condition || mask->masks_where != zeroes_where || mask->number > surely_masked) continue;
        mask->number = -INFINITY;
        return true;
    }
    return false;
}

bool ir_read_attention(const ir_node *matmul, ir_scores *out)
{
    ir_scores s = {.scale = 1, .v = matmul->inputs[1]};
    ir_value *condition = NULL;
    bool zeroes_where = false;
    ir_value *inner = without_zeroing(matmul->inputs[0], &condition, &zeroes_where);
    const ir_node *softmax = softmax_of(matmul->inputs[0], &s);
    if (softmax == NULL && inner != NULL)
        softmax = softmax_of(inner, &s);
    else
        inner = NULL;
    if (softmax == NULL || !read_scores(softmax->inputs[0], &s)) return false;
    if (inner != NULL && !zero_masked(&s, condition, zeroes_where)) return false;
    *out = s;
    return true;
}

const ir_node *ir_softmax_behind(ir_value *probabilities)
{
    ir_scores s = {.scale = 1};
    return softmax_of(probabilities, &s);
}
