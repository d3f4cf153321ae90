/* test_job_settings.c — the attributes of operators, for random shapes: each equals a closed form of the ONNX node's
 * attributes and shapes, and all other attributes are 0. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 24, SPATIAL = 3 };

typedef struct wanted {
    int64_t setting[MDOT_SETTING_COUNT];
} wanted;

static int64_t draw(uint64_t *seed, int64_t least, int64_t most)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)((*seed >> 33) % (uint64_t)(most - least + 1));
}

/* Reads the model, and compares all attributes of the operator, which must be the last of this type. */
static void expect(onnx_builder *b, const char *output, const char *type, const wanted *w)
{
    job_reading r = job_expect_output(b, output);
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < job_info(&r).operator_count; i++)
        if (strcmp(job_operator(&r, i).type, type) == 0) found = i;
    if (found == SIZE_MAX) fail_msg("the job has no %s", type);
    mdot_job_operator op = job_operator(&r, found);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (op.setting[s] != w->setting[s])
            fail_msg("%s: %s is %lld, not %lld", type, mdot_setting_name((mdot_setting)s), (long long)op.setting[s],
                     (long long)w->setting[s]);
    job_end(&r);
}

/* Appends numbers to a shape such as "N,3". */
static void append(char *text, size_t size, const int64_t *number, int count)
{
    for (int i = 0; i < count; i++) snprintf(text + strlen(text), size - strlen(text), ",%lld", (long long)number[i]);
}

static int64_t product(const int64_t *number, int count)
{
    int64_t result = 1;
    for (int i = 0; i < count; i++) result *= number[i];
    return result;
}

/* ---- Windows ----------------------------------------------------------------------------------------------------- */

typedef struct window {
    int rank;
    int64_t size[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pads[2 * SPATIAL], slid[SPATIAL],
        unslid[SPATIAL];
} window;

static window draw_window(uint64_t *seed, bool dilates)
{
    window w = {.rank = (int)draw(seed, 1, SPATIAL)};
    for (int i = 0; i < w.rank; i++) {
        w.size[i] = draw(seed, 12, 20);
        w.kernel[i] = draw(seed, 2, 4);
        w.stride[i] = draw(seed, 1, 3);
        w.dilation[i] = dilates ? draw(seed, 1, 2) : 1;
        w.pads[i] = draw(seed, 0, 1);
        w.pads[w.rank + i] = draw(seed, 0, 1);
        int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1, padding = w.pads[i] + w.pads[w.rank + i];
        w.slid[i] = (w.size[i] + padding - span) / w.stride[i] + 1;
        w.unslid[i] = (w.size[i] - 1) * w.stride[i] + span - padding;
    }
    return w;
}

static void add_window(onnx_builder *b, const window *w)
{
    onnx_attr_ints(b, "kernel_shape", w->rank, w->kernel);
    onnx_attr_ints(b, "strides", w->rank, w->stride);
    onnx_attr_ints(b, "pads", 2 * w->rank, w->pads);
}

/* Depth, height and width: a window of fewer dimensions has the last ones. */
static void want_window(const window *w, const int64_t *out, int64_t channels_in, int64_t channels_out, wanted *result)
{
    int64_t *s = result->setting;
    static const mdot_setting kernel[] = {MDOT_SETTING_KERNEL_D, MDOT_SETTING_KERNEL_H, MDOT_SETTING_KERNEL_W},
                              stride[] = {MDOT_SETTING_STRIDE_D, MDOT_SETTING_STRIDE_H, MDOT_SETTING_STRIDE_W},
                              dilation[] = {MDOT_SETTING_COUNT, MDOT_SETTING_DILATION_H, MDOT_SETTING_DILATION_W},
                              padding[] = {MDOT_SETTING_COUNT, MDOT_SETTING_PADDING_H, MDOT_SETTING_PADDING_W};
    for (int i = 0; i < SPATIAL; i++) {
        int k = i - (SPATIAL - w->rank);
        s[kernel[i]] = k < 0 ? 1 : w->kernel[k];
        s[stride[i]] = k < 0 ? 1 : w->stride[k];
        if (i == 0) continue;
        s[dilation[i]] = k < 0 ? 1 : w->dilation[k];
        s[padding[i]] = k < 0 ? 0 : w->pads[k] + w->pads[w->rank + k];
    }
    s[MDOT_SETTING_CHANNELS_IN] = channels_in;
    s[MDOT_SETTING_CHANNELS_OUT] = channels_out;
    s[MDOT_SETTING_SIZE_IN] = product(w->size, w->rank);
    s[MDOT_SETTING_SIZE_OUT] = product(out, w->rank);
    s[MDOT_SETTING_INPUTS] = 1;
}

static void convolutions_have_their_window_and_channels(void **state)
{
    uint64_t seed = 1;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        char shape[96] = "N", weight[96] = "", bias[24];
        bool turned = draw(&seed, 0, 1) == 1, has_bias = draw(&seed, 0, 1) == 1, is_normal = round % 3 == 0;
        int64_t groups = draw(&seed, 1, 3), in = groups * draw(&seed, 1, 4), out = groups * draw(&seed, 1, 4);
        window w = draw_window(&seed, true);
        wanted want = {0};
        append(shape, sizeof shape, &in, 1);
        append(shape, sizeof shape, w.size, w.rank);
        snprintf(weight, sizeof weight, "%lld,%lld", (long long)(turned ? in : out),
                 (long long)((turned ? out : in) / groups));
        append(weight, sizeof weight, w.kernel, w.rank);
        snprintf(bias, sizeof bias, "%lld", (long long)out);
        onnx_builder *b = job_begin(shape);
        onnx_initializer(b, "w", MDOT_DTYPE_F32, weight, NULL);
        onnx_initializer(b, "c", MDOT_DTYPE_F32, bias, NULL);
        onnx_node(b, turned ? "ConvTranspose" : "Conv", has_bias ? "x,w,c" : "x,w", is_normal ? "z" : "y");
        add_window(b, &w);
        onnx_attr_ints(b, "dilations", w.rank, w.dilation);
        if (groups > 1 || round % 2 == 0) onnx_attr_int(b, "group", groups);
        want_window(&w, turned ? w.unslid : w.slid, in, out, &want);
        want.setting[MDOT_SETTING_GROUPS] = groups;
        want.setting[MDOT_SETTING_BIAS] = has_bias && !is_normal; /* the norm's, otherwise */
        want.setting[MDOT_SETTING_NORMALISED] = is_normal;
        if (is_normal) onnx_node(b, "BatchNormalization", "z,c,c,c,c", "y");
        expect(b, "y", turned ? "ConvTranspose" : "Conv", &want);
    }
    (void)state;
}

static void pools_have_their_window(void **state)
{
    static const char *const types[] = {"MaxPool", "AveragePool", "LpPool"};
    uint64_t seed = 2;
    for (int round = 0; round < ROUNDS; round++) {
        char shape[96] = "N";
        const char *type = types[round % 3];
        int64_t channels = draw(&seed, 1, 9);
        window w = draw_window(&seed, round % 3 == 0);
        wanted want = {0};
        append(shape, sizeof shape, &channels, 1);
        append(shape, sizeof shape, w.size, w.rank);
        onnx_builder *b = job_begin(shape);
        onnx_node(b, type, "x", "y");
        add_window(b, &w);
        if (round % 3 == 0) onnx_attr_ints(b, "dilations", w.rank, w.dilation);
        want_window(&w, w.slid, channels, channels, &want);
        expect(b, "y", type, &want);
    }
    (void)state;
}

/* A window of more dimensions is described by the first three. */
static void pools_of_four_dimensions_have_the_first_three(void **state)
{
    static const int64_t kernel[] = {2, 3, 1, 2};
    onnx_builder *b = job_begin("N,3,4,5,6,7");
    onnx_node(b, "MaxPool", "x", "y");
    onnx_attr_ints(b, "kernel_shape", 4, kernel);
    wanted want = {.setting = {[MDOT_SETTING_KERNEL_D] = 2,
                               [MDOT_SETTING_KERNEL_H] = 3,
                               [MDOT_SETTING_KERNEL_W] = 1,
                               [MDOT_SETTING_STRIDE_D] = 1,
                               [MDOT_SETTING_STRIDE_H] = 1,
                               [MDOT_SETTING_STRIDE_W] = 1,
                               [MDOT_SETTING_DILATION_H] = 1,
                               [MDOT_SETTING_DILATION_W] = 1,
                               [MDOT_SETTING_CHANNELS_IN] = 3,
                               [MDOT_SETTING_CHANNELS_OUT] = 3,
                               [MDOT_SETTING_SIZE_IN] = 4 * 5 * 6 * 7,
                               [MDOT_SETTING_SIZE_OUT] = 3 * 3 * 6 * 6,
                               [MDOT_SETTING_INPUTS] = 1}};
    expect(b, "y", "MaxPool", &want);
    (void)state;
}

static void maps_have_their_channels_and_sizes(void **state)
{
    static const char *const types[] = {"GlobalMaxPool", "GlobalAveragePool", "LRN", "GroupNormalization"};
    uint64_t seed = 3;
    for (int round = 0; round < ROUNDS; round++) {
        char shape[96] = "N", names[24];
        int kind = round % 4;
        int64_t groups = draw(&seed, 1, 3), channels = groups * draw(&seed, 1, 5), size[SPATIAL];
        int rank = (int)draw(&seed, kind < 3 ? 1 : 0, SPATIAL);
        for (int i = 0; i < rank; i++) size[i] = draw(&seed, 2, 9);
        append(shape, sizeof shape, &channels, 1);
        append(shape, sizeof shape, size, rank);
        onnx_builder *b = onnx_begin(21);
        onnx_input(b, "x", MDOT_DTYPE_F32, shape);
        snprintf(names, sizeof names, "%lld", (long long)channels);
        onnx_initializer(b, "s", MDOT_DTYPE_F32, names, NULL);
        onnx_node(b, types[kind], kind == 3 ? "x,s,s" : "x", "y");
        if (kind == 2) onnx_attr_int(b, "size", 2 * groups + 1);
        if (kind == 3) onnx_attr_int(b, "num_groups", groups);
        wanted want = {.setting = {[MDOT_SETTING_CHANNELS_IN] = channels,
                                   [MDOT_SETTING_CHANNELS_OUT] = channels,
                                   [MDOT_SETTING_SIZE_IN] = product(size, rank),
                                   [MDOT_SETTING_SIZE_OUT] = kind < 2 ? 1 : product(size, rank),
                                   [MDOT_SETTING_GROUPS] = kind == 3 ? groups : 0,
                                   [MDOT_SETTING_EXTENT] = kind == 2 ? 2 * groups + 1 : 0,
                                   [MDOT_SETTING_INPUTS] = 1}};
        expect(b, "y", types[kind], &want);
    }
    (void)state;
}

/* ---- Matmuls ----------------------------------------------------------------------------------------------------- */

static void matmuls_have_their_extents(void **state)
{
    enum { RIGHT, LEFT, DATA, VECTOR, GEMM, KINDS };
    uint64_t seed = 4;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        char x[96], y[96], bias[24];
        int kind = round % KINDS;
        bool is_flat = kind == VECTOR || kind == GEMM;
        long long batch = draw(&seed, 1, 4), a = draw(&seed, kind == DATA ? 1 : 2, 9), m = draw(&seed, 2, 9),
                  c = draw(&seed, kind == DATA ? 1 : 2, 9), heads = draw(&seed, 2, 5);
        bool has_bias = (kind == RIGHT || kind == GEMM) && draw(&seed, 0, 1) == 1;
        onnx_builder *b = onnx_begin(17);
        wanted want = {.setting = {[MDOT_SETTING_BIAS] = has_bias, [MDOT_SETTING_INPUTS] = kind == DATA ? 2 : 1}};
        int64_t *s = want.setting;
        s[MDOT_SETTING_CHANNELS_IN] = m;
        s[MDOT_SETTING_CHANNELS_OUT] = kind == LEFT ? a : c;
        s[MDOT_SETTING_SIZE_IN] = s[MDOT_SETTING_SIZE_OUT] = kind == LEFT ? c : is_flat ? 1 : a;
        if (kind == RIGHT || is_flat) {
            snprintf(x, sizeof x, is_flat ? "%lld,%lld" : "%lld,%lld,%lld", batch, is_flat ? m : a, m);
            snprintf(y, sizeof y, "%lld,%lld", m, c);
        } else if (kind == LEFT) {
            snprintf(x, sizeof x, "%lld,%lld,%lld", batch, m, c);
            snprintf(y, sizeof y, "%lld,%lld", a, m);
        } else {
            s[MDOT_SETTING_GROUPS] = heads;
            snprintf(x, sizeof x, "%lld,%lld,%lld,%lld", batch, heads, a, m);
            snprintf(y, sizeof y, "%lld,%lld,%lld,%lld", batch, heads, m, c);
        }
        onnx_input(b, "x", MDOT_DTYPE_F32, x);
        if (kind == DATA)
            onnx_input(b, "w", MDOT_DTYPE_F32, y);
        else
            onnx_initializer(b, "w", MDOT_DTYPE_F32, y, NULL);
        snprintf(bias, sizeof bias, "%lld", c);
        onnx_initializer(b, "c", MDOT_DTYPE_F32, bias, NULL);
        if (kind == GEMM) {
            onnx_node(b, "Gemm", has_bias ? "x,w,c" : "x,w", "y");
        } else {
            onnx_node(b, "MatMul", kind == LEFT ? "w,x" : "x,w", has_bias ? "p" : "y");
            if (has_bias) onnx_node(b, "Add", "p,c", "y");
        }
        expect(b, "y", kind == DATA ? "MatMul" : "Linear", &want);
    }
    (void)state;
}

/* A vector is a matrix of one column, and its result a number for each row of a sample. */
static void a_product_with_a_vector_has_one_column(void **state)
{
    for (int64_t in = 2; in < 20; in++) {
        char x[48], v[8];
        int batch = (int)(in % 4) + 1, rows = (int)(in % 3);
        snprintf(x, sizeof x, rows > 0 ? "%d,%d,%d" : "%d,%d", batch, rows > 0 ? rows : (int)in, (int)in);
        snprintf(v, sizeof v, "%d", (int)in);
        onnx_builder *b = onnx_begin(17);
        onnx_input(b, "x", MDOT_DTYPE_F32, x);
        onnx_initializer(b, "v", MDOT_DTYPE_F32, v, NULL);
        onnx_node(b, "MatMul", "x,v", "y");
        wanted want = {.setting = {[MDOT_SETTING_CHANNELS_IN] = in,
                                   [MDOT_SETTING_CHANNELS_OUT] = 1,
                                   [MDOT_SETTING_SIZE_IN] = rows > 0 ? rows : 1,
                                   [MDOT_SETTING_SIZE_OUT] = rows > 0 ? rows : 1,
                                   [MDOT_SETTING_GROUPS] = 1,
                                   [MDOT_SETTING_INPUTS] = 1}};
        expect(b, "y", "MatMul", &want);
    }
    (void)state;
}

/* A matrix of the similarities of all samples: its rows are the samples, so that each has one row. */
static void similarities_have_a_row_for_each_sample(void **state)
{
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        char x[48];
        int64_t batch = draw(&seed, 2, 9), features = draw(&seed, 2, 9);
        onnx_builder *b = onnx_begin(17);
        snprintf(x, sizeof x, "%lld,%lld", (long long)batch, (long long)features);
        onnx_input(b, "images", MDOT_DTYPE_F32, x);
        onnx_node(b, "Relu", "images", "texts");
        onnx_node(b, "Transpose", "texts", "turned");
        onnx_node(b, "MatMul", "images,turned", "y");
        wanted want = {.setting = {[MDOT_SETTING_CHANNELS_IN] = features,
                                   [MDOT_SETTING_CHANNELS_OUT] = batch,
                                   [MDOT_SETTING_SIZE_IN] = 1,
                                   [MDOT_SETTING_SIZE_OUT] = 1,
                                   [MDOT_SETTING_GROUPS] = 1,
                                   [MDOT_SETTING_INPUTS] = 2}};
        expect(b, "y", "MatMul", &want);
    }
    (void)state;
}

/* A call of PyTorch that is priced by its FLOPs: rows times the matrix of their group. Other types of calls have only
 * their inputs. */
static void priced_calls_have_the_extents_of_one_matrix(void **state)
{
    uint64_t seed = 9;
    for (int round = 0; round < ROUNDS; round++) {
        char x[48], w[48];
        bool is_matmul = round % 2 == 0;
        long long batch = draw(&seed, 1, 3), rows = draw(&seed, 2, 9), in = draw(&seed, 2, 9),
                  groups = draw(&seed, 2, 4);
        onnx_builder *b = onnx_begin(17);
        onnx_import(b, "mdot.call", 1);
        snprintf(x, sizeof x, "%lld,2,%lld,%lld", batch, rows, in);
        snprintf(w, sizeof w, "%lld,%lld,%lld", groups, in, in);
        onnx_input(b, "x", MDOT_DTYPE_F32, x);
        onnx_initializer(b, "w", MDOT_DTYPE_F32, w, NULL);
        onnx_node(b, "mdot.call:grouped", "x,w", "y");
        onnx_attr_string(b, "type", is_matmul ? "MatMul" : "Softmax");
        onnx_attr_float(b, "flops", (float)(4 * batch * rows * in * in));
        wanted want = {.setting = {[MDOT_SETTING_INPUTS] = 1}};
        if (is_matmul) {
            want.setting[MDOT_SETTING_CHANNELS_IN] = want.setting[MDOT_SETTING_CHANNELS_OUT] = in;
            want.setting[MDOT_SETTING_SIZE_IN] = want.setting[MDOT_SETTING_SIZE_OUT] = 2 * rows;
        }
        expect(b, "y", is_matmul ? "MatMul" : "Softmax", &want);
    }
    (void)state;
}

/* Factors of no columns: a matrix of zeros, which costs nothing to compute. */
static void empty_factors_divide_nothing(void **state)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,4,0");
    onnx_input(b, "z", MDOT_DTYPE_F32, "0,3");
    onnx_node(b, "MatMul", "x,z", "p");
    onnx_node(b, "Sigmoid", "p", "y");
    wanted want = {.setting = {[MDOT_SETTING_CHANNELS_OUT] = 3,
                               [MDOT_SETTING_SIZE_IN] = 4,
                               [MDOT_SETTING_SIZE_OUT] = 4,
                               [MDOT_SETTING_GROUPS] = 1,
                               [MDOT_SETTING_INPUTS] = 1}};
    expect(b, "y", "MatMul", &want);
    (void)state;
}

static void attention_has_heads_queries_and_keys(void **state)
{
    uint64_t seed = 6;
    for (int round = 0; round < ROUNDS; round++) {
        char q[64], k[64], past[64];
        bool split = round % 2 == 0, has_past = split && round % 4 == 0;
        long long batch = draw(&seed, 1, 3), heads = draw(&seed, 1, 5), size = draw(&seed, 2, 9),
                  queries = draw(&seed, 2, 9), keys = draw(&seed, 2, 9), earlier = draw(&seed, 1, 9);
        if (split) {
            snprintf(q, sizeof q, "%lld,%lld,%lld,%lld", batch, heads, queries, size);
            snprintf(k, sizeof k, "%lld,%lld,%lld,%lld", batch, heads, keys, size);
        } else {
            snprintf(q, sizeof q, "%lld,%lld,%lld", batch, queries, heads * size);
            snprintf(k, sizeof k, "%lld,%lld,%lld", batch, keys, heads * size);
        }
        snprintf(past, sizeof past, "%lld,%lld,%lld,%lld", batch, heads, earlier, size);
        onnx_builder *b = onnx_begin(23);
        onnx_input(b, "q", MDOT_DTYPE_F32, q);
        onnx_input(b, "k", MDOT_DTYPE_F32, k);
        onnx_input(b, "v", MDOT_DTYPE_F32, k);
        if (has_past) onnx_input(b, "pk", MDOT_DTYPE_F32, past);
        if (has_past) onnx_input(b, "pv", MDOT_DTYPE_F32, past);
        onnx_node(b, "Attention", has_past ? "q,k,v,,pk,pv" : "q,k,v", has_past ? "y,nk,nv" : "y");
        if (!split) onnx_attr_int(b, "q_num_heads", heads);
        if (!split) onnx_attr_int(b, "kv_num_heads", heads);
        wanted want = {.setting = {[MDOT_SETTING_HEADS] = heads,
                                   [MDOT_SETTING_HEAD_SIZE] = size,
                                   [MDOT_SETTING_QUERIES] = queries,
                                   [MDOT_SETTING_KEYS] = keys + (has_past ? earlier : 0),
                                   [MDOT_SETTING_INPUTS] = has_past ? 5 : 3}};
        expect(b, "y", "Attention", &want);
    }
    (void)state;
}

/* A file may state lengths whose sum exceeds a job's limit, or any integer. */
static void too_many_keys_are_refused(void **state)
{
    (void)state;
    static const int64_t lengths[] = {
        1, 7, (int64_t)1 << 39, ((int64_t)1 << 40) - 1, (int64_t)1 << 40, (int64_t)1 << 62, INT64_MAX};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    for (int i = 0; i < LENGTHS * LENGTHS; i++) {
        char k[64], past[64], message[64];
        int64_t keys = lengths[i % LENGTHS], earlier = lengths[i / LENGTHS], sum;
        if (__builtin_add_overflow(keys, earlier, &sum)) sum = INT64_MAX;
        snprintf(k, sizeof k, "1,1,%lld,1", (long long)keys);
        snprintf(past, sizeof past, "1,1,%lld,1", (long long)earlier);
        snprintf(message, sizeof message, "keys is %lld;", (long long)sum);
        onnx_builder *b = onnx_begin(23);
        onnx_input(b, "q", MDOT_DTYPE_F32, "1,1,1,1");
        onnx_input(b, "k", MDOT_DTYPE_F32, k);
        onnx_input(b, "v", MDOT_DTYPE_F32, k);
        onnx_input(b, "pk", MDOT_DTYPE_F32, past);
        onnx_input(b, "pv", MDOT_DTYPE_F32, past);
        onnx_node(b, "Attention", "q,k,v,,pk,pv", "y");
        onnx_output(b, "y");
        job_reading r = job_read_model(b, NULL, 0);
        assert_int_equal(r.status == MDOT_OK, sum <= (int64_t)1 << 40);
        if (r.status == MDOT_OK)
            assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_KEYS], sum);
        else if (strstr(r.err.message, sum < (int64_t)1 << 50 ? message : "bytes and parameters must be") == NULL)
            fail_msg("%lld and %lld: %s", (long long)keys, (long long)earlier, r.err.message);
        job_end(&r);
    }
}

/* ---- Axes -------------------------------------------------------------------------------------------------------- */

/* The axis is counted from the end. Without one, it is the first or the last, as in ONNX. */
static void axes_are_counted_from_the_end(void **state)
{
    enum { SOFTMAX, CONCAT, SPLIT, GATHER, LOG_SOFTMAX, LAYER_NORM, KINDS };
    static const char *const types[] = {"Softmax", "Concat", "Split", "Gather", "LogSoftmax", "LayerNormalization"};
    static const char *const inputs[] = {"x", "x,z", "x", "x,i", "x", "x,s"};
    uint64_t seed = 7;
    for (int round = 0; round < 6 * ROUNDS; round++) {
        char shape[96] = "4", scale[96] = "";
        int kind = round % KINDS, rank = (int)draw(&seed, 3, 5), axis = (int)draw(&seed, 0, rank - 1);
        bool is_first = kind == SPLIT || kind == GATHER, is_default = kind != CONCAT && draw(&seed, 0, 2) == 0;
        bool from_end = draw(&seed, 0, 1) == 1;
        if (is_default) axis = is_first ? 0 : rank - 1;
        int64_t size[5] = {4}, index = from_end ? axis - rank : axis;
        for (int i = 1; i < rank; i++) size[i] = 2 * draw(&seed, 1, 5);
        append(shape, sizeof shape, size + 1, rank - 1);
        snprintf(scale, sizeof scale, "%lld", (long long)size[axis]);
        append(scale, sizeof scale, size + axis + 1, rank - axis - 1);
        int64_t extent = size[axis];
        onnx_builder *b = onnx_begin(18);
        onnx_input(b, "x", MDOT_DTYPE_F32, shape);
        onnx_input(b, "z", MDOT_DTYPE_F32, shape);
        if (kind == GATHER) onnx_input(b, "i", MDOT_DTYPE_I64, "4,3");
        onnx_initializer(b, "s", MDOT_DTYPE_F32, scale, NULL);
        onnx_node(b, types[kind], inputs[kind], kind == SPLIT ? "y,rest" : "y");
        if (kind == SPLIT) onnx_attr_int(b, "num_outputs", 2);
        if (!is_default) onnx_attr_int(b, "axis", index);
        wanted want = {.setting = {[MDOT_SETTING_AXIS] = rank - axis,
                                   [MDOT_SETTING_EXTENT] = kind == CONCAT ? 2 * extent : extent,
                                   [MDOT_SETTING_INPUTS] = kind == CONCAT || kind == GATHER ? 2 : 1}};
        expect(b, "y", types[kind], &want);
    }
    (void)state;
}

/* Any set of axes, all of them and none of the batch included, by any reduction. */
static void reductions_have_the_elements_of_one_result(void **state)
{
    static const char *const types[] = {"ReduceSum",  "ReduceMean", "ReduceMax", "ReduceMin",
                                        "ReduceProd", "ReduceL1",   "ReduceL2"};
    uint64_t seed = 10;
    for (int round = 0; round < 8 * ROUNDS; round++) {
        char shape[96] = "", length[8];
        const char *type = types[round % 7];
        int rank = (int)draw(&seed, 2, 5), count = 0;
        int64_t size[5], axes[5], extent = 1, set = draw(&seed, 1, (1 << rank) - 1);
        for (int i = 0; i < rank; i++) {
            size[i] = i == 0 && set > 1 ? draw(&seed, 1, 3) : draw(&seed, 2, 5);
            if ((set >> i & 1) == 0) continue;
            axes[count++] = draw(&seed, 0, 1) == 0 ? i : i - rank;
            extent *= size[i];
        }
        snprintf(shape, sizeof shape, "%lld", (long long)size[0]);
        append(shape, sizeof shape, size + 1, rank - 1);
        snprintf(length, sizeof length, "%d", count);
        onnx_builder *b = onnx_begin(18);
        onnx_input(b, "x", MDOT_DTYPE_F32, shape);
        onnx_initializer(b, "axes", MDOT_DTYPE_I64, length, axes);
        bool is_all = set == (1 << rank) - 1 && draw(&seed, 0, 1) == 1;
        onnx_node(b, type, is_all ? "x" : "x,axes", "y");
        onnx_attr_int(b, "keepdims", draw(&seed, 0, 1));
        wanted want = {.setting = {[MDOT_SETTING_EXTENT] = extent, [MDOT_SETTING_INPUTS] = 1}};
        expect(b, "y", type, &want);
    }
    (void)state;
}

static void recurrences_have_steps_and_directions(void **state)
{
    static const char *const types[] = {"RNN", "GRU", "LSTM"};
    static const int gates[] = {1, 3, 4};
    uint64_t seed = 8;
    for (int round = 0; round < ROUNDS; round++) {
        char x[64], w[64], r[64], c[64];
        int kind = round % 3;
        bool batch_first = draw(&seed, 0, 1) == 1, has_bias = draw(&seed, 0, 1) == 1;
        long long steps = draw(&seed, 2, 9), in = draw(&seed, 2, 9), hidden = draw(&seed, 2, 9),
                  directions = draw(&seed, 1, 2), batch = draw(&seed, 1, 5);
        snprintf(x, sizeof x, "%lld,%lld,%lld", batch_first ? batch : steps, batch_first ? steps : batch, in);
        snprintf(w, sizeof w, "%lld,%lld,%lld", directions, gates[kind] * hidden, in);
        snprintf(r, sizeof r, "%lld,%lld,%lld", directions, gates[kind] * hidden, hidden);
        snprintf(c, sizeof c, "%lld,%lld", directions, 2 * gates[kind] * hidden);
        onnx_builder *b = onnx_begin(17);
        onnx_input(b, "x", MDOT_DTYPE_F32, x);
        onnx_initializer(b, "w", MDOT_DTYPE_F32, w, NULL);
        onnx_initializer(b, "r", MDOT_DTYPE_F32, r, NULL);
        onnx_initializer(b, "c", MDOT_DTYPE_F32, c, NULL);
        onnx_node(b, types[kind], has_bias ? "x,w,r,c" : "x,w,r", "y");
        onnx_attr_int(b, "hidden_size", hidden);
        if (batch_first || round % 2 == 0) onnx_attr_int(b, "layout", batch_first);
        if (directions == 2) onnx_attr_string(b, "direction", "bidirectional");
        wanted want = {.setting = {[MDOT_SETTING_CHANNELS_IN] = in,
                                   [MDOT_SETTING_CHANNELS_OUT] = hidden,
                                   [MDOT_SETTING_SIZE_IN] = steps,
                                   [MDOT_SETTING_SIZE_OUT] = steps,
                                   [MDOT_SETTING_EXTENT] = steps,
                                   [MDOT_SETTING_DIRECTIONS] = directions,
                                   [MDOT_SETTING_BIAS] = has_bias,
                                   [MDOT_SETTING_INPUTS] = 1}};
        expect(b, "y", types[kind], &want);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_have_their_window_and_channels),
        cmocka_unit_test(pools_have_their_window),
        cmocka_unit_test(pools_of_four_dimensions_have_the_first_three),
        cmocka_unit_test(maps_have_their_channels_and_sizes),
        cmocka_unit_test(matmuls_have_their_extents),
        cmocka_unit_test(a_product_with_a_vector_has_one_column),
        cmocka_unit_test(similarities_have_a_row_for_each_sample),
        cmocka_unit_test(priced_calls_have_the_extents_of_one_matrix),
        cmocka_unit_test(empty_factors_divide_nothing),
        cmocka_unit_test(attention_has_heads_queries_and_keys),
        cmocka_unit_test(too_many_keys_are_refused),
        cmocka_unit_test(axes_are_counted_from_the_end),
        cmocka_unit_test(reductions_have_the_elements_of_one_result),
        cmocka_unit_test(recurrences_have_steps_and_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
