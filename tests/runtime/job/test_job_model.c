/* test_job_model.c — runtime/job/job_model.c: jobs from valid and invalid descriptions. */
#include "tests/support/job_file_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void positions_follow_from_dependencies(void **state)
{
    (void)state;
    mdot_job *job = job_file_make();
    static const uint32_t depth[] = {0, 1, 1, 2}, height[] = {2, 1, 1, 0}, readers[] = {2, 1, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        assert_int_equal(op.depth, depth[i]);
        assert_int_equal(op.height, height[i]);
        assert_int_equal(op.out_degree, readers[i]);
    }
    mdot_job_operator beyond = MDOT_INIT(mdot_job_operator);
    assert_int_equal(mdot_job_get_operator(job, 4, &beyond), MDOT_OUT_OF_RANGE);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_int_equal(info.unknown_count, 1);
    assert_true(info.parameters == 1728);
    mdot_job_destroy(job);
    mdot_job_destroy(NULL);
}

/* Only padding may be negative. */
static void ranges_of_settings_are_named(void **state)
{
    (void)state;
    static const mdot_setting settings[] = {MDOT_SETTING_PADDING_H, MDOT_SETTING_GROUPS};
    static const char *const ranges[] = {"accepted: -2^40 to 2^40", "accepted: 0 to 2^40"};
    for (int i = 0; i < 2; i++) {
        mdot_job_operator op = {.struct_size = sizeof op, .type = "Conv", .known = true};
        const mdot_job_description d = {.struct_size = sizeof d, .operators = &op, .operator_count = 1, .batch = 1};
        mdot_job *job = NULL;
        mdot_error err = {0};
        op.setting[settings[i]] = -((int64_t)1 << 41);
        assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, ranges[i]));
    }
}

/* A job with another program or with other parameters begins as a copy of all operators. */
static void copies_of_a_job_have_all_its_operators(void **state)
{
    (void)state;
    mdot_job *job = job_file_make(), *copy = NULL;
    const mdot_job_program program = {.struct_size = sizeof program, .precision = MDOT_PRECISION_PYTORCH};
    assert_int_equal(mdot_job_with_program(job, &program, &copy, NULL), MDOT_OK);
    job_file_expect_same(job, copy);
    mdot_job_destroy(copy);
    mdot_job_destroy(job);
}

/* A job owns all that it was made of, in whole numbers. */
static void a_job_keeps_copies_of_its_description(void **state)
{
    (void)state;
    uint32_t first = 0, second = 1;
    char type[] = "Linear";
    mdot_job_operator operators[3];
    for (int i = 0; i < 3; i++)
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i], .type = type, .known = true};
    operators[1].inputs = &first;
    operators[2].inputs = &second;
    operators[1].input_count = operators[2].input_count = 1;
    operators[1].parameters = 10.4;
    operators[1].frozen_parameters = 2.6;
    const mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = 3, .batch = 1};
    mdot_job *job = NULL;
    assert_int_equal(mdot_job_create(&d, &job, NULL), MDOT_OK);
    first = second = 7;
    strcpy(type, "?????");
    memset(operators, 0, sizeof operators);
    for (uint32_t i = 0; i < 3; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        assert_string_equal(op.type, "Linear");
        assert_int_equal(op.input_count, i > 0);
        if (i > 0) assert_int_equal(op.inputs[0], i - 1);
        assert_true(op.parameters == (i == 1 ? 10 : 0) && op.frozen_parameters == (i == 1 ? 3 : 0));
    }
    mdot_job_destroy(job);
}

static void expect_invalid(const mdot_job_description *description, const char *part)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_create(description, &job, &err), MDOT_INVALID_ARGUMENT);
    assert_null(job);
    if (!strstr(err.message, part)) fail_msg("\"%s\" is not in: %s", part, err.message);
}

static void descriptions_that_are_no_jobs_are_refused(void **state)
{
    (void)state;
    static const uint32_t itself[] = {3}, falling[] = {2, 1}, twice[] = {1, 1};
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    d.operator_count = 0;
    expect_invalid(&d, "the job is empty");
    d.operator_count = ((size_t)1 << 22) + 1; /* refused before any operator is read */
    expect_invalid(&d, "the limit is 4194304");
    d = job_file_describe(operators);
    operators[3].inputs = itself;
    operators[3].input_count = 1;
    expect_invalid(&d, "must ascend");
    operators[3].inputs = falling;
    operators[3].input_count = 2;
    expect_invalid(&d, "must ascend");
    operators[3].inputs = twice;
    expect_invalid(&d, "must ascend");
    d = job_file_describe(operators);
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = NAN;
    expect_invalid(&d, "operator 1 of the job (Relu)");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = -1;
    expect_invalid(&d, "from 0 to 2^53");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = INFINITY;
    expect_invalid(&d, "from 0 to 2^53");
    d = job_file_describe(operators);
    operators[2].type = "";
    expect_invalid(&d, "type is missing");
    d = job_file_describe(operators);
    operators[2].traits.number = 65536;
    expect_invalid(&d, "traits.number is 65536");
    d = job_file_describe(operators);
    operators[1].block = 2;
    expect_invalid(&d, "block 2 precedes block 1");
    d = job_file_describe(operators);
    d.batch = -1;
    expect_invalid(&d, "batch");
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        static const int64_t beyond[] = {-1, INT64_MIN, (INT64_C(1) << 40) + 1, INT64_MAX};
        for (int k = 0; k < 4; k++) {
            d = job_file_describe(operators);
            operators[1].setting[s] = beyond[k];
            bool crops = (s == MDOT_SETTING_PADDING_H || s == MDOT_SETTING_PADDING_W) && k == 0;
            if (!crops) expect_invalid(&d, mdot_setting_name((mdot_setting)s));
        }
    }
}

static void reserved_fields_and_settings_must_be_zero(void **state)
{
    (void)state;
    enum { TRAITS = sizeof(mdot_operator_traits){0}.reserved / sizeof(uint32_t) };
    for (int i = 0; i < 1 + TRAITS + MDOT_SETTING_CAPACITY - MDOT_SETTING_COUNT; i++) {
        mdot_job_operator operators[4];
        mdot_job_description d = job_file_describe(operators);
        if (i == 0) {
            operators[2].flags = MDOT_OPERATOR_FLAGS_ALL + 1;
        } else if (i <= TRAITS) {
            operators[2].traits.reserved[i - 1] = 1;
        } else {
            operators[2].setting[MDOT_SETTING_COUNT + i - 1 - TRAITS] = 1;
        }
        mdot_job *job = NULL;
        mdot_error err = {0};
        assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INCOMPATIBLE);
        assert_non_null(
            strstr(err.message, "operator 2 of the job (com.example:Fancy) sets flags or reserved fields that mdot "));
        assert_null(job);
    }
}

/* Operations and numbers of tensors of the formulas in runtime/perf/optimizer_load.c; 8-bit states are a quarter of a
 * tensor each, with a scale for 256 elements. */
static void updates_cost_what_their_formulas_count(void **state)
{
    (void)state;
    const double bytes = 4, states = 2 * (1 + 4.0 / 256) / 4;
    const struct {
        mdot_optimizer optimizer;
        double flops, read, written;
    } cases[] = {
        {MDOT_OPTIMIZER_SGD, 6, 3, 2},
        {MDOT_OPTIMIZER_SGD_PLAIN, 4, 2, 1},
        {MDOT_OPTIMIZER_ADAM, 13, 4, 3},
        {MDOT_OPTIMIZER_ADAM_FUSED, 13, 4, 3},
        {MDOT_OPTIMIZER_ADAMW, 14, 4, 3},
        {MDOT_OPTIMIZER_ADAMW_FUSED, 14, 4, 3},
        {MDOT_OPTIMIZER_ADAM8BIT, 17, 2 + states, 1 + states},
        {MDOT_OPTIMIZER_ADAMW8BIT, 18, 2 + states, 1 + states},
        {MDOT_OPTIMIZER_ADAFACTOR, 12, 4, 1},
        {MDOT_OPTIMIZER_LION, 10, 3, 2},
        {MDOT_OPTIMIZER_MUON, 7, 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_load load = mdot_optimizer_load(cases[i].optimizer, 10);
        assert_true(load.flops == 10 * cases[i].flops);
        assert_float_equal(load.bytes_read, 10 * bytes * cases[i].read, 1e-9);
        assert_float_equal(load.bytes_written, 10 * bytes * cases[i].written, 1e-9);
    }
}

static void optimizers_cost_what_their_update_rule_reads_and_writes(void **state)
{
    (void)state;
    mdot_load sgd = mdot_optimizer_load(MDOT_OPTIMIZER_SGD, 10), adam = mdot_optimizer_load(MDOT_OPTIMIZER_ADAM, 10);
    assert_true(sgd.bytes_read == 120 && sgd.bytes_written == 80);
    assert_true(adam.bytes_read == 160 && adam.bytes_written == 120);
    assert_true(mdot_optimizer_load(MDOT_OPTIMIZER_ADAMW, 10).flops > adam.flops && adam.flops > sgd.flops);
    assert_true(mdot_optimizer_load((mdot_optimizer)77, 10).flops == 0);
}

static void settings_have_names(void **state)
{
    (void)state;
    assert_string_equal(mdot_setting_name(MDOT_SETTING_KERNEL_D), "kernel_d");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_INPUTS), "inputs");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_COUNT), "?");
    assert_string_equal(mdot_setting_name((mdot_setting)-1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_follow_from_dependencies),
        cmocka_unit_test(ranges_of_settings_are_named),
        cmocka_unit_test(copies_of_a_job_have_all_its_operators),
        cmocka_unit_test(a_job_keeps_copies_of_its_description),
        cmocka_unit_test(descriptions_that_are_no_jobs_are_refused),
        cmocka_unit_test(reserved_fields_and_settings_must_be_zero),
        cmocka_unit_test(updates_cost_what_their_formulas_count),
        cmocka_unit_test(optimizers_cost_what_their_update_rule_reads_and_writes),
        cmocka_unit_test(settings_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
