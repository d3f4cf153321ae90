/* test_configuration_facts.c — the column `facts` in configuration.def: each row behaves as stated there. */
#include "runtime/job/configuration.h"
#include "runtime/job/configuration_table.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static mdot_status read_status(mdot_configuration c, mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration complete;
    return rt_configuration_read(&c, 0, &names, &complete, err);
}

static mdot_configuration defaults(void)
{
    mdot_configuration c = {.struct_size = sizeof c, .batch = 8, .gpu = "A100"};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section != RT_SECTION_JOB) rt_option_set(&c, &rt_options[i], rt_options[i].fallback);
    return c;
}

/* A valid value other than the default. */
static double other_value(const rt_option *option)
{
    if (option->kind == RT_KIND_COUNT) return 2;
    if (option->kind == RT_KIND_REAL || option->kind == RT_KIND_VERSION) return 200;
    return option->fallback == option->least ? option->least + 1 : option->least;
}

static void changed_option_makes_configurations_differ_as_its_row_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        if (option->kind == RT_KIND_GPU) continue;
        rt_configuration a = {.c = defaults(), .micro_batch = 8}, b = a;
        assert_false(rt_option_is_set(&a.c, option) && option->section != RT_SECTION_JOB);
        assert_false(rt_is_corrected(&a.c, &b.c));
        assert_true(rt_equal_micro_steps(&a, &b));
        rt_option_set(&b.c, option, other_value(option));
        assert_true(rt_option_is_set(&b.c, option));
        if (rt_is_corrected(&a.c, &b.c) != ((option->facts & (RT_CORRECTED | RT_UNREAD)) != 0))
            fail_msg("%s: rt_is_corrected", option->field);
        if (rt_equal_micro_steps(&a, &b) != ((option->facts & RT_MICRO_STEP) == 0))
            fail_msg("%s: rt_equal_micro_steps", option->field);
    }
    rt_configuration a = {.c = defaults(), .micro_batch = 8}, b = a;
    b.micro_batch = 4;
    assert_false(rt_equal_micro_steps(&a, &b));
}

static void options_are_copied_and_reset_as_their_rows_state(void **state)
{
    (void)state;
    mdot_configuration others = defaults();
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].kind != RT_KIND_GPU) rt_option_set(&others, &rt_options[i], other_value(&rt_options[i]));
    mdot_configuration copied = defaults(), reset = others;
    rt_copy_kernels(&copied, &others);
    rt_set_unread_defaults(&reset);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        if (option->kind == RT_KIND_GPU || option->section == RT_SECTION_JOB) continue;
        if (rt_option_is_set(&copied, option) != ((option->facts & RT_KERNELS) != 0))
            fail_msg("%s: rt_copy_kernels", option->field);
        if (rt_option_is_set(&reset, option) != ((option->facts & RT_UNREAD) == 0))
            fail_msg("%s: rt_set_unread_defaults", option->field);
        if (option->kind == RT_KIND_COUNT && (option->facts & RT_UNREAD) != 0)
            assert_compare(rt_option_get(&reset, option), ==, 1);
    }
}

static void inference_refuses_each_option_of_training_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        if ((option->facts & (RT_TRAINING_ONLY | RT_SEVERAL_GPUS)) == 0) continue;
        rt_option_label label = rt_option_label_of(option);
        const char *subject = (option->facts & RT_TRAINING_ONLY) != 0 ? label.text : "--gpus";
        mdot_configuration c = defaults();
        mdot_error err = {0};
        c.mode = MDOT_MODE_INFERENCE;
        assert_int_equal(read_status(c, &err), MDOT_OK);
        rt_option_set(&c, option, other_value(option));
        if (read_status(c, &err) != MDOT_INVALID_ARGUMENT) fail_msg("inference accepts %s", option->field);
        if (strstr(err.message, subject) == NULL) fail_msg("%s: %s", option->field, err.message);
    }
}

/* Options that need another one in training need it in inference, too. */
static void inference_accepts_the_other_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        mdot_configuration c = defaults();
        mdot_error err = {0};
        if (option->kind == RT_KIND_GPU || (option->facts & (RT_TRAINING_ONLY | RT_SEVERAL_GPUS)) != 0) continue;
        rt_option_set(&c, option, other_value(option));
        mdot_status in_training = read_status(c, NULL);
        c.mode = MDOT_MODE_INFERENCE;
        if (read_status(c, &err) != in_training) fail_msg("%s: %s", option->field, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_option_makes_configurations_differ_as_its_row_states),
        cmocka_unit_test(options_are_copied_and_reset_as_their_rows_state),
        cmocka_unit_test(inference_refuses_each_option_of_training_alone),
        cmocka_unit_test(inference_accepts_the_other_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
