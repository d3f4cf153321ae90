/* Attention kernel scores beyond product sums and masks: capped, replaced, great, infinite and NaN. */
#include "tests/support/attention_fixture.h"
#include "tests/support/graph_code.h"
#include "tests/support/mask_spellings.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const ir_dim the_length = {.scale = 1};

/* Capped and replaced scores with every mask kind, both streaming and with few positions. */
static void scores_are_capped_and_replaced(void **state)
{
    (void)state;
    static const struct {
        attention_mask mask;
        double softcap, replaces;
    } cases[] = {{MASK_NONE, 0.7, 0},     {MASK_KEYS, 0.7, 0},       {MASK_KEYS, 0, -1e9},  {MASK_BATCHES, 0.7, 0},
                 {MASK_QUERIES, 0, -1.5}, {MASK_QUERIES, 0.7, -1.5}, {MASK_KEYS, 0.7, -1e9}};
    static const int64_t lengths[] = {1, 5, 16, 47, 64, 65, 130};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int causal = 0; causal < 2; causal++) {
            attention_shape s = attention_square(2, 12, cases[i].mask);
            s.softcap = cases[i].softcap;
            s.replaces = cases[i].replaces;
            s.causal = causal;
            s.hide = i % 2 ? -1 : 3;
            attention_check(&s, lengths, 7);
            s.queries = s.keys = ir_dim_number(4);
            s.batch = the_length;
            if (s.mask != MASK_BATCHES) attention_check(&s, lengths, 3);
        }
    }
}

/* The scores are too great for -1e9 to absorb them in f32. */
static void masked_rows_average_the_values_for_great_scores(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 47, 64, 130};
    for (int half = 0; half < 2; half++) {
        attention_shape s = attention_square(2, 16, MASK_KEYS);
        s.hide = -1;
        s.scale = 1e4;
        s.replaces = -1e9;
        s.aligned = s.half = half;
        (half ? attention_check_bf16 : attention_check)(&s, lengths, 5);
        s.queries = s.keys = ir_dim_number(4);
        s.batch = the_length;
        if (!half) attention_check(&s, lengths, 3);
    }
}

/* Scores are the model's f32 sums, so that masked rows have the weights of the rounded sums. Masked numbers from one
 * that scores reach to infinity, beside scores up to 1e4; rows whose keys are all masked, or some. */
static void scores_beside_masks_are_the_sums_in_f32(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 33, 64, 130};
    static const attention_mask masks[] = {MASK_KEYS, MASK_BATCHES, MASK_QUERIES};
    for (size_t i = 0; i < 3; i++) {
        attention_shape s = attention_square(2, 16, masks[i]);
        s.sums = true;
        for (int form = 0; form < 3; form++) {
            s.hide = form == 0 ? -1 : 3;
            s.causal = form == 2;
            s.aligned = s.half = false;
            attention_check(&s, lengths, 5);
            s.aligned = true;
            s.half = i % 2;
            attention_check_bf16(&s, lengths, 5);
        }
        s.aligned = s.half = s.causal = false;
        s.hide = i % 2 ? -1 : 1;
        s.queries = s.keys = ir_dim_number(4);
        s.batch = ir_dim_number(1);
        attention_check(&s, lengths, 1);
    }
}

/* The same for each spelling of a mask in the graph. */
static void spelled_masks_are_the_sums_in_f32(void **state)
{
    (void)state;
    static const int64_t lengths[] = {5, 33, 65, 0};
    for (int i = 0; i < MASK_SPELLINGS * MASK_CASES; i++) {
        char text[MASK_TEXT_BYTES];
        int number_and_magnitude = i % MASK_CASES; /* each spelling with a third of the cases, and with each number */
        if ((number_and_magnitude + number_and_magnitude / 6 + i / MASK_CASES) % 3 != 0) continue;
        write_masked_attention(i / MASK_CASES, number_and_magnitude, text);
        assert_code_agrees_in_f32(text, lengths);
    }
}

/* In images with 16-bit factors and tiles, too: a mask by key, one by query, and one by query that replaces scores; by
 * query, by key that replaces, and none. */
static void several_masks_agree_in_every_image(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 33, 130, 0};
    static const char *const masks[] = {"m, _, _, _, b, c) {mdot.replaces2=-1e9, ",
                                        "b, _, _, _, d) {mdot.replaces1=-1e9, "};
    char text[1024];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "x = input f32[1,L,32]\nm = input f32[1,1,1,L]\nb = input f32[1,1,L,L]\nw = weights f32[32,96]\n"
                 "p = MatMul(x, w)\nsizes = constant i64[3] [32, 32, 32]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                 "zero = constant f32[] [0]\nlow = constant f32[] [-1e9]\nhalf = constant f32[] [0.5]\n"
                 "far = Greater(b, half)\nc = Where(far, low, zero)\nhidden = Greater(m, half)\n"
                 "d = Where(hidden, low, zero)\ny = Attention(q, k, v, %s"
                 "q_num_heads=2, kv_num_heads=2, scale=0.0625}\nreturn y\n",
                 masks[i]);
        assert_code_agrees_everywhere(text, lengths);
    }
}

/* With no mask, masks by key, by key with replacement, and by query; streaming and with few positions. */
static void check_poison(attention_poison poison)
{
    static const int64_t lengths[] = {5, 65};
    bool needs_mask = poison == POISON_MASK || poison == POISON_NO_MASK;
    int last = poison == POISON_ALL ? 0 : 3;
    for (int kind = needs_mask ? 1 : 0; kind <= last; kind++) {
        attention_shape s = attention_square(2, 16, kind == 0 ? MASK_NONE : kind == 3 ? MASK_QUERIES : MASK_KEYS);
        s.poison = poison;
        s.replaces = kind == 2 ? -1e9 : 0;
        attention_check(&s, lengths, 2);
        s.aligned = true;
        s.half = kind % 2;
        attention_check_bf16(&s, lengths, 2);
        s.aligned = s.half = false;
        s.queries = s.keys = ir_dim_number(4);
        s.batch = ir_dim_number(1);
        attention_check(&s, lengths, 1);
    }
}

/* NaN and infinity reach every query that attends to them, as in the model's operators. */
static void nan_reaches_the_result(void **state)
{
    (void)state;
    check_poison(POISON_QUERY);
    check_poison(POISON_KEY);
    check_poison(POISON_MASK);
}

static void infinity_reaches_the_result(void **state)
{
    (void)state;
    check_poison(POISON_NO_MASK);
    check_poison(POISON_LOGITS);
    check_poison(POISON_ALL);
}

/* The first sequence's mask leaves out every key. Scores beside -10000 would lose three digits. */
static void integer_masks_without_keys_leave_the_scores_exact(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 16, 47, 0};
    static const char attention[] = "q = input f32[2,L,16]\nr = input f32[2,L]\n"
                                    "limit = constant f32[2,1] [1000.0, 0.0]\ng = Greater(r, limit)\n"
                                    "m = Cast(g) {to=6}\n";
    char text[512];
    snprintf(text, sizeof text, "%sy = com.microsoft.MultiHeadAttention(q, q, q, _, m) {num_heads=2}\nreturn y\n",
             attention);
    assert_code_agrees(text, lengths);
    snprintf(text, sizeof text,
             "%sy = com.microsoft.MultiHeadAttention(q, q, q, _, m) {num_heads=2, mask_filter_value=-3e38}\nreturn y\n",
             attention);
    assert_code_agrees(text, lengths);
    snprintf(text, sizeof text,
             "%sw = weights f32[16,48]\nb = weights f32[48]\n"
             "y = com.microsoft.Attention(q, w, b, m) {num_heads=2}\nreturn y\n",
             attention);
    assert_code_agrees(text, lengths);
}

/* Roots of negative numbers make some queries, or some values, NaN. The mask leaves out keys in some heads. */
static void differences_of_softmaxes_are_two_attentions(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 33, 70, 0};
    static const char *const operands[][2] = {
        {"Identity(q)", "Identity(v)"}, {"Sqrt(q)", "Identity(v)"}, {"Identity(q)", "Sqrt(v)"}};
    char text[1024];
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        snprintf(text, sizeof text,
                 "q = input f32[1,2,L,16]\nk = input f32[1,2,16,L]\nv = input f32[1,2,L,32]\nm = input f32[1,2,1,L]\n"
                 "zero = constant f32[] [0]\nleast = constant f32[] [-1e4]\nhidden = Less(m, zero)\n"
                 "mask = Where(hidden, least, zero)\nq0 = %s\nv0 = %s\n"
                 "s = MatMul(q0, k)\np1 = Softmax(s) {axis=-1}\nn = Neg(q)\nu = MatMul(n, k)\nt = Add(u, mask)\n"
                 "p2 = Softmax(t) {axis=-1}\nc = constant f32[] [0.3]\nl = Mul(c, p2)\nw = Sub(p1, l)\n"
                 "y = MatMul(w, v0)\nreturn y\n",
                 operands[i][0], operands[i][1]);
        assert_code_agrees(text, lengths);
    }
    assert_kernels(text, "attention2 nest5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_capped_and_replaced),
        cmocka_unit_test(masked_rows_average_the_values_for_great_scores),
        cmocka_unit_test(scores_beside_masks_are_the_sums_in_f32),
        cmocka_unit_test(spelled_masks_are_the_sums_in_f32),
        cmocka_unit_test(several_masks_agree_in_every_image),
        cmocka_unit_test(nan_reaches_the_result),
        cmocka_unit_test(infinity_reaches_the_result),
        cmocka_unit_test(differences_of_softmaxes_are_two_attentions),
        cmocka_unit_test(integer_masks_without_keys_leave_the_scores_exact),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
