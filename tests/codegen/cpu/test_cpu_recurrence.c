/* test_cpu_recurrence.c — LSTM, GRU and RNN from ONNX operators to code, in the variants that exporters write. Passes,
 * plan and code are compared with the operator evaluation. */
#include "tests/support/graph_code.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static const int64_t lengths[] = {1, 2, 7, 33, 0};

/* X [S, B, 5], hidden 20: one whole vector and a partial one. */
#define LSTM(steps, batch)                                                                                             \
    "x = input f32[" steps "," batch ",5]\nw = weights f32[1,80,5]\nr = weights f32[1,80,20]\n"                        \
    "b = weights f32[1,160]\n"
#define GRU(steps, batch)                                                                                              \
    "x = input f32[" steps "," batch ",5]\nw = weights f32[1,60,5]\nr = weights f32[1,60,20]\n"                        \
    "b = weights f32[1,120]\n"

static void an_lstm_runs_over_the_length(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n",
                                  lengths);
    assert_code_agrees(LSTM("L", "1") "y, h, c = LSTM(x, w, r) {hidden_size=20, direction=\"reverse\"}\nreturn y, c\n",
                       lengths);
    assert_kernels(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y\n", "linear nest recurrence");
}

/* With as many items as a matrix kernel needs, the matmul of a step still takes f32 factors. */
static void a_step_of_many_items_computes_in_f32(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(LSTM("L", "16") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n",
                                  lengths);
    assert_code_agrees_everywhere(GRU("3", "L") "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn y, h\n", lengths);
}

static void unused_results_are_not_stored(void **state)
{
    (void)state;
    assert_code_agrees(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn h\n", lengths);
    assert_code_agrees(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nz = Tanh(y)\nreturn z\n", lengths);
}

static void both_directions_are_concatenated(void **state)
{
    (void)state;
    assert_code_agrees(
        "x = input f32[L,1,6]\nw = weights f32[2,64,6]\nr = weights f32[2,64,16]\nb = weights f32[2,128]\n"
        "y, h, c = LSTM(x, w, r, b) {hidden_size=16, direction=\"bidirectional\"}\n"
        "t = Transpose(y) {perm=[0, 2, 1, 3]}\nshape = constant i64[3] [0, 0, -1]\n"
        "z = Reshape(t, shape)\nreturn z, h, c\n",
        lengths);
    assert_code_agrees(
        "x = input f32[L,2,6]\nw = weights f32[2,48,6]\nr = weights f32[2,48,16]\nb = weights f32[2,96]\n"
        "y, h = GRU(x, w, r, b) {hidden_size=16, direction=\"bidirectional\", linear_before_reset=1}\n"
        "return y, h\n",
        lengths);
}

static void a_gru_resets_before_or_after_its_matmul(void **state)
{
    (void)state;
    assert_code_agrees(GRU("L", "1") "y, h = GRU(x, w, r, b) {hidden_size=20, linear_before_reset=1}\nreturn y, h\n",
                       lengths);
    assert_code_agrees(GRU("L", "1") "y, h = GRU(x, w, r) {hidden_size=20, linear_before_reset=1}\nreturn y, h\n",
                       lengths);
    assert_code_agrees(GRU("L", "3") "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn y, h\n", lengths);
}

static void the_batch_may_be_the_length(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(LSTM("3", "L") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n",
                                  lengths);
    assert_code_agrees(GRU("3", "L") "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn h\n", lengths);
    assert_code_agrees("x = input f32[L,4,5]\nw = weights f32[1,80,5]\nr = weights f32[1,80,20]\n"
                       "h0 = input f32[L,1,20]\nc0 = input f32[L,1,20]\n"
                       "y, h, c = LSTM(x, w, r, _, _, h0, c0) {hidden_size=20, layout=1}\nreturn y, h, c\n",
                       lengths);
}

static void sequences_end_at_their_own_lengths(void **state)
{
    (void)state;
    assert_code_agrees(LSTM("6", "L") "n = input i32[L]\n"
                                      "y, h, c = LSTM(x, w, r, b, n) {hidden_size=20}\nreturn y, h, c\n",
                       lengths);
    assert_code_agrees(GRU("L", "3") "n = input i32[3]\n"
                                     "y, h = GRU(x, w, r, b, n) {hidden_size=20, direction=\"reverse\"}\nreturn y, h\n",
                       lengths);
}

static void states_may_be_given(void **state)
{
    (void)state;
    assert_code_agrees(LSTM("L", "2") "h0 = input f32[1,2,20]\nc0 = input f32[1,2,20]\n"
                                      "y, h, c = LSTM(x, w, r, b, _, h0, c0) {hidden_size=20}\nreturn y, h, c\n",
                       lengths);
    assert_code_agrees("x = input f32[L,1,6]\nw = weights f32[2,48,6]\nr = weights f32[2,48,16]\n"
                       "h0 = input f32[2,1,16]\n"
                       "y, h = GRU(x, w, r, _, _, h0) {hidden_size=16, direction=\"bidirectional\"}\nreturn y, h\n",
                       lengths);
}

static void attributes_change_the_gates(void **state)
{
    (void)state;
    assert_code_agrees(
        LSTM("L", "1") "p = weights f32[1,60]\n"
                       "y, h, c = LSTM(x, w, r, b, _, _, _, p) {hidden_size=20, clip=0.25}\nreturn y, c\n",
        lengths);
    assert_code_agrees(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20, input_forget=1, "
                                      "activations=[\"HardSigmoid\", \"ScaledTanh\", \"Softsign\"], "
                                      "activation_alpha=[0.3, 0.9], activation_beta=[0.4, 0.8]}\nreturn y, c\n",
                       lengths);
    assert_code_agrees(GRU("L", "1") "y, h = GRU(x, w, r, b) {hidden_size=20, activations=[\"sigmoid\", \"Elu\"], "
                                     "activation_alpha=[0.7]}\nreturn y\n",
                       lengths);
}

static void every_activation_has_code(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
        "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
    static const int64_t few[] = {5, 0};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "x = input f32[L,1,5]\nw = weights f32[1,20,5]\nr = weights f32[1,20,20]\nb = weights f32[1,40]\n"
                 "y, h = RNN(x, w, r, b) {hidden_size=20, activations=[\"%s\"], activation_alpha=[0.25], "
                 "activation_beta=[0.5]}\nreturn y, h\n",
                 names[k]);
        assert_code_agrees(text, few);
    }
}

static void weights_may_be_inputs_and_f64(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,2,5]\nw = input f32[1,60,5]\nr = input f32[1,60,20]\nb = input f32[1,120]\n"
                       "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn y, h\n",
                       lengths);
    assert_code_agrees("x = input f64[L,1,5]\nw = input f64[1,4,5]\nr = input f64[1,4,1]\n"
                       "y, h, c = LSTM(x, w, r) {hidden_size=1}\nreturn y, h, c\n",
                       lengths);
}

static void unsupported_cells_are_refused(void **state)
{
    (void)state;
    assert_refused(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20, activations=[\"Sigmoid\", \"Sine\", "
                                  "\"Tanh\"]}\nreturn y\n",
                   "activation \"Sine\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_lstm_runs_over_the_length),
        cmocka_unit_test(a_step_of_many_items_computes_in_f32),
        cmocka_unit_test(unused_results_are_not_stored),
        cmocka_unit_test(both_directions_are_concatenated),
        cmocka_unit_test(a_gru_resets_before_or_after_its_matmul),
        cmocka_unit_test(the_batch_may_be_the_length),
        cmocka_unit_test(sequences_end_at_their_own_lengths),
        cmocka_unit_test(states_may_be_given),
        cmocka_unit_test(attributes_change_the_gates),
        cmocka_unit_test(every_activation_has_code),
        cmocka_unit_test(weights_may_be_inputs_and_f64),
        cmocka_unit_test(unsupported_cells_are_refused),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
