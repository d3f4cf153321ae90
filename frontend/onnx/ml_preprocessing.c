/* ml_preprocessing.c — scikit-learn's preprocessing and support vectors in standard operators (ml_writer.h): one-hot
 * and label encoders, imputation, feature vectors, and support vector machines. Formulas are those of ONNX Runtime
 * (core/providers/cpu/ml), because the specification leaves unknown values open. */
#include "frontend/onnx/ml_writer.h"

#include "frontend/onnx/import_context.h"

#include <math.h>
#include <string.h>

static mdot_status finish_one(const ml_writer *w, ir_value *value) { return fe_ml_finish(w, &value, 1); }

static ir_value *unsqueeze(const ml_writer *w, ir_value *x, int64_t axis)
{
    return fe_ml_add2(w, IR_OP_Unsqueeze, x, fe_add_ints(w->u, w->node, "axis", &axis, 1));
}

/* Removes the last axis by a reduction. */
static ir_value *reduce_last(const ml_writer *w, ir_opcode op, ir_value *x)
{
    const int64_t axis = -1;
    const ir_attr attrs[] = {IR_INT("keepdims", 0), IR_INT("axis", axis)};
    if (op == IR_OP_ArgMax) return fe_add(w->u, w->node, op, &x, 1, attrs, 2);
    return fe_add(w->u, w->node, op, IR_VALUES(x, fe_add_ints(w->u, w->node, "axis", &axis, 1)), attrs, 1);
}

static mdot_status refuse_strings(const ml_writer *w, const char *name)
{
    return fe_ml_fail(w, MDOT_UNSUPPORTED,
                      "attribute '%s' holds strings; encode the column as numbers before the model, for example by "
                      "pandas.factorize, and export it again",
                      name);
}

static bool has_strings(const ml_writer *w, const char *name)
{
    const ir_attr *attr = ir_node_attr(w->node, name);
    return attr != NULL && attr->kind == IR_ATTR_STRINGS && attr->count > 0;
}

/* Numbers of a list attribute, in their type; count 0: absent. */
typedef struct number_list {
    mdot_dtype dtype; /* I64, F32 or F64 */
    const int64_t *ints;
    const double *reals;
    int64_t count;
} number_list;

/* Reads PREFIX_int64s, PREFIX_floats or PREFIX_tensor. Refuses strings. */
static mdot_status read_numbers(const ml_writer *w, const char *prefix, number_list *out)
{
    static const char *const suffixes[] = {"_int64s", "_floats", "_tensor", "_strings"};
    char name[4][32];
    ml_reals tensor = {.name = name[2]};
    number_list list = {.dtype = MDOT_DTYPE_I64};
    for (int i = 0; i < 4; i++) {
        strcpy(name[i], prefix);
        strcat(name[i], suffixes[i]);
    }
    if (has_strings(w, name[3])) return refuse_strings(w, name[3]);
    mdot_status status = fe_ml_ints(w, name[0], &list.ints, &list.count);
    if (status == MDOT_OK && list.count == 0) {
        list.dtype = MDOT_DTYPE_F32;
        status = fe_ml_floats(w, name[1], &list.reals, &list.count);
    }
    const ir_attr *attr = ir_node_attr(w->node, name[2]);
    if (status == MDOT_OK && list.count == 0 && attr != NULL && attr->kind == IR_ATTR_TENSOR) {
        const ir_tensor *t = attr->tensor;
        if (t->dtype == MDOT_DTYPE_STRING) return refuse_strings(w, name[2]);
        if (t->data != NULL && !ir_dtype_is_float(t->dtype)) {
            int64_t *ints = IR_NEW_ARRAY(w->u->graph->arena, int64_t, t->count);
            if (ints == NULL) return fe_out_of_memory(w->u->context);
            for (int64_t i = 0; i < t->count; i++) ints[i] = ir_tensor_integer(t, i);
            list = (number_list){.dtype = MDOT_DTYPE_I64, .ints = ints, .count = t->count};
        } else {
            status = fe_ml_read_tensor(w, name[2], &tensor);
            list = (number_list){
                .dtype = tensor.is_double ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32, .reals = tensor.at, .count = tensor.count};
        }
    }
    if (status == MDOT_OK) *out = list;
    return status;
}

static ir_value *constant_of(const ml_writer *w, const char *what, const number_list *list)
{
    if (list->dtype == MDOT_DTYPE_I64)
        return fe_add_data(w->u, w->node, what, MDOT_DTYPE_I64, 1, &list->count, list->ints);
    if (list->dtype == MDOT_DTYPE_F32) return fe_ml_vector(w, what, list->reals, list->count);
    return fe_add_data(w->u, w->node, what, MDOT_DTYPE_F64, 1, &list->count, list->reals);
}

/* Is the element equal to key k? [..., keys]. A key that is NaN equals every NaN. */
static ir_value *equal_keys(const ml_writer *w, const number_list *keys)
{
    ir_value *x = unsqueeze(w, fe_ml_cast(w, w->node->inputs[0], keys->dtype), -1);
    ir_value *equal = fe_ml_add2(w, IR_OP_Equal, x, constant_of(w, "keys", keys));
    bool *is_nan = IR_NEW_ARRAY(w->u->graph->arena, bool, keys->count), any = false;
    if (is_nan == NULL) return NULL;
    for (int64_t k = 0; keys->dtype != MDOT_DTYPE_I64 && k < keys->count; k++) any |= is_nan[k] = isnan(keys->reals[k]);
    if (!any) return equal;
    ir_value *marks = fe_add_data(w->u, w->node, "nan", MDOT_DTYPE_BOOL, 1, &keys->count, is_nan);
    return fe_ml_add2(w, IR_OP_Or, equal, fe_ml_add2(w, IR_OP_And, fe_ml_add1(w, IR_OP_IsNaN, x), marks));
}

/* An unknown category gives zeros, also with zeros = 0, for which ONNX Runtime reports an error. */
mdot_status fe_ml_write_one_hot_encoder(const ml_writer *w)
{
    number_list keys = {.dtype = MDOT_DTYPE_I64};
    if (has_strings(w, "cats_strings")) return refuse_strings(w, "cats_strings");
    BS_TRY(fe_ml_ints(w, "cats_int64s", &keys.ints, &keys.count));
    if (keys.count == 0) return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'cats_int64s' is missing");
    return finish_one(w, fe_ml_cast(w, equal_keys(w, &keys), MDOT_DTYPE_F32));
}

/* The list with the default value before its elements. */
static bool put_default_first(const ml_writer *w, number_list *values, const number_list *fallback)
{
    ir_arena *arena = w->u->graph->arena;
    double *reals = IR_NEW_ARRAY(arena, double, values->count + 1);
    int64_t *ints = IR_NEW_ARRAY(arena, int64_t, values->count + 1);
    if (reals == NULL || ints == NULL) return false;
    bool is_int = values->dtype == MDOT_DTYPE_I64;
    if (is_int) ints[0] = fallback->count > 0 && fallback->dtype == MDOT_DTYPE_I64 ? fallback->ints[0] : -1;
    if (!is_int) reals[0] = fallback->count > 0 && fallback->dtype != MDOT_DTYPE_I64 ? fallback->reals[0] : -0.0;
    for (int64_t k = 0; k < values->count; k++)
        is_int ? (void)(ints[k + 1] = values->ints[k]) : (void)(reals[k + 1] = values->reals[k]);
    values->ints = ints;
    values->reals = reals;
    values->count++;
    return true;
}

/* Each element's value by its first equal key, or the default. */
mdot_status fe_ml_write_label_encoder(const ml_writer *w)
{
    number_list keys = {0}, values = {0}, fallback = {0};
    if (has_strings(w, "classes_strings")) return refuse_strings(w, "classes_strings");
    if (has_strings(w, "default_string") && has_strings(w, "values_strings"))
        return refuse_strings(w, "default_string");
    BS_TRY(read_numbers(w, "keys", &keys));
    BS_TRY(read_numbers(w, "values", &values));
    if (keys.count == 0 || keys.count != values.count)
        return fe_ml_fail(w, MDOT_MALFORMED, "it has %lld keys and %lld values", (long long)keys.count,
                          (long long)values.count);
    const int64_t int_default = ir_node_int(w->node, "default_int64", -1);
    const double real_default = ir_node_float(w->node, "default_float", -0.0);
    const ir_attr *tensor = ir_node_attr(w->node, "default_tensor");
    if (tensor != NULL) BS_TRY(read_numbers(w, "default", &fallback));
    if (tensor == NULL && values.dtype == MDOT_DTYPE_I64)
        fallback = (number_list){.dtype = MDOT_DTYPE_I64, .ints = &int_default, .count = 1};
    else if (tensor == NULL)
        fallback = (number_list){.dtype = values.dtype, .reals = &real_default, .count = 1};
    if (!put_default_first(w, &values, &fallback)) return fe_out_of_memory(w->u->context);
    const int64_t one = 1;
    ir_value *equal = fe_ml_cast(w, equal_keys(w, &keys), MDOT_DTYPE_F32);
    ir_value *place =
        fe_ml_add2(w, IR_OP_Add, reduce_last(w, IR_OP_ArgMax, equal), fe_add_ints(w->u, w->node, "one", &one, 1));
    ir_value *known = fe_ml_cast(w, reduce_last(w, IR_OP_ReduceMax, equal), MDOT_DTYPE_I64);
    ir_value *index = fe_ml_add2(w, IR_OP_Mul, place, known);
    return finish_one(w, fe_ml_add2(w, IR_OP_Gather, constant_of(w, "values", &values), index));
}

/* Replaces one number, often NaN, by a number per column. */
mdot_status fe_ml_write_imputer(const ml_writer *w)
{
    number_list imputed = {0};
    const int64_t *ints;
    BS_TRY(fe_ml_floats(w, "imputed_value_floats", &imputed.reals, &imputed.count));
    imputed.dtype = MDOT_DTYPE_F32;
    const bool is_int = imputed.count == 0;
    if (is_int) {
        BS_TRY(fe_ml_ints(w, "imputed_value_int64s", &ints, &imputed.count));
        imputed.ints = ints;
        imputed.dtype = MDOT_DTYPE_I64;
    }
    if (imputed.count == 0) return fe_ml_fail(w, MDOT_MALFORMED, "it has no imputed values");
    ir_value *x = fe_ml_cast(w, w->node->inputs[0], imputed.dtype), *wanted;
    double replaced = ir_node_float(w->node, "replaced_value_float", 0);
    const int64_t replaced_int = ir_node_int(w->node, "replaced_value_int64", 0);
    if (is_int)
        wanted = fe_ml_add2(w, IR_OP_Equal, x, fe_add_ints(w->u, w->node, "replaced", &replaced_int, 1));
    else
        wanted = isnan(replaced) ? fe_ml_add1(w, IR_OP_IsNaN, x)
                                 : fe_ml_add2(w, IR_OP_Equal, x, fe_ml_scalar(w, "replaced", replaced));
    return finish_one(w, fe_ml_where(w, wanted, constant_of(w, "imputed", &imputed), x));
}

/* The inputs' columns side by side, in f32. */
mdot_status fe_ml_write_feature_vectorizer(const ml_writer *w)
{
    int count = w->node->input_count;
    ir_value **columns = IR_NEW_ARRAY(w->u->graph->arena, ir_value *, count);
    if (columns == NULL) return fe_out_of_memory(w->u->context);
    for (int i = 0; i < count; i++) {
        if (w->node->inputs[i] == NULL) return fe_ml_fail(w, MDOT_MALFORMED, "input %d is absent", i);
        columns[i] = fe_ml_cast(w, w->node->inputs[i], MDOT_DTYPE_F32);
    }
    return finish_one(w, fe_add(w->u, w->node, IR_OP_Concat, columns, count, IR_ATTRS(IR_INT("axis", -1))));
}

/* Vectors [count, features] as a constant, transposed if they are a factor of MatMul. */
static ir_value *support_vectors(const ml_writer *w, const double *values, int64_t count, int64_t features,
                                 bool transposes)
{
    int64_t dims[] = {transposes ? features : count, transposes ? count : features};
    float *data = IR_NEW_ARRAY(w->u->graph->arena, float, count *features);
    if (data == NULL) return NULL;
    for (int64_t s = 0; s < count; s++)
        for (int64_t f = 0; f < features; f++)
            data[transposes ? f * count + s : s * features + f] = (float)values[s * features + f];
    return fe_add_data(w->u, w->node, "support_vectors", MDOT_DTYPE_F32, 2, dims, data);
}

/* The kernel function of each row and each support vector, [rows, count]. NULL with MDOT_OK: out of memory. */
static mdot_status kernel_values(const ml_writer *w, const double *vectors, int64_t count, int64_t features,
                                 ir_value **out_values)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    enum { LINEAR, POLY, RBF, SIGMOID, KINDS };
    const char *name = ir_node_string(w->node, "kernel_type", "LINEAR");
    const double *parameters;
    int64_t parameter_count, kind = 0;
    BS_TRY(fe_ml_floats(w, "kernel_params", &parameters, &parameter_count));
    while (kind < KINDS && strcmp(name, names[kind]) != 0) kind++;
    if (kind == KINDS)
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "kernel_type \"%s\" is unknown; known are LINEAR, POLY, RBF and SIGMOID",
                          name);
    if (kind != LINEAR && parameter_count != 3)
        return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'kernel_params' has %lld elements; %s needs three",
                          (long long)parameter_count, name);
    ir_value *x = fe_ml_cast(w, w->node->inputs[0], MDOT_DTYPE_F32), *values;
    if (kind == RBF) { /* the difference of each row from each vector, because sums of squares would cancel */
        ir_value *difference =
            fe_ml_add2(w, IR_OP_Sub, unsqueeze(w, x, -2), support_vectors(w, vectors, count, features, false));
        values = reduce_last(w, IR_OP_ReduceSumSquare, difference);
        values = fe_ml_add1(w, IR_OP_Exp, fe_ml_add2(w, IR_OP_Mul, values, fe_ml_scalar(w, "gamma", -parameters[0])));
    } else {
        values = fe_ml_add2(w, IR_OP_MatMul, x, support_vectors(w, vectors, count, features, true));
        if (kind != LINEAR) {
            values = fe_ml_add2(w, IR_OP_Mul, values, fe_ml_scalar(w, "gamma", parameters[0]));
            values = fe_ml_add2(w, IR_OP_Add, values, fe_ml_scalar(w, "coef0", parameters[1]));
            values = kind == SIGMOID ? fe_ml_add1(w, IR_OP_Tanh, values)
                                     : fe_ml_add2(w, IR_OP_Pow, values, fe_ml_scalar(w, "degree", parameters[2]));
        }
    }
    *out_values = values;
    return MDOT_OK;
}

mdot_status fe_ml_write_svm_regressor(const ml_writer *w)
{
    const double *coefficients, *vectors, *rho;
    int64_t coefficient_count, vector_count, rho_count, count = ir_node_int(w->node, "n_supports", 0);
    ml_transform transform = ML_NONE;
    ir_value *values = NULL, *sum;
    BS_TRY(fe_ml_read_transform(w, &transform));
    BS_TRY(fe_ml_floats(w, "coefficients", &coefficients, &coefficient_count));
    BS_TRY(fe_ml_floats(w, "support_vectors", &vectors, &vector_count));
    BS_TRY(fe_ml_floats(w, "rho", &rho, &rho_count));
    if (count > 0 && (coefficient_count != count || vector_count == 0 || vector_count % count != 0))
        return fe_ml_fail(w, MDOT_MALFORMED, "it has %lld support vectors, but %lld coefficients and %lld elements",
                          (long long)count, (long long)coefficient_count, (long long)vector_count);
    if (coefficient_count == 0) return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'coefficients' is missing");
    if (transform != ML_NONE)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "a post_transform of one target; use NONE, and put an operator behind it");
    if (count > 0) BS_TRY(kernel_values(w, vectors, count, vector_count / count, &values));
    if (count <= 0) values = fe_ml_cast(w, w->node->inputs[0], MDOT_DTYPE_F32); /* coefficients of the columns */
    sum = fe_ml_add2(w, IR_OP_MatMul, values, support_vectors(w, coefficients, 1, coefficient_count, true));
    if (rho_count > 0) sum = fe_ml_add2(w, IR_OP_Add, sum, fe_ml_scalar(w, "rho", rho[0]));
    if (ir_node_int(w->node, "one_class", 0) != 0)
        sum = fe_ml_where(w, fe_ml_add2(w, IR_OP_Greater, sum, fe_ml_scalar(w, "zero", 0)), fe_ml_scalar(w, "one", 1),
                          fe_ml_scalar(w, "other", -1));
    return finish_one(w, sum);
}

/* Kernel values weigh into one decision per pair of classes, [vectors, pairs]. NULL: out of memory. */
static ir_value *pair_weights(const ml_writer *w, const double *coefficients, const int64_t *per_class, int64_t classes,
                              int64_t count)
{
    int64_t pairs = classes * (classes - 1) / 2, dims[] = {count, pairs}, pair = 0, first_i = 0;
    float *data = IR_NEW_ARRAY(w->u->graph->arena, float, count *pairs);
    for (int64_t i = 0; data != NULL && i < classes; first_i += per_class[i++]) {
        int64_t first_j = first_i + per_class[i];
        for (int64_t j = i + 1; j < classes; first_j += per_class[j++], pair++) {
            for (int64_t s = first_i; s < first_i + per_class[i]; s++)
                data[s * pairs + pair] = (float)coefficients[(j - 1) * count + s];
            for (int64_t s = first_j; s < first_j + per_class[j]; s++)
                data[s * pairs + pair] = (float)coefficients[i * count + s];
        }
    }
    return data != NULL ? fe_add_data(w->u, w->node, "weights", MDOT_DTYPE_F32, 2, dims, data) : NULL;
}

/* The label with the most votes. A positive decision votes for the pair's first class, another one for the second. */
static ir_value *voted_label(const ml_writer *w, ir_value *decisions, const int64_t *labels, int64_t classes)
{
    int64_t pairs = classes * (classes - 1) / 2, dims[] = {pairs, classes}, pair = 0;
    float *votes = IR_NEW_ARRAY(w->u->graph->arena, float, pairs *classes);
    double *seconds = IR_NEW_ARRAY(w->u->graph->arena, double, classes);
    if (votes == NULL || seconds == NULL) return NULL;
    for (int64_t i = 0; i < classes; i++) {
        seconds[i] = (double)i;
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            votes[pair * classes + i] = 1;
            votes[pair * classes + j] = -1;
        }
    }
    ir_value *wins = fe_ml_cast(w, fe_ml_add2(w, IR_OP_Greater, decisions, fe_ml_scalar(w, "zero", 0)), MDOT_DTYPE_F32);
    ir_value *sums =
        fe_ml_add2(w, IR_OP_MatMul, wins, fe_add_data(w->u, w->node, "votes", MDOT_DTYPE_F32, 2, dims, votes));
    sums = fe_ml_add2(w, IR_OP_Add, sums, fe_ml_vector(w, "seconds", seconds, classes));
    return fe_ml_best_label(w, sums, labels, classes);
}

/* Platt's probability of two classes is exact, where ONNX Runtime iterates up to a difference of about 0.004. */
mdot_status fe_ml_write_svm_classifier(const ml_writer *w)
{
    enum { MAX_CLASSES = 100 }; /* the weights are half as many times larger than the file's */
    const int64_t *labels = NULL, *per_class = NULL;
    const double *reals[5]; /* coefficients, vectors, rho, and the slope and offset of probabilities */
    static const char *const names[5] = {"coefficients", "support_vectors", "rho", "prob_a", "prob_b"};
    int64_t classes = 0, parts = 0, n[5] = {0}, count = 0;
    ml_transform transform = ML_NONE;
    ir_value *kernels = NULL;
    BS_TRY(fe_ml_read_labels(w, "classlabels_ints", "classlabels_strings", &labels, &classes));
    BS_TRY(fe_ml_read_transform(w, &transform));
    BS_TRY(fe_ml_ints(w, "vectors_per_class", &per_class, &parts));
    for (int k = 0; k < 5; k++) BS_TRY(fe_ml_floats(w, names[k], &reals[k], &n[k]));
    if (parts == 0 || classes > MAX_CLASSES)
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "support vectors of 2 to 100 classes are needed; export a linear "
                          "classifier (LinearSVC), or one classifier for each class");
    if ((classes > 2 && n[3] > 0) || (n[3] > 0 && transform != ML_NONE) ||
        (classes == 2 && transform != ML_NONE && transform != ML_LOGISTIC))
        return fe_ml_fail(w, MDOT_UNSUPPORTED,
                          "probabilities of more than two classes, or with a post_transform: train "
                          "SVC(probability=False), if need be within CalibratedClassifierCV");
    for (int64_t i = 0; i < parts; i++) {
        bool fits = per_class[i] >= 0 && per_class[i] <= n[1] - count;
        if (!fits) return fe_ml_fail(w, MDOT_MALFORMED, "attribute 'vectors_per_class' exceeds the support vectors");
        count += per_class[i];
    }
    int64_t pairs = classes * (classes - 1) / 2;
    if (parts != classes || count == 0 || n[1] % count != 0 || n[0] != (classes - 1) * count || n[2] != pairs ||
        n[3] != n[4] || (n[3] > 0 && n[3] != pairs))
        return fe_ml_fail(w, MDOT_MALFORMED,
                          "%lld classes and %lld support vectors do not fit %lld coefficients and %lld rho",
                          (long long)classes, (long long)count, (long long)n[0], (long long)n[2]);
    BS_TRY(kernel_values(w, reals[1], count, n[1] / count, &kernels));
    ir_value *decisions = fe_ml_add2(w, IR_OP_MatMul, kernels, pair_weights(w, reals[0], per_class, classes, count));
    decisions = fe_ml_add2(w, IR_OP_Add, decisions, fe_ml_vector(w, "rho", reals[2], pairs));
    ir_value *label = voted_label(w, decisions, labels, classes), *scores;
    if (classes > 2) {
        scores = fe_ml_transform_scores(w, transform, decisions);
    } else if (n[3] > 0) {
        decisions = fe_ml_add2(w, IR_OP_Mul, decisions, fe_ml_scalar(w, "slope", reals[3][0]));
        decisions = fe_ml_add2(w, IR_OP_Add, decisions, fe_ml_scalar(w, "offset", reals[4][0]));
        ir_value *other = fe_ml_add1(w, IR_OP_Sigmoid, decisions);
        scores = fe_ml_pair(w, fe_ml_add1(w, IR_OP_Sigmoid, fe_ml_add1(w, IR_OP_Neg, decisions)), other);
    } else {
        scores = fe_ml_pair(w, fe_ml_add1(w, IR_OP_Neg, decisions), decisions);
        scores = fe_ml_transform_scores(w, transform, scores);
    }
    return fe_ml_finish(w, (ir_value *[]){label, scores}, 2);
}
