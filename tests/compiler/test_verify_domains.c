/* test_verify_domains.c — mdotc_verify accepts right code for models whose functions have a domain, and for models
 * whose f32 values decide between a finite and an infinite result. MDOT_SEEDS is the number of seeds. */
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

#include <cmocka.h>

enum { LENGTH = 24, FEATURES = 16 };

static bool is_accepted(const char *folder, const char *body, uint64_t seed)
{
    static const int64_t bucket = LENGTH;
    char text[1024], artefact[256], model[256];
    snprintf(text, sizeof text,
             "x = input f32[L,%d]\nk = weights f32[%d,4]\none = constant f32[] [1]\ntwo = constant f32[] [2]\n%s",
             FEATURES, FEATURES, body);
    snprintf(artefact, sizeof artefact, "%s/model.mdot", folder);
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    ir_arena *arena = ir_arena_create(0);
    free(write_model(folder, "model.onnx", graph_to_onnx(graph_from_notation(text, LENGTH, arena))));
    ir_arena_destroy(arena);
    const mdotc_entry entry = {sizeof entry, "run", model};
    const mdotc_options compiled = {.struct_size = sizeof compiled, .buckets = &bucket, .bucket_count = 1};
    const mdotc_verify_options options = {.struct_size = sizeof options, .seed = seed};
    mdot_error err = {0};
    bool passed = false;
    if (mdotc_compile(&entry, 1, artefact, &compiled, &err) != MDOT_OK ||
        mdotc_verify(artefact, model, &options, &passed, &err) != MDOT_OK)
        fail_msg("%s in %s", err.message, text);
    return passed;
}

static void accept_all(const char *const *bodies, size_t count)
{
    const char *wanted = getenv("MDOT_SEEDS");
    int seeds = wanted != NULL ? atoi(wanted) : 3, refused = 0;
    char *folder = process_make_folder();
    for (size_t i = 0; i < count; i++)
        for (int seed = 1; seed <= seeds; seed++)
            if (!is_accepted(folder, bodies[i], (uint64_t)seed)) {
                print_message("refused with seed %d: %s\n", seed, bodies[i]);
                refused++;
            }
    process_remove_folder(folder);
    print_message("%d of %d right artefacts are refused\n", refused, (int)count * seeds);
    assert_int_equal(refused, 0);
}

static void functions_get_inputs_of_their_domain(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "a = Log(x)\ny = MatMul(a, k)\nreturn y\n",
        "a = Sqrt(x)\ny = MatMul(a, k)\nreturn y\n",
        "a = Acosh(x)\ny = MatMul(a, k)\nreturn y\n",
        "a = Atanh(x)\ny = MatMul(a, k)\nreturn y\n",
        "a = Asin(x)\ny = MatMul(a, k)\nreturn y\n",
        "a = Acos(x)\ny = MatMul(a, k)\nreturn y\n",
        "n = Neg(x)\na = Log(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Neg(x)\na = Sqrt(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Neg(x)\na = Acosh(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Sub(x, one)\na = Sqrt(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Sub(x, two)\na = Log(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Sub(one, x)\na = Log(n)\ny = MatMul(a, k)\nreturn y\n",
        "n = Add(x, one)\na = Log(n)\ny = MatMul(a, k)\nreturn y\n",
        "l = Log(x)\na = Log(l)\ny = MatMul(a, k)\nreturn y\n",
        "l = Log(x)\na = Sqrt(l)\ny = MatMul(a, k)\nreturn y\n",
        "l = Sqrt(x)\na = Acosh(l)\ny = MatMul(a, k)\nreturn y\n",
    };
    accept_all(bodies, sizeof bodies / sizeof *bodies);
}

static void rounding_may_decide_that_a_result_is_infinite(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "s = Sigmoid(x)\nd = Sub(one, s)\ny = Log(d)\nreturn y\n",
        "s = Tanh(x)\nd = Sub(one, s)\ny = Log(d)\nreturn y\n",
        "s = Tanh(x)\ny = Atanh(s)\nreturn y\n",
        "s = Erf(x)\nd = Sub(one, s)\ny = Log(d)\nreturn y\n",
        "s = Softmax(x)\nd = Sub(one, s)\ny = Log(d)\nreturn y\n",
        "s = Sigmoid(x)\nd = Sub(one, s)\ny = Reciprocal(d)\nreturn y\n",
        "s = Tanh(x)\nq = Mul(s, s)\nd = Sub(one, q)\nr = Sqrt(d)\ny = Reciprocal(r)\nreturn y\n",
        "s = Sigmoid(x)\nd = Sub(one, s)\nf = Div(s, d)\ny = Log(f)\nreturn y\n",
        "s = Sigmoid(x)\ny = Log(s)\nreturn y\n",
        "s = Softmax(x)\ny = Log(s)\nreturn y\n",
        "e = Exp(x)\nt = Add(one, e)\ny = Log(t)\nreturn y\n",
        "s = Sigmoid(x)\nd = Sub(one, s)\na = Log(d)\nb = Log(s)\nc = Add(a, b)\nn = Neg(c)\ny = Abs(n)\nreturn y\n",
    };
    accept_all(bodies, sizeof bodies / sizeof *bodies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_get_inputs_of_their_domain),
                                       cmocka_unit_test(rounding_may_decide_that_a_result_is_infinite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
