/* test_kernel_options.c — kernel options change only the operators with such kernels. Layouts apply to images, and
 * compilers call cuDNN's recurrences as PyTorch does. A PyTorch version has only the kernels of its time. */
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 4, COUNT = LAYERS + 1, CHANNELS = 256, HEADS = 4, STEPS = 50 };

/* An activation, and layers of one type. Each reads the one before it. `kernel` is 0 if they lack one. */
static mdot_job *layers_of(const char *type, int64_t kernel, uint32_t frozen)
{
    static const uint32_t inputs[COUNT] = {0, 0, 1, 2, 3};
    mdot_job_operator operators[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .type = i == 0 ? "Gelu" : type};
        bool is_attention = strcmp(type, "Attention") == 0;
        double parameters = i == 0 || is_attention ? 0 : (double)(4 * CHANNELS * CHANNELS),
               bytes = 4.0 * STEPS * CHANNELS;
        for (int phase = 0; phase < (i == 0 ? 2 : 3); phase++) {
            op->per_sample[phase] = (mdot_load){2 * STEPS * (parameters + CHANNELS), bytes, bytes};
            op->per_step[phase] = (mdot_load){0, 4 * parameters, 0};
        }
        bool is_frozen = i > 0 && i <= frozen;
        op->parameters = is_frozen ? 0 : parameters;
        op->frozen_parameters = is_frozen ? parameters : 0;
        op->setting[MDOT_SETTING_INPUTS] = 1;
        if (i > 0) {
            op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = CHANNELS;
            op->setting[MDOT_SETTING_KERNEL_W] = kernel;
            op->setting[MDOT_SETTING_HEADS] = is_attention ? HEADS : 0;
            op->setting[MDOT_SETTING_HEAD_SIZE] = is_attention ? CHANNELS / HEADS : 0;
        }
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

static const mdot_precision PRECISIONS[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP_BF16, MDOT_PRECISION_BF16};
static const mdot_recompute RECOMPUTATIONS[] = {MDOT_RECOMPUTE_NOTHING, MDOT_RECOMPUTE_SELECTIVE};

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration;
    rt_gpu_names names = {0};
    rt_resolved_configuration resolved;
    assert_int_equal(rt_configuration_read(&c, 0, &names, &configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

static void assert_equal_memory(const mdot_job *job, mdot_configuration one, mdot_configuration other)
{
    rt_resolved_configuration a = resolve(job, one), b = resolve(job, other);
    rt_memory m = rt_measure_memory(job, &a), n = rt_measure_memory(job, &b);
    assert_compare(m.weights, ==, n.weights);
    assert_compare(m.gradients, ==, n.gradients);
    assert_compare(m.optimizer, ==, n.optimizer);
    assert_compare(m.activations, ==, n.activations);
}

/* Compares the times of operators from `first` on. */
static void assert_equal_times(const mdot_job *job, size_t first, mdot_configuration one, mdot_configuration other)
{
    rt_resolved_configuration a = resolve(job, one), b = resolve(job, other);
    for (size_t i = first; i < COUNT; i++) {
        double ms[MDOT_PHASE_COUNT], other_ms[MDOT_PHASE_COUNT];
        rt_operator_roofline(job, i, &a, ms);
        rt_operator_roofline(job, i, &b, other_ms);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) assert_compare(ms[phase], ==, other_ms[phase]);
        assert_compare(ms[MDOT_PHASE_FORWARD], >, 0);
    }
}

/* The layers of one type in every precision and recomputation, with and without frozen layers. */
static void for_each_configuration(const char *type, int64_t kernel,
                                   void (*check)(const mdot_job *job, mdot_configuration c))
{
    for (uint32_t frozen = 0; frozen < LAYERS; frozen++) {
        mdot_job *job = layers_of(type, kernel, frozen);
        for (size_t p = 0; p < sizeof PRECISIONS / sizeof *PRECISIONS; p++) {
            for (size_t r = 0; r < sizeof RECOMPUTATIONS / sizeof *RECOMPUTATIONS; r++) {
                mdot_configuration c = predict_configuration(16, "A100-SXM-80GB");
                c.precision = PRECISIONS[p];
                c.recompute = RECOMPUTATIONS[r];
                check(job, c);
            }
        }
        mdot_job_destroy(job);
    }
}

static void check_layout(const mdot_job *job, mdot_configuration c)
{
    mdot_configuration channels_last = c;
    channels_last.layout = MDOT_LAYOUT_NHWC;
    assert_equal_memory(job, c, channels_last);
    assert_equal_times(job, 0, c, channels_last);
}

static void layout_leaves_operators_without_layout_alone(void **state)
{
    (void)state;
    for_each_configuration("LSTM", 0, check_layout);
    for_each_configuration("Linear", 0, check_layout);
    for_each_configuration("Conv", 3, check_layout); /* of one dimension: kernel_h is 0 */
}

static void check_compilation(const mdot_job *job, mdot_configuration c)
{
    mdot_configuration compiled = c;
    compiled.compiled = 1;
    assert_equal_memory(job, c, compiled);
    assert_equal_times(job, 1, c, compiled);
}

static void compilation_leaves_recurrences_alone(void **state)
{
    (void)state;
    for_each_configuration("LSTM", 0, check_compilation);
    for_each_configuration("GRU", 0, check_compilation);
    for_each_configuration("RNN", 0, check_compilation);
}

/* Fused attention came with PyTorch 2.0, as did torch.compile. Whatever program was traced, a stated older version ran
 * matmuls and a softmax, unless the attention is stated, too. */
static void pytorch_1_has_no_fused_attention(void **state)
{
    (void)state;
    static const uint32_t versions[] = {0, 107, 110, 112, 113, 200, 201, 211};
    for (int programs = MDOT_ATTENTION_PROGRAM; programs <= MDOT_ATTENTION_FLASH; programs++) {
        mdot_job *plain = layers_of("Attention", 0, 0), *job = NULL;
        mdot_job_program program = {
            .struct_size = sizeof program, .precision = MDOT_PRECISION_BF16, .attention = (mdot_attention)programs};
        mdot_error err = {0};
        if (mdot_job_with_program(plain, &program, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
            bool is_first = versions[i] > 0 && versions[i] < 200;
            mdot_configuration c = {.struct_size = sizeof c, .batch = 8, .gpu = "A100", .torch = versions[i]};
            c.precision = MDOT_PRECISION_PYTORCH;
            mdot_attention expected =
                is_first || programs == MDOT_ATTENTION_EAGER ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH;
            rt_resolved_configuration resolved = resolve(job, c);
            assert_int_equal(resolved.configuration.c.attention, expected);
            bool differs = programs == MDOT_ATTENTION_FLASH && is_first;
            assert_int_equal(resolved.differs_from_program, differs);
            c.attention = MDOT_ATTENTION_FLASH;
            assert_int_equal(resolve(job, c).configuration.c.attention, MDOT_ATTENTION_FLASH);
        }
        mdot_job_destroy(job);
        mdot_job_destroy(plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_1_has_no_fused_attention),
        cmocka_unit_test(layout_leaves_operators_without_layout_alone),
        cmocka_unit_test(compilation_leaves_recurrences_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
