/* The attention kernel: every remainder in queries, keys and channels, and every mask kind, in fp32 and bf16 on every
 * CPU level. */
#include "tests/support/attention_fixture.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const ir_dim the_length = {.scale = 1};
static const int64_t every_remainder[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 15, 16,  17,  18,  23,
                                          31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 70, 96, 100, 127, 128, 130};
enum { REMAINDERS = sizeof every_remainder / sizeof every_remainder[0] };

static void self_attention_masks_keys_at_every_length(void **state)
{
    (void)state;
    attention_shape s = attention_square(2, 32, MASK_KEYS);
    attention_check(&s, every_remainder, REMAINDERS);
}

static void mask_matrix_matches_at_every_length(void **state)
{
    (void)state;
    attention_shape s = attention_square(2, 16, MASK_QUERIES);
    attention_check(&s, every_remainder, REMAINDERS);
}

static void causal_attention_matches_at_every_length(void **state)
{
    (void)state;
    attention_shape s = attention_square(1, 8, MASK_NONE);
    s.causal = true;
    attention_check(&s, every_remainder, REMAINDERS);
}

static void odd_and_unequal_channel_counts_match(void **state)
{
    (void)state;
    static const int64_t channels[][2] = {{1, 1}, {37, 5}, {64, 24}, {9, 40}, {17, 65}}, lengths[] = {3, 20, 67};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        attention_shape s = attention_square(3, channels[i][0], MASK_NONE);
        s.value_dim = channels[i][1];
        s.fused = i % 2;
        attention_check(&s, lengths, 3);
    }
}

static void grouped_heads_batches_and_unequal_lengths_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 40, 90};
    attention_shape s = {ir_dim_number(2), ir_dim_number(13), the_length, 6, 2, 12, 20,
                         MASK_EVERYTHING,  .causal = false};
    attention_check(&s, lengths, 4);
    s.queries = the_length;
    s.keys = ir_dim_number(70);
    s.mask = MASK_BATCHES;
    s.hide = 3;
    s.fused = true;
    attention_check(&s, lengths, 4);
}

static void causal_attention_accepts_more_keys_or_more_queries(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 4, 30, 66, 129};
    attention_shape s = {ir_dim_number(1), the_length, ir_dim_number(130), 1, 1, 4, 4, MASK_NONE, .causal = true};
    attention_check(&s, lengths, 5);
    s.keys = ir_dim_number(7); /* all keys for the first queries are masked */
    s.mask = MASK_KEYS;
    attention_check(&s, lengths, 5);
}

static void batches_of_a_few_positions_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 17, 33}, channels[][2] = {{16, 16}, {32, 32}, {5, 1}, {37, 19}, {64, 8}};
    static const int64_t positions[][2] = {{1, 1}, {3, 3}, {4, 4}, {5, 3}, {2, 8}, {16, 1}, {1, 7}, {17, 1}};
    static const attention_mask masks[] = {MASK_NONE, MASK_EVERYTHING, MASK_BATCHES};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        attention_shape s = {
            .batch = the_length, .heads = 4, .kv_heads = i % 2 ? 4 : 2, .mask = masks[i % 3], .hide = 1};
        s.queries = ir_dim_number(positions[i][0]);
        s.keys = ir_dim_number(positions[i][1]);
        s.dim = channels[i % 5][0];
        s.value_dim = channels[i % 5][1];
        s.fused = i % 2;
        s.causal = i % 4 == 3;
        attention_check(&s, lengths, 4);
    }
}

static void whole_blocks_of_masked_keys_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {65, 128, 129, 190};
    attention_shape s = attention_square(1, 8, MASK_KEYS);
    s.hide = 128;
    attention_check(&s, lengths, 4);
    s.mask = MASK_BATCHES;
    attention_check(&s, lengths, 4);
    s.hide = -1;
    attention_check(&s, lengths, 4);
}

/* Shapes planned as matrix kernels, for all special cases in bf16: key pairs, and operands in 16 or 32 bits. */
static void pairs_of_keys_and_channels_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 17, 33, 64, 65, 130};
    static const int64_t channels[][2] = {{16, 16}, {32, 32}, {48, 16}, {64, 128}};
    static const attention_mask masks[] = {MASK_KEYS, MASK_QUERIES, MASK_NONE, MASK_BATCHES};
    for (size_t i = 0; i < 8; i++) {
        attention_shape s = attention_square(2, channels[i / 2][0], masks[i / 2]);
        s.value_dim = channels[i / 2][1];
        s.kv_heads = i == 2 ? 1 : 2;
        s.aligned = true;
        s.half = i % 2;
        s.causal = i / 2 == 2;
        s.hide = i / 2 == 3 ? 65 : 0;
        s.softcap = i == 0 || i == 5 ? 2 : 0;
        s.replaces = i == 1 || i == 6 ? -1e8 : 0;
        assert_true(attention_is_matrix(&s));
        attention_check_bf16(&s, lengths, sizeof lengths / sizeof lengths[0]);
    }
}

/* Heads with few channels and batches with few positions run in f32, although the plan may store `out` in 16 bits. */
static void other_kernels_of_bf16_images_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 17, 66};
    attention_shape few = attention_square(2, 8, MASK_KEYS), small = {.batch = the_length, .heads = 4, .kv_heads = 2};
    small.queries = small.keys = ir_dim_number(3);
    small.dim = small.value_dim = 19;
    attention_check_bf16(&few, lengths, 3);
    attention_check_bf16(&small, lengths, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_attention_masks_keys_at_every_length),
        cmocka_unit_test(mask_matrix_matches_at_every_length),
        cmocka_unit_test(causal_attention_matches_at_every_length),
        cmocka_unit_test(odd_and_unequal_channel_counts_match),
        cmocka_unit_test(grouped_heads_batches_and_unequal_lengths_match),
        cmocka_unit_test(causal_attention_accepts_more_keys_or_more_queries),
        cmocka_unit_test(batches_of_a_few_positions_match),
        cmocka_unit_test(whole_blocks_of_masked_keys_match),
        cmocka_unit_test(pairs_of_keys_and_channels_match),
        cmocka_unit_test(other_kernels_of_bf16_images_match),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
