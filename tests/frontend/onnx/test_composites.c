/* test_composites.c — Hardmax, ReverseSequence and FusedConv as standard operators, against their definitions. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

/* Evaluates a model whose only input x has this shape. */
static void expect(onnx_builder *b, int rank, const int64_t *dims, const double *x, const double *wanted, int64_t count)
{
    mdot_error err;
    onnx_output(b, "y");
    imported model = expect_imported(b, NULL);
    model.graph->max_length = 16;
    if (ir_infer(model.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    ir_arena *arena = ir_arena_create(0);
    ir_wide *input = ir_wide_create(arena, MDOT_DTYPE_F32, rank, dims), *out[1];
    for (int64_t i = 0; i < input->count; i++) input->f[i] = x[i];
    if (ir_evaluate(model.graph, (const ir_wide *const[]){input}, arena, out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(out[0]->count, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(out[0]->f[i] - wanted[i]) < 1e-6))
            fail_msg("element %d is %g, not %g", (int)i, out[0]->f[i], wanted[i]);
    ir_arena_destroy(arena);
    release(&model);
}

static void hardmax_marks_the_first_greatest(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3");
    onnx_node(b, "Hardmax", "x", "y");
    expect(b, 2, (int64_t[]){2, 3}, (double[]){1, 5, 5, -1, -3, -2}, (double[]){0, 1, 0, 1, 0, 0}, 6);
}

static void sequences_are_reversed_up_to_their_lengths(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,2,1");
    onnx_initializer(b, "lengths", MDOT_DTYPE_I64, "2", (int64_t[]){3, 1});
    onnx_node(b, "ReverseSequence", "x,lengths", "y");
    expect(b, 3, (int64_t[]){4, 2, 1}, x, (double[]){5, 2, 3, 4, 1, 6, 7, 8}, 8);
    b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,N");
    onnx_initializer(b, "lengths", MDOT_DTYPE_I64, "2", (int64_t[]){3, 4});
    onnx_node(b, "ReverseSequence", "x,lengths", "y");
    onnx_attr_int(b, "batch_axis", 0);
    onnx_attr_int(b, "time_axis", 1);
    expect(b, 2, (int64_t[]){2, 4}, x, (double[]){3, 2, 1, 4, 8, 7, 6, 5}, 8);
}

static void fused_convolutions_add_and_activate(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,1,N");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,1,2", (float[]){1, -1});
    onnx_initializer(b, "b", MDOT_DTYPE_F32, "1", (float[]){0.5F});
    onnx_node(b, "com.microsoft:FusedConv", "x,w,b", "y");
    onnx_attr_string(b, "activation", "LeakyRelu");
    onnx_attr_floats(b, "activation_params", 1, (float[]){0.25F});
    expect(b, 3, (int64_t[]){1, 1, 4}, (double[]){1, 2, 0, 1}, (double[]){-0.125, 2.5, -0.125}, 3);
    b = onnx_begin(21);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,1,N");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,1,2", (float[]){1, -1});
    onnx_node(b, "com.microsoft:FusedConv", "x,w", "y");
    onnx_attr_string(b, "activation", "Clip");
    onnx_attr_floats(b, "activation_params", 2, (float[]){0, 1.5F});
    expect(b, 3, (int64_t[]){1, 1, 4}, (double[]){1, 2, 0, 1}, (double[]){0, 1.5, 0}, 3);
}

/* As PyTorch exports it, on pairs of positions. Each group has the elements of two channels. */
static void group_norms_over_pairs_are_recognised(void **state)
{
    (void)state;
    static const double x[16] = {1, 2, 3, 4, 5, 6, 7, 8, -1, 0, 1, 2, 0, 0, 4, 10};
    double wanted[16];
    for (int g = 0; g < 2; g++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < 8; i++) mean += x[8 * g + i] / 8;
        for (int i = 0; i < 8; i++) variance += (x[8 * g + i] - mean) * (x[8 * g + i] - mean) / 8;
        for (int i = 0; i < 8; i++) wanted[8 * g + i] = 0.5 * (x[8 * g + i] - mean) / sqrt(variance + 0.25);
    }
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,4,N,N");
    onnx_initializer(b, "flat", MDOT_DTYPE_I64, "3", (int64_t[]){0, 2, -1});
    onnx_initializer(b, "ones", MDOT_DTYPE_F32, "2", (float[]){1, 1});
    onnx_initializer(b, "zeros", MDOT_DTYPE_F32, "2", (float[]){0, 0});
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "1", (float[]){0.5F});
    onnx_node(b, "Reshape", "x,flat", "groups");
    onnx_node(b, "InstanceNormalization", "groups,ones,zeros", "normed");
    onnx_attr_float(b, "epsilon", 0.25F);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Reshape", "normed,shape", "back");
    onnx_node(b, "Mul", "back,half", "y");
    expect(b, 4, (int64_t[]){1, 4, 2, 2}, x, wanted, 16);
}

static void other_forms_are_refused_with_the_reason(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3");
    onnx_node(b, "Hardmax", "x", "y");
    onnx_attr_int(b, "axis", 0);
    onnx_output(b, "y");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "Hardmax", "Transpose", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardmax_marks_the_first_greatest),
        cmocka_unit_test(sequences_are_reversed_up_to_their_lengths),
        cmocka_unit_test(fused_convolutions_add_and_activate),
        cmocka_unit_test(group_norms_over_pairs_are_recognised),
        cmocka_unit_test(other_forms_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
