/* test_job_model.c — runtime/job/job_model.c: jobs from valid and invalid descriptions. */
#include "tests/support/assertions.h"
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
    assert_compare(info.parameters, ==, 1728);
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

/* A job with another program or with other parameters begins as a full operator copy. */
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

/* A job owns copies of all parts, in whole numbers. */
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
        assert_compare(op.parameters, ==, i == 1 ? 10 : 0);
        assert_compare(op.frozen_parameters, ==, i == 1 ? 3 : 0);
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
    expect_invalid(&d, "from 0 to 2^62");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = INFINITY;
    expect_invalid(&d, "from 0 to 2^62");
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

/* Each number is accepted at the limits, and refused one step past them. */
static void numbers_have_limits(void **state)
{
    (void)state;
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        bool may_be_negative = s == MDOT_SETTING_PADDING_H || s == MDOT_SETTING_PADDING_W;
        const int64_t most = INT64_C(1) << 40, least = may_be_negative ? -most : 0;
        const int64_t right[] = {least, 0, 1, most}, wrong[] = {least - 1, most + 1};
        for (int i = 0; i < 4; i++) {
            d = job_file_describe(operators);
            operators[1].setting[s] = right[i];
            mdot_job_destroy(job_file_create(&d));
        }
        for (int i = 0; i < 2; i++) {
            operators[1].setting[s] = wrong[i];
            expect_invalid(&d, mdot_setting_name((mdot_setting)s));
        }
    }
    for (int k = 0; k < 2 + 6 * MDOT_PHASE_COUNT; k++) {
        static const double right[] = {0, 0x1p62}, wrong[] = {0x1p62 + 1024, -1, NAN, INFINITY};
        d = job_file_describe(operators);
        double *number = k == 0 ? &operators[2].parameters : &operators[2].frozen_parameters;
        if (k >= 2) {
            mdot_load *load = &(k % 2 == 0 ? operators[2].per_sample : operators[2].per_step)[(k - 2) / 6];
            number = (k - 2) / 2 % 3 == 0   ? &load->flops
                     : (k - 2) / 2 % 3 == 1 ? &load->bytes_read
                                            : &load->bytes_written;
        }
        for (int i = 0; i < 2; i++) {
            *number = right[i];
            mdot_job_destroy(job_file_create(&d));
        }
        for (int i = 0; i < 4; i++) {
            *number = wrong[i];
            expect_invalid(&d, "operator 2 of the job (com.example:Fancy): FLOPs, bytes and parameters");
        }
    }
    d = job_file_describe(operators);
    operators[2].traits.number = 65535;
    mdot_job_destroy(job_file_create(&d));
    operators[2].type = NULL;
    expect_invalid(&d, "operator 2 of the job: type is missing");
    d = job_file_describe(operators);
    operators[1].inputs = NULL;
    expect_invalid(&d, "input_count is above 0, but inputs is NULL");
    operators[1].input_count = 0;
    mdot_job_destroy(job_file_create(&d));
    d.operators = NULL;
    expect_invalid(&d, "");
    d.operator_count = (size_t)1 << 22; /* the limit, but the operators are missing */
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INVALID_ARGUMENT);
    assert_null(strstr(err.message, "the limit is"));
}

static void choices_of_the_job_have_limits(void **state)
{
    (void)state;
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    d.optimizer = (mdot_optimizer)(MDOT_OPTIMIZER_ADAMW + 1);
    expect_invalid(&d, "optimizer is unknown");
    d.has_optimizer = false; /* then ignored */
    mdot_job *job = job_file_create(&d);
    assert_int_equal(mdot_job_get_info(job, &info), MDOT_OK);
    assert_false(info.has_optimizer);
    assert_int_equal(info.optimizer, MDOT_OPTIMIZER_SGD);
    mdot_job_destroy(job);
    d.batch = INT64_MAX;
    d.notes = MDOT_JOB_NOTES_ALL;
    job = job_file_create(&d);
    assert_int_equal(mdot_job_get_info(job, &info), MDOT_OK);
    assert_compare(info.batch, ==, INT64_MAX);
    assert_compare(info.notes, ==, MDOT_JOB_NOTES_ALL);
    mdot_job_destroy(job);
    job = NULL;
    for (int i = 0; i < 2; i++) {
        mdot_error err = {0};
        d = job_file_describe(operators);
        if (i == 0) d.notes = MDOT_JOB_NOTES_ALL + 1;
        if (i == 1) d.reserved = 1;
        assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INCOMPATIBLE);
        assert_int_equal(err.status, MDOT_INCOMPATIBLE);
        assert_non_null(strstr(err.message, "the job sets notes or reserved fields"));
        assert_null(job);
    }
    mdot_error err = {0};
    d = job_file_describe(operators);
    assert_int_equal(mdot_job_create(&d, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "out_job is NULL"));
    expect_invalid(NULL, "");
    operators[0].struct_size = 1;
    expect_invalid(&d, "struct_size");
    d = job_file_describe(operators);
    d.struct_size = 1;
    expect_invalid(&d, "struct_size");
}

/* Blocks ascend by one where they begin, and may go on later. */
static void blocks_begin_in_ascending_order(void **state)
{
    (void)state;
    static const struct {
        uint32_t blocks[4], count;
        bool is_right;
    } cases[] = {
        {{0, 0, 0, 0}, 0, true}, {{1, 2, 3, 4}, 4, true},  {{1, 2, 1, 2}, 2, true},  {{1, 0, 1, 2}, 2, true},
        {{0, 1, 2, 1}, 2, true}, {{2, 1, 1, 1}, 0, false}, {{1, 3, 2, 2}, 0, false}, {{1, 2, 4, 0}, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job_operator operators[4];
        mdot_job_description d = job_file_describe(operators);
        for (int k = 0; k < 4; k++) operators[k].block = cases[i].blocks[k];
        if (!cases[i].is_right) {
            expect_invalid(&d, "blocks must ascend");
            continue;
        }
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job *job = job_file_create(&d);
        assert_int_equal(mdot_job_get_info(job, &info), MDOT_OK);
        assert_int_equal(info.block_count, cases[i].count);
        mdot_job_destroy(job);
    }
}

/* Random graph positions, by the longest path to and from each operator. The caller's positions are ignored. */
static void positions_are_the_longest_paths(void **state)
{
    (void)state;
    enum { COUNT = 40, ROUNDS = 20 };
    uint32_t seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        mdot_job_operator operators[COUNT];
        uint32_t inputs[COUNT][COUNT], depth[COUNT] = {0}, height[COUNT] = {0}, readers[COUNT] = {0};
        size_t unknown = 0;
        double parameters = 0, frozen = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            mdot_job_operator *op = &operators[i];
            *op = (mdot_job_operator){.struct_size = sizeof *op, .type = "Op", .known = i % 3 > 0, .inputs = inputs[i]};
            op->parameters = i;
            op->frozen_parameters = 2 * i;
            op->depth = op->height = op->out_degree = op->equal_blocks = 77;
            parameters += i;
            frozen += 2 * i;
            unknown += i % 3 == 0;
            for (uint32_t k = 0; k < i; k++) {
                if (((seed = seed * 1664525 + 1013904223) >> 16) % 8 > 0) continue;
                inputs[i][op->input_count++] = k;
                readers[k]++;
                if (depth[i] < depth[k] + 1) depth[i] = depth[k] + 1;
            }
        }
        for (uint32_t i = COUNT; i-- > 0;)
            for (size_t k = 0; k < operators[i].input_count; k++)
                if (height[inputs[i][k]] < height[i] + 1) height[inputs[i][k]] = height[i] + 1;
        const mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = COUNT};
        mdot_job *job = job_file_create(&d);
        for (size_t i = 0; i < COUNT; i++) {
            mdot_job_operator op = MDOT_INIT(mdot_job_operator);
            assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
            assert_int_equal(op.depth, depth[i]);
            assert_int_equal(op.height, height[i]);
            assert_int_equal(op.out_degree, readers[i]);
            assert_int_equal(op.equal_blocks, 0);
            assert_int_equal(op.input_count, operators[i].input_count);
            assert_memory_equal(op.inputs, inputs[i], op.input_count * sizeof *op.inputs);
        }
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        assert_int_equal(mdot_job_get_info(job, &info), MDOT_OK);
        assert_int_equal(info.unknown_count, unknown);
        assert_compare(info.parameters, ==, parameters);
        assert_compare(info.frozen_parameters, ==, frozen);
        mdot_job_destroy(job);
    }
}

static void loads_are_rounded(void **state)
{
    (void)state;
    mdot_job_operator operators[4], op = MDOT_INIT(mdot_job_operator);
    mdot_job_description d = job_file_describe(operators);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        operators[1].per_sample[phase] = (mdot_load){phase + 0.6, phase + 10.4, phase + 20.6};
        operators[1].per_step[phase] = (mdot_load){phase + 30.4, phase + 40.6, phase + 50.4};
    }
    mdot_job *job = job_file_create(&d);
    assert_int_equal(mdot_job_get_operator(job, 1, &op), MDOT_OK);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        const mdot_load *a = &op.per_sample[phase], *b = &op.per_step[phase];
        assert_compare(a->flops, ==, phase + 1);
        assert_compare(a->bytes_read, ==, phase + 10);
        assert_compare(a->bytes_written, ==, phase + 21);
        assert_compare(b->flops, ==, phase + 30);
        assert_compare(b->bytes_read, ==, phase + 41);
        assert_compare(b->bytes_written, ==, phase + 50);
    }
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    assert_int_equal(mdot_job_get_info(NULL, &info), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_get_operator(NULL, 0, &op), MDOT_INVALID_ARGUMENT);
    mdot_job_destroy(job);
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

/* Operations and tensor counts from the formulas in runtime/perf/optimizer_load.c; 8-bit states are a quarter tensor
 * each, with a scale for 256 elements. */
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
        assert_compare(load.flops, ==, 10 * cases[i].flops);
        assert_float_equal(load.bytes_read, 10 * bytes * cases[i].read, 1e-9);
        assert_float_equal(load.bytes_written, 10 * bytes * cases[i].written, 1e-9);
    }
}

static void optimizers_cost_what_their_update_rule_reads_and_writes(void **state)
{
    (void)state;
    mdot_load sgd = mdot_optimizer_load(MDOT_OPTIMIZER_SGD, 10), adam = mdot_optimizer_load(MDOT_OPTIMIZER_ADAM, 10);
    assert_compare(sgd.bytes_read, ==, 120);
    assert_compare(sgd.bytes_written, ==, 80);
    assert_compare(adam.bytes_read, ==, 160);
    assert_compare(adam.bytes_written, ==, 120);
    assert_compare(mdot_optimizer_load(MDOT_OPTIMIZER_ADAMW, 10).flops, >, adam.flops);
    assert_compare(adam.flops, >, sgd.flops);
    assert_compare(mdot_optimizer_load((mdot_optimizer)77, 10).flops, ==, 0);
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
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(choices_of_the_job_have_limits),
        cmocka_unit_test(blocks_begin_in_ascending_order),
        cmocka_unit_test(positions_are_the_longest_paths),
        cmocka_unit_test(loads_are_rounded),
        cmocka_unit_test(reserved_fields_and_settings_must_be_zero),
        cmocka_unit_test(updates_cost_what_their_formulas_count),
        cmocka_unit_test(optimizers_cost_what_their_update_rule_reads_and_writes),
        cmocka_unit_test(settings_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
