/* test_ops_norm.c — ir/ops/norm.c, norm_channels.c and norm_fused.c: normalisations. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void softmax_sums_to_one_along_its_axis(void **state)
{
    (void)state;
    assert_types("f32[2,L]", "Softmax", .inputs = {"f32[2,L]"});
    assert_values("f32[1,3] [0.0900306, 0.244728, 0.665241]", "Softmax", .inputs = {"f32[1,3] 0.."});
    assert_values("f32[2,2] [0.119203, 0.119203, 0.880797, 0.880797]", "Softmax", "axis=-2",
                  .inputs = {"f32[2,2] 0.."});
    assert_values("f32[2] [0.5, 0.5]", "Softmax", .inputs = {"f32[2] [1000, 1000]"});
    assert_values("f32[2] [0, 1]", "Softmax", .inputs = {"f32[2] [-inf, 1]"});
    assert_values("f32[1,3] [-2.40761, -1.40761, -0.407606]", "LogSoftmax", .inputs = {"f32[1,3] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "axis 2", "Softmax", "axis=2", .inputs = {"f32[2,L]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, where the operator takes", "LogSoftmax", .inputs = {"i64[2]"});
}

static void layer_norm_normalizes_trailing_axes(void **state)
{
    (void)state;
    assert_types("f32[2,L,8]; f32[2,L,1]; f32[2,L,1]", "LayerNormalization",
                 .inputs = {"f32[2,L,8]", "f32[8]", "f32[8]"}, .output_count = 3);
    assert_types("f16[2,L,8]; f32[2,1,1]", "LayerNormalization", "axis=1", .inputs = {"f16[2,L,8]", "f16[8]"},
                 .output_count = 2);
    assert_values("f32[2,2] [-1, 3, -1, 3]; f32[2,1] [0.5, 2.5]; f32[2,1] [2, 2]", "LayerNormalization", "epsilon=0.0",
                  .inputs = {"f32[2,2] 0..", "f32[2] [1, 2]", "f32[2] [0, 1]"}, .output_count = 3);
    assert_values("f32[1,2,2] [-1.34164, -0.894427, 0.447214, 2.68328]", "LayerNormalization", "axis=1, epsilon=0.0",
                  .inputs = {"f32[1,2,2] 0..", "f32[2] [1, 2]"});
    assert_values("f32[2,2] [-1, -0.333333, 0.666667, 2]; f32[1,1] [0.666667]", "LayerNormalization",
                  "axis=0, epsilon=1.0", .inputs = {"f32[2,2] 0..", "f32[2,1] [1, 2]"}, .output_count = 3,
                  .only = "x_x");
}

static void layer_norm_refuses_other_parameters(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "the scale of shape [7] does not broadcast to [2, L, 8]", "LayerNormalization",
                       .inputs = {"f32[2,L,8]", "f32[7]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, where the operator takes", "LayerNormalization",
                       .inputs = {"f32[2]", "f32[2]", "i64[2]"});
    assert_shape_fault(MDOT_MALFORMED, "axis -4", "LayerNormalization", "axis=-4", .inputs = {"f32[2,L,8]", "f32[8]"});
}

static void rms_norm_divides_by_the_root_of_squares(void **state)
{
    (void)state;
    assert_types("f32[2,L,8]", "RMSNormalization", .inputs = {"f32[2,L,8]", "f32[8]"});
    assert_values("f32[2,2] [0.848528, 2.26274, 1, 2]", "RMSNormalization", "epsilon=0.0",
                  .inputs = {"f32[2,2] [3, 4, 1, 1]", "f32[2] [1, 2]"});
    assert_values("f32[1,2] [0.848528, 2.26274]; f32[1,1] [0.282843]", "SimplifiedLayerNormalization", "epsilon=0.0",
                  .inputs = {"f32[1,2] [3, 4]", "f32[2] [1, 2]"}, .output_count = 2);
}

static void group_norm_shares_statistics_in_a_group(void **state)
{
    (void)state;
    assert_types("f32[1,4,L]", "GroupNormalization", "num_groups=2", .inputs = {"f32[1,4,L]", "f32[4]", "f32[4]"});
    assert_values("f32[1,4,2] [-1.34164, -0.447214, 1.89443, 3.68328, -2.02492, 0.658359, 4.78885, 8.36656]",
                  "GroupNormalization", "num_groups=2, epsilon=0.0",
                  .inputs = {"f32[1,4,2] 0..", "f32[4] [1, 2, 3, 4]", "f32[4] [0, 1, 2, 3]"});
    assert_values("f32[1,2,2] [-1, 1, -1, 3]", "InstanceNormalization", "epsilon=0.0",
                  .inputs = {"f32[1,2,2] 0..", "f32[2] [1, 2]", "f32[2] [0, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "4 channels are not divisible into 3 groups", "GroupNormalization",
                       "num_groups=3", .inputs = {"f32[1,4,L]", "f32[4]", "f32[4]"});
    assert_shape_fault(MDOT_MALFORMED, "the bias has 2 elements instead of 4", "GroupNormalization", "num_groups=2",
                       .inputs = {"f32[1,4,L]", "f32[4]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "no channels", "InstanceNormalization",
                       .inputs = {"f32[4]", "f32[4]", "f32[4]"});
}

static void batch_norm_uses_given_statistics(void **state)
{
    (void)state;
    assert_types("f32[L,2,5]", "BatchNormalization", .inputs = {"f32[L,2,5]", "f32[2]", "f32[2]", "f32[2]", "f32[2]"});
    assert_values("f32[2,2] [-0.5, -1, 0.5, 3]", "BatchNormalization", "epsilon=0.0",
                  .inputs = {"f32[2,2] 0..", "f32[2] [1, 2]", "f32[2] [0, 1]", "f32[2] [1, 2]", "f32[2] [4, 1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "training_mode", "BatchNormalization", "training_mode=1",
                       .inputs = {"f32[L,2]", "f32[2]", "f32[2]", "f32[2]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "the variance has 3 elements", "BatchNormalization",
                       .inputs = {"f32[L,2]", "f32[2]", "f32[2]", "f32[2]", "f32[3]"});
}

static void mean_variance_norm_takes_axes(void **state)
{
    (void)state;
    assert_types("f32[1,2,L,3]", "MeanVarianceNormalization", .inputs = {"f32[1,2,L,3]"});
    assert_values("f32[2,2] [-1, -1, 1, 1]", "MeanVarianceNormalization", "axes=[0]",
                  .inputs = {"f32[2,2] [0, 1, 2, 5]"});
    assert_values("f32[1,2,1,2] [-1, 1, -1, 1]", "MeanVarianceNormalization", .inputs = {"f32[1,2,1,2] [0, 1, 5, 9]"});
    assert_values("f32[2] [0, 0]", "MeanVarianceNormalization", "axes=[0]", .inputs = {"f32[2] [3, 3]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 2", "MeanVarianceNormalization", .inputs = {"f32[2,2]"});
}

static void lp_norm_divides_by_the_norm(void **state)
{
    (void)state;
    assert_values("f32[2,2] [0.75, -0.25, 0, 0]", "LpNormalization", "p=1", .inputs = {"f32[2,2] [3, -1, 0, 0]"});
    assert_values("f32[2,2] [0.6, 0, 0.8, 1]", "LpNormalization", "axis=0", .inputs = {"f32[2,2] [3, 0, 4, 2]"});
    assert_shape_fault(MDOT_MALFORMED, "p is 3", "LpNormalization", "p=3", .inputs = {"f32[2]"});
}

static void skip_layer_norm_sums_before(void **state)
{
    (void)state;
    assert_types("f32[2,L,8]; f32[2,L,1]; f32[2,L,1]; f32[2,L,8]", "com.microsoft.SkipLayerNormalization",
                 .inputs = {"f32[2,L,8]", "f32[L,8]", "f32[8]", "f32[8]", "f32[8]"}, .output_count = 4);
    assert_values("f32[1,2,2] [-1, 3, -1, 3]; f32[1,2,1] [6, 8]; f32[1,2,1] [0.2, 0.2]; f32[1,2,2] [1, 11, 3, 13]",
                  "com.microsoft.SkipLayerNormalization",
                  .inputs = {"f32[1,2,2] 0..", "f32[1,1,2] [1, 0]", "f32[2] [1, 2]", "f32[2] [0, 1]", "f32[2] [0, 10]"},
                  .output_count = 4);
    assert_values("f32[1,2] [-1, 1]; f32[1,2] [0, 2]", "com.microsoft.SkipLayerNormalization",
                  .inputs = {"f32[1,2] 0..", "f32[1,2] 0..", "f32[2] [1, 1]"}, .output_count = 4, .only = "x__x");
    assert_shape_fault(MDOT_MALFORMED, "the skip of shape [3]", "com.microsoft.SkipLayerNormalization",
                       .inputs = {"f32[1,2]", "f32[3]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "the beta has 3 elements instead of 2", "com.microsoft.SkipLayerNormalization",
                       .inputs = {"f32[1,2]", "f32[1,2]", "f32[2]", "f32[3]"});
}

#define EMBED "com.microsoft.EmbedLayerNormalization"

static void embed_layer_norm_sums_rows_of_tables(void **state)
{
    (void)state;
    assert_types(
        "f32[2,L,8]; i32[2]; f32[2,L,8]", EMBED,
        .inputs = {"i32[2,L]", "i32[2,L]", "f32[9,8]", "f32[64,8]", "f32[2,8]", "f32[8]", "f32[8]", "i32[2,L]"},
        .output_count = 3);
    assert_values("f32[1,2,2] [1, -1, -1, 3]; i32[1] [1]; f32[1,2,2] [13, 3, 1, 11]", EMBED,
                  .inputs = {"i32[1,2] [1, 0]", "i32[1,2] [1, 1]", "f32[2,2] 0..", "f32[2,2] [10, 0, 0, 10]",
                             "f32[2,2] [0, 0, 1, 0]", "f32[2] [1, 2]", "f32[2] [0, 1]", "i32[1,2] [1, 0]"},
                  .output_count = 3);
    /* Segments and mask are absent. The given positions apply to both sequences. */
    assert_values("f32[2,1,2] [-1, 1, -1, 1]; i32[2] [0, 0]; f32[2,1,2] [0, 11, 2, 13]", EMBED,
                  .inputs = {"i32[2,1] [0, 1]", "_", "f32[2,2] 0..", "f32[2,2] [10, 0, 0, 10]", "_", "f32[2] [1, 1]",
                             "f32[2] [0, 0]", "_", "i32[1,1] [1]"},
                  .output_count = 3);
}

static void embed_layer_norm_refuses_mismatched_operands(void **state)
{
    (void)state;
    assert_eval_fault(MDOT_OUT_OF_RANGE, "id 2 is outside of a table of 2 rows", EMBED,
                      .inputs = {"i32[1,1] [2]", "_", "f32[2,1] 0..", "f32[1,1] 0..", "_", "f32[1] 0..", "f32[1] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "input 6, the beta, is missing", EMBED,
                       .inputs = {"i32[1,2]", "_", "f32[2,8]", "f32[2,8]", "_", "f32[8]"});
    assert_shape_fault(MDOT_MALFORMED, "the shape of the mask", EMBED,
                       .inputs = {"i32[1,2]", "_", "f32[2,8]", "f32[2,8]", "_", "f32[8]", "f32[8]", "i32[1,3]"});
    assert_shape_fault(MDOT_MALFORMED, "position embedding differ in width", EMBED,
                       .inputs = {"i32[1,2]", "_", "f32[2,8]", "f32[2,7]", "_", "f32[8]", "f32[8]"});
    assert_shape_fault(MDOT_MALFORMED, "the segment embedding, is missing", EMBED,
                       .inputs = {"i32[1,2]", "i32[1,2]", "f32[2,8]", "f32[2,8]", "_", "f32[8]", "f32[8]"});
}

static void norms_cost_a_few_flops_per_element(void **state)
{
    (void)state;
    assert_cost(5 * 20, 80, 80, 0, "Softmax", .inputs = {"f32[2,L]"});
    assert_cost(8 * 20, 80 + 8 + 8, 80, 4, "LayerNormalization",
                .inputs = {"f32[L,2]", "f32[2] [1, 1]", "f32[2] [0, 0]"});
    assert_cost(10 * 20, 80 + 80 + 3 * 8, 80, 6, "com.microsoft.SkipLayerNormalization",
                .inputs = {"f32[1,L,2]", "f32[1,L,2]", "f32[2] 0..", "f32[2] 0..", "f32[2] 0.."});
}

static void running_statistics_are_not_parameters(void **state)
{
    (void)state;
    assert_cost(2 * 20, 80 + 4 * 8, 80, 4, "BatchNormalization",
                .inputs = {"f32[L,2]", "f32[2] [1, 1]", "f32[2] [0, 0]", "f32[2] [3, 4]", "f32[2] [5, 6]"});
}

static void embeddings_read_the_rows_they_fetch(void **state)
{
    (void)state;
    /* Ten tokens: ids of four bytes. Each table has a hundred rows; ten rows with two floats each are read. */
    assert_cost(9 * 20, 40 + 80 + 80 + 16, 80, 200 + 4, EMBED,
                .inputs = {"i32[1,L]", "_", "f32[100,2] 0..", "f32[100,2]", "_", "f32[2] 0..", "f32[2] 0.."});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_sums_to_one_along_its_axis),
        cmocka_unit_test(layer_norm_normalizes_trailing_axes),
        cmocka_unit_test(layer_norm_refuses_other_parameters),
        cmocka_unit_test(rms_norm_divides_by_the_root_of_squares),
        cmocka_unit_test(group_norm_shares_statistics_in_a_group),
        cmocka_unit_test(batch_norm_uses_given_statistics),
        cmocka_unit_test(mean_variance_norm_takes_axes),
        cmocka_unit_test(lp_norm_divides_by_the_norm),
        cmocka_unit_test(skip_layer_norm_sums_before),
        cmocka_unit_test(embed_layer_norm_sums_rows_of_tables),
        cmocka_unit_test(embed_layer_norm_refuses_mismatched_operands),
        cmocka_unit_test(norms_cost_a_few_flops_per_element),
        cmocka_unit_test(running_statistics_are_not_parameters),
        cmocka_unit_test(embeddings_read_the_rows_they_fetch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
