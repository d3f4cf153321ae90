/* test_sharding_parts.c — the elements and the operators of one GPU, from roles and positions made by hand. */
#include "runtime/job/job_model.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Of 10, 20 and 40 elements by position, 4, 8 and 16 are sharded, and of 2, 4 and 8 in experts 1, 2 and 4 are. */
static void a_shard_has_its_elements(void **state)
{
    (void)state;
    const rt_parts parts = {{10, 20, 40}, {4, 8, 16}, {2, 4, 8}, {1, 2, 4}};
    static const struct {
        rt_shard shard;
        rt_elements part;
    } cases[] = {
        {{1, 1, {1, 1, 1}, 0}, {56, 14}},
        {{2, 1, {1, 1, 1}, 0}, {56 - 21 / 2.0, 14 - 7 / 2.0}},
        {{1, 2, {1, 1, 1}, 0}, {56, 7}},
        {{4, 2, {1, .5, 0}, 0}, {8 - 3 * .75 + (16 - 6 * .75) / 2, (2 - .75 + (4 - 2 * .75) / 2) / 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_elements got = rt_part_of(&parts, &cases[i].shard);
        assert_compare(got.others, ==, cases[i].part.others);
        assert_compare(got.experts, ==, cases[i].part.experts);
    }
    rt_sharding sharding = {.parameters = parts,
                            .frozen = {.all = {100, 200, 300}, .experts = {1, 2, 3}},
                            .tied = {.all = {0, 0, 1000}},
                            .frozen_tied = {.all = {0, 0, 5000}}};
    const rt_shard first = {1, 1, {1, .5, 0}, 0}, last = {1, 1, {0, .5, 1}, 0}, whole = {1, 1, {1, 1, 1}, 0};
    assert_compare(rt_sum_elements(rt_trained_part(&sharding, &whole)), ==, 70);
    assert_compare(rt_sum_elements(rt_trained_part(&sharding, &first)), ==, 20);
    assert_compare(rt_sum_elements(rt_trained_part(&sharding, &last)), ==, 50 + 1000);
    rt_elements weights = rt_weights_part(&sharding, &whole);
    assert_compare(weights.experts, ==, 14 + 6);
    assert_compare(weights.others, ==, 56 + 594);
    assert_compare(rt_sum_elements(rt_weights_part(&sharding, &first)), ==, 20 + 200);
    assert_compare(rt_sum_elements(rt_weights_part(&sharding, &last)), ==, 50 + 1000 + 400 + 5000);
}

static void parameters_are_divided_by_roles_and_experts(void **state)
{
    (void)state;
    uint8_t roles[] = {RT_ROLE_REPLICATED, RT_ROLE_COLUMNS, RT_ROLE_REPLICATED, RT_ROLE_ROWS},
            positions[] = {RT_PIPELINE_BEFORE, RT_PIPELINE_BLOCKS, RT_PIPELINE_BLOCKS, RT_PIPELINE_AFTER},
            experts[] = {0, 0, 1, 1};
    const rt_sharding sharding = {.role = roles, .position = positions, .experts = {.is_expert = experts}};
    const rt_shard shard = {4, 2, {1, 1, 1}, 0};
    static const double divisors[] = {1, 4, 2, 8};
    rt_parts parts = {0};
    for (size_t i = 0; i < 4; i++) {
        assert_compare(rt_shard_divisor(&sharding, i, &shard), ==, divisors[i]);
        for (int twice = 0; twice < 2; twice++) rt_add_parts(&sharding, i, 1 << i, &parts);
    }
    const rt_parts want = {{2, 12, 16}, {0, 4, 16}, {0, 8, 16}, {0, 0, 16}};
    assert_memory_equal(&parts, &want, sizeof want);
}

/* One GPU in two has half of the groups, each with twice the tokens. Groups that two does not divide stay unchanged,
 * and so do sizes that would overflow. */
static void shards_of_experts_have_larger_groups(void **state)
{
    (void)state;
    static const struct {
        int64_t groups, in, out;
        bool divides;
    } cases[] = {{8, 16, 32, true},
                 {7, 16, 32, false},
                 {8, INT64_MAX / 2, 32, true},
                 {8, INT64_MAX / 2 + 1, 32, false},
                 {8, 16, INT64_MAX / 2, true},
                 {8, 16, INT64_MAX / 2 + 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job_operator op = {.parameters = 100, .frozen_parameters = 60}, buffer;
        op.setting[MDOT_SETTING_GROUPS] = cases[i].groups;
        op.setting[MDOT_SETTING_SIZE_IN] = cases[i].in;
        op.setting[MDOT_SETTING_SIZE_OUT] = cases[i].out;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op.per_step[phase] = (mdot_load){8, 6, 4};
        uint8_t role = RT_ROLE_REPLICATED, expert = 1;
        const mdot_job job = {.operators = &op};
        const rt_sharding sharding = {.role = &role, .experts = {.is_expert = &expert}};
        const rt_shard half = {1, 2, {1, 1, 1}, 0};
        const mdot_job_operator *got = rt_sharded_operator(&job, &sharding, 0, &half, &buffer);
        assert_ptr_equal(got, &buffer);
        assert_compare(got->parameters, ==, 50);
        assert_compare(got->frozen_parameters, ==, 30);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            assert_compare(got->per_step[phase].flops, ==, 4);
            assert_compare(got->per_step[phase].bytes_read, ==, 3);
            assert_compare(got->per_step[phase].bytes_written, ==, 2);
        }
        int times = cases[i].divides ? 2 : 1;
        assert_compare(got->setting[MDOT_SETTING_GROUPS], ==, cases[i].groups / times);
        assert_compare(got->setting[MDOT_SETTING_SIZE_IN], ==, cases[i].in * times);
        assert_compare(got->setting[MDOT_SETTING_SIZE_OUT], ==, cases[i].out * times);
    }
}

/* A row-sharded matmul's parameter gradient reads a quarter of the operand, and the data gradient writes a quarter.
 * Frozen parameters are divided as trained ones. No bytes become negative. */
static void shards_of_rows_and_tables_have_their_bytes(void **state)
{
    (void)state;
    static const rt_role kinds[] = {RT_ROLE_ROWS, RT_ROLE_TABLE, RT_ROLE_COLUMNS};
    for (size_t i = 0; i < 3; i++) {
        for (int is_small = 0; is_small < 2; is_small++) {
            mdot_job_operator op = {.parameters = 100, .frozen_parameters = 60}, buffer;
            op.setting[MDOT_SETTING_CHANNELS_IN] = op.setting[MDOT_SETTING_CHANNELS_OUT] = 64;
            op.setting[MDOT_SETTING_HEADS] = 8;
            op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){800, 400, 160};
            op.per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){1600, 80, 240};
            op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){3200, is_small ? 100 : 560, 40};
            op.per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){16, 12, 8};
            uint8_t role = (uint8_t)kinds[i], expert = 0;
            const mdot_job job = {.operators = &op};
            const rt_sharding sharding = {.role = &role, .experts = {.is_expert = &expert}};
            const rt_shard quarter = {4, 1, {1, 1, 1}, 0};
            const mdot_job_operator *got = rt_sharded_operator(&job, &sharding, 0, &quarter, &buffer);
            const mdot_load *forward = &got->per_sample[MDOT_PHASE_FORWARD],
                            *data = &got->per_sample[MDOT_PHASE_DATA_GRADIENT],
                            *weight = &got->per_sample[MDOT_PHASE_WEIGHT_GRADIENT];
            bool rows = kinds[i] == RT_ROLE_ROWS, columns = kinds[i] == RT_ROLE_COLUMNS, table = !rows && !columns;
            assert_compare(got->parameters, ==, 25);
            assert_compare(got->frozen_parameters, ==, 15);
            assert_compare(forward->flops, ==, table ? 800 : 200);
            assert_compare(data->flops, ==, table ? 1600 : 400);
            assert_compare(weight->flops, ==, table ? 3200 : 800);
            assert_compare(forward->bytes_read, ==, rows ? 100 : 400);
            assert_compare(forward->bytes_written, ==, columns ? 40 : 160);
            assert_compare(data->bytes_read, ==, columns ? 20 : 80);
            assert_compare(data->bytes_written, ==, rows ? 60 : 240);
            double saved = rows ? 300 : columns ? 120 : 0, read = is_small ? 100 : 560;
            assert_compare(weight->bytes_read, ==, read > saved ? read - saved : 0);
            assert_compare(weight->bytes_written, ==, 40);
            const mdot_load *step = &got->per_step[MDOT_PHASE_WEIGHT_GRADIENT];
            assert_compare(step->flops, ==, 4);
            assert_compare(step->bytes_read, ==, 3);
            assert_compare(step->bytes_written, ==, 2);
            assert_int_equal(got->setting[MDOT_SETTING_CHANNELS_IN], rows ? 16 : 64);
            assert_int_equal(got->setting[MDOT_SETTING_CHANNELS_OUT], columns ? 16 : 64);
            assert_int_equal(got->setting[MDOT_SETTING_HEADS], 8);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_has_its_elements),
        cmocka_unit_test(parameters_are_divided_by_roles_and_experts),
        cmocka_unit_test(shards_of_experts_have_larger_groups),
        cmocka_unit_test(shards_of_rows_and_tables_have_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
