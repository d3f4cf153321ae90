/* test_job_identity.c — classes of operators by type, kernel and groups, and distances between jobs. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The class for convolutions with 64 channels. */
static int class_of(int64_t kernel_h, int64_t kernel_w, int64_t groups)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = "Conv", .known = true, .parameters = 64};
    op.setting[MDOT_SETTING_KERNEL_H] = kernel_h;
    op.setting[MDOT_SETTING_KERNEL_W] = kernel_w;
    op.setting[MDOT_SETTING_GROUPS] = groups;
    op.setting[MDOT_SETTING_CHANNELS_IN] = 64;
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1, 1, 1};
    mdot_job *job = predict_make_job(&op, 1);
    rt_job_identity identity;
    const double cost = 3;
    rt_identify_job(job, &cost, &identity);
    mdot_job_destroy(job);
    int found = -1;
    for (int i = 0; i < RT_WORK_CLASSES; i++) {
        if (identity.share[i] == 0) continue;
        assert_compare(identity.share[i], ==, 1);
        assert_compare(found, <, 0);
        found = i;
    }
    assert_compare(found, >=, 0);
    return found;
}

static void the_longer_side_of_a_kernel_and_its_groups_make_the_class(void **state)
{
    (void)state;
    int point = class_of(1, 1, 1), three = class_of(3, 3, 1), large = class_of(7, 7, 1);
    assert_compare(point, !=, three);
    assert_compare(three, !=, large);
    assert_compare(point, !=, large);
    assert_int_equal(class_of(7, 1, 1), large);
    assert_int_equal(class_of(1, 7, 1), large);
    assert_int_equal(class_of(1, 4, 1), large);
    assert_int_equal(class_of(1, 3, 1), three);
    assert_int_equal(class_of(2, 1, 1), three);
    assert_int_equal(class_of(0, 1, 1), point);
    assert_int_equal(class_of(3, 3, 0), three);
    int some = class_of(3, 3, 2), depthwise = class_of(3, 3, 64);
    assert_compare(some, !=, three);
    assert_compare(depthwise, !=, three);
    assert_compare(some, !=, depthwise);
    assert_int_equal(class_of(3, 3, 32), some);
}

static void distance_is_half_of_the_differences(void **state)
{
    (void)state;
    const float a[RT_WORK_CLASSES] = {.5F, .5F}, b[RT_WORK_CLASSES] = {.5F, 0, .5F}, c[RT_WORK_CLASSES] = {0, 0, 0, 1};
    assert_compare(rt_job_distance(a, a), ==, 0);
    assert_compare(rt_job_distance(a, b), ==, .5);
    assert_compare(rt_job_distance(a, c), ==, 1);
    assert_compare(rt_job_distance(c, a), ==, 1);
}

/* Shares are in ten-thousandths of the job's work. If the job's work is zero, so are all shares. */
static void shares_are_rounded_fractions_of_the_work(void **state)
{
    (void)state;
    mdot_job_operator operators[2] = {{.type = "Conv"}, {.type = "Relu"}};
    for (int i = 0; i < 2; i++) {
        operators[i].struct_size = sizeof operators[i];
        operators[i].known = true;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1, 1, 1};
    }
    mdot_job *job = predict_make_job(operators, 2);
    rt_job_identity identity;
    const double costs[] = {2, 4}, none[] = {0, 0};
    rt_identify_job(job, costs, &identity);
    int thirds = 0;
    for (int i = 0; i < RT_WORK_CLASSES; i++) {
        if (identity.share[i] == 0) continue;
        assert_true(identity.share[i] == .3333F || identity.share[i] == .6667F);
        thirds += identity.share[i] == .3333F ? 1 : 2;
    }
    assert_int_equal(thirds, 3);
    rt_identify_job(job, none, &identity);
    for (int i = 0; i < RT_WORK_CLASSES; i++) assert_compare(identity.share[i], ==, 0);
    mdot_job_destroy(job);
}

static uint64_t digest_of(const mdot_job_operator *operators, size_t count)
{
    mdot_job *job = predict_make_job(operators, count);
    uint64_t digest = job->analysis->identity.digest;
    mdot_job_destroy(job);
    return digest;
}

/* Settings, parameters, operands and types change the digest. Loads do not. */
static void digests_depend_on_attributes(void **state)
{
    (void)state;
    enum { COUNT = MDOT_SETTING_COUNT + 5 };
    static const uint32_t both[] = {0, 1};
    uint64_t digests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        mdot_job_operator operators[3] = {predict_operator(0), predict_operator(1), predict_operator(2)};
        mdot_job_operator *op = &operators[2];
        op->inputs = both;
        op->input_count = 1;
        int other = i - MDOT_SETTING_COUNT;
        if (other < 0) op->setting[i] += 3;
        if (other == 0) op->parameters = 5;
        if (other == 1) op->frozen_parameters = 5;
        if (other == 2) op->input_count = 2;
        if (other == 3) op->type = "Sub";
        digests[i] = digest_of(operators, 3);
        operators[1].per_sample[MDOT_PHASE_FORWARD].flops *= 2;
        assert_compare(digest_of(operators, 3), ==, digests[i]);
        for (int k = 0; k < i; k++)
            if (digests[k] == digests[i]) fail_msg("changes %d and %d have one digest", k, i);
    }
}

/* Of a type, 256 letters count. */
static void long_types_differ_in_their_first_letters(void **state)
{
    (void)state;
    enum { LETTERS = 256 };
    static const int changed[] = {-1, 0, LETTERS - 1, LETTERS, LETTERS + 1};
    uint64_t digests[5];
    for (int i = 0; i < 5; i++) {
        char type[LETTERS + 3];
        memset(type, 'a', sizeof type - 1);
        type[sizeof type - 1] = '\0';
        if (changed[i] >= 0) type[changed[i]] = 'b';
        mdot_job_operator op = {.struct_size = sizeof op, .type = type};
        digests[i] = digest_of(&op, 1);
    }
    assert_compare(digests[1], !=, digests[0]);
    assert_compare(digests[2], !=, digests[0]);
    assert_compare(digests[1], !=, digests[2]);
    assert_compare(digests[3], ==, digests[0]);
    assert_compare(digests[4], ==, digests[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longer_side_of_a_kernel_and_its_groups_make_the_class),
        cmocka_unit_test(shares_are_rounded_fractions_of_the_work),
        cmocka_unit_test(distance_is_half_of_the_differences),
        cmocka_unit_test(digests_depend_on_attributes),
        cmocka_unit_test(long_types_differ_in_their_first_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
