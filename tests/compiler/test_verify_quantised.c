/* test_verify_quantised.c — mdotc_verify accepts right code for random quantised models, feed-forward and recurrent,
 * and refuses it for models with wrong weights. A result between two steps may be rounded to either. Mutants with the
 * model's own results do not count. MDOT_MUTANTS is the number of models, and MDOT_SEED chooses others. */
#include "ir/ops.h"
#include "mdot/mdotc.h"
#include "tests/support/encoder_model.h"
#include "tests/support/graph_notation.h"
#include "tests/support/graph_onnx.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

enum { LENGTH = 24, TEXT = 8192 };

static uint32_t state_of_random = 1;

static int draw(int bound)
{
    state_of_random = state_of_random * UINT32_C(1664525) + UINT32_C(1013904223); /* constants from Numerical Recipes */
    return (int)(((uint64_t)(state_of_random >> 8) * (uint64_t)bound) >> 24);
}

typedef struct chain {
    char text[TEXT];
    int size, values, columns;
} chain;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void add(chain *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    c->size += vsnprintf(c->text + c->size, (size_t)(TEXT - c->size), format, list);
    va_end(list);
    if (c->size >= TEXT) fail_msg("the model's text is too long");
}
#pragma GCC diagnostic pop

/* The greatest magnitude of the chain's last value on random inputs. */
static double range_of_last(const chain *c)
{
    char text[TEXT + 32];
    snprintf(text, sizeof text, "%sreturn v%d\n", c->text, c->values);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(text, LENGTH, arena);
    ir_wide *result[1];
    mdot_error err = {0};
    ir_wide **inputs = random_inputs(graph, LENGTH, 7, arena);
    if (ir_evaluate(graph, (const ir_wide *const *)inputs, arena, result, &err) != MDOT_OK)
        fail_msg("%s in %s", err.message, text);
    double greatest = 1e-3;
    for (int64_t i = 0; i < result[0]->count; i++) greatest = fmax(greatest, fabs(result[0]->f[i]));
    ir_arena_destroy(arena);
    return greatest;
}

/* Rounds the last value to steps of its range, or of a greater one. */
static void quantise(chain *c)
{
    static const char *const types[] = {"u8", "i8", "u16", "i16"};
    static const int zeros[] = {128, 0, 32768, 0};
    int type = draw(6) < 5 ? draw(2) : 2 + draw(2), v = c->values;
    double range = range_of_last(c) * (draw(3) < 2 ? 1 + draw(3) : 1 << draw(5));
    add(c, "s%d = constant f32[] [%.9g]\nz%d = constant %s[] [%d]\n", v, range / (type < 2 ? 127 : 32767), v,
        types[type], zeros[type]);
    add(c, "q%d = QuantizeLinear(v%d, s%d, z%d)\nv%d = DequantizeLinear(q%d, s%d, z%d)\n", v, v, v, v, v + 1, v, v, v);
    c->values++;
}

/* A product with weights of 8 bits. */
static void multiply(chain *c, int columns, double factor)
{
    int v = c->values++;
    add(c, "u%d = weights f32[%d,%d]\ng%d = constant f32[] [%g]\nf%d = Mul(u%d, g%d)\n", v, c->columns, columns, v,
        factor, v, v, v);
    add(c, "a%d = constant f32[] [.01]\nk%d = QuantizeLinear(f%d, a%d) {output_dtype=3}\n", v, v, v, v);
    add(c, "w%d = DequantizeLinear(k%d, a%d)\nb%d = weights f32[%d]\n", v, v, v, v, columns);
    add(c, "m%d = MatMul(v%d, w%d)\nv%d = Add(m%d, b%d)\n", v, v, v, v + 1, v, v);
    c->columns = columns;
}

static void recur(chain *c, double factor)
{
    static const char *const cells[] = {"LSTM", "GRU", "RNN"};
    static const int gates[] = {4, 3, 1};
    int cell = draw(3), directions = 1 + draw(2), hidden = 4 + draw(5), v = c->values++;
    add(c, "i%d = constant i64[1] [1]\nx%d = Unsqueeze(v%d, i%d)\n", v, v, v, v);
    add(c, "u%d = weights f32[%d,%d,%d]\ng%d = constant f32[] [%g]\nw%d = Mul(u%d, g%d)\n", v, directions,
        gates[cell] * hidden, c->columns, v, factor, v, v, v);
    add(c, "r%d = weights f32[%d,%d,%d]\n", v, directions, gates[cell] * hidden, hidden);
    add(c, "y%d, h%d = %s(x%d, w%d, r%d) {hidden_size=%d, direction=\"%s\"}\n", v, v, cells[cell], v, v, v, hidden,
        directions == 2 ? "bidirectional" : "forward");
    add(c, "t%d = Transpose(y%d) {perm=[0, 2, 1, 3]}\nn%d = constant i64[2] [-1, %d]\nv%d = Reshape(t%d, n%d)\n", v, v,
        v, directions * hidden, v + 1, v, v);
    c->columns = directions * hidden;
}

/* A random chain. The weights of layer `changed` (0: none) are a quarter greater. */
static void make_chain(chain *c, uint32_t seed, int changed)
{
    static const char *const functions[] = {"Relu", "Sigmoid", "Tanh", "Softmax", "Gelu", "Identity"};
    state_of_random = seed;
    *c = (chain){.columns = 8};
    add(c, "v0 = input f32[L,8]\n");
    if (draw(2)) quantise(c);
    int layers = 1 + draw(3);
    for (int i = 1; i <= layers; i++) {
        double factor = i == changed ? 1.25 : 1;
        if (draw(2))
            recur(c, 8 * factor);
        else
            multiply(c, 4 + draw(12), 8 * factor);
        if (draw(2)) quantise(c);
        c->values++;
        add(c, "v%d = %s(v%d)\n", c->values, functions[draw(6)], c->values - 1);
        if (draw(2)) quantise(c);
    }
    if (draw(2)) { /* few numbers */
        c->values++;
        add(c, "d = constant i64[1] [0]\nv%d = %s(v%d, d)\n", c->values, draw(2) ? "ReduceMax" : "ReduceMean",
            c->values - 1);
    }
    if (draw(2)) {
        multiply(c, 1 + draw(3), 4);
        if (draw(2)) quantise(c);
    }
    if (draw(3)) quantise(c);
    const char *last = strrchr(c->text, 'q');
    bool is_quantised = draw(4) == 0 && last != NULL && strchr(last, '\n')[1] == '\0'; /* return the integers, too */
    add(c, "return v%d", c->values);
    add(c, is_quantised ? ", q%d\n" : "\n", c->values - 1);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    ir_arena *arena = ir_arena_create(0);
    free(write_model(folder, name, graph_to_onnx(graph_from_notation(text, LENGTH, arena))));
    ir_arena_destroy(arena);
}

static bool compiles(const char *model, const char *artefact)
{
    static const int64_t bucket = LENGTH;
    static const char *const target = "cpu:x86-64-v3";
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = &bucket, .bucket_count = 1, .targets = &target, .target_count = 1};
    mdot_error err = {0};
    mdot_status status = mdotc_compile(&entry, 1, artefact, &options, &err);
    if (status != MDOT_OK) print_message("%s\n", err.message);
    return status == MDOT_OK;
}

static void keep_row(void *user, const mdotc_verify_row *row) { *(mdotc_verify_row *)user = *row; }

static bool verifies(const char *artefact, const char *model, uint64_t seed, mdotc_verify_row *out_row)
{
    const mdotc_verify_options options = {
        .struct_size = sizeof options, .seed = seed, .row = keep_row, .user = out_row};
    mdot_error err = {0};
    bool passed = false;
    if (mdotc_verify(artefact, model, &options, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    return passed;
}

static ir_wide *first_output(const char *text, uint64_t seed, ir_arena *arena)
{
    ir_graph *graph = graph_from_notation(text, LENGTH, arena);
    ir_wide **inputs = random_inputs(graph, LENGTH, seed, arena), **result = IR_NEW_ARRAY(arena, ir_wide *, 2);
    mdot_error err = {0};
    if (ir_evaluate(graph, (const ir_wide *const *)inputs, arena, result, &err) != MDOT_OK) fail_msg("%s", err.message);
    return result[0];
}

/* Do the models give the same results? Then no verification can tell them apart. */
static bool is_equivalent(const char *text, const char *mutant)
{
    bool is_same = true;
    for (uint64_t seed = 1; is_same && seed < 9; seed++) {
        ir_arena *arena = ir_arena_create(0);
        const ir_wide *a = first_output(text, seed, arena), *b = first_output(mutant, seed, arena);
        for (int64_t i = 0; i < a->count; i++) is_same = is_same && fabs(a->f[i] - b->f[i]) <= 1e-6 * fabs(a->f[i]);
        ir_arena_destroy(arena);
    }
    return is_same;
}

static void right_code_passes_and_wrong_weights_fail(void **state)
{
    (void)state;
    const char *wanted = getenv("MDOT_MUTANTS");
    const char *first = getenv("MDOT_SEED");
    uint32_t before = first != NULL ? (uint32_t)atoi(first) * 10000 : 0;
    int count = wanted != NULL ? atoi(wanted) : 24, failed = 0, mutants = 0, caught = 0;
    char *folder = process_make_folder(), artefact[256], model[256], mutant[256];
    snprintf(artefact, sizeof artefact, "%s/model.mdot", folder);
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(mutant, sizeof mutant, "%s/mutant.onnx", folder);
    chain *c = malloc(sizeof *c), *right = malloc(sizeof *right);
    for (int k = 1; k <= count; k++) {
        mdotc_verify_row row = {0};
        make_chain(c, (before + (uint32_t)k) * 7919, 0);
        write_text(folder, "model.onnx", c->text);
        if (!compiles(model, artefact)) fail_msg("does not compile: %s", c->text);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            if (verifies(artefact, model, seed, &row)) continue;
            print_message("model %d, seed %d: worst error %g of %g\n%s", k, (int)seed, row.worst_error, row.bound,
                          c->text);
            failed++;
            break;
        }
        *right = *c;
        make_chain(c, (before + (uint32_t)k) * 7919, 1);
        if (is_equivalent(right->text, c->text)) continue;
        write_text(folder, "mutant.onnx", c->text);
        if (!compiles(mutant, artefact)) fail_msg("does not compile: %s", c->text);
        mutants++;
        bool is_caught = !verifies(artefact, model, 1, &row);
        caught += is_caught;
        if (!is_caught)
            print_message("mutant %d missed: worst error %g of %g\n%s", k, row.worst_error, row.bound, c->text);
    }
    free(c);
    free(right);
    process_remove_folder(folder);
    print_message("%d of %d right models fail; %d of %d mutants are caught\n", failed, count, caught, mutants);
    assert_int_equal(failed, 0);
    assert_true(caught * 100 >= mutants * 96);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_code_passes_and_wrong_weights_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
