/* test_shipped_predictor.c — the shipped predictor behaves like hardware for every demo network. Larger batches take
 * longer, intervals contain the median, memory grows, and compiled code agrees with the model. Options without effect
 * on any operator leave the time unchanged, and unmeasured configurations have wider intervals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

static const int64_t batches[] = {1,  2,  3,  4,  6,   8,   12,  16,  20,  24,  32,
                                  40, 48, 64, 96, 128, 192, 256, 320, 384, 448, 512};
enum { BATCH_COUNT = sizeof batches / sizeof batches[0] };

static const mdot_dim_binding sequences[] = {{"sequence", 128, NULL}};
static const struct {
    const char *path;
    size_t dim_count;
} networks[] = {{MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", 0},
                {MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", 1}};
enum { NETWORK_COUNT = sizeof networks / sizeof networks[0] };

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *jobs[NETWORK_COUNT];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    for (int n = 0; status == MDOT_OK && n < NETWORK_COUNT; n++) {
        mdot_job_options options = {
            .struct_size = sizeof options, .dims = sequences, .dim_count = networks[n].dim_count};
        status = mdot_job_read(networks[n].path, &options, &f->jobs[n], &err);
    }
    if (status != MDOT_OK) print_error("%s\n", err.message);
    *state = f;
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    for (int n = 0; n < NETWORK_COUNT; n++) mdot_job_destroy(f->jobs[n]);
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    free(f);
    return 0;
}

/* Predicts one network at every batch. */
static void sweep(const fixture *f, int network, mdot_configuration common, mdot_prediction *out)
{
    mdot_configuration configurations[BATCH_COUNT];
    mdot_error err = {0};
    for (int i = 0; i < BATCH_COUNT; i++) {
        configurations[i] = common;
        configurations[i].batch = batches[i];
    }
    if (mdot_sweep(f->context, f->jobs[network], configurations, BATCH_COUNT, out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
}

static void expect_growth(const fixture *f, int network, const mdot_configuration *common)
{
    mdot_prediction p[BATCH_COUNT] = {MDOT_INIT(mdot_prediction)};
    sweep(f, network, *common, p);
    for (int i = 1; i < BATCH_COUNT; i++)
        /* If a fast GPU waits for the host, times may be equal to the last f32 digit. */
        if (!(p[i].step_ms >= p[i - 1].step_ms) || !(p[i].peak_memory_bytes > p[i - 1].peak_memory_bytes))
            fail_msg("%s, %s, precision %d, layout %d: batch %lld takes %g ms and %llu bytes, %lld takes %g and %llu",
                     networks[network].path, common->gpu, (int)common->precision, (int)common->layout,
                     (long long)batches[i - 1], p[i - 1].step_ms, (unsigned long long)p[i - 1].peak_memory_bytes,
                     (long long)batches[i], p[i].step_ms, (unsigned long long)p[i].peak_memory_bytes);
}

static void larger_batches_take_longer_on_every_gpu(void **state)
{
    for (int n = 0; n < NETWORK_COUNT; n++)
        for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++)
            for (int precision = 0; precision <= MDOT_PRECISION_PYTORCH; precision++)
                for (int layout = 0; layout <= MDOT_LAYOUT_NHWC; layout++)
                    expect_growth(*state, n,
                                  &(mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                                        .gpu = *gpu,
                                                        .precision = (mdot_precision)precision,
                                                        .layout = (mdot_layout)layout});
}

/* A larger batch uses a GPU better, up to a point, so the time per sample hardly increases. */
static void a_sample_costs_no_more_in_a_larger_batch(void **state)
{
    fixture *f = *state;
    for (int n = 0; n < NETWORK_COUNT; n++)
        for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++) {
            mdot_prediction p[BATCH_COUNT] = {MDOT_INIT(mdot_prediction)};
            sweep(f, n,
                  (mdot_configuration){
                      .struct_size = sizeof(mdot_configuration), .gpu = *gpu, .precision = MDOT_PRECISION_AMP},
                  p);
            for (int i = 1; i < BATCH_COUNT; i++) {
                double before = p[i - 1].step_ms / (double)batches[i - 1], after = p[i].step_ms / (double)batches[i];
                if (after > 1.25 * before)
                    fail_msg("%s, %s: a sample takes %g ms at batch %lld, %g at %lld", networks[n].path, *gpu, before,
                             (long long)batches[i - 1], after, (long long)batches[i]);
            }
        }
}

static void intervals_hold_their_median(void **state)
{
    fixture *f = *state;
    for (int n = 0; n < NETWORK_COUNT; n++)
        for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++) {
            mdot_prediction p[BATCH_COUNT] = {MDOT_INIT(mdot_prediction)};
            sweep(f, n,
                  (mdot_configuration){
                      .struct_size = sizeof(mdot_configuration), .gpu = *gpu, .layout = MDOT_LAYOUT_NHWC},
                  p);
            for (int i = 0; i < BATCH_COUNT; i++) {
                assert_compare(p[i].lower_ms, >, 0);
                assert_compare(p[i].lower_ms, <, p[i].step_ms);
                assert_compare(p[i].step_ms, <, p[i].upper_ms);
            }
        }
}

static void a_much_faster_gpu_is_faster(void **state)
{
    fixture *f = *state;
    static const char *const ascending[] = {"K80", "T4", "RTX-3090", "H100-SXM-80GB"};
    for (int n = 0; n < NETWORK_COUNT; n++) {
        double slower = 1e300;
        for (size_t g = 0; g < sizeof ascending / sizeof ascending[0]; g++) {
            mdot_prediction p[BATCH_COUNT] = {MDOT_INIT(mdot_prediction)};
            sweep(f, n,
                  (mdot_configuration){
                      .struct_size = sizeof(mdot_configuration), .gpu = ascending[g], .precision = MDOT_PRECISION_AMP},
                  p);
            if (!(p[BATCH_COUNT - 1].step_ms < slower))
                fail_msg("%s takes %g ms, a slower card %g", ascending[g], p[BATCH_COUNT - 1].step_ms, slower);
            slower = p[BATCH_COUNT - 1].step_ms;
        }
    }
}

static mdot_prediction predict(const fixture *f, int network, mdot_configuration c)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    c.struct_size = sizeof c;
    if (mdot_predict(f->context, f->jobs[network], &c, &p, &err) != MDOT_OK) fail_msg("%s", err.message);
    return p;
}

/* A setting without effect on any operator leaves the network's time unchanged: ResNet-50 has no attention. */
static void the_attention_kernel_changes_only_networks_with_attention(void **state)
{
    for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++) {
        mdot_configuration c = {.batch = 64, .gpu = *gpu, .precision = MDOT_PRECISION_AMP};
        const mdot_prediction fused = predict(*state, 0, c);
        c.attention = MDOT_ATTENTION_EAGER;
        const mdot_prediction eager = predict(*state, 0, c);
        if (fused.step_ms != eager.step_ms || fused.lower_ms != eager.lower_ms || fused.upper_ms != eager.upper_ms)
            fail_msg("%s: %g ms, with eager attention %g", *gpu, fused.step_ms, eager.step_ms);
    }
}

static void pure_half_precision_takes_no_longer_than_autocast(void **state)
{
    for (int n = 0; n < NETWORK_COUNT; n++)
        for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++) {
            mdot_configuration c = {.batch = 64, .gpu = *gpu, .precision = MDOT_PRECISION_AMP_BF16};
            double autocast_ms = predict(*state, n, c).step_ms;
            c.precision = MDOT_PRECISION_BF16;
            double throughout_ms = predict(*state, n, c).step_ms;
            if (!(throughout_ms <= autocast_ms))
                fail_msg("%s, %s: %g ms in bf16, %g by autocast", networks[n].path, *gpu, throughout_ms, autocast_ms);
        }
}

/* The interval width's logarithm. */
static double width(const mdot_prediction *p) { return log(p->upper_ms / p->lower_ms); }

/* Whole steps were measured with autocast, on one GPU, with PyTorch up to 1.12, in eager mode. */
static void unmeasured_configurations_have_wider_intervals(void **state)
{
    const mdot_configuration measured = {
        .batch = 128, .gpu = "RTX-3090", .precision = MDOT_PRECISION_AMP, .torch = 112};
    mdot_configuration other[] = {measured, measured, measured, measured};
    other[0].torch = 204;
    other[1].compiled = 1;
    other[1].torch = 204;
    other[2].precision = MDOT_PRECISION_FP32;
    other[3].gpu = "RTX-3080";
    const mdot_prediction known = predict(*state, 0, measured);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const mdot_prediction p = predict(*state, 0, other[i]);
        if (!(width(&p) > 1.05 * width(&known))) fail_msg("case %zu: %g, measured %g", i, width(&p), width(&known));
    }
}

static void a_batch_below_the_training_data_gives_a_warning(void **state)
{
    mdot_configuration c = {.batch = 128, .gpu = "RTX-3090", .precision = MDOT_PRECISION_AMP};
    assert_false(predict(*state, 0, c).warnings & MDOT_WARN_BATCH_BELOW_DATA);
    c.batch = 1;
    assert_true(predict(*state, 0, c).warnings & MDOT_WARN_BATCH_BELOW_DATA);
}

/* The job has the largest allowed numbers. It gives an answer or is refused, and the other pairs are answered. */
static void an_extreme_job_does_not_affect_other_pairs(void **state)
{
    fixture *f = *state;
    const mdot_load most = {0x1p53, 0x1p53, 0x1p53};
    mdot_job_operator op = {.struct_size = sizeof op, .type = "Conv", .known = true, .parameters = 0x1p53};
    mdot_operator_traits_find("Conv", &op.traits);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) op.setting[s] = INT64_C(1) << 40;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op.per_sample[phase] = op.per_step[phase] = most;
    const mdot_job_description description = {.struct_size = sizeof description, .operators = &op, .operator_count = 1};
    mdot_job *hostile = NULL;
    assert_int_equal(mdot_job_create(&description, &hostile, NULL), MDOT_OK);
    enum { COUNT = 9 };
    const mdot_job *jobs[COUNT];
    mdot_configuration c[COUNT];
    mdot_prediction p[COUNT] = {MDOT_INIT(mdot_prediction)};
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = i % 3 == 1 ? hostile : f->jobs[i % NETWORK_COUNT];
        c[i] = (mdot_configuration){.struct_size = sizeof c[i], .batch = i % 3 == 1 ? 1 << 24 : 8, .gpu = "K80"};
    }
    mdot_status status = mdot_predict_many(f->context, jobs, c, COUNT, p, NULL);
    assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
    for (int i = 0; i < COUNT; i++) {
        if (i % 3 != 1) assert_int_equal(p[i].status, MDOT_OK);
        assert_true(p[i].status == MDOT_OK ? p[i].step_ms > 0 : p[i].status == MDOT_MALFORMED);
    }
    mdot_job_destroy(hostile);
}

static void compiled_code_matches_the_onnx_model(void **state)
{
    (void)state;
    static const char *const entries[][2] = {{"encode", MDOT_SOURCE_DIR "/weights/encode.onnx"},
                                             {"evaluate", MDOT_SOURCE_DIR "/weights/evaluate.onnx"}};
    process_result *result = calloc(1, sizeof *result);
    assert_non_null(result);
    for (int i = 0; i < 2; i++) {
        process_run((const char *const[]){MDOT_CLI, "verify", MDOT_SHIPPED_PREDICTOR, entries[i][1], "--entry",
                                          entries[i][0], NULL},
                    result);
        if (result->status != 0) fail_msg("%s%s", result->out, result->err);
    }
    free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_batches_take_longer_on_every_gpu),
        cmocka_unit_test(a_sample_costs_no_more_in_a_larger_batch),
        cmocka_unit_test(intervals_hold_their_median),
        cmocka_unit_test(a_much_faster_gpu_is_faster),
        cmocka_unit_test(the_attention_kernel_changes_only_networks_with_attention),
        cmocka_unit_test(pure_half_precision_takes_no_longer_than_autocast),
        cmocka_unit_test(unmeasured_configurations_have_wider_intervals),
        cmocka_unit_test(a_batch_below_the_training_data_gives_a_warning),
        cmocka_unit_test(an_extreme_job_does_not_affect_other_pairs),
        cmocka_unit_test(compiled_code_matches_the_onnx_model),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
