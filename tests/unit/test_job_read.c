/* test_job_read.c — frontend/job*.c: ONNX graphs → operator sequences, against closed forms. */
#include "frontend_fixture.h"
#include "mdot/mdotjob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FORWARD = MDOT_PHASE_FORWARD, DATA = MDOT_PHASE_DATA_GRADIENT, WEIGHT = MDOT_PHASE_WEIGHT_GRADIENT };

typedef struct reading {
    mdot_status status;
    mdot_error err;
    mdot_job *job;
    char warnings[4096];
} reading;

static void note_warning(void *user, const char *message)
{
    reading *r = user;
    size_t used = strlen(r->warnings);
    snprintf(r->warnings + used, sizeof r->warnings - used, "%s\n", message);
}

/* "name=number" or NULL. */
static reading read_model(onnx_builder *b, const mdot_dim_binding *dims, size_t dim_count)
{
    reading r = {.status = MDOT_OK};
    pb_buffer bytes = onnx_finish(b);
    mdot_job_options options = {.dims = dims, .dim_count = dim_count, .warning = note_warning, .user = &r};
    r.status = mdot_job_read_bytes(bytes.data, bytes.size, "job.onnx", &options, &r.job, &r.err);
    pb_free(&bytes);
    return r;
}

static reading expect_job(onnx_builder *b)
{
    reading r = read_model(b, NULL, 0);
    if (r.status != MDOT_OK) fail_msg("%s", r.err.message);
    return r;
}

static mdot_job_info info_of(const reading *r)
{
    mdot_job_info info;
    mdot_job_get_info(r->job, &info);
    return info;
}

static mdot_job_operator at(const reading *r, size_t index)
{
    mdot_job_operator op;
    if (mdot_job_get_operator(r->job, index, &op) != MDOT_OK) fail_msg("there is no operator %zu", index);
    return op;
}

static void expect_types(const reading *r, const char *expected)
{
    char types[1024] = "";
    for (size_t i = 0; i < info_of(r).operator_count; i++) {
        strcat(types, i ? " " : "");
        strcat(types, at(r, i).type);
    }
    assert_string_equal(types, expected);
}

static void expect_load(mdot_load load, double flops, double read, double written)
{
    if (load.flops == flops && load.bytes_read == read && load.bytes_written == written) return;
    fail_msg("%.0f FLOPs, %.0f read, %.0f written; expected %.0f, %.0f, %.0f", load.flops, load.bytes_read,
             load.bytes_written, flops, read, written);
}

/* Two readings of which everything that a predictor sees is the same. */
static void expect_same_job(const reading *a, const reading *b)
{
    assert_int_equal(info_of(a).operator_count, info_of(b).operator_count);
    for (size_t i = 0; i < info_of(a).operator_count; i++) {
        mdot_job_operator p = at(a, i), q = at(b, i);
        assert_string_equal(p.type, q.type);
        assert_memory_equal(p.setting, q.setting, sizeof p.setting);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            mdot_load x = q.per_sample[phase], y = q.per_step[phase];
            expect_load(p.per_sample[phase], x.flops, x.bytes_read, x.bytes_written);
            expect_load(p.per_step[phase], y.flops, y.bytes_read, y.bytes_written);
        }
        assert_true(p.parameters == q.parameters);
        assert_int_equal(p.input_count, q.input_count);
        assert_memory_equal(p.inputs, q.inputs, p.input_count * sizeof *p.inputs);
    }
}

static void end(reading *r)
{
    mdot_job_destroy(r->job);
}

/* ---- Counts against closed forms -------------------------------------------------------------------------------- */

static void conv(onnx_builder *b, const char *in, const char *out, const char *weight_shape, int64_t group, bool bias)
{
    char weight[64], name[64], inputs[256];
    snprintf(weight, sizeof weight, "%s_weight", out);
    snprintf(name, sizeof name, "%s_bias", out);
    onnx_initializer(b, weight, MDOT_DTYPE_F32, weight_shape, NULL);
    if (bias) {
        char channels[32];
        snprintf(channels, sizeof channels, "%d", atoi(weight_shape));
        onnx_initializer(b, name, MDOT_DTYPE_F32, channels, NULL);
    }
    snprintf(inputs, sizeof inputs, bias ? "%s,%s,%s" : "%s,%s", in, weight, name);
    onnx_node(b, "Conv", inputs, out);
    onnx_attr_ints(b, "pads", 4, (int64_t[]){1, 1, 1, 1});
    if (group != 1) onnx_attr_int(b, "group", group);
}

static void convolutions_cost_their_closed_form(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16,8,8");
    conv(b, "x", "full", "32,16,3,3", 1, true);
    conv(b, "full", "grouped", "32,8,3,3", 4, false);
    conv(b, "grouped", "depthwise", "32,1,3,3", 32, false);
    onnx_output(b, "depthwise");
    reading r = expect_job(b);
    expect_types(&r, "Conv Conv Conv");

    mdot_job_operator full = at(&r, 0), grouped = at(&r, 1), depthwise = at(&r, 2);
    double map16 = 4 * 16 * 64, map32 = 4 * 32 * 64, macs = 9 * 16 * 32 * 64, weights = 9 * 16 * 32;
    expect_load(full.per_sample[FORWARD], 2 * macs + 32 * 64, map16, map32);
    expect_load(full.per_step[FORWARD], 0, 4 * (weights + 32), 0);
    expect_load(full.per_sample[DATA], 0, 0, 0); /* nothing to learn lies before */
    expect_load(full.per_sample[WEIGHT], 2 * macs + 32 * 64, map32 + map16, 0);
    expect_load(full.per_step[WEIGHT], 0, 0, 4 * (weights + 32));
    assert_true(full.parameters == weights + 32);
    assert_int_equal(full.setting[MDOT_SETTING_KERNEL_H], 3);
    assert_int_equal(full.setting[MDOT_SETTING_PADDING_W], 2);
    assert_int_equal(full.setting[MDOT_SETTING_CHANNELS_IN], 16);
    assert_int_equal(full.setting[MDOT_SETTING_CHANNELS_OUT], 32);
    assert_int_equal(full.setting[MDOT_SETTING_SIZE_OUT], 64);
    assert_int_equal(full.setting[MDOT_SETTING_BIAS], 1);

    expect_load(grouped.per_sample[FORWARD], 2 * 9 * 8 * 32 * 64, map32, map32);
    expect_load(grouped.per_sample[DATA], 2 * 9 * 8 * 32 * 64, map32, map32);
    expect_load(grouped.per_step[DATA], 0, 4 * 9 * 8 * 32, 0);
    assert_int_equal(grouped.setting[MDOT_SETTING_GROUPS], 4);
    assert_int_equal(grouped.setting[MDOT_SETTING_BIAS], 0);
    expect_load(depthwise.per_sample[FORWARD], 2 * 9 * 32 * 64, map32, map32);
    assert_int_equal(depthwise.setting[MDOT_SETTING_GROUPS], 32);
    end(&r);
}

/* Gemm with a transposed weight, MatMul and Add: one layer in two spellings. */
static void linear_layers_are_one_operator_however_written(void **state)
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
    reading r = expect_job(b), s = expect_job(other);
    expect_types(&r, "Linear");
    mdot_job_operator op = at(&r, 0);
    expect_load(op.per_sample[FORWARD], 2 * 64 * 10 + 10, 4 * 64, 4 * 10);
    expect_load(op.per_step[FORWARD], 0, 4 * 650, 0);
    expect_load(op.per_step[WEIGHT], 0, 0, 4 * 650);
    assert_true(op.parameters == 650);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_IN], 64);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 10);
    assert_int_equal(op.setting[MDOT_SETTING_SIZE_IN], 1);
    expect_same_job(&r, &s);
    end(&r);
    end(&s);
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
    onnx_output(b, "y");
    reading r = expect_job(b);
    expect_types(&r, "Attention");
    mdot_job_operator op = at(&r, 0);
    assert_int_equal(op.setting[MDOT_SETTING_HEADS], 4);
    assert_int_equal(op.setting[MDOT_SETTING_HEAD_SIZE], 64);
    assert_int_equal(op.setting[MDOT_SETTING_QUERIES], 128);
    assert_int_equal(op.setting[MDOT_SETTING_KEYS], 128);
    /* two products and five FLOPs of softmax a score */
    expect_load(op.per_sample[FORWARD], 4.0 * 128 * 128 * (2 * 64 * 2 + 5), 4.0 * 3 * 4 * 128 * 64, 4.0 * 4 * 128 * 64);
    end(&r);
}

static void recurrent_layers_cost_every_step(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "16,1,32");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,256,32", NULL);
    onnx_initializer(b, "r", MDOT_DTYPE_F32, "1,256,64", NULL);
    onnx_node(b, "LSTM", "x,w,r", "y,,");
    onnx_attr_int(b, "hidden_size", 64);
    onnx_output(b, "y");
    reading r = expect_job(b);
    expect_types(&r, "LSTM");
    mdot_job_operator op = at(&r, 0);
    double flops = 16 * (2.0 * 256 * (32 + 64) + 10 * 256);
    assert_true(info_of(&r).batch == 16); /* the first dimension of the first input */
    assert_true(op.per_sample[FORWARD].flops == flops / 16);
    assert_true(op.per_sample[WEIGHT].flops == flops / 16);
    assert_true(op.parameters == 256 * (32 + 64));
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 64);
    end(&r);
}

static void embeddings_read_the_rows_that_they_pick(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "ids", MDOT_DTYPE_I64, "N,32");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "1000,16", NULL);
    onnx_node(b, "Gather", "table,ids", "y");
    onnx_output(b, "y");
    reading r = expect_job(b);
    mdot_job_operator op = at(&r, 0);
    expect_load(op.per_sample[FORWARD], 0, 4 * 32 * 16, 4 * 32 * 16);
    expect_load(op.per_step[FORWARD], 0, 0, 0);
    expect_load(op.per_step[WEIGHT], 0, 0, 4 * 16000);
    assert_true(op.parameters == 16000);
    end(&r);
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

/* Exported for training, and for inference by an exporter that folds the normalisation and names what it made. */
static void a_folded_batch_norm_makes_no_difference(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *folded = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    conv(b, "x", "c", "16,3,3,3", 1, false);
    batch_norm(b, "c", "n", 16);
    onnx_node(b, "Relu", "n", "y");
    onnx_output(b, "y");
    onnx_input(folded, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_initializer(folded, "onnx::Conv_12", MDOT_DTYPE_F32, "16,3,3,3", NULL);
    onnx_initializer(folded, "onnx::Conv_13", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(folded, "Conv", "x,onnx::Conv_12,onnx::Conv_13", "c");
    onnx_attr_ints(folded, "pads", 4, (int64_t[]){1, 1, 1, 1});
    onnx_node(folded, "Relu", "c", "y");
    onnx_output(folded, "y");
    reading r = expect_job(b), s = expect_job(folded);
    expect_types(&r, "Conv Relu");
    assert_int_equal(at(&r, 0).setting[MDOT_SETTING_NORMALISED], 1);
    assert_true(at(&r, 0).parameters == 16 * 27 + 32);
    assert_string_equal(r.warnings, "");
    assert_non_null(strstr(s.warnings, "1 convolutions have their BatchNormalization folded"));
    expect_same_job(&r, &s);
    end(&r);
    end(&s);
}

/* training_mode, and the running statistics among the model's outputs. */
static void a_norm_in_training_mode_is_one_too(void **state)
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
    reading r = expect_job(b), s = expect_job(training);
    expect_types(&s, "BatchNormalization");
    expect_same_job(&r, &s);
    end(&r);
    end(&s);
}

/* (x - mean) * scale + shift, as PyTorch 2.2's dynamo exporter writes it. */
static void a_norm_written_as_arithmetic_is_one(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *written = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    conv(b, "x", "c", "16,3,3,3", 1, false);
    batch_norm(b, "c", "n", 16);
    onnx_output(b, "n");
    onnx_input(written, "x", MDOT_DTYPE_F32, "N,3,8,8");
    conv(written, "x", "c", "16,3,3,3", 1, false);
    static const char *const vectors[] = {"mean", "scale", "shift"};
    for (int i = 0; i < 3; i++) onnx_initializer(written, vectors[i], MDOT_DTYPE_F32, "16,1,1", NULL);
    onnx_node(written, "Sub", "c,mean", "centred");
    onnx_node(written, "Mul", "centred,scale", "scaled");
    onnx_node(written, "Add", "scaled,shift", "n");
    onnx_output(written, "n");
    reading r = expect_job(b), s = expect_job(written);
    expect_types(&s, "Conv");
    expect_same_job(&r, &s);
    end(&r);
    end(&s);
}

static void a_bias_or_a_scale_alone_is_no_norm(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "16,1,1", NULL);
    onnx_initializer(b, "gamma", MDOT_DTYPE_F32, "16,1,1", NULL);
    conv(b, "x", "c", "16,3,3,3", 1, false);
    onnx_node(b, "Add", "c,bias", "a");
    onnx_node(b, "Relu", "a", "r");
    conv(b, "r", "d", "16,16,3,3", 1, true);
    onnx_node(b, "Mul", "d,gamma", "y");
    onnx_output(b, "y");
    reading r = expect_job(b);
    expect_types(&r, "Conv Relu Conv Mul");
    assert_int_equal(at(&r, 0).setting[MDOT_SETTING_BIAS], 1);
    assert_int_equal(at(&r, 0).setting[MDOT_SETTING_NORMALISED], 0);
    assert_true(at(&r, 3).parameters == 16);
    end(&r);
}

static void a_norm_that_others_read_or_that_stands_alone_stays(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    batch_norm(b, "x", "first", 3);
    conv(b, "first", "c", "3,3,3,3", 1, false);
    batch_norm(b, "c", "n", 3);
    onnx_node(b, "Add", "n,c", "y"); /* reads the convolution too */
    onnx_output(b, "y");
    reading r = expect_job(b);
    expect_types(&r, "BatchNormalization Conv BatchNormalization Add");
    assert_true(at(&r, 0).parameters == 6);
    mdot_job_operator sum = at(&r, 3);
    assert_int_equal(sum.input_count, 2);
    assert_int_equal(sum.inputs[0], 1);
    assert_int_equal(sum.inputs[1], 2);
    assert_int_equal(sum.depth, 3);
    assert_int_equal(at(&r, 1).out_degree, 2);
    end(&r);
}

static void shape_arithmetic_and_dropout_are_gone(void **state)
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
    onnx_output(b, "y");
    reading r = expect_job(b);
    expect_types(&r, "Relu Sigmoid");
    assert_int_equal(at(&r, 1).input_count, 1);
    assert_int_equal(at(&r, 1).inputs[0], 0);
    /* Half precision counts like single: precision is the configuration's. */
    expect_load(at(&r, 1).per_sample[FORWARD], at(&r, 1).per_sample[FORWARD].flops, 4 * 192, 4 * 192);
    end(&r);
}

/* ---- Batches and symbols ---------------------------------------------------------------------------------------- */

static onnx_builder *batched(const char *shape)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    conv(b, "x", "c", "16,3,3,3", 1, true);
    onnx_node(b, "Relu", "c", "r");
    onnx_node(b, "GlobalAveragePool", "r", "g");
    onnx_node(b, "Flatten", "g", "f");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,10", NULL);
    onnx_node(b, "MatMul", "f,w", "y");
    onnx_output(b, "y");
    return b;
}

static void loads_are_per_sample_whatever_batch_the_file_has(void **state)
{
    (void)state;
    reading open = expect_job(batched("N,3,8,8")), one = expect_job(batched("1,3,8,8"));
    reading eight = expect_job(batched("8,3,8,8"));
    assert_int_equal(info_of(&open).batch, 1);
    assert_int_equal(info_of(&eight).batch, 8);
    expect_same_job(&open, &one);
    expect_same_job(&open, &eight);
    end(&open);
    end(&one);
    end(&eight);
}

static void symbols_that_are_left_are_listed(void **state)
{
    (void)state;
    static const mdot_dim_binding height[] = {{"H", 8, NULL}}, both[] = {{"H", 8, NULL}, {"W", 8, NULL}};
    reading r = read_model(batched("N,3,H,W"), NULL, 0);
    assert_int_equal(r.status, MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(r.err.message, "'H', 'W'"));
    assert_non_null(strstr(r.err.message, "--dim"));
    assert_null(strstr(r.err.message, "'N'"));
    reading s = read_model(batched("N,3,H,W"), height, 1);
    assert_int_equal(s.status, MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(s.err.message, "'W'"));
    reading t = read_model(batched("N,3,H,W"), both, 2), fixed = expect_job(batched("1,3,8,8"));
    assert_int_equal(t.status, MDOT_OK);
    expect_same_job(&t, &fixed);
    end(&t);
    end(&fixed);
}

/* ---- What mdot does not know ------------------------------------------------------------------------------------ */

static onnx_builder *with_unknown(bool stated)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.example", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_node(b, "com.example:Fancy", "x", "f");
    onnx_node(b, "Relu", "f", "y");
    onnx_output(b, "y");
    if (stated) { /* GraphProto.value_info: f is f32[N,5] */
        pb_buffer dims = {0}, n = {0}, five = {0}, tensor = {0}, type = {0}, info = {0};
        pb_text(&n, 2, "N");
        pb_int(&five, 1, 5);
        pb_message(&dims, 1, &n);
        pb_message(&dims, 1, &five);
        pb_int(&tensor, 1, MDOT_DTYPE_F32);
        pb_message(&tensor, 2, &dims);
        pb_message(&type, 1, &tensor);
        pb_text(&info, 1, "f");
        pb_message(&info, 2, &type);
        onnx_graph_raw(b, 13, &info);
    }
    return b;
}

static void unknown_operators_are_tokens_of_their_own(void **state)
{
    (void)state;
    reading stated = expect_job(with_unknown(true)), guessed = expect_job(with_unknown(false));
    expect_types(&stated, "com.example:Fancy Relu");
    assert_false(at(&stated, 0).known);
    assert_true(at(&stated, 1).known);
    assert_int_equal(info_of(&stated).unknown_count, 1);
    expect_load(at(&stated, 0).per_sample[FORWARD], 0, 4 * 192, 4 * 5);
    assert_non_null(strstr(stated.warnings, "com.example:Fancy"));
    assert_null(strstr(stated.warnings, "taken to be as large"));
    expect_load(at(&guessed, 0).per_sample[FORWARD], 0, 4 * 192, 4 * 192);
    assert_non_null(strstr(guessed.warnings, "taken to be as large as its first input"));
    end(&stated);
    end(&guessed);
}

static void a_known_operator_that_breaks_its_rules_is_one_too(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    conv(b, "x", "c", "16,5,3,3", 1, false);
    onnx_output(b, "c");
    reading r = expect_job(b);
    expect_types(&r, "Conv");
    assert_false(at(&r, 0).known);
    assert_non_null(strstr(r.warnings, "the input has 3"));
    end(&r);
}

/* ---- Branches --------------------------------------------------------------------------------------------------- */

static void add_value_info(pb_buffer *graph, int field, const char *name)
{
    pb_buffer info = {0};
    pb_text(&info, 1, name);
    pb_message(graph, field, &info);
}

/* A GraphProto of one node that reads a value around it; both branches call their result "inner". */
static pb_buffer branch(const char *op_type, bool with_weight)
{
    pb_buffer graph = {0}, node = {0};
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "inner");
    pb_text(&node, 4, op_type);
    pb_message(&graph, 1, &node);
    if (with_weight) {
        pb_buffer tensor = onnx_tensor("unused", MDOT_DTYPE_F32, "2", NULL);
        pb_message(&graph, 5, &tensor);
    }
    add_value_info(&graph, 12, "inner");
    return graph;
}

static void branch_attr(onnx_builder *b, const char *name, pb_buffer graph)
{
    pb_buffer attr = {0};
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, &graph);
    pb_int(&attr, 20, 5); /* AttributeProto.GRAPH */
    onnx_attr_raw(b, &attr);
}

static onnx_builder *with_if(const char *condition, bool with_weight)
{
    onnx_builder *b = onnx_begin(17);
    const int64_t four = 4;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "");
    onnx_initializer(b, "four", MDOT_DTYPE_I64, "", &four);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Size", "shape", "rank");
    onnx_node(b, "Equal", "rank,four", "batched");
    onnx_node(b, "Not", "batched", "single");
    onnx_node(b, "If", condition, "y");
    branch_attr(b, "then_branch", branch("Sigmoid", with_weight));
    branch_attr(b, "else_branch", branch("Tanh", with_weight));
    onnx_node(b, "Relu", "y", "z");
    onnx_output(b, "z");
    return b;
}

static void the_branch_that_is_taken_counts(void **state)
{
    (void)state;
    reading first = expect_job(with_if("batched", false)), second = expect_job(with_if("single", false));
    expect_types(&first, "Sigmoid Relu");
    expect_types(&second, "Tanh Relu");
    assert_string_equal(first.warnings, "");
    end(&first);
    end(&second);
}

static void a_branch_that_data_decides_is_the_first(void **state)
{
    (void)state;
    reading r = expect_job(with_if("flag", false));
    expect_types(&r, "Sigmoid Relu");
    assert_non_null(strstr(r.warnings, "depends on data"));
    end(&r);
}

static void branches_with_weights_of_their_own_stay_opaque(void **state)
{
    (void)state;
    reading r = expect_job(with_if("flag", true));
    expect_types(&r, "If Relu");
    assert_int_equal(info_of(&r).unknown_count, 1);
    end(&r);
}

/* ---- Training graphs -------------------------------------------------------------------------------------------- */

/* Linear, Relu, Linear, loss; `training` adds gradients as ONNX Runtime writes them, and an optimizer. */
static onnx_builder *classifier(bool training)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    onnx_input(b, "labels", MDOT_DTYPE_I64, "N");
    static const char *const names[] = {"w1", "b1", "w2", "b2"}, *const shapes[] = {"32,64", "32", "10,32", "10"};
    for (int i = 0; i < 4; i++) {
        if (training) {
            onnx_input(b, names[i], MDOT_DTYPE_F32, shapes[i]);
        } else {
            onnx_initializer(b, names[i], MDOT_DTYPE_F32, shapes[i], NULL);
        }
    }
    onnx_node(b, "Gemm", "x,w1,b1", "h");
    onnx_attr_int(b, "transB", 1);
    onnx_node(b, "Relu", "h", "r");
    onnx_node(b, "Gemm", "r,w2,b2", "scores");
    onnx_attr_int(b, "transB", 1);
    onnx_node(b, "SoftmaxCrossEntropyLoss", "scores,labels", "loss,log_prob");
    onnx_output(b, "loss");
    if (!training) return b;
    onnx_node(b, "com.microsoft:SoftmaxCrossEntropyLossGrad", "loss,log_prob,labels", "scores_grad");
    onnx_node(b, "Gemm", "scores_grad,w2", "r_grad");
    onnx_node(b, "Gemm", "scores_grad,r", "w2_grad");
    onnx_attr_int(b, "transA", 1);
    onnx_node(b, "ReduceSum", "scores_grad", "b2_grad");
    onnx_node(b, "com.microsoft:ReluGrad", "r_grad,r", "h_grad");
    onnx_node(b, "Transpose", "x", "xt"); /* of the forward graph by its place, but nobody there reads it */
    onnx_node(b, "MatMul", "xt,h_grad", "w1_grad");
    onnx_node(b, "ReduceSum", "h_grad", "b1_grad");
    onnx_node(b, "com.microsoft:AdamWOptimizer", "w1,w1_grad,w2,w2_grad,b1,b1_grad,b2,b2_grad", "updated");
    onnx_output(b, "w1_grad");
    onnx_output(b, "updated");
    return b;
}

static void gradients_and_updates_fold_into_what_they_serve(void **state)
{
    (void)state;
    reading forward = expect_job(classifier(false)), training = expect_job(classifier(true));
    expect_types(&training, "Linear Relu Linear SoftmaxCrossEntropyLoss");
    expect_same_job(&forward, &training);
    assert_false(info_of(&forward).has_optimizer);
    assert_true(info_of(&training).has_optimizer);
    assert_int_equal(info_of(&training).optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_true(info_of(&training).parameters == 32 * 64 + 32 + 320 + 10);
    assert_int_equal(info_of(&training).unknown_count, 0);
    end(&forward);
    end(&training);
}

static void an_optimizer_alone_is_its_own_token(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "w", MDOT_DTYPE_F32, "10,10");
    onnx_input(b, "g", MDOT_DTYPE_F32, "10,10");
    onnx_node(b, "com.microsoft:SGDOptimizerV2", "w,g", "updated");
    onnx_output(b, "updated");
    reading r = expect_job(b);
    expect_types(&r, "com.microsoft:SGDOptimizerV2");
    assert_int_equal(info_of(&r).unknown_count, 1);
    end(&r);
}

/* ---- Bad input -------------------------------------------------------------------------------------------------- */

static void graphs_without_operators_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *views = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_output(b, "x");
    onnx_input(views, "x", MDOT_DTYPE_F32, "N,4");
    onnx_node(views, "Flatten", "x", "y");
    onnx_output(views, "y");
    reading r = read_model(b, NULL, 0), s = read_model(views, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "job.onnx: the graph holds no operator"));
    assert_int_equal(s.status, MDOT_MALFORMED);
}

static void what_is_no_onnx_is_refused(void **state)
{
    (void)state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read_bytes("", 0, "empty", NULL, &job, &err), MDOT_MALFORMED);
    assert_int_equal(mdot_job_read_bytes("nonsense", 8, "text", NULL, &job, &err), MDOT_MALFORMED);
    assert_int_equal(mdot_job_read("/nonexistent/job.onnx", NULL, &job, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/job.onnx"));
    assert_null(job);
}

static void empty_dimensions_do_no_harm(void **state)
{
    (void)state;
    reading r = read_model(batched("0,3,8,8"), NULL, 0), s = read_model(batched("N,3,0,0"), NULL, 0);
    assert_true(r.status == MDOT_OK || r.err.message[0] != '\0');
    assert_true(s.status == MDOT_OK || s.err.message[0] != '\0');
    end(&r);
    end(&s);
}

static void loads_beyond_all_bounds_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,4611686018427387904");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    reading r = read_model(b, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "job.onnx: operator 0 of the job (Relu)"));
}

/* Every byte of a small training graph changed once: refused or read, never a crash. */
static void damaged_models_are_refused_or_read(void **state)
{
    (void)state;
    pb_buffer bytes = onnx_finish(classifier(true));
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char whole = bytes.data[i];
        for (int flip = 1; flip < 256; flip *= 4) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            bytes.data[i] = (unsigned char)(whole ^ flip);
            mdot_status status = mdot_job_read_bytes(bytes.data, bytes.size, "job.onnx", NULL, &job, &err);
            assert_int_equal(status == MDOT_OK, job != NULL);
            if (status != MDOT_OK) assert_true(err.message[0] != '\0');
            mdot_job_destroy(job);
        }
        bytes.data[i] = whole;
    }
    pb_free(&bytes);
}

static void twenty_thousand_nodes_are_read(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    char in[32] = "x", out[32];
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    for (int i = 0; i < 20000; i++) {
        snprintf(out, sizeof out, "y%d", i);
        onnx_node(b, i % 2 ? "Sigmoid" : "Relu", in, out);
        memcpy(in, out, sizeof in);
    }
    onnx_output(b, in);
    reading r = expect_job(b);
    assert_int_equal(info_of(&r).operator_count, 20000);
    assert_int_equal(at(&r, 19999).depth, 19999);
    assert_int_equal(at(&r, 0).height, 19999);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_cost_their_closed_form),
        cmocka_unit_test(linear_layers_are_one_operator_however_written),
        cmocka_unit_test(attention_is_recognised_with_its_heads),
        cmocka_unit_test(recurrent_layers_cost_every_step),
        cmocka_unit_test(embeddings_read_the_rows_that_they_pick),
        cmocka_unit_test(a_folded_batch_norm_makes_no_difference),
        cmocka_unit_test(a_norm_in_training_mode_is_one_too),
        cmocka_unit_test(a_norm_written_as_arithmetic_is_one),
        cmocka_unit_test(a_bias_or_a_scale_alone_is_no_norm),
        cmocka_unit_test(a_norm_that_others_read_or_that_stands_alone_stays),
        cmocka_unit_test(the_branch_that_is_taken_counts),
        cmocka_unit_test(a_branch_that_data_decides_is_the_first),
        cmocka_unit_test(branches_with_weights_of_their_own_stay_opaque),
        cmocka_unit_test(shape_arithmetic_and_dropout_are_gone),
        cmocka_unit_test(loads_are_per_sample_whatever_batch_the_file_has),
        cmocka_unit_test(symbols_that_are_left_are_listed),
        cmocka_unit_test(unknown_operators_are_tokens_of_their_own),
        cmocka_unit_test(a_known_operator_that_breaks_its_rules_is_one_too),
        cmocka_unit_test(gradients_and_updates_fold_into_what_they_serve),
        cmocka_unit_test(an_optimizer_alone_is_its_own_token),
        cmocka_unit_test(graphs_without_operators_are_refused),
        cmocka_unit_test(what_is_no_onnx_is_refused),
        cmocka_unit_test(empty_dimensions_do_no_harm),
        cmocka_unit_test(loads_beyond_all_bounds_are_refused),
        cmocka_unit_test(damaged_models_are_refused_or_read),
        cmocka_unit_test(twenty_thousand_nodes_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
