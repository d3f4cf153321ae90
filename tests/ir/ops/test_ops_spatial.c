/* test_ops_spatial.c — ir/ops/convolution.c, pooling.c, resize.c and window_geometry.c: operators over feature maps. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void conv_slides_its_kernel_over_the_padded_map(void **state)
{
    (void)state;
    assert_types("f32[2,16,112,112]", "Conv", "pads=[3,3,3,3], strides=[2,2]",
                 .inputs = {"f32[2,3,224,224]", "f32[16,3,7,7]", "f32[16]"});
    assert_types("f32[1,8,L]", "Conv", "pads=[1,1]", .inputs = {"f32[1,4,L]", "f32[8,4,3]"});
    assert_types("f32[1,8,5,7]", "Conv", "dilations=[2,2]", .inputs = {"f32[1,4,9,11]", "f32[8,4,3,3]"});
    assert_types("f32[1,8,5,6]", "Conv", "auto_pad=\"SAME_UPPER\", strides=[2,2]",
                 .inputs = {"f32[1,4,9,11]", "f32[8,4,3,3]"});
    assert_types("f32[1,8,4,5]", "Conv", "auto_pad=\"VALID\", strides=[2,2]",
                 .inputs = {"f32[1,4,9,11]", "f32[8,4,3,3]"});
    assert_values("f32[1,1,2,2] [8, 12, 20, 24]", "Conv", .inputs = {"f32[1,1,3,3] 0..", "f32[1,1,2,2] [1, 1, 1, 1]"});
    assert_values("f32[1,1,2,2] [1, 4, 10, 25]", "Conv", "pads=[1,1,0,0], strides=[2,2]",
                  .inputs = {"f32[1,1,3,3] 0..", "f32[1,1,2,2] [1, 1, 1, 1]", "f32[1] [1]"});
}

static void conv_separates_groups(void **state)
{
    (void)state;
    assert_values("f32[1,2,2] [0, 2, 6, 9]", "Conv", "group=2", .inputs = {"f32[1,2,2] 0..", "f32[2,1,1] [2, 3]"});
    assert_values("f32[1,1,2] [6, 11]", "Conv", .inputs = {"f32[1,2,2] 0..", "f32[1,2,1] [2, 3]"});
    assert_shape_fault(MDOT_MALFORMED, "require 2 groups of 4 channels", "Conv", "group=2",
                       .inputs = {"f32[1,4,8,8]", "f32[8,4,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "9 filters are not divisible into 2 groups", "Conv", "group=2",
                       .inputs = {"f32[1,4,8,8]", "f32[9,2,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "into 0 groups", "Conv", "group=0", .inputs = {"f32[1,4,8,8]", "f32[9,2,3,3]"});
}

static void conv_refuses_mismatched_kernels(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "strides has an element of 0", "Conv", "strides=[0,1]",
                       .inputs = {"f32[1,1,8,8]", "f32[1,1,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "strides has 1 elements instead of 2", "Conv", "strides=[1]",
                       .inputs = {"f32[1,1,8,8]", "f32[1,1,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "exceeds the padded input of 2 elements", "Conv",
                       .inputs = {"f32[1,1,2,2]", "f32[1,1,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "kernel_shape is 5", "Conv", "kernel_shape=[5,5]",
                       .inputs = {"f32[1,1,8,8]", "f32[1,1,3,3]"});
    assert_shape_fault(MDOT_MALFORMED, "lacks spatial dimensions", "Conv", .inputs = {"f32[1,1]", "f32[1,1]"});
    assert_shape_fault(MDOT_MALFORMED, "the bias", "Conv", .inputs = {"f32[1,1,8,8]", "f32[4,1,3,3]", "f32[3]"});
}

static void conv_costs_a_multiply_add_per_weight_and_position(void **state)
{
    (void)state;
    /* 3x3, 16 → 32 channels, 8x8 positions, with a bias */
    assert_cost(2 * 9 * 16 * 32 * 64 + 32 * 64, 4 * (16 * 64 + 9 * 16 * 32 + 32), 4 * 32 * 64, 0, "Conv",
                "pads=[1,1,1,1]", .inputs = {"f32[1,16,8,8]", "f32[32,16,3,3]", "f32[32]"});
    /* depthwise: 9 per position and channel; two samples */
    assert_cost(2 * 9 * 16 * 64 * 2, 4 * (16 * 64 * 2 + 9 * 16), 4 * 16 * 64 * 2, 0, "Conv", "pads=[1,1,1,1], group=16",
                .inputs = {"f32[2,16,8,8]", "f32[16,1,3,3]"});
}

static void conv_transpose_inverts_conv_shapes(void **state)
{
    (void)state;
    assert_types("f32[1,8,15,15]", "ConvTranspose", "strides=[2,2], pads=[1,1,1,1]",
                 .inputs = {"f32[1,4,8,8]", "f32[4,8,3,3]"});
    assert_types("f32[1,8,16,16]", "ConvTranspose", "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]",
                 .inputs = {"f32[1,4,8,8]", "f32[4,8,3,3]"});
    assert_types("f32[1,8,16,16]", "ConvTranspose", "strides=[2,2], auto_pad=\"SAME_UPPER\"",
                 .inputs = {"f32[1,4,8,8]", "f32[4,8,3,3]"});
    assert_types("f32[1,8,16,16]", "ConvTranspose", "strides=[2,2], output_shape=[16,16]",
                 .inputs = {"f32[1,4,8,8]", "f32[4,8,3,3]"});
    assert_values("f32[1,1,4] [0, 1, 3, 2]", "ConvTranspose", .inputs = {"f32[1,1,3] 0..", "f32[1,1,2] [1, 1]"});
    assert_values("f32[1,2,3] [1, 1, 2, 1, 1, 3]", "ConvTranspose", "strides=[2], group=1",
                  .inputs = {"f32[1,1,2] [0, 1]", "f32[1,2,1] [1, 2]", "f32[2] [1, 1]"});
}

static void max_pool_gives_maxima_and_indices(void **state)
{
    (void)state;
    assert_types("f32[1,8,4,4]; i64[1,8,4,4]", "MaxPool", "kernel_shape=[2,2], strides=[2,2]",
                 .inputs = {"f32[1,8,8,8]"}, .output_count = 2);
    assert_values("f32[1,1,2,2] [4, 5, 7, 8]; i64[1,1,2,2] [4, 5, 7, 8]", "MaxPool", "kernel_shape=[2,2]",
                  .inputs = {"f32[1,1,3,3] 0.."}, .output_count = 2);
    assert_values("i8[1,1,3] [-128, -3, -128]", "MaxPool", "kernel_shape=[1], pads=[1,1]",
                  .inputs = {"i8[1,1,1] [-3]"});
    assert_values("f32[1,1,1,2] [4, 4]; i64[1,1,1,2] [3, 3]", "MaxPool", "kernel_shape=[2,2], storage_order=1",
                  .inputs = {"f32[1,1,2,3] [0, 1, 0, 2, 4, 0]"}, .output_count = 2, .only = "xx");
}

static void ceil_mode_counts_windows_that_start_inside(void **state)
{
    (void)state;
    assert_types("f32[1,1,4,4]", "MaxPool", "kernel_shape=[3,3], strides=[2,2], ceil_mode=1",
                 .inputs = {"f32[1,1,8,8]"});
    assert_types("f32[1,1,3,3]", "MaxPool", "kernel_shape=[3,3], strides=[2,2]", .inputs = {"f32[1,1,8,8]"});
    /* The second window would start in the padding after the data. */
    assert_types("f32[1,1,1]", "AveragePool", "kernel_shape=[1], strides=[2], pads=[0,1], ceil_mode=1",
                 .inputs = {"f32[1,1,2]"});
}

static void average_pool_counts_padding_on_request(void **state)
{
    (void)state;
    assert_values("f32[1,1,2] [1, 2.5]", "AveragePool", "kernel_shape=[2], strides=[2], pads=[1,0]",
                  .inputs = {"f32[1,1,3] [1, 2, 3]"});
    assert_values("f32[1,1,2] [0.5, 2.5]", "AveragePool",
                  "kernel_shape=[2], strides=[2], pads=[1,0], count_include_pad=1", .inputs = {"f32[1,1,3] [1, 2, 3]"});
    assert_values("f32[1,1,1] [5]", "LpPool", "kernel_shape=[2]", .inputs = {"f32[1,1,2] [3, -4]"});
}

static void global_pools_reduce_the_whole_map(void **state)
{
    (void)state;
    assert_types("f32[L,8,1,1]", "GlobalAveragePool", .inputs = {"f32[L,8,7,7]"});
    assert_values("f32[1,2,1] [0.5, 2.5]", "GlobalAveragePool", .inputs = {"f32[1,2,2] 0.."});
    assert_values("f32[1,2,1] [1, 3]", "GlobalMaxPool", .inputs = {"f32[1,2,2] 0.."});
    assert_cost(8 * 49, 4 * 8 * 49, 4 * 8, 0, "GlobalAveragePool", .inputs = {"f32[1,8,7,7]"});
    assert_shape_fault(MDOT_MALFORMED, "lacks spatial dimensions", "GlobalAveragePool", .inputs = {"f32[1,8]"});
    assert_shape_fault(MDOT_MALFORMED, "a kernel is 0 wide", "MaxPool", .inputs = {"f32[1,8,8,8]"});
}

static void lrn_divides_by_squares_of_neighbouring_channels(void **state)
{
    (void)state;
    assert_values("f32[1,3,1] [0.5, 0.333333, 0.5]", "LRN", "size=3, alpha=3.0, beta=1.0, bias=0.0",
                  .inputs = {"f32[1,3,1] [1, 1, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "size", "LRN", .inputs = {"f32[1,3,1]"});
}

static void resize_accepts_scales_or_sizes(void **state)
{
    (void)state;
    assert_types("f32[1,3,16,12]", "Resize", .inputs = {"f32[1,3,8,6]", "_", "f32[4] [1, 1, 2, 2]"});
    assert_types("f32[1,3,2L,3]", "Resize", .inputs = {"f32[1,3,L,6]", "_", "f32[4] [1, 1, 2, 0.5]"});
    assert_types("f32[1,3,16,7]", "Resize", .inputs = {"f32[1,3,49,21]", "_", "f32[4] [1, 1, 0.33333334, 0.33333334]"});
    assert_types("f32[1,3,7,5]", "Resize", .inputs = {"f32[1,3,8,6]", "_", "_", "i64[4] [1, 3, 7, 5]"});
    assert_types("f32[1,3,7,5]", "Resize", "axes=[2,3]", .inputs = {"f32[1,3,8,6]", "_", "_", "i64[2] [7, 5]"});
    assert_shape_fault(MDOT_MALFORMED, "scales or sizes are required", "Resize", .inputs = {"f32[1,3,8,6]"});
    assert_shape_fault(MDOT_MALFORMED, "the scale 1e-30", "Resize", .inputs = {"f32[L]", "_", "f32[1] [1e-30]"});
    assert_shape_fault(MDOT_MALFORMED, "4611686018427387904 elements scaled by 1000", "Resize",
                       .inputs = {"f32[4611686018427387904,0]", "_", "f32[2] [1000, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "2 scales for 4 dimensions", "Resize",
                       .inputs = {"f32[1,3,8,6]", "_", "f32[2] [2, 2]"});
    assert_values("f32[4] [1, 1.25, 1.75, 2]", "Resize", "mode=\"linear\"",
                  .inputs = {"f32[2] [1, 2]", "_", "f32[1] [2]"});
    assert_values("f32[4] [1, 1.33333, 1.66667, 2]", "Resize",
                  "mode=\"linear\", coordinate_transformation_mode=\"align_corners\"",
                  .inputs = {"f32[2] [1, 2]", "_", "f32[1] [2]"});
    assert_values("i64[2] [6, 8]", "Resize",
                  "nearest_mode=\"floor\", coordinate_transformation_mode=\"tf_half_pixel_for_nn\"",
                  .inputs = {"i64[4] [5, 6, 7, 8]", "_", "f32[1] [0.5]"});
    assert_values("i64[5] [7, 7, 8, 8, 9]", "Resize", "nearest_mode=\"floor\"",
                  .inputs = {"i64[3] [7, 8, 9]", "_", "_", "i64[1] [5]"});
    assert_values("i64[4] [7, 7, 8, 9]", "Resize", /* the last position is exactly 2 */
                  "nearest_mode=\"floor\", coordinate_transformation_mode=\"half_pixel_symmetric\"",
                  .inputs = {"i64[3] [7, 8, 9]", "_", "f32[1] [1.5]"});
    assert_eval_fault(MDOT_UNSUPPORTED, "mode nearest only", "Resize", "mode=\"linear\"",
                      .inputs = {"i64[3] [7, 8, 9]", "_", "_", "i64[1] [5]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the mode \"area\" is unknown", "Resize", "mode=\"area\"",
                       .inputs = {"f32[L]", "_", "f32[1] [2]"});
    assert_eval_fault(MDOT_MALFORMED, "requires a region", "Resize",
                      "coordinate_transformation_mode=\"tf_crop_and_resize\"",
                      .inputs = {"f32[4] 0..", "_", "f32[1] [2]"});
    assert_types("f32[8,12]", "Resize", "keep_aspect_ratio_policy=\"not_larger\"",
                 .inputs = {"f32[4,6]", "_", "_", "i64[2] [8, 99]"});
    assert_types("f32[66,99]", "Resize", "keep_aspect_ratio_policy=\"not_smaller\"",
                 .inputs = {"f32[4,6]", "_", "_", "i64[2] [8, 99]"});
    assert_cost(2 * 4 * 3 * 16 * 12, 4 * (3 * 48 + 4), 4 * 3 * 192, 4, "Resize", "mode=\"linear\"",
                .inputs = {"f32[1,3,8,6]", "_", "f32[4] [1, 1, 2, 2]"});
}

static void grid_sample_shape_follows_the_grid(void **state)
{
    (void)state;
    assert_types("f32[2,3,5,6]", "GridSample", .inputs = {"f32[2,3,8,8]", "f32[2,5,6,2]"});
    assert_shape_fault(MDOT_MALFORMED, "one coordinate", "GridSample", .inputs = {"f32[2,3,8,8]", "f32[2,5,6,3]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_slides_its_kernel_over_the_padded_map),
        cmocka_unit_test(conv_separates_groups),
        cmocka_unit_test(conv_refuses_mismatched_kernels),
        cmocka_unit_test(conv_costs_a_multiply_add_per_weight_and_position),
        cmocka_unit_test(conv_transpose_inverts_conv_shapes),
        cmocka_unit_test(max_pool_gives_maxima_and_indices),
        cmocka_unit_test(ceil_mode_counts_windows_that_start_inside),
        cmocka_unit_test(average_pool_counts_padding_on_request),
        cmocka_unit_test(global_pools_reduce_the_whole_map),
        cmocka_unit_test(lrn_divides_by_squares_of_neighbouring_channels),
        cmocka_unit_test(resize_accepts_scales_or_sizes),
        cmocka_unit_test(grid_sample_shape_follows_the_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
