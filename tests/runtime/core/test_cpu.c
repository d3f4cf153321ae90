/* test_cpu.c — the choice of the CPU feature level, on simulated machines and on this one. */
#include "runtime/core/cpu.h"
#include "tests/support/artefact_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define EVERYTHING(maker)                                                                                              \
    {                                                                                                                  \
        UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 0, maker                \
    }
static const rt_cpu everything = EVERYTHING("AuthenticAMD"), intels = EVERYTHING("GenuineIntel");
static const uint32_t v3 = MDOT_CPU_X86_64_V3, v4 = MDOT_CPU_X86_64_V4, bf16 = MDOT_CPU_X86_64_BF16,
                      amx = MDOT_CPU_X86_64_AMX;

/* The registers of a Zen 3: AVX-512 is absent, XCR0 has x87, SSE and AVX. */
static const rt_cpu without_avx512 = {0x7EF8320B, 0x219C97A9, 0, 0, 0x75C237FF, 0, 0x7, 0, 0, "AuthenticAMD"};

static void machine_with_all_features_runs_every_level(void **state)
{
    (void)state;
    assert_null(rt_cpu_missing(&everything, v3));
    assert_null(rt_cpu_missing(&everything, v4));
    assert_null(rt_cpu_missing(&everything, bf16));
    assert_null(rt_cpu_missing(&everything, amx));
    assert_string_equal(rt_cpu_missing(&everything, 77), "a feature level newer than this library");
}

static void machine_without_avx512_runs_v3_only(void **state)
{
    (void)state;
    assert_null(rt_cpu_missing(&without_avx512, v3));
    assert_string_equal(rt_cpu_missing(&without_avx512, v4), "AVX512F");
}

/* The psABI feature lists. Removing any one bit removes the level. */
static void every_feature_of_a_level_is_needed(void **state)
{
    (void)state;
    const uint32_t leaf1_v3[] = {0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29}, leaf7_v3[] = {3, 5, 8};
    const uint32_t leaf7_v4[] = {16, 17, 28, 30, 31}, extended_v3[] = {0, 5}, xcr0_v3[] = {1, 2}, xcr0_v4[] = {5, 6, 7};
    const uint32_t leaf7_1_bf16[] = {5}, leaf7_amx[] = {22, 24}, xcr0_amx[] = {17, 18}, permissions_amx[] = {0};
    const struct {
        size_t word, count;
        const uint32_t *bits;
        uint32_t level;
    } rows[] = {
        {offsetof(rt_cpu, leaf1_ecx), 11, leaf1_v3, v3},
        {offsetof(rt_cpu, leaf7_ebx), 3, leaf7_v3, v3},
        {offsetof(rt_cpu, extended1_ecx), 2, extended_v3, v3},
        {offsetof(rt_cpu, xcr0), 2, xcr0_v3, v3},
        {offsetof(rt_cpu, leaf7_ebx), 5, leaf7_v4, v4},
        {offsetof(rt_cpu, xcr0), 3, xcr0_v4, v4},
        {offsetof(rt_cpu, leaf7_1_eax), 1, leaf7_1_bf16, bf16},
        {offsetof(rt_cpu, leaf7_edx), 2, leaf7_amx, amx},
        {offsetof(rt_cpu, xcr0), 2, xcr0_amx, amx},
        {offsetof(rt_cpu, permissions), 1, permissions_amx, amx},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t i = 0; i < rows[r].count; i++) {
            rt_cpu cpu = everything;
            uint32_t word = ~(UINT32_C(1) << rows[r].bits[i]);
            memcpy((char *)&cpu + rows[r].word, &word, sizeof word);
            for (uint32_t level = v3; level <= amx; level++)
                assert_int_equal(rt_cpu_missing(&cpu, level) != NULL, rows[r].level <= level);
        }
}

/* Bits in AT_HWCAP and AT_HWCAP2 (Linux, Documentation/arch/arm64/elf_hwcaps.rst). A level takes features from one
 * processor family only. */
static void levels_of_aarch64_need_its_own_features(void **state)
{
    (void)state;
    const uint32_t neon = MDOT_CPU_AARCH64_NEON, arm_bf16 = MDOT_CPU_AARCH64_BF16;
    const rt_cpu cortex_a72 = {.hwcap = 0xFF}, neoverse_v1 = {.hwcap = UINT32_MAX, .hwcap2 = 1u << 14};
    assert_null(rt_cpu_missing(&cortex_a72, neon));
    assert_string_equal(rt_cpu_missing(&cortex_a72, arm_bf16), "FEAT_BF16");
    assert_null(rt_cpu_missing(&neoverse_v1, neon));
    assert_null(rt_cpu_missing(&neoverse_v1, arm_bf16));
    assert_string_equal(rt_cpu_missing(&everything, neon), "Advanced SIMD");
    assert_string_equal(rt_cpu_missing(&neoverse_v1, v3), "SSE3");
    assert_int_equal(rt_cpu_isa_find("aarch64-neon"), neon);
    assert_int_equal(rt_cpu_isa_find("aarch64-bf16"), arm_bf16);
}

static void detected_features_match_the_compilers(void **state)
{
    (void)state;
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    assert_int_equal(rt_cpu_missing(&cpu, v3) == NULL, fixture_machine_runs(MDOT_CPU_X86_64_V3));
    assert_int_equal(rt_cpu_missing(&cpu, v4) == NULL, fixture_machine_runs(MDOT_CPU_X86_64_V4));
    assert_int_equal(rt_cpu_missing(&cpu, bf16) == NULL, fixture_machine_runs(MDOT_CPU_X86_64_BF16));
    assert_int_equal(strncmp(cpu.vendor, "GenuineIntel", sizeof cpu.vendor) == 0, __builtin_cpu_is("intel") != 0);
}

static void level_names_match_levels(void **state)
{
    (void)state;
    assert_int_equal(rt_cpu_isa_find("x86-64-v3"), v3);
    assert_int_equal(rt_cpu_isa_find("x86-64-v4"), v4);
    assert_int_equal(rt_cpu_isa_find("x86-64"), MDOT_CPU_NONE);
}

typedef struct offer { /* an artefact image */
    uint32_t level;
    const char *kernel_precision; /* "fp32" or "bf16" */
} offer;

static mdot_status choose(const rt_cpu *cpu, uint32_t count, const offer *offers, const char *forced,
                          const char *kernel_precision, uint32_t *out_index, mdot_error *err)
{
    struct {
        mdot_abi_table head;
        mdot_abi_image image[6];
        char text[40];
    } table = {.text = "x86-64-v3\0x86-64-v4\0newer\0fp32\0bf16"};
    const uint32_t text_at = (uint32_t)((char *)table.text - (char *)&table);
    table.head.images_at = (uint32_t)((char *)table.image - (char *)&table);
    table.head.image_count = count + 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t level = offers[i].level;
        bool is_bf16 = strcmp(offers[i].kernel_precision, "bf16") == 0;
        table.image[i] = (mdot_abi_image){.kind = MDOT_IMAGE_CPU,
                                          .number = level,
                                          .target_at = text_at + (level == v3   ? 0
                                                                  : level == v4 ? 10
                                                                                : 20),
                                          .compute_at = text_at + (is_bf16 ? 31 : 26)};
    }
    /* a CUDA image: the CPU never chooses it */
    table.image[count] = (mdot_abi_image){.kind = MDOT_IMAGE_CUDA, .number = 80};
    const mdot_abi_image *image = NULL;
    mdot_status status = rt_cpu_choose(cpu, &table.head, forced, kernel_precision, &image, err);
    if (status == MDOT_OK) *out_index = (uint32_t)(image - table.image);
    return status;
}

static void best_common_level_is_chosen(void **state)
{
    (void)state;
    const offer both[] = {{v3, "fp32"}, {v4, "fp32"}};
    const offer newer[] = {{v3, "fp32"}, {v4, "fp32"}, {77, "fp32"}};
    uint32_t index = 9;
    assert_int_equal(choose(&everything, 2, both, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&without_avx512, 2, both, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
    assert_int_equal(choose(&everything, 3, newer, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&everything, 2, both, "x86-64-v3", NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
}

/* The machine's last supported target is chosen. Its first image is chosen, unless the caller requests another
 * precision. */
static void precision_defaults_to_the_first_image(void **state)
{
    (void)state;
    const offer bf16_first[] = {{v3, "fp32"}, {v4, "bf16"}, {v4, "fp32"}},
                fp32_first[] = {{v3, "fp32"}, {v4, "fp32"}, {v4, "bf16"}};
    uint32_t index = 9;
    assert_int_equal(choose(&everything, 3, bf16_first, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&everything, 3, bf16_first, NULL, "fp32", &index, NULL), MDOT_OK);
    assert_int_equal(index, 2);
    assert_int_equal(choose(&everything, 3, bf16_first, "x86-64-v3", "fp32", &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
    assert_int_equal(choose(&everything, 3, fp32_first, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&everything, 3, fp32_first, "x86-64-v4", "bf16", &index, NULL), MDOT_OK);
    assert_int_equal(index, 2);
    /* this machine has no bf16 image */
    assert_int_equal(choose(&without_avx512, 3, fp32_first, NULL, "bf16", &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
    const offer last_in_bf16[] = {{v3, "fp32"}, {v4, "bf16"}};
    assert_int_equal(choose(&everything, 2, last_in_bf16, NULL, "fp32", &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
}

/* A level that has only another precision is not chosen for being the last. */
static void the_precision_named_first_is_preferred_to_a_higher_level(void **state)
{
    (void)state;
    const offer fp32_first[] = {{v3, "fp32"}, {v3, "bf16"}, {v4, "fp32"}, {v4, "bf16"}, {bf16, "bf16"}},
                bf16_first[] = {{v3, "bf16"}, {v3, "fp32"}, {v4, "bf16"}, {v4, "fp32"}, {bf16, "bf16"}};
    uint32_t index = 9;
    assert_int_equal(choose(&everything, 5, fp32_first, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 2);
    assert_int_equal(choose(&everything, 5, fp32_first, NULL, "bf16", &index, NULL), MDOT_OK);
    assert_int_equal(index, 4);
    assert_int_equal(choose(&everything, 5, fp32_first, "x86-64-bf16", NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 4);
    assert_int_equal(choose(&everything, 5, bf16_first, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 4);
    assert_int_equal(choose(&without_avx512, 5, fp32_first, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
}

/* VDPBF16PS runs at half the rate on these CPUs. Therefore the level is chosen only if the caller names it, or if the
 * artefact has no other image. */
static void a_slower_level_is_chosen_by_name_alone(void **state)
{
    (void)state;
    const offer levels[] = {{v3, "bf16"}, {v4, "bf16"}, {bf16, "bf16"}}, alone[] = {{bf16, "bf16"}};
    uint32_t index = 9;
    assert_null(rt_cpu_slower(&everything, bf16));
    assert_non_null(rt_cpu_slower(&intels, bf16));
    assert_null(rt_cpu_slower(&intels, v4));
    assert_null(rt_cpu_slower(&intels, amx));
    assert_int_equal(choose(&everything, 3, levels, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 2);
    assert_int_equal(choose(&intels, 3, levels, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 1);
    assert_int_equal(choose(&intels, 3, levels, "x86-64-bf16", NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 2);
    assert_int_equal(choose(&intels, 1, alone, NULL, NULL, &index, NULL), MDOT_OK);
    assert_int_equal(index, 0);
}

/* The values for inspect: the last CPU image, and this machine's missing features for it. */
static void features_missing_for_the_last_image_are_listed(void **state)
{
    (void)state;
    struct {
        mdot_abi_table head;
        mdot_abi_image image[2];
        char text[40];
    } table = {.text = "x86-64-v4\0x86-64-amx\0x86-64-bf16"};
    const uint32_t text_at = (uint32_t)((char *)table.text - (char *)&table);
    table.head.images_at = (uint32_t)((char *)table.image - (char *)&table);
    table.head.image_count = 2;
    table.image[0] = (mdot_abi_image){.kind = MDOT_IMAGE_CPU, .number = v4, .target_at = text_at};
    table.image[1] = (mdot_abi_image){.kind = MDOT_IMAGE_CPU, .number = amx, .target_at = text_at + 10};
    rt_cpu refused = intels;
    refused.permissions = 0;
    char text[160];
    assert_true(rt_cpu_has_tiles(&table.head));
    rt_cpu_explain(&refused, &table.head, &table.image[0], text, sizeof text);
    assert_string_equal(text,
                        "x86-64-amx needs the operating system's permission for AMX tiles, which this machine lacks");
    rt_cpu_explain(&intels, &table.head, &table.image[0], text, sizeof text);
    assert_string_equal(text, "x86-64-amx is unused: cpu_isa or kernel_precision selects another image");
    rt_cpu_explain(&intels, &table.head, &table.image[1], text, sizeof text);
    assert_string_equal(text, "");
    table.image[1].number = bf16;
    table.image[1].target_at = text_at + 21;
    assert_false(rt_cpu_has_tiles(&table.head));
    rt_cpu_explain(&intels, &table.head, &table.image[0], text, sizeof text);
    assert_non_null(strstr(text, "x86-64-bf16 is slower here"));
}

static void impossible_choices_name_missing_features(void **state)
{
    (void)state;
    const offer both[] = {{v3, "fp32"}, {v4, "fp32"}}, only_v4[] = {{v4, "fp32"}};
    uint32_t index = 9;
    mdot_error err;
    assert_int_equal(choose(&without_avx512, 1, only_v4, NULL, NULL, &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "x86-64-v4"));
    assert_non_null(strstr(err.message, "AVX512F"));
    assert_int_equal(choose(&without_avx512, 2, both, "x86-64-v4", NULL, &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "AVX512F"));
    assert_int_equal(choose(&everything, 1, only_v4, "x86-64-v3", NULL, &index, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "only for x86-64-v4"));
    assert_int_equal(choose(&everything, 2, both, "avx2", NULL, &index, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "x86-64-v3, x86-64-v4"));
    assert_int_equal(index, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_with_all_features_runs_every_level),
        cmocka_unit_test(machine_without_avx512_runs_v3_only),
        cmocka_unit_test(every_feature_of_a_level_is_needed),
        cmocka_unit_test(levels_of_aarch64_need_its_own_features),
        cmocka_unit_test(detected_features_match_the_compilers),
        cmocka_unit_test(level_names_match_levels),
        cmocka_unit_test(best_common_level_is_chosen),
        cmocka_unit_test(precision_defaults_to_the_first_image),
        cmocka_unit_test(the_precision_named_first_is_preferred_to_a_higher_level),
        cmocka_unit_test(a_slower_level_is_chosen_by_name_alone),
        cmocka_unit_test(features_missing_for_the_last_image_are_listed),
        cmocka_unit_test(impossible_choices_name_missing_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
