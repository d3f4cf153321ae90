/* test_compiled_layout.c — the networks whose convolutions torch.compile runs with channels last. */
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/predict/analytic_correction.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct convolution {
    int64_t in, out, kernel, groups;
    const char *type; /* NULL: Conv */
} convolution;

static void add(network *n, const convolution *c)
{
    mdot_job_operator *op = network_add(n, c->type != NULL ? c->type : "Conv", 256, "");
    op->setting[MDOT_SETTING_CHANNELS_IN] = c->in;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = c->out;
    op->setting[MDOT_SETTING_KERNEL_H] = op->setting[MDOT_SETTING_KERNEL_W] = c->kernel;
    op->setting[MDOT_SETTING_GROUPS] = c->groups;
    op->per_sample[MDOT_PHASE_FORWARD].flops = 1e6;
}

/* A wide convolution, and `other` beside it. */
static mdot_job *make_job(const convolution *other, int count)
{
    network n = {0};
    add(&n, &(convolution){128, 128, 3, 1, NULL});
    for (int i = 0; i < count; i++) add(&n, other);
    return predict_make_job(n.operators, n.count);
}

static void networks_are_turned_unless_a_rule_forbids_it(void **state)
{
    (void)state;
    static const struct {
        convolution other;
        bool trains, infers;
    } cases[] = {
        {{128, 128, 3, 1, NULL}, true, true},
        {{128, 128, 3, 128, NULL}, true, true},  /* one channel per group */
        {{128, 128, 3, 64, NULL}, false, false}, /* two */
        {{128, 65, 3, 1, NULL}, true, true},     /* above half as many filters */
        {{128, 64, 3, 1, NULL}, false, true},
        {{128, 64, 1, 1, NULL}, true, true}, /* without a window */
        {{64, 128, 3, 1, "ConvTranspose"}, false, true},
        {{128, 64, 3, 1, "ConvTranspose"}, true, true},
        {{64, 64, 3, 1, NULL}, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *job = make_job(&cases[i].other, 2);
        if (rt_compiles_in_nhwc(job, MDOT_MODE_TRAIN) != cases[i].trains ||
            rt_compiles_in_nhwc(job, MDOT_MODE_INFERENCE) != cases[i].infers)
            fail_msg("case %zu", i);
        mdot_job_destroy(job);
    }
}

/* In inference, one grouped convolution is outweighed by others. */
static void inference_weights_the_flops_of_kinds(void **state)
{
    (void)state;
    mdot_job *job = make_job(&(convolution){128, 128, 3, 64, NULL}, 1);
    network n = {0};
    for (int i = 0; i < 3; i++) add(&n, &(convolution){128, 128, 3, 1, NULL});
    add(&n, &(convolution){128, 128, 3, 64, NULL});
    mdot_job *mostly_dense = predict_make_job(n.operators, n.count);
    assert_false(rt_compiles_in_nhwc(job, MDOT_MODE_INFERENCE)); /* .823 + 1.358 is above 2 */
    assert_true(rt_compiles_in_nhwc(mostly_dense, MDOT_MODE_INFERENCE));
    assert_false(rt_compiles_in_nhwc(mostly_dense, MDOT_MODE_TRAIN));
    mdot_job_destroy(job);
    mdot_job_destroy(mostly_dense);
}

static void small_networks_and_those_of_matmuls_keep_their_layout(void **state)
{
    (void)state;
    network n = {0};
    for (int i = 0; i < 3; i++) add(&n, &(convolution){64, 64, 3, 1, NULL});
    mdot_job *small = predict_make_job(n.operators, n.count);
    assert_false(rt_compiles_in_nhwc(small, MDOT_MODE_TRAIN));
    assert_true(rt_compiles_in_nhwc(small, MDOT_MODE_INFERENCE));
    mdot_job_destroy(small);
    network m = {0};
    network_add_matmul(&m, 64, 64, "");
    network_add(&m, "Relu", 0, "0");
    mdot_job *matmuls = predict_make_job(m.operators, m.count);
    add(&m, &(convolution){128, 128, 3, 1, NULL});
    m.operators[0].per_sample[MDOT_PHASE_FORWARD].flops = 2e6;
    mdot_job *mostly_matmuls = predict_make_job(m.operators, m.count);
    for (int mode = 0; mode < 2; mode++) {
        assert_false(rt_compiles_in_nhwc(matmuls, (mdot_mode)mode));
        assert_false(rt_compiles_in_nhwc(mostly_matmuls, (mdot_mode)mode));
    }
    mdot_job_destroy(matmuls);
    mdot_job_destroy(mostly_matmuls);
}

/* A predictor is asked for the learned layout: training or inference. */
static void predictors_are_asked_for_the_compilers_layout(void **state)
{
    (void)state;
    static const struct {
        mdot_mode mode;
        uint32_t compiled, torch;
        mdot_precision precision;
        mdot_layout requested, queried;
    } cases[] = {
        {MDOT_MODE_TRAIN, 1, 0, MDOT_PRECISION_AMP, MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NHWC},
        {MDOT_MODE_TRAIN, 1, 201, MDOT_PRECISION_BF16, MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NHWC},
        {MDOT_MODE_TRAIN, 1, 200, MDOT_PRECISION_AMP, MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NCHW},
        {MDOT_MODE_TRAIN, 1, 0, MDOT_PRECISION_FP32, MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NCHW},
        {MDOT_MODE_TRAIN, 1, 0, MDOT_PRECISION_FP32, MDOT_LAYOUT_NHWC, MDOT_LAYOUT_NHWC},
        {MDOT_MODE_TRAIN, 0, 0, MDOT_PRECISION_AMP, MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NCHW},
        {MDOT_MODE_INFERENCE, 1, 0, MDOT_PRECISION_AMP, MDOT_LAYOUT_NHWC, MDOT_LAYOUT_NCHW},
        {MDOT_MODE_INFERENCE, 1, 0, MDOT_PRECISION_FP32, MDOT_LAYOUT_NHWC, MDOT_LAYOUT_NCHW},
        {MDOT_MODE_INFERENCE, 0, 0, MDOT_PRECISION_AMP, MDOT_LAYOUT_NHWC, MDOT_LAYOUT_NHWC},
    };
    mdot_job *job = make_job(&(convolution){128, 128, 3, 1, NULL}, 1);
    mdot_job *grouped = make_job(&(convolution){128, 128, 3, 64, NULL}, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_configuration requested = {.c = predict_configuration(16, "A100")}, queried;
        requested.c.mode = cases[i].mode;
        requested.c.compiled = (int)cases[i].compiled;
        requested.c.torch = cases[i].torch;
        requested.c.precision = cases[i].precision;
        requested.c.layout = cases[i].requested;
        assert_int_equal(rt_configuration_complete(&requested, NULL), MDOT_OK);
        rt_project_configuration(&requested, job, UINT64_MAX, &queried);
        if (queried.c.layout != cases[i].queried) fail_msg("case %zu", i);
        rt_project_configuration(&requested, grouped, UINT64_MAX, &queried);
        assert_int_equal(queried.c.layout, cases[i].requested);
        requested.gpu.name = "MI300X";
        rt_project_configuration(&requested, job, UINT64_MAX, &queried);
        assert_int_equal(queried.c.layout, cases[i].requested);
    }
    mdot_job_destroy(job);
    mdot_job_destroy(grouped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_turned_unless_a_rule_forbids_it),
        cmocka_unit_test(inference_weights_the_flops_of_kinds),
        cmocka_unit_test(small_networks_and_those_of_matmuls_keep_their_layout),
        cmocka_unit_test(predictors_are_asked_for_the_compilers_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
