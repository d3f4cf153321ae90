/* test_ops_contrib_variants.c — ir/ops/contrib_variants.c, and the pass that replaces these operators. */
#include "tests/support/graph_code.h"
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t lengths[] = {1, 2, 7, 0};

static void rotary_reads_positions_before_caches(void **state)
{
    (void)state;
    /* a quarter turn at position 1: (x, y) becomes (-y, x) */
    assert_values("f32[1,2,1,2] [-4, 3, -6, 5]", "com.microsoft.RotaryEmbedding",
                  .inputs = {"f32[1,2,1,2] [3, 4, 5, 6]", "i64[1,1] [1]", "f32[2,1] [1, 0]", "f32[2,1] [0, 1]"});
}

static void a_single_position_applies_to_the_first_token(void **state)
{
    (void)state;
    assert_values("f32[1,2,2] [-4, 3, 5, 6]", "com.microsoft.RotaryEmbedding",
                  .inputs = {"f32[1,2,2] [3, 4, 5, 6]", "i64[1] [1]", "f32[3,1] [9, 0, 1]", "f32[3,1] [9, 1, 0]"});
    assert_types("f32[1,L,8]", "com.microsoft.RotaryEmbedding", "num_heads=2",
                 .inputs = {"f32[1,L,8]", "i64[1]", "f32[64,2]", "f32[64,2]"});
}

static void rotary_embeddings_are_compiled(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,L,16]\np = input i64[1]\nc = weights f32[16,4]\ns = weights f32[16,4]\n"
                       "y = com.microsoft.RotaryEmbedding(x, p, c, s) {num_heads=2}\n"
                       "z = com.microsoft.RotaryEmbedding(x, p, c, s) {interleaved=1}\nreturn y, z\n",
                       lengths);
    assert_code_agrees("x = input f32[2,3,L,6]\np = input i64[2,L]\nc = weights f32[16,2]\ns = weights f32[16,2]\n"
                       "y = com.microsoft.RotaryEmbedding(x, p, c, s) {rotary_embedding_dim=4}\nreturn y\n",
                       lengths);
}

static void mismatched_rotary_embeddings_are_refused(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "caches do not match", "com.microsoft.RotaryEmbedding",
                       .inputs = {"f32[1,2,3,8]", "i64[1,3]", "f32[9,3]", "f32[9,3]"});
    assert_shape_fault(MDOT_MALFORMED, "one for each token", "com.microsoft.RotaryEmbedding",
                       .inputs = {"f32[1,2,3,8]", "i64[1,4]", "f32[9,4]", "f32[9,4]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "a scale", "com.microsoft.RotaryEmbedding", "scale=2.0",
                       .inputs = {"f32[1,2,3,8]", "i64[1,3]", "f32[9,4]", "f32[9,4]"});
}

static void skip_rms_norm_divides_sums_by_the_root_of_squares(void **state)
{
    (void)state;
    static const char text[] = "x = input f32[2,L,8]\ns = input f32[2,L,8]\ng = weights f32[8]\nb = weights f32[8]\n"
                               "y, _m, _v, sum = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g, b) "
                               "{epsilon=1e-5}\nz = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g)\n"
                               "return y, sum, z\n";
    assert_values("f32[1,2] [0.848528, 2.26274]", "com.microsoft.SkipSimplifiedLayerNormalization",
                  .inputs = {"f32[1,2] [1, 2]", "f32[1,2] [2, 2]", "f32[2] [1, 2]"});
    assert_code_agrees(text, lengths);
    assert_shape_fault(MDOT_MALFORMED, "do not match", "com.microsoft.SkipSimplifiedLayerNormalization",
                       .inputs = {"f32[1,2]", "f32[1,2]", "f32[3]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotary_reads_positions_before_caches),
        cmocka_unit_test(a_single_position_applies_to_the_first_token),
        cmocka_unit_test(rotary_embeddings_are_compiled),
        cmocka_unit_test(mismatched_rotary_embeddings_are_refused),
        cmocka_unit_test(skip_rms_norm_divides_sums_by_the_root_of_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
