/* test_cli_predict_usage.c — command lines of `mdot predict`: units of quantities, wrong values, excluding options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

static void quantities_take_units(void **state)
{
    predict_command *f = *state;
    double plain[3], units[3];
    RUN(f, resnet, "--gpu=A100", "-b64", "--gpus=16", "--nodes=2", "--price=2.5", "--steps=100000", "--network=12.5",
        "--link=600", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", &plain[0], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "cost", &plain[1], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "total_seconds", &plain[2], 1), 1);
    RUN(f, resnet, "--gpu=A100", "-b64", "--gpus=16", "--nodes=2", "--price=$2.5/h", "--steps=1e5", "--network=100Gb/s",
        "--link=600GB/s", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", &units[0], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "cost", &units[1], 1), 1);
    assert_int_equal(json_numbers(f->result.out, "total_seconds", &units[2], 1), 1);
    for (int i = 0; i < 3; i++) assert_compare(plain[i], ==, units[i]);
    RUN(f, resnet, "--gpu=A100", "--network=100Gb");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--network takes a rate, not \"100Gb\": the units are GB/s (bytes) and Gb/s");
    RUN(f, resnet, "--gpu=A100", "--link=100G");
    expect_contains(f->result.err, "--link takes a rate");
    RUN(f, resnet, "--gpu=A100", "--price=2.5/day");
    expect_contains(f->result.err, "of an hour (/h)");
    RUN(f, resnet, "--gpu=A100", "--steps=1e5x");
    expect_contains(f->result.err, "for example 100000, 1e5 or 100k, not \"1e5x\"");
}

static void power_limits_are_within_those_of_the_gpu(void **state)
{
    predict_command *f = *state;
    double ms[3], watts[3], joules[3];
    const char *const limits[] = {"--power-limit=400", "--power-limit=250", "--power-limit=100"};
    for (int i = 0; i < 3; i++) {
        RUN(f, resnet, "--gpu=A100", "-b256", "--gpus=4", "--json", "-q", limits[i]);
        assert_int_equal(json_numbers(f->result.out, "step_ms", &ms[i], 1), 1);
        assert_int_equal(json_numbers(f->result.out, "average_watts", &watts[i], 1), 1);
        assert_int_equal(json_numbers(f->result.out, "energy_joules", &joules[i], 1), 1);
        assert_float_equal(joules[i], 4 * watts[i] * ms[i] / 1000, 1e-4 * joules[i]);
    }
    assert_compare(ms[0], <, ms[1]);
    assert_compare(ms[1], <, ms[2]);
    assert_compare(watts[0], >, watts[1]);
    assert_compare(watts[1], >, watts[2]);
    assert_compare(watts[2], >, 50);
    RUN(f, resnet, "--gpu=A100", "--power-limit=500");
    expect_contains(f->result.err, "--power-limit is 500 W; accepted for A100-SXM-40GB: 80 to 400 W");
    RUN(f, resnet, "--gpu=A100", "--power-limit=70");
    expect_contains(f->result.err, "--power-limit is 70 W");
}

static void watts_and_microseconds_are_no_rates(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu=A100", "--power-limit=300GB/s");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--power-limit takes a number from 1e-06 to 1000000000, not \"300GB/s\"");
    RUN(f, resnet, "--gpu=A100", "--host-launch-us=80Gb/s");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu=A100", "--host-launch-us=0");
    expect_contains(f->result.err, "--host-launch-us takes a number from 1e-06 to 1000000000, not \"0\"");
}

static void a_missing_or_unknown_gpu_says_how_to_list_gpus(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "no GPU given");
    expect_contains(f->result.err, "`mdot gpus` lists all names");
    RUN(f, resnet, "--gpu=T4", "--checkpoint", "block"); /* only a choice may follow without a = */
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, " and \"block\"");
    RUN(f, resnet, "--gpu", "T4,B17");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "\"B17\"");
    expect_contains(f->result.err, "the most similar names are ");
    expect_contains(f->result.err, "`mdot gpus` lists all "); /* test_gpus compares the number */
    expect_contains(f->result.err, "; --gpu-spec describes other GPUs");
    assert_compare(strlen(f->result.err), <, 300);
    assert_string_equal(f->result.out, "");
}

static void wrong_values_list_the_accepted_values(void **state)
{
    predict_command *f = *state;
    static const char *const lines[][3] = {
        {"--precision=fp23", "did you mean fp32?"},
        {"--precision=bf17",
         "(did you mean bf16?); known are fp32, tf32, amp-fp16, amp-bf16, bf16, pytorch, mixed-bf16, mixed-fp16"},
        {"--precision=half", "(did you mean amp-fp16?)"}, /* mdot does not support weights in half precision */
        {"--precision=float16", "(did you mean amp-fp16?)"},
        {"--precision=f16", "(did you mean amp-fp16?)"},
        {"--precision=bfloat", "(did you mean bf16?)"},
        {"--precision=16-mixd", "(did you mean amp-fp16?)"},
        {"--layout=chanels_last", "(did you mean nhwc?)"},
        {"--optimizer=momentum", "(did you mean sgd?)"},
        {"--attention=flush", "(did you mean flash?)"},
        {"--checkpoint=blocsk", "(did you mean blocks?)"},
        {"--accumulate=0", "from 1 to"},
        {"--link=nvlnk", "(did you mean nvlink?)"},
        {"--link=-3", "known are pcie, nvlink, a number (GB/s)"},
        {"--link=nvlnk", "(did you mean nvlink?)"},
        {"--network=0", "above 0"},
        {"--parallel=tp", "KIND=N"},
        {"--parallel=xp=2",
         "unknown value \"xp\"; known are dp, tp, pp, ep, cp, sp, micro, vpp, first, last, blocks, zero, ps, fsdp"},
        {"--parallel=dp=2,tb=2", "(did you mean tp?)"},
        {"--parallel=tensro=2", "(did you mean tp?)"},
        {"--parallel=expert_paralel=2", "(did you mean ep?)"},
        {"--parallel=fsp=2", "(did you mean fsdp?)"},
        {"--parallel=tp=two", "--parallel tp takes an integer from 1 to"},
        {"--parallel=tp:2", "KIND=N"},
        {"--parallel=tp=2,tp=4", "tp twice"},
        {"--parallel=tp=0", "from 1 to"},
        {"--parallel=zero=4", "from 0 to 3"},
        {"--layout=chwn", "nchw, nhwc"},
        {"--optimizer=lamb", "sgd, adam, adamw"},
        {"--batch=0", "from 1 to"},
        {"--batch=many", "from 1 to 16777216, for example 32"},
        {"--gpus=0", "from 1 to"},
        {"--steps=-1", "from 1 to"},
        {"--sweep=batch=0..8", "from 1 to"},
        {"--sweep=batch=8..4", "must ascend"},
        {"--sweep=batch=8,,4", "list"},
        {"--sweep=1..8", "batch=A..B"},
        {"--batch=16-32", "--batch takes integers from 1 to 16777216, for example 32, 16,32 or 16..64, not \"16-32\""},
        {"--batch=16..", "--batch takes integers"},
        {"--epochs=3", "--dataset"},
        {"--dataset=3", "--epochs"},
        {"--dim=T", "NAME="},
        {"--frob", "--frob"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        RUN(f, resnet, "--gpu", "T4", lines[i][0]);
        if (f->result.status != USAGE) fail_msg("%s: exit status %d", lines[i][0], f->result.status);
        assert_string_equal(f->result.out, "");
        expect_contains(f->result.err, lines[i][1]);
    }
}

static void options_that_exclude_each_other_are_refused(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "T4", "--batch", "8", "--sweep", "batch=8..16");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, resnet, "--gpu", "T4", "--steps", "8", "--epochs", "1", "--dataset", "8");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, "--gpu", "T4");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "no job given");
    RUN(f, resnet, resnet, "--gpu", "T4");
    assert_int_equal(f->result.status, USAGE);
}

static void other_names_of_options_are_accepted(void **state)
{
    predict_command *f = *state;
    static char first[sizeof f->result.out];
    RUN(f, resnet, "--gpu", "T4", "--frozen", "layer*", "--frozen-weights", "nf4");
    snprintf(first, sizeof first, "%s", f->result.out);
    expect_contains(first, "frozen weights");
    static const char *const lines[][2] = {{"--quantize", "nf4"}, {"--quantize", "qlora"}, {"--quantize=nf4", "-q"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        RUN(f, resnet, "--gpu", "T4", "--frozen", "layer*", lines[i][0], lines[i][1]);
        assert_string_equal(f->result.out, first);
    }
    RUN(f, resnet, "--gpu", "T4", "--quantize", "int3");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "nf4-single");
    static const char *const elsewhere[][2] = {{"nf4", "--frozen-weights nf4"},     {"int8wo", "--frozen-weights int8"},
                                               {"bnb_nf4", "--frozen-weights nf4"}, {"adamw", "--optimizer adamw"},
                                               {"sdpa", "--attention flash"},       {"awq", "--frozen-weights nf4"},
                                               {"fp8-block", "fp8-blockwise"}};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        RUN(f, resnet, "--gpu", "T4", "--precision", elsewhere[i][0]);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, "did you mean");
        expect_contains(f->result.err, elsewhere[i][1]);
    }
}

static void help_succeeds(void **state)
{
    predict_command *f = *state;
    RUN(f, "--help");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "Usage: mdot predict");
    assert_string_equal(f->result.err, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(quantities_take_units, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(power_limits_are_within_those_of_the_gpu, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(watts_and_microseconds_are_no_rates, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_missing_or_unknown_gpu_says_how_to_list_gpus, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(wrong_values_list_the_accepted_values, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(options_that_exclude_each_other_are_refused, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(other_names_of_options_are_accepted, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(help_succeeds, predict_command_set_up, predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
