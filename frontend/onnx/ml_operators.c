/* ml_operators.c — the table of ai.onnx.ml's operators, and those that standard operators express: linear models,
 * scaling, normalisation and selection of columns. ml_trees.c has the trees.
 *
 * Inputs are cast to f32, as in ONNX Runtime, because the outputs of these operators are f32.
 */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/ml_writer.h"

#include <string.h>

static ir_value *input(const ml_writer *w) { return fe_ml_cast(w, w->node->inputs[0], MDOT_DTYPE_F32); }

static mdot_status finish_one(const ml_writer *w, ir_value *value) { return fe_ml_finish(w, &value, 1); }

/* A vector, or a scalar if the list has one element, which applies to all columns. */
static ir_value *per_column(const ml_writer *w, const char *what, const double *values, int64_t count)
{
    return count == 1 ? fe_ml_scalar(w, what, values[0]) : fe_ml_vector(w, what, values, count);
}

/* (x - offset) * scale */
static mdot_status write_scaler(const ml_writer *w)
{
    const double *offset, *scale;
    int64_t offsets, scales;
    BS_TRY(fe_ml_floats(w, "offset", &offset, &offsets));
    BS_TRY(fe_ml_floats(w, "scale", &scale, &scales));
    if (offsets == 0 || scales == 0)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute '%s' is missing", offsets == 0 ? "offset" : "scale");
    if (offsets != scales && offsets != 1 && scales != 1)
        return fe_ml_fail(w, MDOT_MALFORMED, "attributes 'offset' and 'scale' have %lld and %lld elements",
                          (long long)offsets, (long long)scales);
    ir_value *from_offset = fe_ml_add2(w, IR_OP_Sub, input(w), per_column(w, "offset", offset, offsets));
    return finish_one(w, fe_ml_add2(w, IR_OP_Mul, from_offset, per_column(w, "scale", scale, scales)));
}

/* x / norm of the row; a row of zeros stays. MAX is the greatest absolute value, as in ONNX's reference implementation
 * and scikit-learn. ONNX Runtime takes the greatest value instead, which turns the signs of negative rows. */
static mdot_status write_normalizer(const ml_writer *w)
{
    static const struct {
        const char *name;
        ir_opcode op;
        bool of_absolutes;
    } norms[] = {{"MAX", IR_OP_ReduceMax, true}, {"L1", IR_OP_ReduceL1, false}, {"L2", IR_OP_ReduceL2, false}};
    const char *name = ir_node_string(w->node, "norm", "MAX");
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        if (strcmp(name, norms[i].name) != 0) continue;
        ir_value *x = input(w);
        ir_value *norm = fe_ml_reduce(w, norms[i].op, norms[i].of_absolutes ? fe_ml_add1(w, IR_OP_Abs, x) : x);
        ir_value *divisor = fe_ml_add2(w, IR_OP_Max, norm, fe_ml_scalar(w, "least", 1e-30));
        return finish_one(w, fe_ml_add2(w, IR_OP_Div, x, divisor));
    }
    return fe_ml_fail(w, MDOT_UNSUPPORTED, "norm \"%s\" is unknown; known are MAX, L1 and L2", name);
}

/* 1 where x exceeds the threshold, otherwise 0 */
static mdot_status write_binarizer(const ml_writer *w)
{
    ir_value *limit = fe_ml_scalar(w, "threshold", ir_node_float(w->node, "threshold", 0));
    return finish_one(w, fe_ml_cast(w, fe_ml_add2(w, IR_OP_Greater, input(w), limit), MDOT_DTYPE_F32));
}

/* Columns of the first input, at the positions in the second */
static mdot_status write_array_feature_extractor(const ml_writer *w)
{
    if (w->node->input_count < 2 || w->node->inputs[1] == NULL)
        return fe_ml_fail(w, MDOT_MALFORMED, "it lacks its second input, the columns");
    const int64_t list = -1;
    ir_value *columns = fe_ml_add2(w, IR_OP_Reshape, w->node->inputs[1], fe_add_ints(w->u, w->node, "list", &list, 1));
    return finish_one(
        w, fe_add(w->u, w->node, IR_OP_Gather, IR_VALUES(w->node->inputs[0], columns), IR_ATTRS(IR_INT("axis", -1))));
}

static mdot_status refuse_zip_map(const ml_writer *w)
{
    return fe_ml_fail(
        w, MDOT_UNSUPPORTED,
        "its output is a list of dictionaries instead of a tensor. Export the classifier with zipmap=False: "
        "options={'zipmap': False} of skl2onnx, or the argument zipmap of onnxmltools. For CatBoost, cut it off: "
        "onnx.utils.extract_model(file, new, inputs, ['%s'])",
        w->node->inputs[0]->name);
}

/* x · coefficientsᵀ + intercepts, [rows, targets] */
static mdot_status write_sums(const ml_writer *w, int64_t targets, ir_value **out_sums)
{
    const double *coefficients, *intercepts;
    int64_t coefficient_count, intercept_count;
    BS_TRY(fe_ml_floats(w, "coefficients", &coefficients, &coefficient_count));
    BS_TRY(fe_ml_floats(w, "intercepts", &intercepts, &intercept_count));
    if (targets < 1 || coefficient_count == 0 || coefficient_count % targets != 0)
        return fe_ml_fail(w, MDOT_MALFORMED,
                          "attribute 'coefficients' has %lld elements, which is no multiple of %lld, "
                          "the number of targets",
                          (long long)coefficient_count, (long long)targets);
    if (intercept_count != 0 && intercept_count != targets)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'intercepts' has %lld elements for %lld targets",
                          (long long)intercept_count, (long long)targets);
    int64_t features = coefficient_count / targets, dims[] = {features, targets};
    float *weights = IR_NEW_ARRAY(w->u->graph->arena, float, coefficient_count);
    if (weights == NULL) return fe_out_of_memory(w->u->context);
    for (int64_t t = 0; t < targets; t++)
        for (int64_t f = 0; f < features; f++) weights[f * targets + t] = (float)coefficients[t * features + f];
    ir_value *sums = fe_ml_add2(w, IR_OP_MatMul, input(w),
                                fe_add_data(w->u, w->node, "coefficients", MDOT_DTYPE_F32, 2, dims, weights));
    if (intercept_count > 0)
        sums = fe_ml_add2(w, IR_OP_Add, sums, fe_ml_vector(w, "intercepts", intercepts, intercept_count));
    *out_sums = sums;
    return sums != NULL ? MDOT_OK : fe_out_of_memory(w->u->context);
}

static mdot_status write_linear_regressor(const ml_writer *w)
{
    ir_value *sums = NULL;
    ml_transform transform = ML_NONE;
    mdot_status status = fe_ml_read_transform(w, &transform);
    if (status == MDOT_OK) status = write_sums(w, ir_node_int(w->node, "targets", 1), &sums);
    return status == MDOT_OK ? finish_one(w, fe_ml_transform_scores(w, transform, sums)) : status;
}

/* One row of coefficients for two classes gives one score s. ONNX Runtime then computes [1 - s, s], and with LOGISTIC
 * the logistic function of both -s and s. */
static mdot_status write_binary_classifier(const ml_writer *w, ml_transform transform, ir_value *score,
                                           const int64_t *labels)
{
    ir_value *label = fe_ml_binary_label(w, score, 0, labels), *second = score, *first = NULL;
    if (transform == ML_LOGISTIC) {
        second = fe_ml_add1(w, IR_OP_Sigmoid, score);
        first = fe_ml_add1(w, IR_OP_Sigmoid, fe_ml_add1(w, IR_OP_Neg, score));
    } else if (transform == ML_NONE) {
        first = fe_ml_add2(w, IR_OP_Sub, fe_ml_scalar(w, "one", 1), score);
    } else {
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "one row of coefficients for two classes allows post_transform NONE or "
                          "LOGISTIC; export one row per class");
    }
    return fe_ml_finish(w, (ir_value *[]){label, fe_ml_pair(w, first, second)}, 2);
}

static mdot_status write_linear_classifier(const ml_writer *w)
{
    const int64_t *labels = NULL;
    const double *intercepts;
    int64_t label_count = 0, rows = 0;
    ml_transform transform = ML_NONE;
    ir_value *sums = NULL;
    BS_TRY(fe_ml_read_labels(w, "classlabels_ints", "classlabels_strings", &labels, &label_count));
    BS_TRY(fe_ml_read_transform(w, &transform));
    BS_TRY(fe_ml_floats(w, "intercepts", &intercepts, &rows));
    if (rows == 0) rows = label_count;
    if (rows != label_count && (rows != 1 || label_count != 2))
        return fe_ml_fail(w, MDOT_MALFORMED, "it has %lld intercepts for %lld classes", (long long)rows,
                          (long long)label_count);
    BS_TRY(write_sums(w, rows, &sums));
    if (rows == 1) return write_binary_classifier(w, transform, sums, labels);
    ir_value *label = fe_ml_best_label(w, sums, labels, label_count);
    return fe_ml_finish(w, (ir_value *[]){label, fe_ml_transform_scores(w, transform, sums)}, 2);
}

mdot_status fe_write_ml_operator(fe_upgrader *u, ir_node *node)
{
    static const struct {
        const char *op_type; /* as in ir_node.op_type */
        fe_ml_write_fn *write;
    } table[] = {
        {"ai.onnx.ml:Scaler", write_scaler},
        {"ai.onnx.ml:Normalizer", write_normalizer},
        {"ai.onnx.ml:Binarizer", write_binarizer},
        {"ai.onnx.ml:ArrayFeatureExtractor", write_array_feature_extractor},
        {"ai.onnx.ml:ZipMap", refuse_zip_map},
        {"ai.onnx.ml:OneHotEncoder", fe_ml_write_one_hot_encoder},
        {"ai.onnx.ml:LabelEncoder", fe_ml_write_label_encoder},
        {"ai.onnx.ml:Imputer", fe_ml_write_imputer},
        {"ai.onnx.ml:FeatureVectorizer", fe_ml_write_feature_vectorizer},
        {"ai.onnx.ml:SVMRegressor", fe_ml_write_svm_regressor},
        {"ai.onnx.ml:SVMClassifier", fe_ml_write_svm_classifier},
        {"ai.onnx.ml:LinearRegressor", write_linear_regressor},
        {"ai.onnx.ml:LinearClassifier", write_linear_classifier},
        {"ai.onnx.ml:TreeEnsembleRegressor", fe_ml_write_tree_regressor},
        {"ai.onnx.ml:TreeEnsembleClassifier", fe_ml_write_tree_classifier},
        {"ai.onnx.ml:TreeEnsemble", fe_ml_write_tree_ensemble},
        {"Hardmax", fe_ml_write_hardmax},
        {"ReverseSequence", fe_ml_write_reverse_sequence},
        {"com.microsoft:FusedConv", fe_ml_write_fused_conv},
    };
    const ml_writer w = {.u = u, .node = node};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (strcmp(table[k].op_type, node->op_type) != 0) continue;
        if (node->input_count < 1 || node->inputs[0] == NULL) return fe_ml_fail(&w, MDOT_MALFORMED, "it has no input");
        return table[k].write(&w);
    }
    return MDOT_OK;
}
