/* test_targets.c — names of targets and precisions, as the command line and mdotc.h accept them. */
#include "base/text.h"
#include "codegen/codegen.h"
#include "compiler/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(...) PARSE_IN(NULL, __VA_ARGS__)
#define PARSE_IN(kernel_precision, ...)                                                                                \
    parse((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),       \
          kernel_precision)

static co_targets parse(const char *const *names, size_t count, const char *kernel_precision)
{
    co_targets targets;
    mdot_error err;
    if (co_parse_targets(names, count, kernel_precision, &targets, &err) != MDOT_OK) fail_msg("%s", err.message);
    return targets;
}

/* For example "cpu 1 fp32, cuda 90 bf16": the kind, the number, "a" or "c" for a variant, the precision. */
static void assert_targets(const co_targets *targets, const char *want)
{
    char text[2048];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    for (int i = 0; i < targets->count; i++) {
        const cg_target *t = &targets->target[i];
        bs_join_add(&list, "%s %u%s %s", t->kind == MDOT_IMAGE_CPU ? "cpu" : "cuda", t->number,
                    (const char *const[]){"", "a", "c"}[t->variant], cg_compute_name(t->kernel_precision));
    }
    assert_string_equal(text, want);
}

static void the_default_targets_are_all_cpu_levels(void **state)
{
    (void)state;
    co_targets targets = parse(NULL, 0, NULL);
    assert_targets(&targets, "cpu 1 fp32, cpu 2 fp32");
}

/* Every level of the named machine, and one level. */
static void machines_have_levels_of_their_own(void **state)
{
    (void)state;
    co_targets targets = PARSE("x86-64");
    assert_targets(&targets, "cpu 1 fp32, cpu 2 fp32");
    targets = PARSE("aarch64");
    assert_targets(&targets, "cpu 5 fp32");
    targets = PARSE_IN("bf16", "aarch64");
    assert_targets(&targets, "cpu 5 bf16, cpu 6 bf16");
    targets = PARSE_IN("cpu=fp32,cpu=bf16", "aarch64");
    assert_targets(&targets, "cpu 5 fp32, cpu 5 bf16, cpu 6 bf16");
    targets = PARSE_IN("bf16", "cpu:aarch64-bf16", "sm_90");
    assert_targets(&targets, "cpu 6 bf16, cuda 90 bf16");
}

static void levels_are_sorted(void **state)
{
    (void)state;
    co_targets targets = PARSE("cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v4");
    assert_targets(&targets, "cpu 1 fp32, cpu 2 fp32");
    targets = PARSE("cpu:x86-64-v4");
    assert_targets(&targets, "cpu 2 fp32");
}

static void architectures_are_sorted_and_unique(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_120", "sm_90a", "cpu:x86-64-v3", "sm_75", "sm_90", "sm_90a", "sm_75");
    assert_targets(&targets, "cpu 1 fp32, cuda 75 fp16, cuda 90 bf16, cuda 90a bf16, cuda 120 bf16");
}

static void clusters_are_a_target_from_sm_90a_on(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_90a+clusters", "sm_100a+clusters", "sm_90a", "cpu:x86-64-v3");
    assert_targets(&targets, "cpu 1 fp32, cuda 90a bf16, cuda 90c bf16, cuda 100c bf16");
}

static void gpu_targets_include_the_cpu(void **state)
{
    (void)state;
    co_targets targets = PARSE("sm_80");
    assert_targets(&targets, "cpu 1 fp32, cpu 2 fp32, cuda 80 bf16");
    targets = PARSE("sm_80", "cpu:x86-64-v3");
    assert_targets(&targets, "cpu 1 fp32, cuda 80 bf16");
}

static void cuda_is_the_architectures_in_use(void **state)
{
    (void)state;
    co_targets targets = PARSE("cpu:x86-64-v4", "sm_87", "cuda");
    assert_targets(&targets, "cpu 2 fp32, cuda 75 fp16, cuda 80 bf16, cuda 86 bf16, cuda 87 bf16, cuda 89 bf16, "
                             "cuda 90a bf16, cuda 100 bf16, cuda 120 bf16");
}

static void unknown_names_list_the_known_ones(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "gpu",
                                        "cpu:x86-64-v9",
                                        "sm_",
                                        "sm_70",
                                        "sm_090",
                                        "sm_90f",
                                        "sm_9a",
                                        "sm_90aa",
                                        "sm_-90",
                                        "sm_ 90",
                                        "sm_999",
                                        "SM_90",
                                        "sm_90a ",
                                        "cpu:",
                                        "cpu:x86-64-v",
                                        "cpux86-64-v4",
                                        "sm_90+clusters",
                                        "sm_89a+clusters",
                                        "sm_90a+cluster",
                                        "sm_90a+clusters+"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        co_targets targets = {.count = 7};
        mdot_error err;
        if (co_parse_targets(&wrong[i], 1, NULL, &targets, &err) != MDOT_INVALID_ARGUMENT) fail_msg("\"%s\"", wrong[i]);
        assert_non_null(strstr(err.message, "cpu:x86-64-amx, cpu:aarch64-neon, cpu:aarch64-bf16, cuda, sm_75"));
        assert_non_null(strstr(err.message, "sm_90a"));
        assert_int_equal(targets.count, 7);
    }
}

/* Two images belong to the CPU. */
static void too_many_targets_are_refused(void **state)
{
    (void)state;
    enum { MOST = MDOT_ABI_MAX_IMAGES - 2 };
    char text[MOST + 1][8];
    const char *names[MOST + 1];
    for (int i = 0; i <= MOST; i++) {
        snprintf(text[i], sizeof text[i], "sm_%d", 80 + i);
        names[i] = text[i];
    }
    co_targets targets;
    assert_int_equal(co_parse_targets(names, MOST, NULL, &targets, NULL), MDOT_OK);
    assert_int_equal(targets.count, MDOT_ABI_MAX_IMAGES);
    assert_int_equal(co_parse_targets(names, MOST + 1, NULL, &targets, NULL), MDOT_INVALID_ARGUMENT);
}

static void a_precision_without_a_device_applies_to_all(void **state)
{
    (void)state;
    co_targets targets = PARSE_IN("fp32", "cpu:x86-64-v3", "sm_75", "sm_80");
    assert_targets(&targets, "cpu 1 fp32, cuda 75 fp32, cuda 80 fp32");
    targets = PARSE_IN("bf16", "cpu:x86-64-v3", "sm_75", "sm_80");
    assert_targets(&targets, "cpu 1 bf16, cuda 75 fp16, cuda 80 bf16");
    targets = PARSE_IN("cpu=fp32,cuda=fp32", "cpu:x86-64-v3", "sm_80");
    assert_targets(&targets, "cpu 1 fp32, cuda 80 fp32");
    targets = PARSE_IN("cpu=fp32", "cpu:x86-64-v3", "sm_80");
    assert_targets(&targets, "cpu 1 fp32, cuda 80 bf16");
}

/* Each target has an image in every precision. The images of a target have the requested order. */
static void several_precisions_keep_their_order(void **state)
{
    (void)state;
    co_targets targets = PARSE_IN("cuda=fp32,cuda=bf16", "cpu:x86-64-v3", "sm_90", "sm_75");
    assert_targets(&targets, "cpu 1 fp32, cuda 75 fp32, cuda 75 fp16, cuda 90 fp32, cuda 90 bf16");
    targets = PARSE_IN("bf16,fp32,cuda=bf16", "cpu:x86-64-v3", "sm_90", "sm_90", "sm_75");
    assert_targets(&targets, "cpu 1 bf16, cpu 1 fp32, cuda 75 fp16, cuda 75 fp32, cuda 90 bf16, cuda 90 fp32");
}

/* Levels that only compute in bf16 are included if bf16 is requested. */
static void bf16_has_levels_of_its_own(void **state)
{
    (void)state;
    co_targets targets = parse(NULL, 0, "cpu=bf16");
    assert_targets(&targets, "cpu 1 bf16, cpu 2 bf16, cpu 3 bf16, cpu 4 bf16");
    targets = parse(NULL, 0, "cpu=fp32,cpu=bf16");
    assert_targets(&targets, "cpu 1 fp32, cpu 1 bf16, cpu 2 fp32, cpu 2 bf16, cpu 3 bf16, cpu 4 bf16");
    targets = PARSE_IN("bf16", "cpu:x86-64-amx");
    assert_targets(&targets, "cpu 4 bf16");
    const char *const amx = "cpu:x86-64-amx";
    mdot_error err;
    assert_int_equal(co_parse_targets(&amx, 1, NULL, &targets, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "target cpu:x86-64-amx does not support precision fp32"));
}

static void unknown_precisions_list_the_known_ones(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",      "int8", "cpu=fp16", "cuda=fp16", "cuda=",    "=bf16",         "bf16,",
                                        ",bf16", "bf1",  "bf162",    "gpu=bf16",  "cud=bf16", "cuda=bf16 fp32"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        co_targets targets = {.count = 7};
        mdot_error err;
        if (co_parse_targets(NULL, 0, wrong[i], &targets, &err) != MDOT_INVALID_ARGUMENT) fail_msg("\"%s\"", wrong[i]);
        assert_non_null(strstr(err.message, "known are cpu=fp32, cpu=bf16, cuda=bf16, cuda=fp32, bf16, fp32"));
        assert_int_equal(targets.count, 7);
    }
}

static void misspelt_names_get_a_suggestion(void **state)
{
    (void)state;
    static const struct {
        const char *target, *kernel_precision, *part;
    } cases[] = {
        {"cuad", NULL, "unknown target \"cuad\" (did you mean cuda?)"},
        {"sm86", NULL, "unknown target \"sm86\" (did you mean sm_86?)"},
        {"sm90", NULL, "unknown target \"sm90\" (did you mean sm_90?)"},
        {"sm90a", NULL, "unknown target \"sm90a\" (did you mean sm_90a?)"},
        {"cpu:x86-64-amz", NULL, "(did you mean cpu:x86-64-amx?)"},
        {"other architectures", NULL, "unknown target \"other architectures\"; known"},
        {NULL, "bf61", "unknown kernel precision \"bf61\" (did you mean bf16?)"},
        {NULL, "bf16,cpu=fb16,fp32", "unknown kernel precision \"cpu=fb16\" (did you mean cpu=bf16?)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        co_targets targets;
        mdot_error err;
        assert_int_equal(
            co_parse_targets(&cases[i].target, cases[i].target != NULL, cases[i].kernel_precision, &targets, &err),
            MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, cases[i].part) == NULL) fail_msg("%s", err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_targets_are_all_cpu_levels),
        cmocka_unit_test(machines_have_levels_of_their_own),
        cmocka_unit_test(levels_are_sorted),
        cmocka_unit_test(architectures_are_sorted_and_unique),
        cmocka_unit_test(clusters_are_a_target_from_sm_90a_on),
        cmocka_unit_test(gpu_targets_include_the_cpu),
        cmocka_unit_test(cuda_is_the_architectures_in_use),
        cmocka_unit_test(unknown_names_list_the_known_ones),
        cmocka_unit_test(too_many_targets_are_refused),
        cmocka_unit_test(a_precision_without_a_device_applies_to_all),
        cmocka_unit_test(several_precisions_keep_their_order),
        cmocka_unit_test(bf16_has_levels_of_its_own),
        cmocka_unit_test(unknown_precisions_list_the_known_ones),
        cmocka_unit_test(misspelt_names_get_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
