/* ml_scores.c — the scores and labels of ai.onnx.ml's models, in standard operators (ml_writer.h). Formulas are those
 * of ONNX Runtime (core/providers/cpu/ml/ml_common.h), because the specification only names the transforms. */
#include "frontend/onnx/ml_writer.h"

#include <string.h>

mdot_status fe_ml_read_transform(const ml_writer *w, ml_transform *out_transform)
{
    static const char *const names[] = {[ML_NONE] = "NONE",
                                        [ML_SOFTMAX] = "SOFTMAX",
                                        [ML_LOGISTIC] = "LOGISTIC",
                                        [ML_SOFTMAX_ZERO] = "SOFTMAX_ZERO",
                                        [ML_PROBIT] = "PROBIT"};
    const char *name = ir_node_string(w->node, "post_transform", "NONE");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out_transform = (ml_transform)i;
        return MDOT_OK;
    }
    return fe_ml_fail(w, MDOT_UNSUPPORTED,
                      "post_transform \"%s\" is unknown; known are NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT",
                      name);
}

/* Softmax without scores near zero: their result is the score times exp(-max), over the same sum. */
static ir_value *softmax_zero(const ml_writer *w, ir_value *x)
{
    ir_value *maximum = fe_ml_reduce(w, IR_OP_ReduceMax, x);
    ir_value *powers = fe_ml_add1(w, IR_OP_Exp, fe_ml_add2(w, IR_OP_Sub, x, maximum));
    ir_value *counts = fe_ml_add2(w, IR_OP_Greater, fe_ml_add1(w, IR_OP_Abs, x), fe_ml_scalar(w, "tiny", 1e-7));
    ir_value *zero = fe_ml_scalar(w, "zero", 0);
    ir_value *sum = fe_ml_reduce(w, IR_OP_ReduceSum, fe_ml_where(w, counts, powers, zero));
    ir_value *small = fe_ml_add2(w, IR_OP_Mul, x, fe_ml_add1(w, IR_OP_Exp, fe_ml_add1(w, IR_OP_Neg, maximum)));
    return fe_ml_add2(w, IR_OP_Div, fe_ml_where(w, counts, powers, small), sum);
}

/* sqrt(2) times the inverse of erf at 2x - 1, by Winitzki's approximation with a = 0.147: for y = 2x - 1,
 * l = log(1 - y²) and v = 2 / (pi a) + l / 2, it is sign(y) sqrt(sqrt(v² - l / a) - v). */
static ir_value *probit(const ml_writer *w, ir_value *x)
{
    const double a = 0.147, pi = 3.14159265358979323846;
    ir_value *one = fe_ml_scalar(w, "one", 1), *half = fe_ml_scalar(w, "half", 0.5);
    ir_value *y = fe_ml_add2(w, IR_OP_Sub, fe_ml_add2(w, IR_OP_Add, x, x), one);
    ir_value *rest = fe_ml_add2(w, IR_OP_Mul, fe_ml_add2(w, IR_OP_Sub, one, y), fe_ml_add2(w, IR_OP_Add, one, y));
    ir_value *l = fe_ml_add1(w, IR_OP_Log, rest);
    ir_value *v =
        fe_ml_add2(w, IR_OP_Add, fe_ml_add2(w, IR_OP_Mul, l, half), fe_ml_scalar(w, "constant", 2 / (pi * a)));
    ir_value *square = fe_ml_add2(w, IR_OP_Mul, v, v),
             *part = fe_ml_add2(w, IR_OP_Mul, l, fe_ml_scalar(w, "factor", 1 / a));
    ir_value *inner = fe_ml_add1(w, IR_OP_Sqrt, fe_ml_add2(w, IR_OP_Sub, square, part));
    ir_value *size = fe_ml_add1(w, IR_OP_Sqrt, fe_ml_add2(w, IR_OP_Sub, inner, v));
    ir_value *signs = fe_ml_add2(w, IR_OP_Mul, fe_ml_add1(w, IR_OP_Sign, y), fe_ml_scalar(w, "root", 1.41421356));
    return fe_ml_add2(w, IR_OP_Mul, size, signs);
}

ir_value *fe_ml_transform_scores(const ml_writer *w, ml_transform transform, ir_value *scores)
{
    switch (transform) {
    case ML_SOFTMAX: return fe_ml_add1(w, IR_OP_Softmax, scores);
    case ML_LOGISTIC: return fe_ml_add1(w, IR_OP_Sigmoid, scores);
    case ML_SOFTMAX_ZERO: return softmax_zero(w, scores);
    case ML_PROBIT: return probit(w, scores);
    case ML_NONE: break;
    }
    return scores;
}

mdot_status fe_ml_read_labels(const ml_writer *w, const char *ints, const char *strings, const int64_t **out_labels,
                              int64_t *out_count)
{
    const ir_attr *words = ir_node_attr(w->node, strings);
    if (words != NULL && words->count > 0 && words->kind == IR_ATTR_STRINGS)
        return fe_ml_fail(
            w, MDOT_UNSUPPORTED,
            "its class labels are strings, for example \"%s\"; train the model with labels 0, 1, 2, … (for "
            "example by scikit-learn's LabelEncoder) and export it again",
            words->strings[0]);
    BS_TRY(fe_ml_ints(w, ints, out_labels, out_count));
    if (*out_count < 2)
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "attribute '%s' has %lld labels, but a classifier needs at least two",
                          ints, (long long)*out_count);
    return MDOT_OK;
}

/* The labels at the positions. Labels 0, 1, 2, … are the positions themselves. */
static ir_value *labels_at(const ml_writer *w, ir_value *positions, const int64_t *labels, int64_t count)
{
    bool is_position = true;
    for (int64_t i = 0; i < count; i++) is_position = is_position && labels[i] == i;
    if (is_position) return positions;
    return fe_ml_add2(w, IR_OP_Gather, fe_add_ints(w->u, w->node, "labels", labels, (int)count), positions);
}

ir_value *fe_ml_best_label(const ml_writer *w, ir_value *scores, const int64_t *labels, int64_t count)
{
    const ir_attr attrs[] = {IR_INT("axis", -1), IR_INT("keepdims", 0)};
    return labels_at(w, fe_add(w->u, w->node, IR_OP_ArgMax, &scores, 1, attrs, 2), labels, count);
}

ir_value *fe_ml_binary_label(const ml_writer *w, ir_value *score, double limit, const int64_t *labels)
{
    const int64_t axis = -1;
    ir_value *only = fe_ml_add2(w, IR_OP_Squeeze, score, fe_add_ints(w->u, w->node, "axes", &axis, 1));
    ir_value *exceeds = fe_ml_add2(w, IR_OP_Greater, only, fe_ml_scalar(w, "limit", limit));
    return labels_at(w, fe_ml_cast(w, exceeds, MDOT_DTYPE_I64), labels, 2);
}

ir_value *fe_ml_pair(const ml_writer *w, ir_value *first, ir_value *second)
{
    return fe_add(w->u, w->node, IR_OP_Concat, IR_VALUES(first, second), IR_ATTRS(IR_INT("axis", -1)));
}
