/* test_ml_operators.c — ai.onnx.ml linear models, scaling and selection against formulas. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

enum { ROWS = 3, FEATURES = 2 };

/* A one-node model on x f32[N,2]. The attributes follow. */
static onnx_builder *begin(const char *op_type, const char *inputs, const char *outputs)
{
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "ai.onnx.ml", 3);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,2");
    onnx_node(b, op_type, inputs, outputs);
    return b;
}

/* Imports the model, adds these outputs, and compares them with the wanted values for x. The output values follow one
 * another in `wanted`. */
static void expect(onnx_builder *b, const char *first, const char *second, const double x[ROWS * FEATURES],
                   const double *wanted)
{
    mdot_error err;
    onnx_output(b, first);
    if (second != NULL) onnx_output(b, second);
    imported model = expect_imported(b, NULL);
    model.graph->max_length = 16;
    if (ir_infer(model.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    ir_arena *arena = ir_arena_create(0);
    ir_wide *input = ir_wide_create(arena, MDOT_DTYPE_F32, 2, (int64_t[]){ROWS, FEATURES}), *out[2];
    for (int i = 0; i < ROWS * FEATURES; i++) input->f[i] = x[i];
    if (ir_evaluate(model.graph, (const ir_wide *const[]){input}, arena, out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    for (int k = 0; k < model.graph->output_count; k++)
        for (int64_t i = 0; i < out[k]->count; i++, wanted++) {
            double have = ir_wide_get(out[k], i);
            if (!(fabs(have - *wanted) < 1e-6))
                fail_msg("output %d element %d is %g, not %g", k, (int)i, have, *wanted);
        }
    ir_arena_destroy(arena);
    release(&model);
}

static const double x[ROWS * FEATURES] = {1, 2, -3, 0.5, 0, 0};

static double logistic(double value) { return 1 / (1 + exp(-value)); }

static void a_scaler_subtracts_and_multiplies(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:Scaler", "x", "y");
    onnx_attr_floats(b, "offset", 2, (float[]){1, -2});
    onnx_attr_floats(b, "scale", 2, (float[]){2, 0.5F});
    expect(b, "y", NULL, x, (double[]){0, 2, -8, 1.25, -2, 1});
    b = begin("ai.onnx.ml:Scaler", "x", "y");
    onnx_attr_floats(b, "offset", 1, (float[]){1});
    onnx_attr_floats(b, "scale", 2, (float[]){2, 4});
    expect(b, "y", NULL, x, (double[]){0, 4, -8, -2, -2, -4});
}

static void a_normalizer_divides_rows_and_keeps_zeros(void **state)
{
    (void)state;
    static const struct {
        const char *norm;
        double of[2];
    } norms[] = {{"MAX", {2, 3}}, {"L1", {3, 3.5}}, {"L2", {2.23606797749979, 3.0413812651491097}}};
    for (int k = 0; k < 3; k++) {
        onnx_builder *b = begin("ai.onnx.ml:Normalizer", "x", "y");
        onnx_attr_string(b, "norm", norms[k].norm);
        const double *of = norms[k].of;
        expect(b, "y", NULL, x, (double[]){1 / of[0], 2 / of[0], -3 / of[1], 0.5 / of[1], 0, 0});
    }
}

static void a_binarizer_compares(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:Binarizer", "x", "y");
    onnx_attr_float(b, "threshold", 0.5F);
    expect(b, "y", NULL, x, (double[]){1, 1, 0, 0, 0, 0});
}

static void an_extractor_selects_columns(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:ArrayFeatureExtractor", "x,columns", "y");
    onnx_initializer(b, "columns", MDOT_DTYPE_I64, "1", (int64_t[]){1});
    expect(b, "y", NULL, x, (double[]){2, 0.5, 0});
}

static void a_linear_regressor_has_rows_of_coefficients(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 4, (float[]){1, 2, 3, -1});
    onnx_attr_floats(b, "intercepts", 2, (float[]){0.5F, 0});
    onnx_attr_int(b, "targets", 2);
    expect(b, "y", NULL, x, (double[]){5.5, 1, -1.5, -9.5, 0.5, 0});
}

static void a_linear_classifier_gives_labels_and_scores(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearClassifier", "x", "label,scores");
    onnx_attr_floats(b, "coefficients", 4, (float[]){1, 0, 0, 1});
    onnx_attr_floats(b, "intercepts", 2, (float[]){0, 0});
    onnx_attr_ints(b, "classlabels_ints", 2, (int64_t[]){7, -4});
    onnx_attr_string(b, "post_transform", "LOGISTIC");
    expect(b, "label", "scores", x,
           (double[]){-4, -4, 7, logistic(1), logistic(2), logistic(-3), logistic(0.5), 0.5, 0.5});
}

/* One coefficient row for two classes, as ONNX Runtime computes it. */
static void one_score_decides_between_two_classes(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearClassifier", "x", "label,scores");
    onnx_attr_floats(b, "coefficients", 2, (float[]){1, 0});
    onnx_attr_floats(b, "intercepts", 1, (float[]){0.25F});
    onnx_attr_ints(b, "classlabels_ints", 2, (int64_t[]){3, 5});
    expect(b, "label", "scores", x, (double[]){5, 3, 5, -0.25, 1.25, 3.75, -2.75, 0.75, 0.25});
}

static void one_hot_encoders_ignore_unknown_categories(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:OneHotEncoder", "x", "y");
    onnx_attr_ints(b, "cats_int64s", 2, (int64_t[]){2, 0});
    expect(b, "y", NULL, x, (double[]){0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1});
}

static void label_encoders_map_numbers(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LabelEncoder", "x", "y");
    onnx_attr_floats(b, "keys_floats", 3, (float[]){1, -3, 1});
    onnx_attr_ints(b, "values_int64s", 3, (int64_t[]){10, 20, 30});
    onnx_attr_int(b, "default_int64", -7);
    expect(b, "y", NULL, x, (double[]){10, -7, 20, -7, -7, -7});
    b = begin("ai.onnx.ml:LabelEncoder", "x", "y");
    onnx_attr_floats(b, "keys_floats", 2, (float[]){NAN, 2});
    onnx_attr_floats(b, "values_floats", 2, (float[]){0.5F, 1.5F});
    const double with_nan[] = {NAN, 2, 1, NAN, 0, 0};
    expect(b, "y", NULL, with_nan, (double[]){0.5, 1.5, 0, 0.5, 0, 0});
    b = begin("ai.onnx.ml:LabelEncoder", "x", "y");
    onnx_attr_strings(b, "keys_strings", "A100,H100");
    onnx_attr_ints(b, "values_int64s", 2, (int64_t[]){0, 1});
    onnx_output(b, "y");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "keys_strings", "encode the column as numbers", NULL);
}

static void imputers_replace_one_number(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:Imputer", "x", "y");
    onnx_attr_floats(b, "imputed_value_floats", 2, (float[]){7, 8});
    onnx_attr_float(b, "replaced_value_float", NAN);
    const double with_nan[] = {NAN, 2, -3, NAN, 0, 0};
    expect(b, "y", NULL, with_nan, (double[]){7, 2, -3, 8, 0, 0});
    b = begin("ai.onnx.ml:Imputer", "x", "y");
    onnx_attr_floats(b, "imputed_value_floats", 1, (float[]){9});
    expect(b, "y", NULL, x, (double[]){1, 2, -3, 0.5, 9, 9});
}

static void feature_vectorizers_join_columns(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:FeatureVectorizer", "x,x", "y");
    onnx_attr_ints(b, "inputdimensions", 2, (int64_t[]){2, 2});
    expect(b, "y", NULL, x, (double[]){1, 2, 1, 2, -3, 0.5, -3, 0.5, 0, 0, 0, 0});
}

static void support_vectors_weigh_kernels(void **state)
{
    (void)state;
    static const char *const kinds[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    static const float vectors[] = {1, 0, -1, 2}, weights[] = {0.5F, -2}, parameters[] = {0.25F, 0.5F, 3};
    for (int kind = 0; kind < 4; kind++) {
        double wanted[ROWS];
        for (int r = 0; r < ROWS; r++) {
            wanted[r] = 0.125;
            for (int s = 0; s < 2; s++) {
                double p = x[2 * r] - vectors[2 * s], q = x[2 * r + 1] - vectors[2 * s + 1];
                double dot = x[2 * r] * vectors[2 * s] + x[2 * r + 1] * vectors[2 * s + 1], z = 0.25 * dot + 0.5;
                double value = kind == 0   ? dot
                               : kind == 1 ? z * z * z
                               : kind == 2 ? exp(-0.25 * (p * p + q * q))
                                           : tanh(z);
                wanted[r] += weights[s] * value;
            }
        }
        onnx_builder *b = begin("ai.onnx.ml:SVMRegressor", "x", "y");
        onnx_attr_string(b, "kernel_type", kinds[kind]);
        onnx_attr_int(b, "n_supports", 2);
        onnx_attr_floats(b, "support_vectors", 4, vectors);
        onnx_attr_floats(b, "coefficients", 2, weights);
        onnx_attr_floats(b, "kernel_params", 3, parameters);
        onnx_attr_floats(b, "rho", 1, (float[]){0.125F});
        expect(b, "y", NULL, x, wanted);
    }
}

/* Decisions of all pairs, votes and two-class scores against the formulas, for random machines. */
static void support_vectors_vote_for_classes(void **state)
{
    (void)state;
    enum { MOST = 5, VECTORS = 3 * MOST, PAIRS = MOST * (MOST - 1) / 2 };
    srand(51);
    for (int trial = 0; trial < 300; trial++) {
        int classes = 2 + rand() % (MOST - 1), pairs = classes * (classes - 1) / 2, count = 0, start[MOST + 1] = {0};
        int kind = classes == 2 ? rand() % 3 : 0; /* decisions, logistic, probabilities */
        int64_t per_class[MOST], labels[MOST];
        float vectors[2 * VECTORS], weights[MOST * VECTORS], rho[PAIRS], curve[] = {-1.5F, 0.25F};
        for (int c = 0; c < classes; c++) {
            per_class[c] = rand() % 3 + (c == 0);
            start[c + 1] = count += (int)per_class[c];
            labels[c] = 7 * (c + 1);
        }
        for (int i = 0; i < 2 * count; i++) vectors[i] = (float)(rand() % 9 - 4) / 4;
        for (int i = 0; i < (classes - 1) * count; i++) weights[i] = (float)(rand() % 9 - 4) / 4;
        for (int i = 0; i < pairs; i++) rho[i] = (float)(rand() % 9 - 4) / 16 + 0.01F;
        double label[ROWS], score[ROWS * PAIRS], *scores = score;
        for (int r = 0; r < ROWS; r++) {
            int votes[MOST] = {0}, best = 0;
            for (int i = 0, p = 0; i < classes; i++)
                for (int j = i + 1; j < classes; j++, p++) {
                    double d = rho[p];
                    for (int s = 0; s < count; s++) {
                        bool in_i = s >= start[i] && s < start[i + 1], in_j = s >= start[j] && s < start[j + 1];
                        double a = x[2 * r] - vectors[2 * s], b = x[2 * r + 1] - vectors[2 * s + 1];
                        if (in_i || in_j) d += weights[(in_i ? j - 1 : i) * count + s] * exp(-0.25 * (a * a + b * b));
                    }
                    votes[d > 0 ? i : j]++;
                    double t = d * curve[0] + curve[1];
                    if (classes == 2) *scores++ = kind == 0 ? -d : kind == 1 ? logistic(-d) : logistic(-t);
                    *scores++ = kind == 0 ? d : kind == 1 ? logistic(d) : logistic(t);
                }
            for (int c = 1; c < classes; c++) best = votes[c] > votes[best] ? c : best;
            label[r] = (double)labels[best];
        }
        double wanted[ROWS + ROWS * PAIRS];
        memcpy(wanted, label, sizeof label);
        memcpy(wanted + ROWS, score, (size_t)(scores - score) * sizeof *score);
        onnx_builder *b = begin("ai.onnx.ml:SVMClassifier", "x", "label,scores");
        onnx_attr_string(b, "kernel_type", "RBF");
        onnx_attr_floats(b, "kernel_params", 3, (float[]){0.25F, 0, 3});
        onnx_attr_ints(b, "vectors_per_class", classes, per_class);
        onnx_attr_ints(b, "classlabels_ints", classes, labels);
        onnx_attr_floats(b, "support_vectors", 2 * count, vectors);
        onnx_attr_floats(b, "coefficients", (classes - 1) * count, weights);
        onnx_attr_floats(b, "rho", pairs, rho);
        if (kind == 1) onnx_attr_string(b, "post_transform", "LOGISTIC");
        if (kind == 2) onnx_attr_floats(b, "prob_a", 1, curve), onnx_attr_floats(b, "prob_b", 1, curve + 1);
        expect(b, "label", "scores", x, wanted);
    }
}

static void only_the_scores_may_be_wanted(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearClassifier", "x", ",scores");
    onnx_attr_floats(b, "coefficients", 4, (float[]){1, 0, 0, 1});
    onnx_attr_ints(b, "classlabels_ints", 2, (int64_t[]){0, 1});
    expect(b, "scores", NULL, x, x);
}

/* A row's scores sum to one. Zero takes no part: the score is 0 times exp(-max). */
static void softmax_zero_leaves_out_zeros(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 4, (float[]){1, 0, 0, 0});
    onnx_attr_int(b, "targets", 2);
    onnx_attr_string(b, "post_transform", "SOFTMAX_ZERO");
    expect(b, "y", NULL, (double[]){1, 2, 3, 0.5, 2, 0}, (double[]){1, 0, 1, 0, 1, 0});
}

/* The values are the normal quantile's to three digits, because the formula is an approximation. */
static void probit_is_the_normal_quantile(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 2, (float[]){1, 0});
    onnx_attr_string(b, "post_transform", "PROBIT");
    expect(b, "y", NULL, (double[]){0.3, 2, 0.8, 0.5, 0.5, 0}, (double[]){-0.524445938, 0.841756076, 0});
}

static void refuse(onnx_builder *b, const char *output, mdot_status status, const char *part, const char *other)
{
    onnx_output(b, output);
    expect_refused(b, NULL, status, part, other, NULL);
}

static void unusable_support_vectors_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t per_class[2];
        int classes, weights, rho;
        const char *transform, *text;
        mdot_status status;
    } cases[] = {{{1, 2}, 2, 3, 1, "NONE", "exceeds", MDOT_MALFORMED},
                 {{-1, 2}, 2, 2, 1, "NONE", "exceeds", MDOT_MALFORMED},
                 {{0, 0}, 2, 2, 1, "NONE", "do not fit", MDOT_MALFORMED},
                 {{1, 1}, 2, 3, 1, "NONE", "do not fit", MDOT_MALFORMED},
                 {{1, 1}, 2, 2, 2, "NONE", "do not fit", MDOT_MALFORMED},
                 {{1, 1}, 0, 2, 1, "NONE", "LinearSVC", MDOT_UNSUPPORTED},
                 {{1, 1}, 2, 2, 1, "SOFTMAX", "CalibratedClassifierCV", MDOT_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin("ai.onnx.ml:SVMClassifier", "x", "label,y");
        if (cases[i].classes > 0) onnx_attr_ints(b, "vectors_per_class", 2, cases[i].per_class);
        onnx_attr_ints(b, "classlabels_ints", 2, (int64_t[]){0, 1});
        onnx_attr_floats(b, "support_vectors", 2, (float[]){1, 2});
        onnx_attr_floats(b, "coefficients", cases[i].weights, (float[]){1, 2, 3});
        onnx_attr_floats(b, "rho", cases[i].rho, (float[]){1, 2});
        onnx_attr_string(b, "post_transform", cases[i].transform);
        refuse(b, "y", cases[i].status, "SVMClassifier", cases[i].text);
    }
}

static void faulty_attributes_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:Scaler", "x", "y");
    onnx_attr_floats(b, "offset", 2, (float[]){1, -2});
    onnx_attr_floats(b, "scale", 3, (float[]){2, 0.5F, 1});
    refuse(b, "y", MDOT_MALFORMED, "Scaler", "2 and 3 elements");
    b = begin("ai.onnx.ml:Scaler", "x", "y");
    onnx_attr_floats(b, "offset", 2, (float[]){1, -2});
    refuse(b, "y", MDOT_MALFORMED, "'scale' is missing", "");
    b = begin("ai.onnx.ml:Scaler", "x", "y");
    onnx_attr_int(b, "offset", 2);
    refuse(b, "y", MDOT_MALFORMED, "'offset' must be a list of floats", "");
    b = begin("ai.onnx.ml:Normalizer", "x", "y");
    onnx_attr_string(b, "norm", "L3");
    refuse(b, "y", MDOT_UNSUPPORTED, "\"L3\"", "MAX, L1 and L2");
    b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 3, (float[]){1, 2, 3});
    onnx_attr_int(b, "targets", 2);
    refuse(b, "y", MDOT_MALFORMED, "3 elements", "no multiple of 2");
    b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 2, (float[]){1, 2});
    onnx_attr_int(b, "targets", 0);
    refuse(b, "y", MDOT_MALFORMED, "number of targets", "");
    b = begin("ai.onnx.ml:LinearRegressor", "x", "y");
    onnx_attr_floats(b, "coefficients", 2, (float[]){1, 2});
    onnx_attr_string(b, "post_transform", "SQUARE");
    refuse(b, "y", MDOT_UNSUPPORTED, "\"SQUARE\"", "known are");
    b = begin("ai.onnx.ml:Binarizer", "", "y");
    refuse(b, "y", MDOT_MALFORMED, "it has no input", "");
}

static void text_labels_and_dictionaries_name_the_remedy(void **state)
{
    (void)state;
    onnx_builder *b = begin("ai.onnx.ml:LinearClassifier", "x", "label,scores");
    onnx_attr_floats(b, "coefficients", 4, (float[]){1, 0, 0, 1});
    onnx_attr_strings(b, "classlabels_strings", "short,long");
    refuse(b, "label", MDOT_UNSUPPORTED, "\"short\"", "LabelEncoder");
    b = begin("ai.onnx.ml:ZipMap", "x", "y");
    onnx_attr_ints(b, "classlabels_int64s", 2, (int64_t[]){0, 1});
    refuse(b, "y", MDOT_UNSUPPORTED, "ZipMap", "zipmap=False");
}

/* A job may hold the operators. They are opaque there, because a network's cost does not depend on them. */
static void a_job_keeps_the_operators(void **state)
{
    (void)state;
    const fe_options options = {.job = true};
    onnx_builder *b = begin("ai.onnx.ml:ZipMap", "x", "y");
    onnx_output(b, "y");
    imported model = expect_imported(b, &options);
    assert_null(node_at(model.graph, 0)->op);
    release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scaler_subtracts_and_multiplies),
        cmocka_unit_test(a_normalizer_divides_rows_and_keeps_zeros),
        cmocka_unit_test(a_binarizer_compares),
        cmocka_unit_test(an_extractor_selects_columns),
        cmocka_unit_test(a_linear_regressor_has_rows_of_coefficients),
        cmocka_unit_test(a_linear_classifier_gives_labels_and_scores),
        cmocka_unit_test(one_score_decides_between_two_classes),
        cmocka_unit_test(one_hot_encoders_ignore_unknown_categories),
        cmocka_unit_test(label_encoders_map_numbers),
        cmocka_unit_test(imputers_replace_one_number),
        cmocka_unit_test(feature_vectorizers_join_columns),
        cmocka_unit_test(support_vectors_weigh_kernels),
        cmocka_unit_test(support_vectors_vote_for_classes),
        cmocka_unit_test(unusable_support_vectors_are_refused),
        cmocka_unit_test(only_the_scores_may_be_wanted),
        cmocka_unit_test(softmax_zero_leaves_out_zeros),
        cmocka_unit_test(probit_is_the_normal_quantile),
        cmocka_unit_test(faulty_attributes_are_refused),
        cmocka_unit_test(text_labels_and_dictionaries_name_the_remedy),
        cmocka_unit_test(a_job_keeps_the_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
