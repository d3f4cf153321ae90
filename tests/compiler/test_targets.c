/* test_targets.c — names of targets and arithmetics, as the command line and mdotc.h take them. */
#include "compiler/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(...)                                                                                                     \
    parse((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static co_targets parse(const char *const *names, size_t count)
{
    co_targets targets;
    mdot_error err;
    if (co_parse_targets(names, count, &targets, &err) != MDOT_OK) fail_msg("%s", err.message);
    return targets;
}

static void no_target_is_every_cpu_level(void **state)
{
    (void)state;
    co_targets targets = parse(NULL, 0);
    assert_int_equal(targets.level_count, 2);
    assert_int_equal(targets.levels[0], MDOT_CPU_X86_64_V3);
    assert_int_equal(targets.levels[1], MDOT_CPU_X86_64_V4);
    assert_int_equal(targets.cuda_count, 0);
}

static void levels_ascend_whatever_their_order(void **state)
{
    (void)state;
    co_targets targets = PARSE("cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v4");
    assert_int_equal(targets.level_count, 2);
    assert_int_equal(targets.levels[0], MDOT_CPU_X86_64_V3);
    targets = PARSE("cpu:x86-64-v4");
    assert_int_equal(targets.level_count, 1);
    assert_int_equal(targets.levels[0], MDOT_CPU_X86_64_V4);
}

static void architectures_ascend_and_come_once(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_120", "sm_90a", "sm_75", "sm_90", "sm_90a", "sm_75");
    static const cg_cuda_target want[] = {{75, false}, {90, false}, {90, true}, {120, false}};
    assert_int_equal(targets.cuda_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(targets.cuda[i].sm, want[i].sm);
        assert_int_equal(targets.cuda[i].is_accelerated, want[i].is_accelerated);
    }
}

static void the_cpu_stands_behind_every_gpu(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_80");
    assert_int_equal(targets.level_count, 2);
    targets = PARSE("sm_80", "cpu:x86-64-v3");
    assert_int_equal(targets.level_count, 1);
    assert_int_equal(targets.levels[0], MDOT_CPU_X86_64_V3);
}

static void cuda_is_the_architectures_in_use(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_87", "cuda");
    static const int want[] = {75, 80, 86, 87, 89, 90, 100, 120};
    assert_int_equal(targets.cuda_count, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(targets.cuda[i].sm, want[i]);
    assert_true(targets.cuda[5].is_accelerated);
}

static void other_names_list_the_known(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",      "gpu",     "cpu:x86-64-v9", "sm_",    "sm_70",  "sm_090", "sm_90f",
                                        "sm_9a", "sm_90aa", "sm_-90",        "sm_ 90", "sm_999", "SM_90",  "sm_90a "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        co_targets targets = {.level_count = 7};
        mdot_error err;
        if (co_parse_targets(&wrong[i], 1, &targets, &err) != MDOT_INVALID_ARGUMENT) fail_msg("\"%s\"", wrong[i]);
        assert_non_null(strstr(err.message, "cpu:x86-64-v4, cuda, sm_75"));
        assert_non_null(strstr(err.message, "sm_90a"));
        assert_int_equal(targets.level_count, 7);
    }
}

static void too_many_architectures_are_refused(void **state)
{
    (void)state;
    char text[DR_MAX_CUDA_TARGETS + 1][8];
    const char *names[DR_MAX_CUDA_TARGETS + 1];
    for (int i = 0; i <= DR_MAX_CUDA_TARGETS; i++) {
        snprintf(text[i], sizeof text[i], "sm_%d", 80 + i);
        names[i] = text[i];
    }
    co_targets targets;
    assert_int_equal(co_parse_targets(names, DR_MAX_CUDA_TARGETS, &targets, NULL), MDOT_OK);
    assert_int_equal(co_parse_targets(names, DR_MAX_CUDA_TARGETS + 1, &targets, NULL), MDOT_INVALID_ARGUMENT);
}

static void arithmetic_is_bf16_or_fp32(void **state)
{
    (void)state;
    bool fp32 = true;
    assert_int_equal(co_parse_compute(NULL, &fp32, NULL), MDOT_OK);
    assert_false(fp32);
    assert_int_equal(co_parse_compute("fp32", &fp32, NULL), MDOT_OK);
    assert_true(fp32);
    mdot_error err;
    assert_int_equal(co_parse_compute("int8", &fp32, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "bf16, fp32"));
    assert_true(fp32);
    assert_int_equal(co_parse_compute("bf16", &fp32, NULL), MDOT_OK);
    assert_false(fp32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_target_is_every_cpu_level),       cmocka_unit_test(levels_ascend_whatever_their_order),
        cmocka_unit_test(architectures_ascend_and_come_once), cmocka_unit_test(the_cpu_stands_behind_every_gpu),
        cmocka_unit_test(cuda_is_the_architectures_in_use),   cmocka_unit_test(other_names_list_the_known),
        cmocka_unit_test(too_many_architectures_are_refused), cmocka_unit_test(arithmetic_is_bf16_or_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
