/* cpu.c — selects the CPU image for this machine.
 *
 * ISA levels are those in the x86-64 psABI (section 3.1.1, "Processor Architecture"). A level is available only if the
 * CPU has all features and the operating system saves the registers (XCR0). Bit numbers: Intel SDM volume 2, CPUID; AMD
 * APM volume 3, appendix E, for leaf 8000'0001h. On AArch64, Linux reports a feature only if it saves the feature's
 * registers (Documentation/arch/arm64/elf_hwcaps.rst, which has the bit numbers).
 *
 * A CPU may be slower at an ISA level than at the next lower one. Then the lower one is chosen, unless the caller
 * requests the higher one by name.
 *
 * cpu_x86.c and cpu_aarch64.c read the CPU's features. cpu_generic.c replaces them on other processors. It reports an
 * empty set, because of which every CPU image is refused. */
#include "runtime/core/cpu.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/core/table_reader.h"

#include <stdio.h>
#include <string.h>

typedef struct feature {
    uint32_t level; /* the lowest ISA level that needs it */
    size_t word;    /* offset in rt_cpu */
    uint32_t mask;
    const char *name;
} feature;

#define BIT(n) (UINT32_C(1) << (n))
#define FEATURE_OF(level, word, mask, name)                                                                            \
    {                                                                                                                  \
        MDOT_CPU_##level, offsetof(rt_cpu, word), mask, name                                                           \
    }
#define FEATURE(level, word, mask, name) FEATURE_OF(X86_64_##level, word, mask, name)

/* V3 includes the features of v2. The runtime itself is compiled for the baseline (SSE2 and older). */
static const feature features[] = {
    FEATURE(V3, leaf1_ecx, BIT(0), "SSE3"),
    FEATURE(V3, leaf1_ecx, BIT(9), "SSSE3"),
    FEATURE(V3, leaf1_ecx, BIT(12), "FMA"),
    FEATURE(V3, leaf1_ecx, BIT(13), "CMPXCHG16B"),
    FEATURE(V3, leaf1_ecx, BIT(19), "SSE4.1"),
    FEATURE(V3, leaf1_ecx, BIT(20), "SSE4.2"),
    FEATURE(V3, leaf1_ecx, BIT(22), "MOVBE"),
    FEATURE(V3, leaf1_ecx, BIT(23), "POPCNT"),
    FEATURE(V3, leaf1_ecx, BIT(27), "OSXSAVE"),
    FEATURE(V3, leaf1_ecx, BIT(28), "AVX"),
    FEATURE(V3, leaf1_ecx, BIT(29), "F16C"),
    FEATURE(V3, leaf7_ebx, BIT(3), "BMI1"),
    FEATURE(V3, leaf7_ebx, BIT(5), "AVX2"),
    FEATURE(V3, leaf7_ebx, BIT(8), "BMI2"),
    FEATURE(V3, extended1_ecx, BIT(0), "LAHF-SAHF"),
    FEATURE(V3, extended1_ecx, BIT(5), "LZCNT"),
    FEATURE(V3, xcr0, BIT(1) | BIT(2), "the operating system's support for YMM registers"),
    FEATURE(V4, leaf7_ebx, BIT(16), "AVX512F"),
    FEATURE(V4, leaf7_ebx, BIT(17), "AVX512DQ"),
    FEATURE(V4, leaf7_ebx, BIT(28), "AVX512CD"),
    FEATURE(V4, leaf7_ebx, BIT(30), "AVX512BW"),
    FEATURE(V4, leaf7_ebx, BIT(31), "AVX512VL"),
    FEATURE(V4, xcr0, BIT(5) | BIT(6) | BIT(7), "the operating system's support for ZMM registers"),
    FEATURE(BF16, leaf7_1_eax, BIT(5), "AVX512_BF16"),
    FEATURE(AMX, leaf7_edx, BIT(24), "AMX-TILE"),
    FEATURE(AMX, leaf7_edx, BIT(22), "AMX-BF16"),
    FEATURE(AMX, xcr0, BIT(17) | BIT(18), "the operating system's support for AMX tiles"),
    FEATURE(AMX, permissions, RT_CPU_MAY_USE_TILES, "the operating system's permission for AMX tiles"),
    FEATURE_OF(AARCH64_NEON, hwcap, BIT(1), "Advanced SIMD"),
    FEATURE_OF(AARCH64_BF16, hwcap2, BIT(14), "FEAT_BF16"),
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] };

typedef struct level_name {
    uint32_t level;
    const char *name;
} level_name;

static const level_name levels[] = {
#define LEVEL_NAME(name, value, text) {value, text},
    MDOT_CPU_ISA_MAP(LEVEL_NAME)
#undef LEVEL_NAME
};
enum { LEVEL_COUNT = sizeof levels / sizeof levels[0] };

/* Levels of AArch64 follow those of x86-64. */
static bool is_aarch64(uint32_t level) { return level >= MDOT_CPU_AARCH64_NEON; }

static bool is_level(uint32_t level)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (levels[i].level == level) return true;
    return false;
}

const char *rt_cpu_missing(const rt_cpu *cpu, uint32_t level)
{
    if (!is_level(level)) return "a feature level newer than this library";
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        if (features[i].level > level || is_aarch64(features[i].level) != is_aarch64(level)) continue;
        uint32_t word;
        memcpy(&word, (const char *)cpu + features[i].word, sizeof word);
        if ((word & features[i].mask) != features[i].mask) return features[i].name;
    }
    return NULL;
}

const char *rt_cpu_slower(const rt_cpu *cpu, uint32_t level)
{
    bool is_intel = memcmp(cpu->vendor, "GenuineIntel", sizeof cpu->vendor) == 0;
    if (level == MDOT_CPU_X86_64_BF16 && is_intel)
        return "is slower here: Intel's CPUs multiply bf16 pairs at half the rate of f32";
    return NULL;
}

uint32_t rt_cpu_isa_find(const char *name)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (strcmp(levels[i].name, name) == 0) return levels[i].level;
    return MDOT_CPU_NONE;
}

/* CPU images come first, and there is at least one. */
static bool is_cpu_image(const mdot_abi_table *table, uint32_t image)
{
    return image < table->image_count && rt_image(table, image)->kind == MDOT_IMAGE_CPU;
}

/* The ISA levels that the artefact has code for, for messages: "x86-64-v3, x86-64-v4". */
static void list_targets(const mdot_abi_table *table, char *text, size_t size)
{
    bs_join list;
    bs_join_begin(&list, text, size);
    for (uint32_t i = 0; is_cpu_image(table, i); i++)
        bs_join_add(&list, "%s", rt_string(table, rt_image(table, i)->target_at));
}

/* The first image in the requested precision, for the requested level. Without a requested level, it takes the
 * machine's last level that is as fast as the one before. */
static const mdot_abi_image *find_image(const rt_cpu *cpu, const mdot_abi_table *table, uint32_t level,
                                        const char *kernel_precision)
{
    const mdot_abi_image *best = NULL;
    for (uint32_t i = 0; is_cpu_image(table, i); i++) {
        const mdot_abi_image *image = rt_image(table, i);
        if (level != MDOT_CPU_NONE && image->number != level) continue;
        if (kernel_precision != NULL && strcmp(rt_string(table, image->compute_at), kernel_precision) != 0) continue;
        if (rt_cpu_missing(cpu, image->number) != NULL) continue;
        if (best != NULL && rt_cpu_slower(cpu, image->number) != NULL) continue;
        if (best == NULL || best->number != image->number) best = image;
    }
    return best;
}

mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced,
                          const char *kernel_precision, const mdot_abi_image **out_image, mdot_error *err)
{
    char held[256];
    list_targets(table, held, sizeof held);
    uint32_t level = forced != NULL ? rt_cpu_isa_find(forced) : MDOT_CPU_NONE;
    if (forced != NULL && level == MDOT_CPU_NONE)
        return BS_INVALID(err, "unknown CPU ISA level \"%s\"; the artefact has %s", forced, held);
    const mdot_abi_image *lowest = rt_image(table, 0);
    /* If the lowest level has several precisions, its first image has the preferred one, which a higher level may
     * lack. */
    bool has_choice = is_cpu_image(table, 1) && rt_image(table, 1)->number == lowest->number;
    if (kernel_precision == NULL && forced == NULL && has_choice)
        kernel_precision = rt_string(table, lowest->compute_at);
    const mdot_abi_image *image = find_image(cpu, table, level, kernel_precision);
    if (image == NULL) image = find_image(cpu, table, level, NULL);
    if (image != NULL) {
        *out_image = image;
        return MDOT_OK;
    }
    const char *missing = rt_cpu_missing(cpu, forced != NULL ? level : lowest->number);
    if (forced == NULL)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the artefact has code for %s; for %s, this machine lacks %s", held,
                         rt_string(table, lowest->target_at), missing);
    if (missing != NULL)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "cpu_isa is %s, but this machine lacks %s", forced, missing);
    return mdot_fail(err, MDOT_INCOMPATIBLE, "cpu_isa is %s, but the artefact has code only for %s", forced, held);
}

bool rt_cpu_has_tiles(const mdot_abi_table *table)
{
    for (uint32_t i = 0; is_cpu_image(table, i); i++)
        if (rt_image(table, i)->number == MDOT_CPU_X86_64_AMX) return true;
    return false;
}

void rt_cpu_explain(const rt_cpu *cpu, const mdot_abi_table *table, const mdot_abi_image *image, char *text,
                    size_t size)
{
    const mdot_abi_image *best = image;
    for (uint32_t i = 0; is_cpu_image(table, i); i++) best = rt_image(table, i);
    const char *target = rt_string(table, best->target_at), *missing = rt_cpu_missing(cpu, best->number);
    const char *slower = rt_cpu_slower(cpu, best->number);
    text[0] = '\0';
    if (best->number == image->number) return;
    if (missing != NULL)
        snprintf(text, size, "%s needs %s, which this machine lacks", target, missing);
    else
        snprintf(text, size, "%s %s", target,
                 slower != NULL ? slower : "is unused: cpu_isa or kernel_precision selects another image");
}
