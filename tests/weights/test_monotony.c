/* test_monotony.c — required monotonicity for every predictor. More samples, larger images, longer sequences and higher
 * precision take at least as long. A GPU model with spec values at least as good is at least as fast. Forty-four small
 * networks of all kinds are built here. A step may be up to a twentieth shorter (the distance between measured steps of
 * one network). If a step uses less than a third of the GPU, the host takes most of the time, because it launches
 * kernels. Spec values and jobs do not describe hosts, and the training data have several. Therefore an eighth is
 * allowed there. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double slack = 1.0 / 20, host_slack = 1.0 / 8, host_share = 1.0 / 3;

static struct {
    mdot_predictor *predictor;
    mdot_context *context;
} current; /* the predictor for the current test group */

/* ---- Networks --------------------------------------------------------------------------------------------------- */

/* Builds one kind of network at a data size: pixels per side, or sequence elements. */
typedef onnx_builder *(*make_fn)(int kind, int width, int size);

static const char *shape(const char *format, int a, int b)
{
    static char text[64];
    snprintf(text, sizeof text, format, a, b);
    return text;
}

static void add_linear(onnx_builder *b, const char *in, const char *out, int from, int to)
{
    char weight[64], bias[64], product[64], inputs[160];
    snprintf(weight, sizeof weight, "%s.weight", out);
    snprintf(bias, sizeof bias, "%s.bias", out);
    snprintf(product, sizeof product, "%s_product", out);
    onnx_initializer(b, weight, MDOT_DTYPE_F32, shape("%d,%d", from, to), NULL);
    onnx_initializer(b, bias, MDOT_DTYPE_F32, shape("%d", to, 0), NULL);
    snprintf(inputs, sizeof inputs, "%s,%s", in, weight);
    onnx_node(b, "MatMul", inputs, product);
    snprintf(inputs, sizeof inputs, "%s,%s", product, bias);
    onnx_node(b, "Add", inputs, out);
}

static void add_vectors(onnx_builder *b, const char *op_type, const char *in, const char *out, int channels, int count)
{
    char inputs[320];
    int used = snprintf(inputs, sizeof inputs, "%s", in);
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.v%d", out, i);
        onnx_initializer(b, name, MDOT_DTYPE_F32, shape("%d", channels, 0), NULL);
        used += snprintf(inputs + used, sizeof inputs - (size_t)used, ",%s", name);
    }
    onnx_node(b, op_type, inputs, out);
}

typedef enum vision { PLAIN, NORMALISED, RESIDUAL, DEPTHWISE, GATED, DENSE, VISION_KINDS } vision;

static onnx_builder *make_vision(int kind, int width, int size)
{
    onnx_builder *b = onnx_begin(17);
    char in[32] = "first", pair[80];
    int channels = width;
    onnx_input(b, "x", MDOT_DTYPE_F32, shape("N,3,%d,%d", size, size));
    char first[32];
    snprintf(first, sizeof first, "%d,3,3,3", width);
    job_add_conv(b, "x", "first", first, 1, true);
    for (int i = 0; i < 8; i++) {
        char c[32], n[32], r[32], out[32], weight[64];
        bool depthwise = kind == DEPTHWISE && i % 2 == 0;
        snprintf(c, sizeof c, "c%d", i);
        snprintf(n, sizeof n, "n%d", i);
        snprintf(r, sizeof r, "r%d", i);
        snprintf(out, sizeof out, "y%d", i);
        snprintf(weight, sizeof weight, "%d,%d,3,3", width, depthwise ? 1 : channels);
        job_add_conv(b, in, c, weight, depthwise ? width : 1, kind == PLAIN);
        if (kind == PLAIN) {
            strcpy(n, c);
        } else {
            add_vectors(b, "BatchNormalization", c, n, width, 4);
        }
        onnx_node(b, kind == GATED ? "HardSwish" : "Relu", n, r);
        strcpy(out, r);
        if (kind == RESIDUAL) {
            snprintf(out, sizeof out, "y%d", i);
            snprintf(pair, sizeof pair, "%s,%s", r, in);
            onnx_node(b, "Add", pair, out);
        }
        if (kind == DENSE) {
            snprintf(out, sizeof out, "y%d", i);
            snprintf(pair, sizeof pair, "%s,%s", r, in);
            onnx_node(b, "Concat", pair, out);
            onnx_attr_int(b, "axis", 1);
            channels += width;
        }
        strcpy(in, out);
    }
    onnx_node(b, "GlobalAveragePool", in, "pool");
    onnx_node(b, "Flatten", "pool", "flat");
    add_linear(b, "flat", "fc", channels, 100);
    onnx_output(b, "fc");
    return b;
}

typedef enum text_kind { ENCODER, MIXER, RECURRENT, FEED_FORWARD, TEXT_KINDS } text_kind;

static void add_attention(onnx_builder *b, const char *in, const char *out, int width, int i)
{
    char names[3][32], attended[32], inputs[160];
    for (int k = 0; k < 3; k++) {
        snprintf(names[k], sizeof names[k], "qkv%d_%d", i, k);
        add_linear(b, in, names[k], width, width);
    }
    snprintf(attended, sizeof attended, "attended%d", i);
    snprintf(inputs, sizeof inputs, "%s,%s,%s", names[0], names[1], names[2]);
    onnx_node(b, "Attention", inputs, attended);
    onnx_attr_int(b, "q_num_heads", width / 32);
    onnx_attr_int(b, "kv_num_heads", width / 32);
    add_linear(b, attended, out, width, width);
}

static onnx_builder *make_text(int kind, int width, int size)
{
    onnx_builder *b = onnx_begin(23);
    char in[32] = "embedded", pair[80];
    onnx_input(b, "ids", MDOT_DTYPE_I64, shape("N,%d", size, 0));
    onnx_initializer(b, "table", MDOT_DTYPE_F32, shape("5000,%d", width, 0), NULL);
    onnx_node(b, "Gather", "table,ids", "embedded");
    for (int i = 0; i < 4; i++) {
        char a[32], s[32], n[32], up[32], g[32], down[32], out[32];
        snprintf(a, sizeof a, "a%d", i);
        snprintf(s, sizeof s, "s%d", i);
        snprintf(n, sizeof n, "n%d", i);
        snprintf(up, sizeof up, "up%d", i);
        snprintf(g, sizeof g, "g%d", i);
        snprintf(down, sizeof down, "down%d", i);
        snprintf(out, sizeof out, "y%d", i);
        if (kind == ENCODER) {
            add_attention(b, in, a, width, i);
        } else {
            onnx_node(b, kind == MIXER ? "Tanh" : "Sigmoid", in, a);
        }
        snprintf(pair, sizeof pair, "%s,%s", a, in);
        onnx_node(b, "Add", pair, s);
        add_vectors(b, "LayerNormalization", s, n, width, 2);
        add_linear(b, n, up, width, 4 * width);
        onnx_node(b, kind == FEED_FORWARD ? "Relu" : "Gelu", up, g);
        add_linear(b, g, down, 4 * width, width);
        snprintf(pair, sizeof pair, "%s,%s", down, n);
        onnx_node(b, "Add", pair, out);
        strcpy(in, out);
    }
    if (kind == RECURRENT) {
        char inputs[160];
        onnx_node(b, "Transpose", in, "turned");
        onnx_attr_ints(b, "perm", 3, (int64_t[]){1, 0, 2});
        onnx_initializer(b, "lstm.w", MDOT_DTYPE_F32, shape("1,%d,%d", 4 * width, width), NULL);
        onnx_initializer(b, "lstm.r", MDOT_DTYPE_F32, shape("1,%d,%d", 4 * width, width), NULL);
        snprintf(inputs, sizeof inputs, "turned,lstm.w,lstm.r");
        onnx_node(b, "LSTM", inputs, "hidden");
        onnx_attr_int(b, "hidden_size", width);
        onnx_output(b, "hidden");
        return b;
    }
    add_linear(b, in, "logits", width, 5000);
    onnx_output(b, "logits");
    return b;
}

/* Embedding tables with `size` rows, one read per sample, and two layers: DLRM's structure. */
static onnx_builder *make_tables(int kind, int width, int size)
{
    onnx_builder *b = onnx_begin(17);
    char all[512] = "dense";
    int tables = 4 << kind;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,13");
    add_linear(b, "x", "dense", 13, width);
    for (int i = 0; i < tables; i++) {
        char ids[32], table[32], inputs[80], row[32], sum[32];
        snprintf(ids, sizeof ids, "ids%d", i);
        snprintf(table, sizeof table, "e%d.weight", i);
        snprintf(row, sizeof row, "row%d", i);
        snprintf(sum, sizeof sum, "sum%d", i);
        onnx_input(b, ids, MDOT_DTYPE_I64, shape("N,%d", size, 0));
        onnx_initializer(b, table, MDOT_DTYPE_F32, shape("10000,%d", width, 0), NULL);
        snprintf(inputs, sizeof inputs, "%s,%s", table, ids);
        onnx_node(b, "Gather", inputs, row);
        onnx_node(b, "ReduceMean", row, sum);
        onnx_attr_ints(b, "axes", 1, (int64_t[]){1});
        onnx_attr_int(b, "keepdims", 0);
        strcat(strcat(all, ","), sum);
    }
    onnx_node(b, "Concat", all, "joined");
    onnx_attr_int(b, "axis", 1);
    add_linear(b, "joined", "top", (tables + 1) * width, 256);
    onnx_node(b, "Relu", "top", "active");
    add_linear(b, "active", "y", 256, 1);
    onnx_output(b, "y");
    return b;
}

static const int lengths[] = {16, 32, 64, 128, 256, 384, 512};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
enum { SIZES = 3, FAMILIES = 3, WIDTHS = 4, MOST_NETWORKS = 64 };
static const struct {
    make_fn make;
    int kinds, sizes[SIZES];
    int widths[WIDTHS];
    int width_count;
} families[FAMILIES] = {{make_vision, VISION_KINDS, {32, 64, 128}, {16, 32, 64, 128}, 4},
                        {make_text, TEXT_KINDS, {64, 128, 256}, {64, 128, 256, 512}, 4},
                        {make_tables, 2, {1, 4, 16}, {16, 64}, 2}};

static struct {
    mdot_job *jobs[SIZES];
    char name[64];
} networks[MOST_NETWORKS];
static int network_count;
static mdot_job *bert[LENGTHS]; /* examples/jobs/bert_base.onnx */

static void make_networks(void)
{
    for (int f = 0; f < FAMILIES; f++) {
        for (int k = 0; k < families[f].kinds; k++) {
            for (int w = 0; w < families[f].width_count; w++) {
                for (int s = 0; s < SIZES; s++) {
                    job_reading r = job_expect(families[f].make(k, families[f].widths[w], families[f].sizes[s]));
                    networks[network_count].jobs[s] = r.job;
                }
                snprintf(networks[network_count].name, sizeof networks[0].name, "family %d, kind %d, width %d", f, k,
                         families[f].widths[w]);
                network_count++;
            }
        }
    }
    for (int i = 0; i < LENGTHS; i++) {
        const mdot_dim_binding dim = {.name = "sequence", .value = lengths[i]};
        const mdot_job_options options = {.struct_size = sizeof options, .dims = &dim, .dim_count = 1};
        mdot_error err = {0};
        if (mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", &options, &bert[i], &err) != MDOT_OK)
            fail_msg("%s", err.message);
    }
}

static int set_up(const char *path)
{
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(path, NULL, &current.predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(current.predictor, &current.context, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    if (status == MDOT_OK) make_networks();
    return status == MDOT_OK ? 0 : -1;
}

static int set_up_shipped(void **state)
{
    (void)state;
    return set_up(MDOT_SHIPPED_PREDICTOR);
}

static int set_up_published(void **state)
{
    (void)state;
    return set_up(MDOT_PUBLISHED_PREDICTOR);
}

static int tear_down(void **state)
{
    (void)state;
    for (int n = 0; n < network_count; n++) {
        for (int s = 0; s < SIZES; s++) mdot_job_destroy(networks[n].jobs[s]);
    }
    network_count = 0;
    for (int i = 0; i < LENGTHS; i++) mdot_job_destroy(bert[i]);
    mdot_context_destroy(current.context);
    mdot_predictor_close(current.predictor);
    return 0;
}

/* ---- Properties ------------------------------------------------------------------------------------------------- */

static const char *const gpus[] = {"K80", "V100-SXM-32GB", "T4", "RTX-3090", "A100-SXM-80GB", "H100-SXM-80GB"};
enum { GPU_COUNT = sizeof gpus / sizeof *gpus };

typedef struct tally {
    int checked, wrong;
    double worst;
} tally;

/* The highest GPU utilisation in both steps. */
static double busiest(const mdot_prediction *p, const mdot_prediction *q)
{
    return fmax(fmax(p->compute_share, p->memory_share), fmax(q->compute_share, q->memory_share));
}

/* `more` may be below `less` only by the slack. */
static void hold(tally *t, const mdot_prediction *p, const mdot_prediction *q, const char *what, const char *network,
                 const char *gpu)
{
    double less = p->step_ms, more = q->step_ms, drop = 1 - more / less;
    t->checked++;
    if (drop <= (busiest(p, q) < host_share ? host_slack : slack)) return;
    t->wrong++;
    if (drop > t->worst) t->worst = drop;
    if (t->wrong <= 10)
        print_message("%s: %s on %s: %.4g ms, then %.4g, at %.0f %% of the card\n", what, network, gpu, less, more,
                      100 * busiest(p, q));
}

static void expect_held(const tally *t, const char *what)
{
    print_message("%s: %d of %d fall, by %.1f %% at most\n", what, t->wrong, t->checked, 100 * t->worst);
    assert_compare(network_count, >=, 40);
    assert_int_equal(t->wrong, 0);
}

static mdot_prediction predict(const mdot_job *job, const mdot_configuration *c)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    if (mdot_predict(current.context, job, c, &p, &err) != MDOT_OK) fail_msg("%s", err.message);
    return p;
}

static void time_grows_with_the_batch(void **state)
{
    (void)state;
    tally t = {0};
    for (int n = 0; n < network_count; n++) {
        for (int g = 0; g < GPU_COUNT; g++) {
            mdot_prediction before = {0};
            for (int64_t batch = 1; batch <= 1024; batch *= 4) {
                mdot_configuration c = {.struct_size = sizeof c, .batch = batch, .gpu = gpus[g]};
                mdot_prediction now = predict(networks[n].jobs[0], &c);
                if (batch > 1) hold(&t, &before, &now, "batch", networks[n].name, gpus[g]);
                before = now;
            }
        }
    }
    expect_held(&t, "batch");
}

static void time_grows_with_the_data(void **state)
{
    (void)state;
    tally t = {0};
    for (int n = 0; n < network_count; n++) {
        for (int g = 0; g < GPU_COUNT; g++) {
            for (int s = 1; s < SIZES; s++) {
                mdot_configuration c = {.struct_size = sizeof c, .batch = 32, .gpu = gpus[g]};
                mdot_prediction smaller = predict(networks[n].jobs[s - 1], &c),
                                larger = predict(networks[n].jobs[s], &c);
                hold(&t, &smaller, &larger, "size", networks[n].name, gpus[g]);
            }
        }
    }
    expect_held(&t, "resolution and length");
}

/* Fused, compiled or low-precision kernels never hide the cost of longer sequences, including the host's. */
static void time_grows_with_the_length_of_sequences(void **state)
{
    (void)state;
    static const mdot_configuration ways[] = {
        {.precision = MDOT_PRECISION_AMP, .attention = MDOT_ATTENTION_FLASH},
        {.precision = MDOT_PRECISION_AMP, .attention = MDOT_ATTENTION_EAGER},
        {.precision = MDOT_PRECISION_AMP, .compiled = 1},
        {.precision = MDOT_PRECISION_BF16},
        {.precision = MDOT_PRECISION_AMP, .recompute = MDOT_RECOMPUTE_BLOCKS},
    };
    tally t = {0};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        for (int64_t batch = 1; batch <= 64; batch *= 4) {
            mdot_prediction longest = {0}; /* longest step so far */
            for (int i = 0; i < LENGTHS; i++) {
                mdot_configuration c = ways[w];
                c.struct_size = sizeof c;
                c.batch = batch;
                c.gpu = "H100";
                mdot_prediction now = predict(bert[i], &c);
                if (i > 0) hold(&t, &longest, &now, "length", "BERT-base", c.gpu);
                if (now.step_ms > longest.step_ms) longest = now;
            }
        }
    }
    expect_held(&t, "length");
}

/* For GPUs with tensor cores for both precisions. The host launches quickly here, because autocast launches up to two
 * more kernels (casts) for each matmul, so half precision takes longer where the host is the limit. Our H200 records
 * show this, too: there, predicted over measured is 1.16 to 1.20 in half precision, and 1.23 in TF32. */
static void time_falls_with_lower_precision(void **state)
{
    (void)state;
    static const mdot_precision precisions[] = {MDOT_PRECISION_AMP, MDOT_PRECISION_TF32, MDOT_PRECISION_FP32};
    tally t = {0};
    for (int n = 0; n < network_count; n++) {
        for (int g = 3; g < GPU_COUNT; g++) {
            mdot_prediction before = {0};
            for (int i = 0; i < 3; i++) {
                mdot_configuration c = {.struct_size = sizeof c,
                                        .batch = 256,
                                        .gpu = gpus[g],
                                        .precision = precisions[i],
                                        .host_launch_us = 1};
                mdot_prediction now = predict(networks[n].jobs[1], &c);
                if (i > 0) hold(&t, &before, &now, "arithmetic", networks[n].name, gpus[g]);
                before = now;
            }
        }
    }
    expect_held(&t, "arithmetic");
}

static bool is_no_worse(const mdot_gpu *a, const mdot_gpu *b)
{
    return a->compute_capability >= b->compute_capability && a->sm_count >= b->sm_count &&
           a->boost_mhz >= b->boost_mhz && a->memory_gib >= b->memory_gib && a->memory_gbps >= b->memory_gbps &&
           a->l2_mib >= b->l2_mib && a->fp32_tflops >= b->fp32_tflops && a->tf32_tflops >= b->tf32_tflops &&
           a->fp16_tflops >= b->fp16_tflops && a->watts >= b->watts;
}

/* AMD's GPUs are an exception: convolutions take what MIOpen's kernels were measured to take (cdna.c), for example
 * longer on an MI250 than on a V100 with lower rates. */
static bool is_exception(const char *name) { return strncmp(name, "MI", 2) == 0; }

/* Hopper is another exception: an H200's records make eager convolutions take 1.3 times as long there as on other GPUs
 * (analytic_correction.c), so that small convolutions may take longer on an H100 than on an A100. */
#define OF_RECORDS 1.3
static bool is_vision(const char *name) { return strncmp(name, "family 0", 8) == 0; }
static bool has_records(const mdot_gpu *gpu) { return gpu->compute_capability == 9; }

static void a_gpu_with_no_worse_spec_values_is_no_slower(void **state)
{
    (void)state;
    tally t = {0};
    for (const char *const *better = mdot_gpu_names(); *better != NULL; better++) {
        for (const char *const *worse = mdot_gpu_names(); *worse != NULL; worse++) {
            mdot_gpu a = MDOT_INIT(mdot_gpu), b = MDOT_INIT(mdot_gpu);
            mdot_gpu_find(*better, &a, NULL);
            mdot_gpu_find(*worse, &b, NULL);
            if (better == worse || !is_no_worse(&a, &b) || is_exception(*better) || is_exception(*worse)) continue;
            char pair[160];
            snprintf(pair, sizeof pair, "%s and %s", *better, *worse);
            for (int n = 0; n < network_count; n += 5) {
                mdot_configuration c = {.struct_size = sizeof c, .batch = 64, .gpu = *better}, d = c;
                d.gpu = *worse;
                mdot_prediction p = predict(networks[n].jobs[1], &c), q = predict(networks[n].jobs[1], &d);
                if (has_records(&a) && !has_records(&b) && is_vision(networks[n].name)) p.step_ms /= OF_RECORDS;
                hold(&t, &p, &q, "card", networks[n].name, pair);
            }
        }
    }
    expect_held(&t, "cards");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_grows_with_the_batch),
        cmocka_unit_test(time_grows_with_the_data),
        cmocka_unit_test(time_grows_with_the_length_of_sequences),
        cmocka_unit_test(time_falls_with_lower_precision),
        cmocka_unit_test(a_gpu_with_no_worse_spec_values_is_no_slower),
    };
    /* This predictor ignores the GPU and attention kernels, and does not divide its answer. Therefore the GPU test is
     * left out, and rooflines decide how much of a step fused attention saves. They leave less to the GPU in half
     * precision, where one network of 264 saves less than in TF32 and takes a tenth longer; the precision test is left
     * out, too. */
    const struct CMUnitTest of_one_gpu[] = {
        cmocka_unit_test(time_grows_with_the_batch),
        cmocka_unit_test(time_grows_with_the_data),
        cmocka_unit_test(time_grows_with_the_length_of_sequences),
    };
    int failed = cmocka_run_group_tests_name("shipped", tests, set_up_shipped, tear_down);
    return failed + cmocka_run_group_tests_name("as published", of_one_gpu, set_up_published, tear_down);
}
