/* test_widths.c — bytes per element for weights, gradients and state in every precision, ZeRO stage and gradient
 * type. */
#include "runtime/perf/resolved_configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(mdot_configuration c, rt_widths want)
{
    rt_widths got = rt_widths_of(&c, false);
    if (got.weights == want.weights && got.master == want.master && got.compute == want.compute &&
        got.gradients == want.gradients && got.reduced == want.reduced && got.state == want.state)
        return;
    fail_msg("precision %d, stage %u, gradients %d, reduced %d: %g %g %g %g %g %g", (int)c.precision, c.zero_stage,
             (int)c.gradient_type, (int)c.reduce_type, got.weights, got.master, got.compute, got.gradients, got.reduced,
             got.state);
}

/* The order follows rt_widths: weights, master, compute, gradients, reduced, state. */
static void each_precision_has_its_widths(void **state)
{
    (void)state;
    static const struct {
        mdot_precision precision;
        rt_widths replicated, sharded; /* below ZeRO stage 3, and at it */
    } cases[] = {
        {MDOT_PRECISION_FP32, {4, 0, 4, 4, 4, 4}, {4, 0, 4, 4, 4, 4}},
        {MDOT_PRECISION_TF32, {4, 0, 4, 4, 4, 4}, {4, 0, 4, 4, 4, 4}},
        {MDOT_PRECISION_PYTORCH, {4, 0, 4, 4, 4, 4}, {4, 0, 4, 4, 4, 4}},
        {MDOT_PRECISION_AMP, {4, 0, 4, 4, 4, 4}, {4, 0, 4, 4, 4, 4}},
        {MDOT_PRECISION_AMP_BF16, {4, 0, 4, 4, 4, 4}, {4, 0, 4, 4, 4, 4}},
        {MDOT_PRECISION_BF16, {2, 0, 2, 2, 2, 2}, {2, 0, 2, 2, 2, 2}},
        {MDOT_PRECISION_MIXED_FP16, {2, 4, 2, 2, 2, 4}, {4, 0, 2, 4, 2, 4}},
        {MDOT_PRECISION_MIXED_BF16, {2, 4, 2, 2, 2, 4}, {4, 0, 2, 4, 2, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t stage = 0; stage <= 3; stage++)
            expect((mdot_configuration){.precision = cases[i].precision, .zero_stage = stage},
                   stage < 3 ? cases[i].replicated : cases[i].sharded);
}

/* Below stage 3, fp32 gradients are summed as they are (Megatron), unless their type in the sum is given. FSDP reduces
 * in the type of computation. Half-precision gradients change nothing else. */
static void types_of_gradients_replace_the_precisions(void **state)
{
    (void)state;
    static const mdot_precision precisions[] = {MDOT_PRECISION_MIXED_BF16, MDOT_PRECISION_BF16, MDOT_PRECISION_FP32};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        for (uint32_t stage = 0; stage <= 3; stage++) {
            mdot_configuration c = {.precision = precisions[i], .zero_stage = stage};
            const rt_widths plain = rt_widths_of(&c, false);
            for (int gradients = MDOT_NUMBER_DEFAULT; gradients <= MDOT_NUMBER_HALF; gradients++) {
                for (int reduced = MDOT_NUMBER_DEFAULT; reduced <= MDOT_NUMBER_HALF; reduced++) {
                    rt_widths want = plain;
                    c.gradient_type = (mdot_number)gradients;
                    c.reduce_type = (mdot_number)reduced;
                    if (gradients != MDOT_NUMBER_DEFAULT) want.gradients = gradients == MDOT_NUMBER_FP32 ? 4 : 2;
                    if (gradients == MDOT_NUMBER_FP32 && stage < 3) want.reduced = 4;
                    if (reduced != MDOT_NUMBER_DEFAULT) want.reduced = reduced == MDOT_NUMBER_FP32 ? 4 : 2;
                    expect(c, want);
                }
            }
        }
    }
}

/* Autocast leaves a program's half-precision weights, gradients and state as they are. Other precisions convert
 * them. */
static void autocast_keeps_half_weights(void **state)
{
    (void)state;
    mdot_configuration bf16 = {.precision = MDOT_PRECISION_BF16};
    rt_widths half = rt_widths_of(&bf16, false);
    for (int precision = 0; precision <= MDOT_PRECISION_FP8_BLOCKWISE; precision++) {
        mdot_configuration c = {.precision = (mdot_precision)precision};
        bool is_autocast = precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_AMP_BF16;
        rt_widths got = rt_widths_of(&c, true), want = is_autocast ? half : rt_widths_of(&c, false);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

/* LLM.int8() has a scale for 1024 weights, and NF4 one for 64 weights, which double quantisation stores in 8 bits with
 * an fp32 scale for 256 of them. */
static void frozen_weights_have_their_scales(void **state)
{
    (void)state;
    static const struct {
        mdot_frozen frozen;
        double width;
    } cases[] = {{MDOT_FROZEN_UNCHANGED, 3},
                 {MDOT_FROZEN_INT8, 1 + 4 / 1024.0},
                 {MDOT_FROZEN_NF4, (32 + 1 + 4 / 256.0) / 64},
                 {MDOT_FROZEN_NF4_SINGLE, (32 + 4) / 64.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mdot_configuration c = {.frozen_weights = cases[i].frozen};
        assert_float_equal(rt_frozen_width(&c, 3), cases[i].width, 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autocast_keeps_half_weights),
        cmocka_unit_test(each_precision_has_its_widths),
        cmocka_unit_test(types_of_gradients_replace_the_precisions),
        cmocka_unit_test(frozen_weights_have_their_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
