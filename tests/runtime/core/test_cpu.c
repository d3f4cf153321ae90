/* test_cpu.c — which feature level a machine runs, on made-up machines and on this one. */
#include "runtime/core/predictor.h"
#include "tests/support/artefact_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const rt_cpu everything = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
static const uint32_t v3 = MDOT_CPU_X86_64_V3, v4 = MDOT_CPU_X86_64_V4;

/* As a Zen 3 reports them: no AVX-512, XCR0 with x87, SSE and AVX. */
static const rt_cpu without_avx512 = {0x7EF8320B, 0x219C97A9, 0x75C237FF, 0x7};

static void machine_with_everything_runs_both_levels(void **state)
{
    (void)state;
    assert_null(rt_cpu_missing(&everything, v3));
    assert_null(rt_cpu_missing(&everything, v4));
    assert_non_null(rt_cpu_missing(&everything, 77));
}

static void machine_without_avx512_runs_v3_only(void **state)
{
    (void)state;
    assert_null(rt_cpu_missing(&without_avx512, v3));
    assert_string_equal(rt_cpu_missing(&without_avx512, v4), "AVX512F");
}

/* The psABI's lists: which bits, taken away alone, take the level away. */
static void every_feature_of_a_level_is_needed(void **state)
{
    (void)state;
    const uint32_t leaf1_v3[] = {0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29}, leaf7_v3[] = {3, 5, 8};
    const uint32_t leaf7_v4[] = {16, 17, 28, 30, 31}, extended_v3[] = {0, 5}, xcr0_v3[] = {1, 2}, xcr0_v4[] = {5, 6, 7};
    const struct {
        size_t word, count;
        const uint32_t *bits;
        uint32_t level;
    } rows[] = {
        {offsetof(rt_cpu, leaf1_ecx), 11, leaf1_v3, v3},       {offsetof(rt_cpu, leaf7_ebx), 3, leaf7_v3, v3},
        {offsetof(rt_cpu, extended1_ecx), 2, extended_v3, v3}, {offsetof(rt_cpu, xcr0), 2, xcr0_v3, v3},
        {offsetof(rt_cpu, leaf7_ebx), 5, leaf7_v4, v4},        {offsetof(rt_cpu, xcr0), 3, xcr0_v4, v4},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t i = 0; i < rows[r].count; i++) {
            rt_cpu cpu = everything;
            uint32_t word = ~(UINT32_C(1) << rows[r].bits[i]);
            memcpy((char *)&cpu + rows[r].word, &word, sizeof word);
            assert_non_null(rt_cpu_missing(&cpu, v4));
            assert_int_equal(rt_cpu_missing(&cpu, v3) != NULL, rows[r].level == v3);
        }
}

static void this_machine_agrees_with_the_compilers_view(void **state)
{
    (void)state;
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    assert_int_equal(rt_cpu_missing(&cpu, v3) == NULL, fixture_machine_runs(MDOT_CPU_X86_64_V3));
    assert_int_equal(rt_cpu_missing(&cpu, v4) == NULL, fixture_machine_runs(MDOT_CPU_X86_64_V4));
}

static void names_and_levels_agree(void **state)
{
    (void)state;
    assert_int_equal(rt_cpu_level_find("x86-64-v3"), v3);
    assert_int_equal(rt_cpu_level_find("x86-64-v4"), v4);
    assert_int_equal(rt_cpu_level_find("x86-64"), MDOT_CPU_NONE);
}

static mdot_status choose(const rt_cpu *cpu, uint32_t count, const uint32_t *levels, const char *forced,
                          uint32_t *out_index, mdot_error *err)
{
    struct {
        mdot_abi_table head;
        mdot_abi_image image[4];
        char text[32];
    } table = {.text = "x86-64-v3\0x86-64-v4\0newer"};
    const uint32_t text_at = (uint32_t)((char *)table.text - (char *)&table);
    table.head.images_at = (uint32_t)((char *)table.image - (char *)&table);
    table.head.image_count = count + 1;
    for (uint32_t i = 0; i < count; i++)
        table.image[i] = (mdot_abi_image){.kind = MDOT_IMAGE_CPU,
                                          .number = levels[i],
                                          .target_at = text_at + (levels[i] == v3   ? 0
                                                                  : levels[i] == v4 ? 10
                                                                                    : 20)};
    table.image[count] = (mdot_abi_image){.kind = MDOT_IMAGE_CUDA, .number = 80}; /* not a CPU's: never chosen */
    const mdot_abi_image *image = NULL;
    mdot_status status = rt_cpu_choose(cpu, &table.head, forced, &image, err);
    if (status == MDOT_OK) *out_index = (uint32_t)(image - table.image);
    return status;
}

static void best_common_level_is_chosen(void **state)
{
    (void)state;
    const uint32_t both[] = {v3, v4}, newer[] = {v3, v4, 77};
    uint32_t index = 9;
    assert_int_equal(choose(&everything, 2, both, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&without_avx512, 2, both, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
    assert_int_equal(choose(&everything, 3, newer, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&everything, 2, both, "x86-64-v3", &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
}

static void impossible_choices_name_what_is_missing(void **state)
{
    (void)state;
    const uint32_t both[] = {v3, v4}, only_v4[] = {v4};
    uint32_t index = 9;
    mdot_error err;
    assert_int_equal(choose(&without_avx512, 1, only_v4, NULL, &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "x86-64-v4"));
    assert_non_null(strstr(err.message, "AVX512F"));
    assert_int_equal(choose(&without_avx512, 2, both, "x86-64-v4", &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "AVX512F"));
    assert_int_equal(choose(&everything, 1, only_v4, "x86-64-v3", &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "x86-64-v4 only"));
    assert_int_equal(choose(&everything, 2, both, "avx2", &index, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "x86-64-v3, x86-64-v4"));
    assert_int_equal(index, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_with_everything_runs_both_levels),
        cmocka_unit_test(machine_without_avx512_runs_v3_only),
        cmocka_unit_test(every_feature_of_a_level_is_needed),
        cmocka_unit_test(this_machine_agrees_with_the_compilers_view),
        cmocka_unit_test(names_and_levels_agree),
        cmocka_unit_test(best_common_level_is_chosen),
        cmocka_unit_test(impossible_choices_name_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
