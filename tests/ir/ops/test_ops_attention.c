/* test_ops_attention.c — ir/ops/attention.c, attention_fused.c and rotary.c. The expected values come from the
 * reference implementations: onnx 1.23's for ONNX operators, ONNX Runtime 1.30's CPU kernels for com.microsoft
 * operators. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Two positions, one head, one channel: 0 and 1. With scale 1 the scores are 0, 0 and 0, 1. */
#define TWO "f32[1,1,2,1] [0, 1]"
#define THREE "f32[1,1,3,1] [0, 1, 2]"

/* ---- Attention --------------------------------------------------------------------------------------------------- */

static void attention_types_in_both_layouts(void **state)
{
    (void)state;
    assert_types("f32[2,4,L,16]", "Attention", .inputs = {"f32[2,4,L,8]", "f32[2,4,5,8]", "f32[2,4,5,16]"});
    assert_types("f32[2,L,64]", "Attention", "q_num_heads=4, kv_num_heads=2",
                 .inputs = {"f32[2,L,32]", "f32[2,L,16]", "f32[2,L,32]"});
    assert_types(
        "f32[1,4,L,8]; f32[1,4,L+3,8]; f32[1,4,L+3,8]; f32[1,4,L,L+3]", "Attention",
        .inputs = {"f32[1,4,L,8]", "f32[1,4,L,8]", "f32[1,4,L,8]", "bool[L,L+3]", "f32[1,4,3,8]", "f32[1,4,3,8]"},
        .output_count = 4);
}

static void attention_weights_values(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,1] [0.5, 0.731059]", "Attention", "scale=1.0", .inputs = {TWO, TWO, TWO});
    assert_values("f32[1,1,1,1] [0.622459]", "Attention",
                  .inputs = {"f32[1,1,1,4] [1, 0, 0, 0]", "f32[1,1,2,4] [0, 0, 0, 0, 1, 0, 0, 0]", TWO});
    /* Two query heads share one key head. In three dimensions the heads lie side by side. */
    assert_values("f32[1,2,2] [1.5, 1.73106, 1.8808, 1.95257]", "Attention", "q_num_heads=2, kv_num_heads=1, scale=1.0",
                  .inputs = {"f32[1,2,2] 0..", "f32[1,2,1] 0..", "f32[1,2,1] [1, 2]"});
}

static void attention_masks_are_bool_or_added(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,1] [0.731059, 0.268941]", "Attention", "scale=1.0",
                  .inputs = {TWO, TWO, TWO, "f32[2,2] [0, 1, 2, 0]"});
    assert_values("f32[1,1,2,1] [1, 0]", "Attention", "scale=1.0", .inputs = {TWO, TWO, TWO, "bool[2,2] [0, 1, 1, 0]"});
    assert_values("f32[1,1,2,1] [1, 1]", "Attention", "scale=1.0", .inputs = {TWO, TWO, TWO, "bool[1,1,1,2] [0, 1]"});
    /* A mask for fewer keys hides the others. A one-column mask also covers only one key. */
    assert_values("f32[1,1,2,1] [0, 0]", "Attention", "scale=1.0", .inputs = {TWO, TWO, TWO, "f32[2,1] [3, 4]"});
}

static void attention_without_visible_keys_is_zero(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,1] [1, 0]; f32[1,1,2,2] [0, 1, 0, 0]", "Attention", "qk_matmul_output_mode=3, scale=1.0",
                  .inputs = {TWO, TWO, TWO, "bool[2,2] [0, 1, 0, 0]"}, .output_count = 4, .only = "x__x");
}

static void causal_attention_starts_after_its_past(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,1] [0, 0.731059]", "Attention", "scale=1.0, is_causal=1", .inputs = {TWO, TWO, TWO});
    assert_values("f32[1,1,2,1] [0.333333, 0.731059]", "Attention", "scale=1.0, is_causal=1",
                  .inputs = {TWO, TWO, TWO, "_", TWO, TWO});
    assert_values("f32[1,1,1,1] [2]; f32[1,1,3,1] [0, 1, 0]; f32[1,1,3,1] [0, 1, 5]", "Attention", "scale=1.0",
                  .inputs = {"f32[1,1,1,1] [0]", "f32[1,1,1,1] [0]", "f32[1,1,1,1] [5]", "_", TWO, TWO},
                  .output_count = 3);
}

static void attention_counts_keys_by_sequence(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,1] [0, 0]", "Attention", "scale=1.0",
                  .inputs = {TWO, THREE, THREE, "_", "_", "_", "i64[1] [1]"});
    assert_values("f32[1,1,2,1] [0, 0.731059]", "Attention", "scale=1.0, is_causal=1",
                  .inputs = {TWO, THREE, THREE, "_", "_", "_", "i64[1] [2]"});
    assert_values("f32[1,1,2,1] [0, 0]", "Attention", "scale=1.0, is_causal=1",
                  .inputs = {TWO, THREE, THREE, "_", "_", "_", "i64[1] [1]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "the length of sequence 0 is 4, but there are 3 keys", "Attention",
                      .inputs = {TWO, THREE, THREE, "_", "_", "_", "i64[1] [4]"});
}

static void attention_windows_bound_both_sides(void **state)
{
    (void)state;
    assert_values("f32[1,1,3,1] [0.5, 1.73106, 2]", "Attention", "scale=1.0, left_window_size=0, right_window_size=1",
                  .inputs = {THREE, THREE, THREE});
    assert_values("f32[1,1,3,1] [0, 1, 2]", "Attention", "scale=1.0, left_window_size=0, is_causal=1",
                  .inputs = {THREE, THREE, THREE});
}

static void attention_scores_are_output_at_any_stage(void **state)
{
    (void)state;
    assert_values("f32[1,1,2,2] [0, 0, 0, 3]", "Attention", "scale=3.0, softcap=0.5", .inputs = {TWO, TWO, TWO},
                  .output_count = 4, .only = "___x");
    assert_values("f32[1,1,2,1] [0.5, 0.622458]; f32[1,1,2,2] [0, 0, 0, 0.499994]", "Attention",
                  "scale=3.0, softcap=0.5, qk_matmul_output_mode=1", .inputs = {TWO, TWO, TWO}, .output_count = 4,
                  .only = "x__x");
    assert_values("f32[1,1,2,2] [0, 1, 2, 1]", "Attention", "scale=1.0, qk_matmul_output_mode=2",
                  .inputs = {TWO, TWO, TWO, "f32[2,2] [0, 1, 2, 0]"}, .output_count = 4, .only = "___x");
    assert_values("f32[1,1,2,2] [0.5, 0.5, 0.268941, 0.731059]", "Attention", "scale=1.0, qk_matmul_output_mode=3",
                  .inputs = {TWO, TWO, TWO}, .output_count = 4, .only = "___x");
}

static void attention_refuses_mismatched_operands(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "not divisible into 3 heads", "Attention", "q_num_heads=3, kv_num_heads=3",
                       .inputs = {"f32[1,2,8]", "f32[1,2,9]", "f32[1,2,9]"});
    assert_shape_fault(MDOT_MALFORMED, "not divisible into 0 heads", "Attention",
                       .inputs = {"f32[1,2,8]", "f32[1,2,8]", "f32[1,2,8]"});
    assert_shape_fault(MDOT_MALFORMED, "query, key and value do not match", "Attention",
                       .inputs = {"f32[1,4,2,8]", "f32[1,3,2,8]", "f32[1,3,2,8]"});
    assert_shape_fault(MDOT_MALFORMED, "2 dimensions instead of 3 or 4", "Attention",
                       .inputs = {"f32[2,8]", "f32[2,8]", "f32[2,8]"});
    assert_shape_fault(MDOT_MALFORMED, "a mask of shape [3, 2] does not broadcast to [1, 1, 2, 2]", "Attention",
                       .inputs = {TWO, TWO, TWO, "bool[3,2]"});
    assert_shape_fault(MDOT_MALFORMED, "neither bool nor floating", "Attention", .inputs = {TWO, TWO, TWO, "i64[2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "require each other", "Attention", .inputs = {TWO, TWO, TWO, "_", TWO});
    assert_shape_fault(MDOT_MALFORMED, "exclude each other", "Attention",
                       .inputs = {TWO, TWO, TWO, "_", TWO, TWO, "i64[1]"});
    assert_shape_fault(MDOT_MALFORMED, "one number per sequence", "Attention",
                       .inputs = {TWO, TWO, TWO, "_", "_", "_", "i64[2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "heads of the query is not fixed", "Attention",
                       .inputs = {"f32[1,L,2,8]", "f32[1,L,2,8]", "f32[1,L,2,8]"});
}

/* ---- Operators of ONNX Runtime ----------------------------------------------------------------------------------- */

#define MHA "com.microsoft.MultiHeadAttention"
#define QUERY "f32[1,2,2] [0, 1, 1, 0]"
#define KEY "f32[1,2,2] [0, 1, 1, 2]"
#define VALUE "f32[1,2,2] 0.."

static void multi_head_attention_matches_onnx_runtime(void **state)
{
    (void)state;
    assert_types("f32[2,L,64]; f32[2,4,5,8]; f32[2,4,5,16]", MHA, "num_heads=4",
                 .inputs = {"f32[2,L,32]", "f32[2,5,32]", "f32[2,5,64]", "f32[128]", "i32[2,5]"}, .output_count = 3);
    assert_values("f32[1,2,2] [1, 2.46212, 1.46212, 2]", MHA, "num_heads=2", .inputs = {QUERY, KEY, VALUE});
    assert_values("f32[1,2,2] [1.33952, 2.33952, 1.33952, 2.33952]", MHA, "num_heads=1", .inputs = {QUERY, KEY, VALUE});
    assert_values(
        "f32[1,2,2] [11.4621, 22.4621, 11.7616, 22]; f32[1,2,2,1] [0, 1, 2, 3]; f32[1,2,2,1] [10, 12, 21, 23]", MHA,
        "num_heads=2", .inputs = {QUERY, KEY, VALUE, "f32[6] [1, 0, 0, 1, 10, 20]"}, .output_count = 3);
    assert_values("f32[1,2,2] [1.46212, 2.46212, 1.76159, 2]", MHA, "num_heads=2",
                  .inputs = {QUERY, KEY, VALUE, "_", "_", "f32[1,2,2,2] [0, 1, 2, 3, 0, 0, 0, 0]"});
    assert_values("f32[1,2,2] [0, 1, 1.46212, 2]", MHA, "num_heads=2, unidirectional=1", .inputs = {QUERY, KEY, VALUE});
}

/* The same values in each operand layout. */
static void multi_head_attention_takes_packed_operands(void **state)
{
    (void)state;
    static const char result[] = "f32[1,2,2] [1, 2.46212, 1.46212, 2]";
    assert_values(result, MHA, "num_heads=2", .inputs = {"f32[1,2,2,3,1] [0, 0, 0, 1, 1, 1, 1, 1, 2, 0, 2, 3]"});
    assert_values(result, MHA, "num_heads=2", .inputs = {QUERY, "f32[1,2,2,2,1] [0, 0, 1, 1, 1, 2, 2, 3]"});
    assert_values(result, MHA, "num_heads=2",
                  .inputs = {QUERY, "f32[1,2,2,1] [0, 1, 1, 2]", "f32[1,2,2,1] [0, 2, 1, 3]"});
    assert_values(
        "f32[1,2,2] [11.4621, 22.4621, 11.7616, 22]; f32[1,2,2,1] [0, 1, 2, 3]; f32[1,2,2,1] [10, 12, 21, 23]", MHA,
        "num_heads=2",
        .inputs = {"f32[1,2,2,3,1] [0, 0, 0, 1, 1, 1, 1, 1, 2, 0, 2, 3]", "_", "_", "f32[6] [1, 0, 0, 1, 10, 20]"},
        .output_count = 3);
}

static void multi_head_attention_takes_key_masks(void **state)
{
    (void)state;
    assert_values("f32[1,2,2] [0, 1, 0, 1]", MHA, "num_heads=2", .inputs = {QUERY, KEY, VALUE, "_", "i32[1] [1]"});
    assert_values("f32[1,2,2] [2, 3, 2, 3]", MHA, "num_heads=2", .inputs = {QUERY, KEY, VALUE, "_", "i32[1,2] [0, 1]"});
    assert_values("f32[1,2,2] [0, 1, 2, 3]", MHA, "num_heads=2",
                  .inputs = {QUERY, KEY, VALUE, "_", "i32[1,2,2] [1, 0, 0, 1]"});
    /* a later key stays invisible beside a masked earlier one */
    assert_values("f32[1,2,2] [0, 1, 2, 3]", MHA, "num_heads=2, unidirectional=1",
                  .inputs = {QUERY, KEY, VALUE, "_", "i32[1,2] [0, 1]"});
    assert_values("f32[1,2,2] [1.46212, 2.76159, 1.76159, 2.46212]", MHA, "num_heads=2, mask_filter_value=-1.0",
                  .inputs = {QUERY, KEY, VALUE, "_", "i32[1,2] [0, 1]"});
}

static void multi_head_attention_refuses_other_forms(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_UNSUPPORTED, "the query has 5 dimensions", MHA, "num_heads=2",
                       .inputs = {"f32[1,2,2,2,1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the query has 5 dimensions", MHA, "num_heads=3",
                       .inputs = {"f32[1,2,2,3,1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the key has 4 dimensions", MHA, "num_heads=1",
                       .inputs = {QUERY, "f32[1,2,2,1]", "f32[1,2,2,1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "a bias is unsupported if keys and values are by head", MHA, "num_heads=2",
                       .inputs = {QUERY, "f32[1,2,2,1]", "f32[1,2,2,1]", "f32[6]"});
    assert_shape_fault(MDOT_MALFORMED, "a value requires a key", MHA, "num_heads=2", .inputs = {QUERY, "_", VALUE});
    assert_shape_fault(MDOT_MALFORMED, "a past of shape [1, 2, 2, 2]", MHA, "num_heads=1",
                       .inputs = {QUERY, KEY, VALUE, "_", "_", "_", "f32[1,2,2,2]", "f32[1,2,2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "past", MHA, "num_heads=1",
                       .inputs = {QUERY, KEY, VALUE, "_", "_", "_", "f32[1,1,2,2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "a mask of shape [5]", MHA, "num_heads=1",
                       .inputs = {QUERY, KEY, VALUE, "_", "i32[5]"});
    assert_shape_fault(MDOT_MALFORMED, "an attention bias of shape [1, 1, 2, 1]", MHA, "num_heads=1",
                       .inputs = {QUERY, KEY, VALUE, "_", "_", "f32[1,1,2,1]"});
    assert_shape_fault(MDOT_MALFORMED, "not divisible into 3 heads", MHA, "num_heads=3", .inputs = {QUERY, KEY, VALUE});
    assert_shape_fault(MDOT_MALFORMED, "the length of the bias", MHA, "num_heads=1",
                       .inputs = {QUERY, KEY, VALUE, "f32[5]"});
}

#define MSA "com.microsoft.Attention"
#define TOKENS "f32[1,2,2] [0, 1, 1, 0]"
#define WEIGHTS "f32[2,6] [1, 0, 0, 1, 2, 0, 0, 1, 1, 0, 0, 3]"
#define BIAS "f32[6] [0, 1, 0, 0, 0, 1]"

static void ms_attention_matches_onnx_runtime(void **state)
{
    (void)state;
    assert_types("f32[2,L,32]", MSA, "num_heads=4", .inputs = {"f32[2,L,16]", "f32[16,96]", "f32[96]", "i32[2,L]"});
    assert_values("f32[1,2,2] [1, 1.35761, 0.537883, 1.80682]", MSA, "num_heads=2", .inputs = {TOKENS, WEIGHTS, BIAS});
    assert_values("f32[1,2,2] [0, 4, 0, 4]", MSA, "num_heads=1", .inputs = {TOKENS, WEIGHTS, BIAS, "i32[1] [1]"});
    assert_values("f32[1,2,2] [2, 1, 2, 1]", MSA, "num_heads=1", .inputs = {TOKENS, WEIGHTS, BIAS, "i32[1,2] [0, 1]"});
    /* If all keys are masked alike, the mask has no effect. ONNX Runtime has 1.60881 and 1.58678, because its floats
     * round score - 10000. */
    assert_values("f32[1,2,2] [1.60886, 1.58671, 1, 2.5]", MSA, "num_heads=1",
                  .inputs = {TOKENS, WEIGHTS, BIAS, "i32[1,2] [0, 0]"});
    assert_values("f32[1,2,2] [0, 4, 1, 2.5]", MSA, "num_heads=1, unidirectional=1", .inputs = {TOKENS, WEIGHTS, BIAS});
    assert_values("f32[1,2,4] [0.5, 0.5, 1, 2.5, 0.731059, 0.268941, 0.537883, 3.19318]", MSA,
                  "num_heads=1, qkv_hidden_sizes=[1, 1, 4], scale=1.0", .inputs = {TOKENS, WEIGHTS, BIAS});
}

/* The values are from ONNX Runtime 1.31.1. */
static void a_past_lies_in_front_of_the_new_keys(void **state)
{
    (void)state;
    static const char *const past = "f32[2,1,1,1,2] [1, 2, 3, 4]";
    assert_values("f32[1,2,2] [2.67714, 3.43992, 2.34568, 3.50926]; "
                  "f32[2,1,1,3,2] [1, 2, 1, 0, 0, 1, 3, 4, 0, 4, 2, 1]",
                  MSA, "num_heads=1", .inputs = {TOKENS, WEIGHTS, BIAS, "_", past}, .output_count = 2);
    assert_values("f32[1,2,2] [2.83258, 4, 2.34568, 3.50926]", MSA, "num_heads=1, unidirectional=1",
                  .inputs = {TOKENS, WEIGHTS, BIAS, "_", past});
    assert_values("f32[1,1,2] [2.71207, 3.71207]; f32[1,1,3,2] [0, 1, 1, 1, 1, 0]; f32[1,1,3,2] [1, 2, 3, 4, 5, 6]",
                  MHA, "num_heads=1",
                  .inputs = {"f32[1,1,2] [1, 2]", "f32[1,1,2] [1, 0]", "f32[1,1,2] [5, 6]", "_", "_", "_",
                             "f32[1,1,2,2] [0, 1, 1, 1]", "f32[1,1,2,2] [1, 2, 3, 4]"},
                  .output_count = 3);
    assert_types("f32[2,3,8]; f32[2,2,2,L+3,4]", MSA, "num_heads=2",
                 .inputs = {"f32[2,3,8]", "f32[8,24]", "_", "i32[2,L+3]", "f32[2,2,2,L,4]"}, .output_count = 2);
}

static void ms_attention_refuses_other_forms(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "a past of shape [2, 1, 2, 3, 2]", MSA, "num_heads=1",
                       .inputs = {TOKENS, WEIGHTS, BIAS, "_", "f32[2,1,2,3,2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "rotary embedding", MSA, "num_heads=1, do_rotary=1",
                       .inputs = {TOKENS, WEIGHTS});
    assert_shape_fault(MDOT_MALFORMED, "equally many channels", MSA, "num_heads=1, qkv_hidden_sizes=[1, 1, 4]",
                       .inputs = {TOKENS, WEIGHTS}, .output_count = 2);
    assert_shape_fault(MDOT_UNSUPPORTED, "a mask of shape [5]", MSA, "num_heads=1",
                       .inputs = {TOKENS, WEIGHTS, BIAS, "i32[5]"});
    assert_shape_fault(MDOT_MALFORMED, "the number of rows of the weights", MSA, "num_heads=1",
                       .inputs = {TOKENS, "f32[3,6]"});
    assert_shape_fault(MDOT_MALFORMED, "that of Q, K and V", MSA, "num_heads=1", .inputs = {TOKENS, "f32[2,5]"});
    assert_shape_fault(MDOT_MALFORMED, "qkv_hidden_sizes", MSA, "num_heads=1, qkv_hidden_sizes=[1, 1, 1]",
                       .inputs = {TOKENS, WEIGHTS});
}

/* ---- RotaryEmbedding --------------------------------------------------------------------------------------------- */

static void rotary_rotates_pairs_of_channels(void **state)
{
    (void)state;
    assert_types("f32[2,4,L,8]", "RotaryEmbedding", .inputs = {"f32[2,4,L,8]", "f32[64,4]", "f32[64,4]", "i64[2,L]"});
    assert_types("f32[2,L,32]", "RotaryEmbedding", "num_heads=4",
                 .inputs = {"f32[2,L,32]", "f32[2,L,4]", "f32[2,L,4]"});
    assert_values("f32[1,1,2,4] [-2, 1, 0, 3, 4, -7, 6, 5]", "RotaryEmbedding",
                  .inputs = {"f32[1,1,2,4] 0..", "f32[1,2,2] [0, 1, 1, 0]", "f32[1,2,2] [1, 0, 0, 1]"});
    assert_values("f32[1,1,2,4] [-1, 0, 2, 3, 4, 5, -7, 6]", "RotaryEmbedding", "interleaved=1",
                  .inputs = {"f32[1,1,2,4] 0..", "f32[1,2,2] [0, 1, 1, 0]", "f32[1,2,2] [1, 0, 0, 1]"});
    assert_values("f32[1,1,2,4] [-1, 0, 2, 3, 4, 5, 6, 7]", "RotaryEmbedding", "rotary_embedding_dim=2",
                  .inputs = {"f32[1,1,2,4] 0..", "f32[1,2,1] [0, 1]", "f32[1,2,1] [1, 0]"});
    assert_values("f32[1,2,4] [0, 1, 2, 3, -5, 4, -7, 6]", "RotaryEmbedding", "num_heads=2",
                  .inputs = {"f32[1,2,4] 0..", "f32[2,1] [0, 1]", "f32[2,1] [1, 0]", "i64[1,2] [1, 0]"});
}

static void rotary_refuses_mismatched_operands(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "num_heads 0", "RotaryEmbedding",
                       .inputs = {"f32[1,2,4]", "f32[1,2,1]", "f32[1,2,1]"});
    assert_shape_fault(MDOT_MALFORMED, "3 of 4 channels cannot be rotated in pairs", "RotaryEmbedding",
                       "rotary_embedding_dim=3", .inputs = {"f32[1,1,2,4]", "f32[1,2,1]", "f32[1,2,1]"});
    assert_shape_fault(MDOT_MALFORMED, "a sine cache of shape [1, 2, 1]", "RotaryEmbedding",
                       .inputs = {"f32[1,1,2,4]", "f32[1,2,2]", "f32[1,2,1]"});
    assert_shape_fault(MDOT_MALFORMED, "cosine cache has 3 dimensions instead of 2", "RotaryEmbedding",
                       .inputs = {"f32[1,1,2,4]", "f32[1,2,2]", "f32[1,2,2]", "i64[1,2]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "position 2", "RotaryEmbedding",
                      .inputs = {"f32[1,1,1,2] 0..", "f32[2,1] 0..", "f32[2,1] 0..", "i64[1,1] [2]"});
}

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

static void attention_costs_both_matmuls_and_a_softmax(void **state)
{
    (void)state;
    /* 10 × 10 scores: 2 FLOPs for each of 8 channels in both matmuls, and 5 in the softmax. */
    assert_cost(100 * (16 + 16 + 5), 3 * 320, 320, 0, "Attention",
                .inputs = {"f32[1,1,L,8]", "f32[1,1,L,8]", "f32[1,1,L,8]"});
    assert_cost(2 * 100 * (8 + 8 + 5), 3 * 320, 320, 0, MHA, "num_heads=2",
                .inputs = {"f32[1,L,8]", "f32[1,L,8]", "f32[1,L,8]"});
    assert_cost(2 * 10 * 2 * 6 + 100 * (4 + 4 + 5), 80 + 48, 80, 12, MSA, "num_heads=1",
                .inputs = {"f32[1,L,2]", WEIGHTS});
    assert_cost(10 * 6, 160 + 2 * 40, 160, 0, "RotaryEmbedding", "rotary_embedding_dim=2",
                .inputs = {"f32[1,1,L,4]", "f32[1,L,1]", "f32[1,L,1]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_types_in_both_layouts),
        cmocka_unit_test(attention_weights_values),
        cmocka_unit_test(attention_masks_are_bool_or_added),
        cmocka_unit_test(attention_without_visible_keys_is_zero),
        cmocka_unit_test(causal_attention_starts_after_its_past),
        cmocka_unit_test(attention_counts_keys_by_sequence),
        cmocka_unit_test(attention_windows_bound_both_sides),
        cmocka_unit_test(attention_scores_are_output_at_any_stage),
        cmocka_unit_test(attention_refuses_mismatched_operands),
        cmocka_unit_test(multi_head_attention_matches_onnx_runtime),
        cmocka_unit_test(multi_head_attention_takes_packed_operands),
        cmocka_unit_test(multi_head_attention_takes_key_masks),
        cmocka_unit_test(multi_head_attention_refuses_other_forms),
        cmocka_unit_test(ms_attention_matches_onnx_runtime),
        cmocka_unit_test(a_past_lies_in_front_of_the_new_keys),
        cmocka_unit_test(ms_attention_refuses_other_forms),
        cmocka_unit_test(rotary_rotates_pairs_of_channels),
        cmocka_unit_test(rotary_refuses_mismatched_operands),
        cmocka_unit_test(attention_costs_both_matmuls_and_a_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
