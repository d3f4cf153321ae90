/* test_upgrade_values.c — upgraded nodes compute the values defined by the old opset. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* x: f32[shape] → y */
static onnx_builder *begin_model(int opset, const char *shape)
{
    onnx_builder *b = onnx_begin(opset);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_output(b, "y");
    return b;
}

/* The model's output for this x holds `expected`. */
static void expect_output(onnx_builder *b, const double *x, int count, const double *expected)
{
    imported m = expect_imported(b, NULL);
    if (ir_infer(m.graph, &m.err) != MDOT_OK) fail_msg("%s", m.err.message);
    const ir_type *type = &m.graph->inputs[0]->type;
    int64_t dims[MDOT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) dims[i] = type->dim[i].offset;
    ir_wide *input = ir_wide_create(m.arena, type->dtype, type->rank, dims), *output = NULL;
    assert_non_null(input);
    memcpy(input->f, x, (size_t)input->count * sizeof *x);
    const ir_wide *inputs[] = {input};
    if (ir_evaluate(m.graph, inputs, m.arena, &output, &m.err) != MDOT_OK) fail_msg("%s", m.err.message);
    assert_int_equal(output->count, count);
    for (int i = 0; i < count; i++) {
        if (fabs(ir_wide_get(output, i) - expected[i]) > 1e-5)
            fail_msg("[%d]: %g, not %g", i, ir_wide_get(output, i), expected[i]);
    }
    release(&m);
}

static void old_softmax_normalises_over_all_later_axes(void **state)
{
    (void)state;
    static const double x[] = {0, 0, 0, 0, 0, 0, 0, 1e3}, expected[] = {0.25, 0.25, 0.25, 0.25, 0, 0, 0, 1};
    onnx_builder *b = begin_model(11, "2,2,2");
    onnx_node(b, "Softmax", "x", "y");
    expect_output(b, x, 8, expected);
}

static void new_softmax_normalises_over_one_axis(void **state)
{
    (void)state;
    static const double x[] = {0, 0, 0, 0, 0, 0, 0, 1e3}, expected[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 1};
    onnx_builder *b = begin_model(13, "2,2,2");
    onnx_node(b, "Softmax", "x", "y");
    expect_output(b, x, 8, expected);
}

/* At scale 3, element 2 is at 0.67: Upsample rounds down, and the newest Resize rounds to nearest. */
static void old_upsampling_takes_the_neighbour_below(void **state)
{
    (void)state;
    static const double x[] = {5, 7}, expected[] = {5, 5, 5, 7, 7, 7};
    static const float scales[] = {3};
    for (int opset = 9; opset <= 10; opset++) {
        onnx_builder *b = begin_model(opset, "2");
        onnx_initializer(b, "scales", MDOT_DTYPE_F32, "1", scales);
        onnx_node(b, opset < 10 ? "Upsample" : "Resize", "x,scales", "y");
        expect_output(b, x, 6, expected);
    }
}

static void operand_is_broadcast_along_the_named_axis(void **state)
{
    (void)state;
    static const double x[] = {0, 0, 0, 0, 0, 0, 0, 0}, expected[] = {1, 1, 2, 2, 1, 1, 2, 2};
    static const float bias[] = {1, 2};
    onnx_builder *b = begin_model(6, "2,2,2");
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "2", bias);
    onnx_node(b, "Add", "x,bias", "y");
    onnx_attr_int(b, "broadcast", 1);
    onnx_attr_int(b, "axis", 1);
    expect_output(b, x, 8, expected);
}

static void old_prelu_has_a_slope_per_channel(void **state)
{
    (void)state;
    static const double x[] = {-1, -1, -1, 1}, expected[] = {-2, -2, -3, 1};
    static const float slope[] = {2, 3};
    onnx_builder *b = begin_model(6, "1,2,2");
    onnx_initializer(b, "slope", MDOT_DTYPE_F32, "2", slope);
    onnx_node(b, "PRelu", "x,slope", "y");
    expect_output(b, x, 4, expected);
}

static void old_tile_repeats_one_axis(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, expected[] = {1, 2, 1, 2, 3, 4, 3, 4};
    static const int64_t tiles = 2, axis = 1;
    onnx_builder *b = begin_model(1, "2,2");
    onnx_initializer(b, "tiles", MDOT_DTYPE_I64, "1", &tiles);
    onnx_initializer(b, "axis", MDOT_DTYPE_I64, "1", &axis);
    onnx_node(b, "Tile", "x,tiles,axis", "y");
    expect_output(b, x, 8, expected);
}

static void old_group_normalization_scales_per_group(void **state)
{
    (void)state;
    static const double x[] = {1, -1, 1, -1}, expected[] = {12, 8, 23, 17};
    static const float scale[] = {2, 3}, bias[] = {10, 20};
    onnx_builder *b = begin_model(18, "1,4,1");
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "2", scale);
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "2", bias);
    onnx_node(b, "GroupNormalization", "x,scale,bias", "y");
    onnx_attr_int(b, "num_groups", 2);
    onnx_attr_float(b, "epsilon", 0);
    expect_output(b, x, 4, expected);
}

static void old_dropout_passes_its_input_and_a_mask_of_ones(void **state)
{
    (void)state;
    static const double x[] = {5, 6}, expected[] = {1, 1};
    onnx_builder *b = begin_model(7, "2");
    onnx_node(b, "Dropout", "x", "d,mask");
    onnx_node(b, "Div", "d,x", "one");
    onnx_node(b, "Mul", "one,mask", "y");
    expect_output(b, x, 2, expected);
}

static void old_pad_and_clip_use_their_attributes(void **state)
{
    (void)state;
    static const double x[] = {-3, 8}, expected[] = {0.5, -1, 6, 0.5};
    static const int64_t pads[] = {1, 1}, flat = -1;
    onnx_builder *b = begin_model(2, "2");
    onnx_node(b, "Pad", "x", "p");
    onnx_attr_ints(b, "pads", 2, pads);
    onnx_attr_float(b, "value", 0.5f);
    onnx_node(b, "Clip", "p", "c");
    onnx_attr_float(b, "min", -1);
    onnx_attr_float(b, "max", 6);
    onnx_node(b, "Reshape", "c", "y");
    onnx_attr_ints(b, "shape", 1, &flat);
    expect_output(b, x, 4, expected);
}

static void batch_normalization_of_opset_one_normalises(void **state)
{
    (void)state;
    static const double x[] = {3, 5}, expected[] = {2 * 1 + 1, 2 * 2 + 1};
    static const float scale[] = {2}, shift[] = {1}, mean[] = {1}, variance[] = {4};
    static const int64_t consumed[] = {0, 0, 0, 1, 1};
    onnx_builder *b = begin_model(1, "1,1,2");
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "1", scale);
    onnx_initializer(b, "shift", MDOT_DTYPE_F32, "1", shift);
    onnx_initializer(b, "mean", MDOT_DTYPE_F32, "1", mean);
    onnx_initializer(b, "variance", MDOT_DTYPE_F32, "1", variance);
    onnx_node(b, "BatchNormalization", "x,scale,shift,mean,variance", "y");
    onnx_attr_ints(b, "consumed_inputs", 5, consumed);
    onnx_attr_int(b, "is_test", 1);
    onnx_attr_float(b, "epsilon", 0);
    expect_output(b, x, 2, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_softmax_normalises_over_all_later_axes),
        cmocka_unit_test(new_softmax_normalises_over_one_axis),
        cmocka_unit_test(old_upsampling_takes_the_neighbour_below),
        cmocka_unit_test(operand_is_broadcast_along_the_named_axis),
        cmocka_unit_test(old_prelu_has_a_slope_per_channel),
        cmocka_unit_test(old_tile_repeats_one_axis),
        cmocka_unit_test(old_group_normalization_scales_per_group),
        cmocka_unit_test(old_dropout_passes_its_input_and_a_mask_of_ones),
        cmocka_unit_test(old_pad_and_clip_use_their_attributes),
        cmocka_unit_test(batch_normalization_of_opset_one_normalises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
