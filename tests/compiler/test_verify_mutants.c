/* test_verify_mutants.c — mdotc_verify catches artefacts of mutated models: one operator, weight, row of weights, or
 * constant (masks and scales) differs from the model. MDOT_MUTANTS is the number of mutants; the label `exhaustive`
 * makes 300. */
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "mdot/mdotc.h"
#include "tests/support/encoder_model.h"
#include "tests/support/graph_notation.h"
#include "tests/support/graph_onnx.h"
#include "tests/support/process.h"
#include "tests/support/random_model.h"

#include "onnx.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

enum { BYTES = 48, MODELS = 12, LENGTH = 24 };

static uint32_t state_of_random = 1;

static uint32_t draw(uint32_t bound)
{
    state_of_random = state_of_random * UINT32_C(1664525) + UINT32_C(1013904223); /* constants from Numerical Recipes */
    return (uint32_t)(((uint64_t)(state_of_random >> 8) * bound) >> 24);
}

/* Model 0 is an encoder with a mask; the others are random. */
static pb_buffer make_model(int number)
{
    uint8_t bytes[BYTES];
    if (number == 0) return encoder_model(1);
    uint32_t random = (uint32_t)number * 7919;
    for (int i = 0; i < BYTES; i++) {
        random = random * UINT32_C(1664525) + UINT32_C(1013904223);
        bytes[i] = (uint8_t)(random >> 24);
    }
    return random_model(bytes, BYTES);
}

/* ---- Mutations --------------------------------------------------------------------------------------------------- */

static const char *const replacements[][2] = {
    {"Add", "Sub"},
    {"Sub", "Add"},
    {"Mul", "Add"},
    {"Div", "Mul"},
    {"Relu", "Abs"},
    {"Tanh", "Sigmoid"},
    {"Sigmoid", "Tanh"},
    {"Erf", "Tanh"},
    {"Gelu", "Relu"},
    {"Max", "Min"},
    {"Min", "Max"},
    {"Sqrt", "Abs"},
    {"ReduceMean", "ReduceMax"},
    {"ReduceMax", "ReduceMin"},
    {"ReduceSum", "ReduceMax"},
    {"Exp", "Tanh"},
    {"Neg", "Abs"},
    {"Softplus", "Relu"},
    {"Abs", "Neg"},
};

static bool mutate_operator(Onnx__GraphProto *graph)
{
    size_t first = draw((uint32_t)graph->n_node);
    for (size_t k = 0; k < graph->n_node; k++) {
        Onnx__NodeProto *node = graph->node[(first + k) % graph->n_node];
        for (size_t r = 0; r < sizeof replacements / sizeof *replacements; r++) {
            if (strcmp(node->op_type, replacements[r][0]) != 0) continue;
            free(node->op_type);
            node->op_type = strdup(replacements[r][1]);
            return true;
        }
    }
    return false;
}

/* Elements of a random f32 initializer with at least (or, if `one`, exactly) this many elements. */
static float *pick_weights(Onnx__GraphProto *graph, size_t least, bool one, size_t *out_count, Onnx__TensorProto **out)
{
    size_t first = draw((uint32_t)graph->n_initializer);
    for (size_t k = 0; k < graph->n_initializer; k++) {
        Onnx__TensorProto *t = graph->initializer[(first + k) % graph->n_initializer];
        bool is_raw = t->raw_data.len > 0;
        size_t count = is_raw ? t->raw_data.len / sizeof(float) : t->n_float_data;
        if (t->data_type != MDOT_DTYPE_F32 || count < least || (one && count != 1)) continue;
        *out_count = count;
        *out = t;
        return is_raw ? (float *)(void *)t->raw_data.data : t->float_data;
    }
    return NULL;
}

static bool mutate_weights(Onnx__GraphProto *graph, int kind)
{
    size_t count;
    Onnx__TensorProto *tensor;
    float *data = pick_weights(graph, kind == 3 ? 1 : 2, kind == 3, &count, &tensor);
    if (data == NULL) return false;
    if (kind == 1) { /* one weight */
        float *weight = &data[draw((uint32_t)count)];
        *weight += *weight >= 0 ? 0.5F : -0.5F;
    } else if (kind == 2) { /* a row */
        size_t width = tensor->n_dims > 0 ? (size_t)tensor->dims[tensor->n_dims - 1] : 1,
               row = draw((uint32_t)(count / width));
        for (size_t i = 0; i < width; i++) data[row * width + i] *= 1.25F;
    } else { /* a scale, or the number of a mask */
        *data = fabsf(*data) > 1e3F ? 0 : *data * 1.25F + (*data == 0 ? 0.25F : 0);
    }
    return true;
}

static pb_buffer mutant_of(pb_buffer model, int kind, bool *out_made)
{
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, model.size, model.data);
    assert_non_null(proto);
    *out_made = kind == 0 ? mutate_operator(proto->graph) : mutate_weights(proto->graph, kind);
    pb_buffer bytes = {0};
    bytes.size = bytes.capacity = onnx__model_proto__get_packed_size(proto);
    bytes.data = malloc(bytes.size + 1);
    assert_non_null(bytes.data);
    onnx__model_proto__pack(proto, bytes.data);
    onnx__model_proto__free_unpacked(proto, NULL);
    return bytes;
}

/* ---- Equivalent mutants ------------------------------------------------------------------------------------------ */

static ir_graph *import(const char *path, ir_arena *arena)
{
    mdot_error err = {0};
    ir_graph *graph = NULL;
    return fe_import(path, NULL, arena, &graph, &err) == MDOT_OK ? graph : NULL;
}

/* Do the models give the same results, up to a millionth of the greatest? Then no verification can tell them apart. */
static bool is_equivalent(const char *model, const char *mutant)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *a = import(model, arena), *b = import(mutant, arena);
    bool is_same = a == NULL || b == NULL || a->output_count != b->output_count;
    mdot_error err = {0};
    for (uint64_t seed = 1; !is_same && seed < 4; seed++) {
        ir_wide **inputs = random_inputs(a, LENGTH, seed, arena);
        ir_wide **x = IR_NEW_ARRAY(arena, ir_wide *, a->output_count);
        ir_wide **y = IR_NEW_ARRAY(arena, ir_wide *, b->output_count);
        bool runs = ir_evaluate(a, (const ir_wide *const *)inputs, arena, x, &err) == MDOT_OK &&
                    ir_evaluate(b, (const ir_wide *const *)inputs, arena, y, &err) == MDOT_OK;
        double difference = 0, greatest = 0;
        for (int o = 0; runs && o < a->output_count; o++)
            for (int64_t i = 0; i < x[o]->count && i < y[o]->count; i++) {
                double p = ir_wide_get(x[o], i), q = ir_wide_get(y[o], i);
                greatest = fmax(greatest, fabs(p));
                difference = fmax(difference, p == q || (isnan(p) && isnan(q)) ? 0
                                              : isnan(p - q)                   ? INFINITY
                                                                               : fabs(p - q));
            }
        if (!runs || difference > 1e-6 * greatest) break;
        is_same = seed == 3;
    }
    ir_arena_destroy(arena);
    return is_same;
}

/* ---- The check --------------------------------------------------------------------------------------------------- */

static uint64_t seed_of_inputs = 1;

static bool verifies(const char *artefact, const char *model)
{
    const mdotc_verify_options options = {.struct_size = sizeof options, .seed = seed_of_inputs};
    mdot_error err = {0};
    bool passed = false;
    mdot_status status = mdotc_verify(artefact, model, &options, &passed, &err);
    if (status != MDOT_OK) print_message("%s\n", err.message);
    return status == MDOT_OK && passed;
}

static bool compiles(const char *model, const char *artefact)
{
    static const int64_t buckets[] = {LENGTH};
    static const char *const targets[] = {"cpu:x86-64-v3"};
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = buckets, .bucket_count = 1, .targets = targets, .target_count = 1};
    mdot_error err = {0};
    return mdotc_compile(&entry, 1, artefact, &options, &err) == MDOT_OK;
}

static void mutated_artefacts_are_caught(void **state)
{
    (void)state;
    const char *wanted = getenv("MDOT_MUTANTS");
    int count = wanted != NULL ? atoi(wanted) : 24, made = 0, caught = 0;
    char *folder = process_make_folder(), artefact[256];
    snprintf(artefact, sizeof artefact, "%s/mutant.mdot", folder);
    for (int attempt = 0; made < count && attempt < 8 * count; attempt++) {
        int number = attempt % MODELS;
        pb_buffer bytes = make_model(number);
        bool is_made;
        pb_buffer changed = mutant_of(bytes, attempt / MODELS % 4, &is_made);
        char *model = write_model(folder, "model.onnx", bytes), *mutant = write_model(folder, "mutant.onnx", changed);
        if (is_made && !is_equivalent(model, mutant) && compiles(mutant, artefact)) {
            made++;
            bool is_caught = !verifies(artefact, model);
            caught += is_caught;
            if (!is_caught)
                print_message("model %d, kind %d, attempt %d: missed\n", number, attempt / MODELS % 4, attempt);
            if (made % 10 == 1 && !(compiles(model, artefact) && verifies(artefact, model)))
                fail_msg("model %d itself fails", number);
        }
        free(model);
        free(mutant);
    }
    process_remove_folder(folder);
    print_message("%d of %d mutants are caught\n", caught, made);
    assert_int_equal(made, count);
    assert_true(caught * 100 >= made * 98);
}

/* ---- Outputs of unequal scales, and computed indices ------------------------------------------------------------- */

static void write_text(const char *folder, const char *name, const char *text)
{
    ir_arena *arena = ir_arena_create(0);
    free(write_model(folder, name, graph_to_onnx(graph_from_notation(text, LENGTH, arena))));
    ir_arena_destroy(arena);
}

/* Compiles the mutant. The model must fail and the mutant pass. */
static void expect_caught(const char *model_text, const char *mutant_text)
{
    char *folder = process_make_folder(), artefact[256], model[256], mutant[256];
    snprintf(artefact, sizeof artefact, "%s/mutant.mdot", folder);
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(mutant, sizeof mutant, "%s/mutant.onnx", folder);
    write_text(folder, "model.onnx", model_text);
    write_text(folder, "mutant.onnx", mutant_text);
    if (!compiles(mutant, artefact)) fail_msg("does not compile: %s", mutant_text);
    if (verifies(artefact, model)) fail_msg("the mutant passes: %s", mutant_text);
    if (!verifies(artefact, mutant)) fail_msg("the model itself fails: %s", mutant_text);
    process_remove_folder(folder);
}

/* A column or channel with a tenth too much is caught beside others that are a thousand to a million times greater. */
static void errors_are_relative_to_column_and_channel(void **state)
{
    (void)state;
    static const char *const models[] = {
        "x = input f32[L,4]\nw = constant f32[4,2] [5, %g, -7, %g, 3, %g, 4, %g]\ny = MatMul(x, w)\nreturn y\n",
        "x = input f32[L,4]\nw = constant f32[2,4] [5, 7, -3, 4, %g, %g, %g, %g]\nb = constant f32[2] [1, 0]\n"
        "y = Gemm(x, w, b) {transB=1}\nreturn y\n",
        "x = input f32[1,L,4]\na = constant i64[1] [1]\nw = constant f32[4,2] [5, %g, -7, %g, 3, %g, 4, %g]\n"
        "p = MatMul(x, w)\ny = ReduceMean(p, a) {keepdims=0}\nreturn y\n",
        "x = input f32[1,2,L]\nw = constant f32[2,2,2] [5, -7, 3, 4, %g, %g, %g, %g]\n"
        "y = Conv(x, w) {kernel_shape=[2], pads=[0, 1]}\nreturn y\n",
        "x = input f32[L,8]\ng = constant f32[8] [5, 7, 3, 4, %g, %g, %g, %g]\n"
        "y = LayerNormalization(x, g)\nreturn y\n",
        "x = input f32[L,4]\nw = constant f32[4,2] [5, %g, -7, %g, 3, %g, 4, %g]\np = MatMul(x, w)\n"
        "y = Relu(p)\nreturn y\n",
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (double scale = 1e-3; scale > 1e-6; scale /= 30) {
            char text[2][512];
            for (int k = 0; k < 2; k++) {
                double s = k == 0 ? scale : 1.1 * scale;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(text[k], sizeof text[k], models[i], 5 * s, -7 * s, 3 * s, 4 * s);
#pragma GCC diagnostic pop
            }
            expect_caught(text[0], text[1]);
        }
}

/* Integers reach the whole table through arithmetic, and are great and negative where no table limits them. */
static void integers_reach_the_models_range(void **state)
{
    (void)state;
    static const char *const models[][3] = {
        {"i = input i64[L]\nt = weights f32[200,2]\nc = constant i64[] [%d]\nr = Mod(i, c)\ny = Gather(t, r)\n"
         "return y\n",
         "199", "200"},
        {"i = input i64[L]\nj = input i64[L]\nt = weights f32[97,2]\np = constant i64[] [31]\nm = constant i64[] [%d]\n"
         "a = Mul(i, p)\nb = Add(a, j)\nr = Mod(b, m)\ny = Gather(t, r)\nz = Cast(b) {to=1}\nreturn y, z\n",
         "96", "97"},
        {"i = input i64[L]\nt = weights f32[400,2]\nc = constant i64[] [%d]\nr = Mul(i, c)\ny = Gather(t, r)\n"
         "return y\n",
         "3", "4"},
        {"i = input i64[L]\nt = weights f32[400,2]\nc = constant i64[] [%d]\nr = Min(i, c)\ny = Gather(t, r)\n"
         "return y\n",
         "398", "399"},
        {"i = input i64[L]\nt = weights f32[50,2]\nc = constant i64[] [%d]\nr = Div(i, c)\ny = Gather(t, r)\n"
         "return y\n",
         "9", "8"},
        {"i = input i64[L]\nc = constant i64[] [%d]\ny = Mod(i, c)\nreturn y\n", "1009", "1010"},
        {"i = input i32[L]\nc = constant i32[] [%d]\ny = Max(i, c)\nreturn y\n", "-1000", "-2000"},
        {"i = input i64[L]\nc = constant i64[] [%d]\na = Mul(i, i)\ny = Min(a, c)\nreturn y\n", "5000", "6000"},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[2][512];
        for (int k = 0; k < 2; k++) {
            const char *place = strstr(models[i][0], "%d");
            snprintf(text[k], sizeof text[k], "%.*s%s%s", (int)(place - models[i][0]), models[i][0], models[i][1 + k],
                     place + 2);
        }
        expect_caught(text[0], text[1]);
    }
}

/* Random masks are no zeros and ones, so that scores beyond f32 mask whole rows, in f32 alone. Right code passes with
 * every seed, and wrong code fails. */
static void masks_beyond_f32_are_verified(void **state)
{
    (void)state;
    static const char *const model_text =
        "x = input f32[L,4]\nm = input f32[L]\none = constant f32[] [1]\nc = constant f32[] [%g]\n"
        "w = weights f32[4,4]\nt = Transpose(x) {perm=[1, 0]}\nk = MatMul(w, t)\ns = MatMul(x, k)\n"
        "r = Sub(one, m)\nb = Mul(r, c)\na = Add(s, b)\np = Softmax(a)\ny = MatMul(p, x)\nreturn y\n";
    static const double masks[] = {-1e4, -1e9, -1e38, -3.4e38, 3.4e38};
    char *folder = process_make_folder(), artefact[256], model[256], text[512];
    snprintf(artefact, sizeof artefact, "%s/model.mdot", folder);
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, model_text, masks[i]);
#pragma GCC diagnostic pop
        write_text(folder, "model.onnx", text);
        if (!compiles(model, artefact)) fail_msg("does not compile: %s", text);
        for (seed_of_inputs = 1; seed_of_inputs <= 30; seed_of_inputs++)
            if (!verifies(artefact, model)) fail_msg("mask %g fails with seed %d", masks[i], (int)seed_of_inputs);
        *strstr(text, "y = MatMul(p") = 'z'; /* the mutant returns a tenth more */
        char changed[512];
        snprintf(changed, sizeof changed, "%.*sq = constant f32[] [1.1]\ny = Mul(z, q)\nreturn y\n",
                 (int)(strstr(text, "return") - text), text);
        write_text(folder, "mutant.onnx", changed);
        char mutant[256];
        snprintf(mutant, sizeof mutant, "%s/mutant.onnx", folder);
        if (!compiles(mutant, artefact)) fail_msg("does not compile: %s", changed);
        for (seed_of_inputs = 1; seed_of_inputs <= 30; seed_of_inputs++)
            if (verifies(artefact, model))
                fail_msg("a mutant of mask %g passes, seed %d", masks[i], (int)seed_of_inputs);
        seed_of_inputs = 1;
    }
    process_remove_folder(folder);
}

/* Powers of integers pass with any exponent, although fractional ones beyond 2^36 depend on the implementation. Wrong
 * powers are caught, and whole exponents are exact. */
static void powers_of_integers_are_verified(void **state)
{
    (void)state;
    static const char *const bases[] = {"i64", "i32"}, *const exponents[] = {"f32", "f64", "i64"};
    for (int b = 0; b < 2; b++)
        for (int e = 0; e < 3; e++) {
            char text[2][512];
            for (int k = 0; k < 2; k++) {
                bool is_float = e < 2;
                snprintf(text[k], sizeof text[k],
                         "x = input %s[L,3]\ne = input %s[L,3]\nc = constant %s[] [%s]\nf = Mul(e, c)\n"
                         "y = Pow(x, f)\nreturn y\n",
                         bases[b], exponents[e], exponents[e], is_float ? (k ? "1.001" : "1.0") : (k ? "2" : "1"));
            }
            expect_caught(text[0], text[1]);
        }
    expect_caught("x = input i64[L]\ne = constant f32[] [15]\ny = Pow(x, e)\nreturn y\n",
                  "x = input i64[L]\ne = constant f32[] [15]\no = constant i64[] [1]\np = Pow(x, e)\ny = Add(p, o)\n"
                  "return y\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutated_artefacts_are_caught),    cmocka_unit_test(errors_are_relative_to_column_and_channel),
        cmocka_unit_test(integers_reach_the_models_range), cmocka_unit_test(masks_beyond_f32_are_verified),
        cmocka_unit_test(powers_of_integers_are_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
