/* test_canonicalise.c — frontend/job/: operator costs against closed forms, and the canonical job for all ways to write
 * a network. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Costs against closed forms ---------------------------------------------------------------------------------- */

static void convolutions_cost_their_closed_form(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,16,8,8");
    job_add_conv(b, "x", "full", "32,16,3,3", 1, true);
    job_add_conv(b, "full", "grouped", "32,8,3,3", 4, false);
    job_add_conv(b, "grouped", "depthwise", "32,1,3,3", 32, false);
    job_reading r = job_expect_output(b, "depthwise");
    job_expect_types(&r, "Conv Conv Conv");

    mdot_job_operator full = job_operator(&r, 0), grouped = job_operator(&r, 1), depthwise = job_operator(&r, 2);
    double map16 = 4 * 16 * 64, map32 = 4 * 32 * 64, macs = 9 * 16 * 32 * 64, weights = 9 * 16 * 32;
    job_expect_load(full.per_sample[MDOT_PHASE_FORWARD], 2 * macs + 32 * 64, map16, map32);
    job_expect_load(full.per_step[MDOT_PHASE_FORWARD], 0, 4 * (weights + 32), 0);
    job_expect_load(full.per_sample[MDOT_PHASE_DATA_GRADIENT], 0, 0, 0); /* the inputs before it need no gradient */
    job_expect_load(full.per_sample[MDOT_PHASE_WEIGHT_GRADIENT], 2 * macs + 32 * 64, map32 + map16, 0);
    job_expect_load(full.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 4 * (weights + 32));
    assert_compare(full.parameters, ==, weights + 32);
    assert_int_equal(full.setting[MDOT_SETTING_KERNEL_H], 3);
    assert_int_equal(full.setting[MDOT_SETTING_PADDING_W], 2);
    assert_int_equal(full.setting[MDOT_SETTING_CHANNELS_IN], 16);
    assert_int_equal(full.setting[MDOT_SETTING_CHANNELS_OUT], 32);
    assert_int_equal(full.setting[MDOT_SETTING_SIZE_OUT], 64);
    assert_int_equal(full.setting[MDOT_SETTING_BIAS], 1);

    job_expect_load(grouped.per_sample[MDOT_PHASE_FORWARD], 2 * 9 * 8 * 32 * 64, map32, map32);
    job_expect_load(grouped.per_sample[MDOT_PHASE_DATA_GRADIENT], 2 * 9 * 8 * 32 * 64, map32, map32);
    job_expect_load(grouped.per_step[MDOT_PHASE_DATA_GRADIENT], 0, 4 * 9 * 8 * 32, 0);
    assert_int_equal(grouped.setting[MDOT_SETTING_GROUPS], 4);
    assert_int_equal(grouped.setting[MDOT_SETTING_BIAS], 0);
    job_expect_load(depthwise.per_sample[MDOT_PHASE_FORWARD], 2 * 9 * 32 * 64, map32, map32);
    assert_int_equal(depthwise.setting[MDOT_SETTING_GROUPS], 32);
    job_end(&r);
}

/* Gemm with a transposed weight, and MatMul with Add: one layer in two patterns. */
static void linear_layers_have_one_canonical_form(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *other = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "10,64", NULL);
    onnx_initializer(b, "c", MDOT_DTYPE_F32, "10", NULL);
    onnx_node(b, "Gemm", "x,w,c", "y");
    onnx_attr_int(b, "transB", 1);
    onnx_output(b, "y");
    onnx_input(other, "x", MDOT_DTYPE_F32, "N,64");
    onnx_initializer(other, "w", MDOT_DTYPE_F32, "10,64", NULL);
    onnx_initializer(other, "c", MDOT_DTYPE_F32, "10", NULL);
    onnx_node(other, "Transpose", "w", "wt");
    onnx_node(other, "MatMul", "x,wt", "p");
    onnx_node(other, "Add", "c,p", "y");
    onnx_output(other, "y");
    job_reading r = job_expect(b), s = job_expect(other);
    job_expect_types(&r, "Linear");
    mdot_job_operator op = job_operator(&r, 0);
    job_expect_load(op.per_sample[MDOT_PHASE_FORWARD], 2 * 64 * 10 + 10, 4 * 64, 4 * 10);
    job_expect_load(op.per_step[MDOT_PHASE_FORWARD], 0, 4 * 650, 0);
    job_expect_load(op.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 4 * 650);
    assert_compare(op.parameters, ==, 650);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_IN], 64);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 10);
    assert_int_equal(op.setting[MDOT_SETTING_SIZE_IN], 1);
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

static void attention_is_recognised_with_its_heads(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    const float scale = 8;
    onnx_input(b, "q", MDOT_DTYPE_F32, "N,4,128,64");
    onnx_input(b, "k", MDOT_DTYPE_F32, "N,4,128,64");
    onnx_input(b, "v", MDOT_DTYPE_F32, "N,4,128,64");
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "", &scale);
    onnx_node(b, "Transpose", "k", "kt");
    onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 1, 3, 2});
    onnx_node(b, "MatMul", "q,kt", "s");
    onnx_node(b, "Div", "s,scale", "d");
    onnx_node(b, "Softmax", "d", "p");
    onnx_attr_int(b, "axis", -1);
    onnx_node(b, "MatMul", "p,v", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Attention");
    mdot_job_operator op = job_operator(&r, 0);
    assert_int_equal(op.setting[MDOT_SETTING_HEADS], 4);
    assert_int_equal(op.setting[MDOT_SETTING_HEAD_SIZE], 64);
    assert_int_equal(op.setting[MDOT_SETTING_QUERIES], 128);
    assert_int_equal(op.setting[MDOT_SETTING_KEYS], 128);
    /* two matmuls, and five softmax FLOPs per score */
    job_expect_load(op.per_sample[MDOT_PHASE_FORWARD], 4.0 * 128 * 128 * (2 * 64 * 2 + 5), 4.0 * 3 * 4 * 128 * 64,
                    4.0 * 4 * 128 * 64);
    job_end(&r);
}

static void recurrent_layers_cost_every_step(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("16,1,32");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,256,32", NULL);
    onnx_initializer(b, "r", MDOT_DTYPE_F32, "1,256,64", NULL);
    onnx_node(b, "LSTM", "x,w,r", "y,,");
    onnx_attr_int(b, "hidden_size", 64);
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "LSTM");
    mdot_job_operator op = job_operator(&r, 0);
    double flops = 16 * (2.0 * 256 * (32 + 64) + 10 * 256);
    assert_compare(job_info(&r).batch, ==, 1); /* one sample of 16 steps */
    assert_compare(op.per_sample[MDOT_PHASE_FORWARD].flops, ==, flops);
    assert_compare(op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, ==, flops);
    assert_compare(op.parameters, ==, 256 * (32 + 64));
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 64);
    job_end(&r);
}

/* An image's rows can be sequences. Here a sample has 7 sequences of 16 steps. */
static void recurrences_have_steps_and_positions(void **state)
{
    (void)state;
    for (int batch_first = 0; batch_first < 2; batch_first++) {
        onnx_builder *b = job_begin(batch_first ? "batch,7,16,32" : "16,batch,7,32");
        onnx_initializer(b, "shape", MDOT_DTYPE_I64, "3",
                         (int64_t[]){batch_first ? -1 : 16, batch_first ? 16 : -1, 32});
        onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,256,32", NULL);
        onnx_initializer(b, "r", MDOT_DTYPE_F32, "1,256,64", NULL);
        onnx_node(b, "Reshape", "x,shape", "rows");
        onnx_node(b, "LSTM", "rows,w,r", "y,,");
        onnx_attr_int(b, "hidden_size", 64);
        if (batch_first) onnx_attr_int(b, "layout", 1);
        job_reading r = job_expect_output(b, "y");
        mdot_job_operator op = job_operator(&r, job_info(&r).operator_count - 1);
        assert_string_equal(op.type, "LSTM");
        assert_int_equal(op.setting[MDOT_SETTING_SIZE_IN], 7 * 16);
        assert_int_equal(op.setting[MDOT_SETTING_EXTENT], 16);
        job_end(&r);
    }
}

static void embeddings_read_only_selected_rows(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "ids", MDOT_DTYPE_I64, "N,32");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "1000,16", NULL);
    onnx_node(b, "Gather", "table,ids", "y");
    job_reading r = job_expect_output(b, "y");
    mdot_job_operator op = job_operator(&r, 0);
    job_expect_load(op.per_sample[MDOT_PHASE_FORWARD], 0, 4 * 32 * 16, 4 * 32 * 16);
    job_expect_load(op.per_step[MDOT_PHASE_FORWARD], 0, 0, 0);
    job_expect_load(op.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 4 * 16000);
    assert_compare(op.parameters, ==, 16000);
    job_end(&r);
}

/* ---- Canonical form --------------------------------------------------------------------------------------------- */

static void batch_norm(onnx_builder *b, const char *in, const char *out, int channels)
{
    char shape[16], inputs[128];
    static const char *const parts[] = {"scale", "shift", "mean", "variance"};
    snprintf(shape, sizeof shape, "%d", channels);
    snprintf(inputs, sizeof inputs, "%s", in);
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", in, parts[i]);
        onnx_initializer(b, name, MDOT_DTYPE_F32, shape, NULL);
        strcat(strcat(inputs, ","), name);
    }
    onnx_node(b, "BatchNormalization", inputs, out);
}

/* A BatchNormalization with training_mode; its running statistics are model outputs. */
static void training_mode_norm_equals_inference_norm(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *training = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    batch_norm(b, "x", "n", 3);
    onnx_output(b, "n");
    onnx_input(training, "x", MDOT_DTYPE_F32, "N,3,8,8");
    batch_norm(training, "x", "n,mean,variance", 3);
    onnx_attr_int(training, "training_mode", 1);
    onnx_output(training, "n");
    onnx_output(training, "mean");
    onnx_output(training, "variance");
    job_reading r = job_expect(b), s = job_expect(training);
    job_expect_types(&s, "BatchNormalization");
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

/* (x - mean) * scale + shift, as PyTorch 2.2's dynamo exporter writes it. */
static void arithmetic_norm_is_recognised(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *written = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    job_add_conv(b, "x", "c", "16,3,3,3", 1, false);
    batch_norm(b, "c", "n", 16);
    onnx_output(b, "n");
    onnx_input(written, "x", MDOT_DTYPE_F32, "N,3,8,8");
    job_add_conv(written, "x", "c", "16,3,3,3", 1, false);
    static const char *const vectors[] = {"mean", "scale", "shift"};
    for (int i = 0; i < 3; i++) onnx_initializer(written, vectors[i], MDOT_DTYPE_F32, "16,1,1", NULL);
    onnx_node(written, "Sub", "c,mean", "centred");
    onnx_node(written, "Mul", "centred,scale", "scaled");
    onnx_node(written, "Add", "scaled,shift", "n");
    onnx_output(written, "n");
    job_reading r = job_expect(b), s = job_expect(written);
    job_expect_types(&s, "Conv");
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

static void bias_or_scale_alone_stays_pointwise(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,3,8,8");
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "16,1,1", NULL);
    onnx_initializer(b, "gamma", MDOT_DTYPE_F32, "16,1,1", NULL);
    job_add_conv(b, "x", "c", "16,3,3,3", 1, false);
    onnx_node(b, "Add", "c,bias", "a");
    onnx_node(b, "Relu", "a", "r");
    job_add_conv(b, "r", "d", "16,16,3,3", 1, true);
    onnx_node(b, "Mul", "d,gamma", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Relu Conv Mul");
    assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_BIAS], 1);
    assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_NORMALISED], 0);
    assert_compare(job_operator(&r, 3).parameters, ==, 16);
    job_end(&r);
}

/* LayerScale behind a normalisation has one vector. The scale and shift from Caffe exporters have two, and join. */
static void layer_scale_behind_a_norm_stays(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        onnx_builder *b = job_begin("N,3,8,8");
        job_add_conv(b, "x", "c", "16,3,3,3", 1, false);
        batch_norm(b, "c", "n", 16);
        onnx_initializer(b, "ls.gamma", MDOT_DTYPE_F32, "16,1,1", NULL);
        onnx_initializer(b, "shift", MDOT_DTYPE_F32, "16,1,1", NULL);
        onnx_node(b, "Mul", "n,ls.gamma", "y");
        if (both) onnx_node(b, "Add", "y,shift", "z");
        job_reading r = job_expect_output(b, both ? "z" : "y");
        job_expect_types(&r, both ? "Conv" : "Conv Mul");
        if (!both) assert_compare(job_operator(&r, 1).parameters, ==, 16);
        job_end(&r);
    }
}

static void norm_with_other_readers_stays_separate(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,3,8,8");
    batch_norm(b, "x", "first", 3);
    job_add_conv(b, "first", "c", "3,3,3,3", 1, false);
    batch_norm(b, "c", "n", 3);
    onnx_node(b, "Add", "n,c", "y"); /* reads the convolution's result, too */
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "BatchNormalization Conv BatchNormalization Add");
    assert_compare(job_operator(&r, 0).parameters, ==, 6);
    mdot_job_operator sum = job_operator(&r, 3);
    assert_int_equal(sum.input_count, 2);
    assert_int_equal(sum.inputs[0], 1);
    assert_int_equal(sum.inputs[1], 2);
    assert_int_equal(sum.depth, 3);
    assert_int_equal(job_operator(&r, 1).out_degree, 2);
    job_end(&r);
}

static void shape_arithmetic_and_dropout_are_removed(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    const int64_t zero = 0, minus_one = -1;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "axes", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "rest", MDOT_DTYPE_I64, "1", &minus_one);
    onnx_node(b, "Relu", "x", "r");
    onnx_node(b, "Shape", "r", "shape");
    onnx_node(b, "Gather", "shape,zero", "batch");
    onnx_node(b, "Unsqueeze", "batch,axes", "first");
    onnx_node(b, "Concat", "first,rest", "target");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Reshape", "r,target", "flat");
    onnx_node(b, "Dropout", "flat", "d");
    onnx_node(b, "Cast", "d", "h");
    onnx_attr_int(b, "to", MDOT_DTYPE_F16);
    onnx_node(b, "Sigmoid", "h", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu Sigmoid");
    assert_int_equal(job_operator(&r, 1).input_count, 1);
    assert_int_equal(job_operator(&r, 1).inputs[0], 0);
    /* A half-precision file has the same counts as a single-precision file, because the configuration sets the
     * precision. */
    job_expect_load(job_operator(&r, 1).per_sample[MDOT_PHASE_FORWARD],
                    job_operator(&r, 1).per_sample[MDOT_PHASE_FORWARD].flops, 4 * 192, 4 * 192);
    job_end(&r);
}

/* ---- Canonical form ---------------------------------------------------------------------------------------------- */

/* PyTorch's expand_as before a broadcasting multiplication. */
static void expand_before_pointwise_is_removed(void **state)
{
    (void)state;
    static const int64_t full[] = {2, 16, 8, 8};
    job_reading readings[2];
    for (int expanded = 0; expanded < 2; expanded++) {
        onnx_builder *b = job_begin("2,16,8,8");
        onnx_node(b, "GlobalAveragePool", "x", "g");
        onnx_node(b, "Sigmoid", "g", "s");
        onnx_initializer(b, "full", MDOT_DTYPE_I64, "4", full);
        if (expanded) onnx_node(b, "Expand", "s,full", "e");
        onnx_node(b, "Mul", expanded ? "x,e" : "x,s", "y");
        onnx_output(b, "y");
        readings[expanded] = job_expect(b);
    }
    job_expect_types(&readings[1], "GlobalAveragePool Sigmoid Mul");
    job_expect_same(&readings[0], &readings[1]);
    job_end(&readings[0]);
    job_end(&readings[1]);
}

static void expand_that_enlarges_the_result_stays(void **state)
{
    (void)state;
    static const int64_t full[] = {2, 16, 8, 8};
    onnx_builder *b = job_begin("2,16,1,1");
    onnx_initializer(b, "full", MDOT_DTYPE_I64, "4", full);
    onnx_node(b, "Expand", "x,full", "e");
    onnx_node(b, "Add", "e,x", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Expand Add");
    job_end(&r);
}

/* Every index inside an axis becomes a slice of one element; an index outside is left to the Gather. */
static void gather_of_one_index_becomes_slice(void **state)
{
    (void)state;
    static const int64_t extents[] = {10, 8};
    for (int axis = -2; axis < 3; axis++) {
        if (axis == 0) continue;
        int64_t extent = extents[axis > 0 ? axis - 1 : axis + 2];
        for (int64_t index = -extent - 1; index <= extent; index++) {
            bool is_inside = index >= -extent && index < extent;
            onnx_builder *b = job_begin("N,10,8");
            onnx_initializer(b, "index", MDOT_DTYPE_I64, "", &index);
            onnx_node(b, "Relu", "x", "r");
            onnx_node(b, "Gather", "r,index", "y");
            onnx_attr_int(b, "axis", axis);
            job_reading r = job_expect_output(b, "y");
            job_expect_types(&r, is_inside ? "Relu Slice" : "Relu Gather");
            double bytes = 4 * 80 / (double)extent;
            if (is_inside) job_expect_load(job_operator(&r, 1).per_sample[MDOT_PHASE_FORWARD], 0, bytes, bytes);
            job_end(&r);
        }
    }
}

static onnx_builder *with_mean(const char *op_type)
{
    static const int64_t axes[] = {-1, -2};
    onnx_builder *b = onnx_begin(18);
    bool reduces = strcmp(op_type, "ReduceMean") == 0;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16,7,7");
    onnx_initializer(b, "axes", MDOT_DTYPE_I64, "2", axes);
    onnx_node(b, "Relu", "x", "r");
    onnx_node(b, op_type, reduces ? "r,axes" : "r", "m");
    if (reduces) onnx_attr_int(b, "keepdims", 0);
    if (strcmp(op_type, "AveragePool") == 0) onnx_attr_ints(b, "kernel_shape", 2, (int64_t[]){7, 7});
    onnx_node(b, "Flatten", "m", "f");
    onnx_node(b, "Sigmoid", "f", "y");
    onnx_output(b, "y");
    return b;
}

static void mean_over_the_map_becomes_global_pool(void **state)
{
    (void)state;
    job_reading r = job_expect(with_mean("GlobalAveragePool")), s = job_expect(with_mean("ReduceMean"));
    job_reading t = job_expect(with_mean("AveragePool"));
    job_expect_types(&s, "Relu GlobalAveragePool Sigmoid");
    job_expect_same(&r, &s);
    job_expect_same(&r, &t);
    job_end(&r);
    job_end(&s);
    job_end(&t);
}

static void zero_bias_is_removed(void **state)
{
    (void)state;
    static const float zeros[16];
    onnx_builder *b = onnx_begin(17), *plain = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,3,3,3", NULL);
    onnx_node(b, "Constant", "", "zeros");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "16", zeros);
    onnx_node(b, "Conv", "x,w,zeros", "c");
    onnx_attr_ints(b, "pads", 4, (int64_t[]){1, 1, 1, 1});
    batch_norm(b, "c", "n", 16);
    onnx_output(b, "n");
    onnx_input(plain, "x", MDOT_DTYPE_F32, "N,3,8,8");
    job_add_conv(plain, "x", "c", "16,3,3,3", 1, false);
    batch_norm(plain, "c", "n", 16);
    onnx_output(plain, "n");
    job_reading r = job_expect(b), s = job_expect(plain);
    job_expect_types(&r, "Conv");
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

/* Global pooling of a channels-last feature map, as the dynamo exporter writes it. */
static void memory_format_view_is_removed(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(18);
    onnx_import(b, "pkg.onnxscript.torch_lib", 1);
    onnx_begin_function(b, "pkg.onnxscript.torch_lib:_aten_as_strided_onnx", "self,size,stride", "result", 18);
    onnx_node(b, "Scan", "self,size,stride", "result");
    onnx_end_function(b);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,16,7,7");
    onnx_initializer(b, "size", MDOT_DTYPE_I64, "4", (int64_t[]){2, 16, 1, 1});
    onnx_initializer(b, "stride", MDOT_DTYPE_I64, "4", (int64_t[]){16, 1, 16, 16});
    onnx_node(b, "GlobalAveragePool", "x", "p");
    onnx_node(b, "pkg.onnxscript.torch_lib:_aten_as_strided_onnx", "p,size,stride", "v");
    onnx_attr_int(b, "storage_offset", 0);
    onnx_node(b, "Sigmoid", "v", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "GlobalAveragePool Sigmoid");
    assert_string_equal(r.warnings, "");
    job_end(&r);
}

/* Swin's shifted windows: the scores [batch · windows, heads, N, N] are reshaped, so each window gets a mask. */
static void window_masks_join_the_attention(void **state)
{
    (void)state;
    static const int64_t apart[] = {2, 4, 3, 9, 9}, together[] = {8, 3, 9, 9};
    onnx_builder *b = onnx_begin(17);
    static const char *const operands[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) onnx_input(b, operands[i], MDOT_DTYPE_F32, "8,3,9,16");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "1,3,9,9", NULL);
    onnx_initializer(b, "blocks.1.attn_mask", MDOT_DTYPE_F32, "1,4,1,9,9", NULL);
    onnx_initializer(b, "apart", MDOT_DTYPE_I64, "5", apart);
    onnx_initializer(b, "together", MDOT_DTYPE_I64, "4", together);
    onnx_node(b, "Transpose", "k", "kt");
    onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 1, 3, 2});
    onnx_node(b, "MatMul", "q,kt", "s");
    onnx_node(b, "Add", "s,table", "biased");
    onnx_node(b, "Reshape", "biased,apart", "windows");
    onnx_node(b, "Add", "windows,blocks.1.attn_mask", "masked");
    onnx_node(b, "Reshape", "masked,together", "scores");
    onnx_node(b, "Softmax", "scores", "p");
    onnx_attr_int(b, "axis", -1);
    onnx_node(b, "MatMul", "p,v", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Attention");
    assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_HEADS], 3);
    assert_compare(job_info(&r).parameters, ==, 3 * 81);
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_cost_their_closed_form),
        cmocka_unit_test(linear_layers_have_one_canonical_form),
        cmocka_unit_test(attention_is_recognised_with_its_heads),
        cmocka_unit_test(recurrent_layers_cost_every_step),
        cmocka_unit_test(recurrences_have_steps_and_positions),
        cmocka_unit_test(embeddings_read_only_selected_rows),
        cmocka_unit_test(training_mode_norm_equals_inference_norm),
        cmocka_unit_test(arithmetic_norm_is_recognised),
        cmocka_unit_test(bias_or_scale_alone_stays_pointwise),
        cmocka_unit_test(layer_scale_behind_a_norm_stays),
        cmocka_unit_test(norm_with_other_readers_stays_separate),
        cmocka_unit_test(shape_arithmetic_and_dropout_are_removed),
        cmocka_unit_test(expand_before_pointwise_is_removed),
        cmocka_unit_test(expand_that_enlarges_the_result_stays),
        cmocka_unit_test(gather_of_one_index_becomes_slice),
        cmocka_unit_test(memory_format_view_is_removed),
        cmocka_unit_test(mean_over_the_map_becomes_global_pool),
        cmocka_unit_test(zero_bias_is_removed),
        cmocka_unit_test(window_masks_join_the_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
