/* test_request.c — the text of --mdot: valid settings, and the messages for invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/training/training_options.h"
#include "slurm/request.h"
#include "tests/simulator/support/numbers.h"
#include "tests/support/process.h"

static sl_request parse(const char *text)
{
    sl_request request;
    mdot_error err = {0};
    if (sl_request_parse(text, &request, &err) != MDOT_OK) fail_msg("%s: %s", text, err.message);
    return request;
}

static void refuses(const char *text, const char *reason)
{
    sl_request request = {.steps = 7};
    mdot_error err = {0};
    assert_int_equal(sl_request_parse(text, &request, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, reason);
    expect_number(request.steps, 7);
}

static void a_file_alone_is_read(void **state)
{
    (void)state;
    sl_request r = parse("folder/a b.job");
    assert_string_equal(r.file, "folder/a b.job");
    expect_number(r.training.batch, 0);
    expect_number(r.steps, 0);
    expect_number(r.epochs, 0);
    assert_false(r.has_optimizer);
    assert_int_equal(r.training.precision, MDOT_PRECISION_PYTORCH);
    assert_string_equal(sl_request_settings("folder/a b.job"), "");
    assert_string_equal(parse("").file, "");
}

static void each_key_sets_its_field(void **state)
{
    (void)state;
    sl_request r =
        parse("a.job,batch=1,precision=bf16,layout=nhwc,optimizer=adamw,attention=eager,checkpoint=selective,"
              "compile=yes,accumulate=2,dp=3,tp=4,pp=5,micro=6,zero=0,torch=1.12,steps=7");
    const mdot_configuration *c = &r.training;
    assert_string_equal(r.file, "a.job");
    expect_number(c->batch, 1);
    assert_int_equal(c->precision, MDOT_PRECISION_BF16);
    assert_int_equal(c->layout, MDOT_LAYOUT_NHWC);
    assert_true(r.has_optimizer);
    assert_int_equal(c->optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_int_equal(c->attention, MDOT_ATTENTION_EAGER);
    assert_int_equal(c->recompute, MDOT_RECOMPUTE_SELECTIVE);
    expect_number(c->compiled, 1);
    expect_number(c->accumulate, 2);
    expect_number(c->data_parallel, 3);
    expect_number(c->tensor_parallel, 4);
    expect_number(c->pipeline_parallel, 5);
    expect_number(c->micro_batches, 6);
    expect_number(c->zero_stage, 0);
    expect_number(r.steps, 7);
    assert_int_equal(parse("zero=3").training.zero_stage, 3);
    assert_int_equal(c->torch, 112);
    assert_int_equal(parse("torch=2.4").training.torch, 204);
    expect_number(parse("dataset=9,epochs=8").epochs, 8);
    expect_number(parse("dataset=9,epochs=8").dataset, 9);
}

static void expect_key(const rt_option *option, const char *text, double expected)
{
    char request[128];
    snprintf(request, sizeof request, "%s=%s", option->slurm, text);
    sl_request r = parse(request);
    if (rt_option_get(&r.training, option) != expected) fail_msg("%s does not reach %s", request, option->field);
}

static void each_option_with_a_key_takes_its_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        char maximum[32];
        if (option->slurm[0] == '\0') continue;
        for (int k = 0; option->choices != NULL && option->choices[k] != NULL; k++)
            expect_key(option, option->choices[k], k);
        snprintf(maximum, sizeof maximum, "%.0f", option->most);
        if (option->kind == RT_KIND_WHOLE || option->kind == RT_KIND_COUNT) expect_key(option, maximum, option->most);
        if (option->kind != RT_KIND_REAL) continue;
        expect_key(option, maximum, option->most);
        expect_key(option, "10.3", 10.3);
        expect_key(option, "0.000001", 0.000001);
    }
    assert_int_equal(parse("attention=sdpa,precision=16-mixed").training.precision, MDOT_PRECISION_AMP);
    refuses("precision=half", "precision must be one of fp32");
}

static void request_splits_into_file_and_settings(void **state)
{
    (void)state;
    assert_string_equal(sl_request_settings("a.job,batch=1,steps=2"), "batch=1,steps=2");
    assert_string_equal(sl_request_settings("batch=1,steps=2"), "batch=1,steps=2");
    /* a file whose name has an equals sign */
    assert_string_equal(sl_request_settings("size=1.job,batch=1"), "batch=1");
    assert_string_equal(parse("size=1.job,batch=1").file, "size=1.job");
    assert_string_equal(parse("batch=1,steps=2").file, "");
}

static void faults_name_the_key(void **state)
{
    (void)state;
    refuses("a.job,bacth=1", "\"bacth\" is not a setting");
    refuses("a.job,batch", "\"batch\" must have the form KEY=VALUE");
    refuses("a.job,batch=1,batch=1", "batch is given twice");
    refuses("a.job,steps=0", "steps must be an integer from 1");
    refuses("a.job,batch=0", "batch must be an integer from 1");
    refuses("a.job,batch=16777217", "to 16777216");
    refuses("a.job,batch=0x10", "batch must be an integer");
    refuses("a.job,batch=", "batch must be an integer");
    refuses("a.job,steps=1e5", "steps must be an integer");
    refuses("a.job,power_limit=0", "power_limit must be a number from 1e-06 to 1e+09, for example 10.3, not \"0\"");
    refuses("a.job,power_limit=1000000001", "power_limit must be a number");
    refuses("a.job,power_limit=10.", "power_limit must be a number");
    refuses("a.job,power_limit=.5", "power_limit must be a number");
    refuses("a.job,host_launch_us=1e2", "host_launch_us must be a number");
    refuses("a.job,host_launch_us=80Gb/s", "host_launch_us must be a number");
    refuses("a.job,steps=9007199254740994", "to 9007199254740992");
    refuses("a.job,zero=4", "from 0 to 3");
    refuses("a.job,torch=2", "torch must be a version, for example 1.12");
    refuses("a.job,torch=0.4", "torch must be a version of at least 1.0");
    refuses("a.job,torch=2.100", "torch must be an integer from 0 to 99");
    refuses("a.job,compile=maybe", "compile must be one of no, yes, not \"maybe\"");
    refuses("a.job,precision=fp4", "precision must be one of fp32, tf32, amp");
    refuses("a.job,epochs=1", "epochs and dataset require each other");
    refuses("a.job,dataset=1", "epochs and dataset require each other");
    refuses("a.job,steps=1,epochs=1,dataset=1", "exclude");
    refuses("a.job,batch=1\033", "control character");
    char text[SL_REQUEST_BYTES + 1];
    memset(text, 'a', SL_REQUEST_BYTES);
    text[SL_REQUEST_BYTES] = '\0';
    refuses(text, "more than 1023");
    text[SL_REQUEST_BYTES - 1] = '\0';
    assert_int_equal(strlen(parse(text).file), SL_REQUEST_BYTES - 1);
}

static void epochs_are_converted_to_steps_of_whole_batches(void **state)
{
    (void)state;
    sl_request r = parse("epochs=3,dataset=1000");
    expect_number(sl_request_steps(&r, 64), 3 * 16);
    expect_number(sl_request_steps(&r, 1000), 3);
    expect_number(sl_request_steps(&r, 1001), 3);
    r = parse("steps=5");
    expect_number(sl_request_steps(&r, 64), 5);
    r = parse("batch=5");
    expect_number(sl_request_steps(&r, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_alone_is_read),
        cmocka_unit_test(each_key_sets_its_field),
        cmocka_unit_test(each_option_with_a_key_takes_its_values),
        cmocka_unit_test(request_splits_into_file_and_settings),
        cmocka_unit_test(faults_name_the_key),
        cmocka_unit_test(epochs_are_converted_to_steps_of_whole_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
