/* test_gpus.c — the GPU table: names are found in the forms that people and drivers use, and spec values agree with
 * each other. */
#include "runtime/job/gpus.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t gpu_count(void)
{
    size_t count = 0;
    while (mdot_gpu_names()[count] != NULL) count++;
    return count;
}

static const char *name_of(const char *text)
{
    mdot_gpu info = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    if (mdot_gpu_find(text, &info, &err) != MDOT_OK) fail_msg("%s", err.message);
    return info.name;
}

static void every_number_has_a_column(void **state)
{
    (void)state;
    size_t first = offsetof(mdot_gpu, compute_capability);
    assert_int_equal(sizeof(mdot_gpu), first + RT_GPU_NUMBERS * sizeof(double));
}

static void every_name_is_found(void **state)
{
    (void)state;
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) assert_string_equal(name_of(*name), *name);
    assert_compare(gpu_count(), >=, 20);
}

static void names_are_found_in_common_forms(void **state)
{
    (void)state;
    assert_string_equal(name_of("rtx3090"), "RTX-3090");
    assert_string_equal(name_of("RTX 3090"), "RTX-3090");
    assert_string_equal(name_of("geforce rtx 3090"), "RTX-3090");
    assert_string_equal(name_of("a100"), "A100-SXM-40GB");
    assert_string_equal(name_of("A100 80GB"), "A100-SXM-80GB");
    assert_string_equal(name_of("v100"), "V100-SXM-16GB");
    assert_string_equal(name_of("h200"), "H200-SXM-141GB");
    assert_string_equal(name_of("titan_v"), "TITAN-V");
}

/* As the driver reports them (nvidia-smi --query-gpu=name). */
static void names_are_found_as_the_driver_reports_them(void **state)
{
    (void)state;
    assert_string_equal(name_of("NVIDIA GeForce RTX 3090"), "RTX-3090");
    assert_string_equal(name_of("NVIDIA GeForce RTX 3090 Ti"), "RTX-3090-Ti");
    assert_string_equal(name_of("Tesla V100-SXM2-32GB"), "V100-SXM-32GB");
    assert_string_equal(name_of("Tesla V100-PCIE-16GB"), "V100-PCIe-16GB");
    assert_string_equal(name_of("Tesla T4"), "T4");
    assert_string_equal(name_of("NVIDIA A100-SXM4-80GB"), "A100-SXM-80GB");
    assert_string_equal(name_of("NVIDIA A100 80GB PCIe"), "A100-PCIe-80GB");
    assert_string_equal(name_of("NVIDIA H100 80GB HBM3"), "H100-SXM-80GB");
    assert_string_equal(name_of("NVIDIA H100 PCIe"), "H100-PCIe-80GB");
    assert_string_equal(name_of("NVIDIA H200"), "H200-SXM-141GB");
    assert_string_equal(name_of("NVIDIA H800"), "H800-SXM-80GB");
    assert_string_equal(name_of("NVIDIA A800-SXM4-80GB"), "A800-SXM-80GB");
    assert_string_equal(name_of("NVIDIA A800 80GB PCIe"), "A800-PCIe-80GB");
    assert_string_equal(name_of("NVIDIA H800 PCIe"), "H800-PCIe-80GB");
    assert_string_equal(name_of("NVIDIA GeForce RTX 4090 D"), "RTX-4090-D");
    assert_string_equal(name_of("Quadro RTX 6000"), "RTX-6000");
    assert_string_equal(name_of("NVIDIA RTX 6000 Ada Generation"), "RTX-6000-Ada");
    assert_string_equal(name_of("NVIDIA B200"), "B200-SXM-180GB");
    assert_string_equal(name_of("NVIDIA GH200 480GB"), "GH200-96GB");
    assert_string_equal(name_of("NVIDIA H100 NVL"), "H100-NVL-94GB");
    assert_string_equal(name_of("NVIDIA GeForce RTX 4070 SUPER"), "RTX-4070-Super");
    assert_string_equal(name_of("AMD Instinct MI300X"), "MI300X");
}

static void unknown_names_are_refused_with_the_five_most_similar(void **state)
{
    (void)state;
    static const char *const wrong[] = {"RTX-309", "RTX-30900", "", "nvidia", "A100|", "-"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mdot_gpu info = {.struct_size = sizeof info, .sm_count = 7};
        mdot_error err = {0};
        assert_int_equal(mdot_gpu_find(wrong[i], &info, &err), MDOT_INVALID_ARGUMENT);
        assert_compare(info.sm_count, ==, 7);
        size_t named = 0;
        const char *list = strstr(err.message, "the most similar names are ");
        assert_non_null(list);
        for (const char *comma = list; comma != NULL; comma = strstr(comma + 1, ", ")) named++;
        assert_int_equal(named, 5);
        char total[64];
        snprintf(total, sizeof total, "; `mdot gpus` lists all %zu", gpu_count());
        assert_non_null(strstr(list, total));
        assert_int_equal(mdot_gpu_find(wrong[i], &info, NULL), MDOT_INVALID_ARGUMENT);
    }
    mdot_error err = {0};
    mdot_gpu info = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("Radeon VII", &info, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "\"Radeon VII\""));
    assert_int_equal(mdot_gpu_find(NULL, &info, &err), MDOT_INVALID_ARGUMENT);
}

/* A number of GPUs with a model is refused with both options, whichever model it is. */
static void a_model_with_a_number_names_both_options(void **state)
{
    (void)state;
    static const char *const forms[] = {"8x%s", "8*%s", "8 x %s", "%sx8", "%s*8", "%s:8"};
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            char text[128], expected[128];
            mdot_gpu gpu = MDOT_INIT(mdot_gpu);
            mdot_error err = {0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof text, forms[i], *name);
#pragma GCC diagnostic pop
            snprintf(expected, sizeof expected, "set --gpu to %s and --gpus to 8", *name);
            assert_int_equal(mdot_gpu_find(text, &gpu, &err), MDOT_INVALID_ARGUMENT);
            if (strstr(err.message, expected) == NULL) fail_msg("%s: %s", text, err.message);
        }
    static const char *const others[] = {"0xH100", "H100x0", "99999999999xH100", "H100x99999999999", "65537xH100", "8x",
                                         "x8",     "H100x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        mdot_error err = {0};
        assert_int_equal(mdot_gpu_find(others[i], &gpu, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, "--gpus to") != NULL) fail_msg("%s: %s", others[i], err.message);
    }
}

/* Blanks, hyphens and underlines anywhere make no difference, nor does the case (A to Z). */
static void separators_and_case_make_no_difference(void **state)
{
    (void)state;
    assert_string_equal(name_of(" -_r_T-x 3--0__9 0"), "RTX-3090");
    assert_string_equal(name_of("titan-V"), "TITAN-V");
    assert_string_equal(name_of("NvIdIa tesla QUADRO amd instinct v100"), "V100-SXM-16GB");
    static const char *const wrong[] = {"RTX-3090\x01", "RTX.3090", "V100|T4", "T4|",       "T4{",
                                        "[4",           "@4",       "t4z",     "RTX 3090-", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mdot_gpu info = MDOT_INIT(mdot_gpu);
        mdot_status status = mdot_gpu_find(wrong[i], &info, NULL);
        assert_int_equal(status, strcmp(wrong[i], "RTX 3090-") == 0 ? MDOT_OK : MDOT_INVALID_ARGUMENT);
    }
}

static void unprintable_names_are_shown_safely(void **state)
{
    (void)state;
    char name[200] = "";
    mdot_error err = {0};
    assert_int_equal(rt_gpu_check_name(NULL, &err), MDOT_OK);
    assert_int_equal(rt_gpu_check_name("A100", &err), MDOT_OK);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 2] = '\n';
    assert_int_equal(rt_gpu_check_name(name, &err), MDOT_INVALID_ARGUMENT);
    name[64] = '\0';
    char expected[128];
    snprintf(expected, sizeof expected, "the GPU's name \"%s\" must", name); /* 64 letters */
    assert_non_null(strstr(err.message, expected));
    memset(name, 'x', sizeof name - 1);
    memcpy(name + 63, "\xc3\xa9\n", 3); /* an e with an accent, which does not fit whole */
    assert_int_equal(rt_gpu_check_name(name, &err), MDOT_INVALID_ARGUMENT);
    name[63] = '\0';
    snprintf(expected, sizeof expected, "the GPU's name \"%s\" must", name);
    assert_non_null(strstr(err.message, expected));
    assert_int_equal(rt_gpu_check_name("A\n", &err), MDOT_INVALID_ARGUMENT);
    assert_null(strchr(err.message, '\n'));
}

static void expect_hint(const char *wrong, const char *hint)
{
    mdot_gpu info = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    assert_int_equal(mdot_gpu_find(wrong, &info, &err), MDOT_INVALID_ARGUMENT);
    if (strstr(err.message, hint) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, hint);
}

static void a_misspelt_name_gets_a_suggestion(void **state)
{
    (void)state;
    expect_hint("RTX-309", "\"RTX-309\" (did you mean RTX-3090?); the most similar names are RTX-3090, ");
    expect_hint("NVIDIA GeForce RTX-409", "(did you mean RTX-4090?)");
    expect_hint("H10O", "(did you mean H100-SXM-80GB?)"); /* a misspelt alias */
    expect_hint("A1OO 80GB", "(did you mean A100-SXM-80GB?)");
    expect_hint("H20O", "(did you mean H200-SXM-141GB?); the most similar names are H200-SXM-141GB, H20-SXM-96GB, ");
    expect_hint("H10",
                "(did you mean H100-SXM-80GB?); the most similar names are H100-SXM-80GB, "); /* one letter short */
    expect_hint("A10 24GB", "(did you mean A10?); the most similar names are A10, ");         /* words follow */
    expect_hint("Radeon VII", "\"Radeon VII\"; the most similar names are ");
    expect_hint("", "\"\"; the most similar names are ");
}

/* Checks the message about a misspelt name. Returns whether it has a suggestion. */
static bool suggests_the_first_of_the_list(const char *wrong)
{
    static const char before_suggestion[] = "(did you mean ", before_list[] = "the most similar names are ";
    mdot_gpu info = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    if (mdot_gpu_find(wrong, &info, &err) == MDOT_OK) return false;
    const char *list = strstr(err.message, before_list), *suggestion = strstr(err.message, before_suggestion);
    assert_non_null(list);
    if (suggestion == NULL) return false;
    list += strlen(before_list);
    suggestion += strlen(before_suggestion);
    size_t length = strcspn(suggestion, "?");
    if (strncmp(list, suggestion, length) != 0 || list[length] != ',') fail_msg("%s", err.message);
    return true;
}

/* Each name loses a letter, gets a wrong one, and gets an additional one, at each place. */
static void the_suggestion_is_the_first_of_the_similar_names(void **state)
{
    (void)state;
    static const char *const names[] = {
#define GPU(name, ...) name,
#include "runtime/job/gpus.def"
#undef GPU
    };
    size_t count = 0, suggestions = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int at = 0; at < (int)strlen(names[i]); at++) {
            char wrong[3][64];
            snprintf(wrong[0], sizeof wrong[0], "%.*s%s", at, names[i], names[i] + at + 1);
            snprintf(wrong[1], sizeof wrong[1], "%.*sO%s", at, names[i], names[i] + at + 1);
            snprintf(wrong[2], sizeof wrong[2], "%.*sO%s", at, names[i], names[i] + at);
            for (size_t k = 0; k < 3; k++, count++) suggestions += suggests_the_first_of_the_list(wrong[k]);
        }
    }
    assert_compare(suggestions * 10, >, count * 9);
}

/* Every name and alias finds the row in which it stands, because it is absent from all earlier rows. */
static void no_two_gpus_share_a_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *aliases;
    } rows[] = {
#define GPU(name, aliases, ...) {name, aliases},
#include "runtime/job/gpus.def"
#undef GPU
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char aliases[256];
        assert_compare(strlen(rows[i].aliases), <, sizeof aliases);
        strcpy(aliases, rows[i].aliases);
        for (char *alias = strtok(aliases, "|"); alias != NULL; alias = strtok(NULL, "|"))
            assert_string_equal(name_of(alias), rows[i].name);
    }
}

/* The fp32 cores per SM: CUDA C++ programming guide, arithmetic instruction throughput by compute capability. A CDNA 2
 * compute unit (listed as 8.0) also has 64. A CDNA 3 or 4 compute unit (listed as 9.0) has 128 in pairs. */
static double cores_of_an_sm(const mdot_gpu *gpu)
{
    static const struct {
        double compute_capability, cores;
    } table[] = {{3.7, 192}, {6.0, 64},  {6.1, 128}, {7.0, 64},   {7.5, 64},   {8.0, 64},
                 {8.6, 128}, {8.9, 128}, {9.0, 128}, {10.0, 128}, {10.3, 128}, {12.0, 128}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].compute_capability == gpu->compute_capability) return table[i].cores;
    return 0;
}

/* The bounds find unit slips, for example MiB for GiB. They are wider than the table's models. */
static void expect_within(const char *name, const char *column, double value, double least, double most)
{
    if (!(value >= least && value <= most))
        fail_msg("%s: %s is %g, outside of %g to %g; if the source confirms it, widen the bounds", name, column, value,
                 least, most);
}

static void spec_values_are_consistent(void **state)
{
    (void)state;
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        assert_int_equal(mdot_gpu_find(*name, &gpu, NULL), MDOT_OK);
        double fp32_tflops = 2e-6 * gpu.sm_count * cores_of_an_sm(&gpu) * gpu.boost_mhz;
        if (fabs(gpu.fp32_tflops / fp32_tflops - 1) > 0.01)
            fail_msg("%s: %g TFLOPS; SMs and clock make %g", *name, gpu.fp32_tflops, fp32_tflops);
        if (gpu.tf32_tflops < gpu.fp32_tflops || gpu.fp16_tflops < gpu.tf32_tflops)
            fail_msg("%s: %g TFLOPS in TF32, %g in fp16; a smaller type is no slower", *name, gpu.tf32_tflops,
                     gpu.fp16_tflops);
        if (gpu.compute_capability >= 7 ? gpu.fp16_tflops <= 1.9 * gpu.fp32_tflops : gpu.fp16_tflops != gpu.fp32_tflops)
            fail_msg("%s: %g TFLOPS in fp16, %g in fp32; tensor cores double the rate", *name, gpu.fp16_tflops,
                     gpu.fp32_tflops);
        if (gpu.compute_capability < 8.9 ? gpu.fp8_tflops != 0
                                         : fabs(gpu.fp8_tflops / (2 * gpu.fp16_tflops) - 1) > 0.02)
            fail_msg("%s: %g TFLOPS in FP8", *name, gpu.fp8_tflops);
        expect_within(*name, "memory_gib", gpu.memory_gib, 4, 512);
        expect_within(*name, "memory_gbps", gpu.memory_gbps, 100, 20000);
        expect_within(*name, "l2_mib", gpu.l2_mib, 1, 256);
        expect_within(*name, "watts", gpu.watts, 30, 2500);
    }
}

/* Of each GPU with slices: those in the message for a wrong slice have the memory in their names, at most the
 * whole GPU's rates, and more of everything with more parts. */
static void a_slice_is_a_part_of_its_gpu(void **state)
{
    (void)state;
    size_t sliced_count = 0;
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) {
        char text[128];
        mdot_gpu whole = MDOT_INIT(mdot_gpu), before = {0};
        mdot_error err = {0};
        assert_int_equal(mdot_gpu_find(*name, &whole, &err), MDOT_OK);
        snprintf(text, sizeof text, "%s:0g.0gb", *name);
        assert_int_equal(mdot_gpu_find(text, &before, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, *name));
        char *list = strstr(err.message, "its slices are ");
        if (list == NULL) continue;
        sliced_count++;
        for (char *slice = strtok(list + strlen("its slices are "), ", "); slice != NULL; slice = strtok(NULL, ", ")) {
            mdot_gpu gpu = MDOT_INIT(mdot_gpu);
            double parts = 0, memory = 0;
            assert_int_equal(sscanf(slice, "%lfg.%lfgb", &parts, &memory), 2);
            snprintf(text, sizeof text, "nvidia %s:%s", *name, slice);
            for (char *c = strchr(text, ':'); *c != '\0'; c++)
                if (*c == 'g') *c = 'G';
            assert_int_equal(mdot_gpu_find(text, &gpu, &err), MDOT_OK);
            static const char *const forms[] = {"NVIDIA %s MIG %s", "%s %s", "%s-%s", "%s:%s"};
            for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
                snprintf(text, sizeof text, forms[i], *name, slice);
                assert_string_equal(name_of(text), gpu.name);
            }
            assert_string_equal(gpu.name, text);
            if (fabs(gpu.memory_gib / memory - 1) > .07) fail_msg("%s has %g GiB", text, gpu.memory_gib);
            double share = gpu.sm_count / whole.sm_count;
            assert_true(share <= 1 && gpu.memory_gbps <= whole.memory_gbps && gpu.sm_count >= before.sm_count);
            assert_true(gpu.memory_gbps / gpu.memory_gib == whole.memory_gbps / whole.memory_gib);
            assert_true(fabs(gpu.fp16_tflops / whole.fp16_tflops - share) < 1e-9 && gpu.nvlink_gbps == 0);
            assert_true(gpu.compute_capability == whole.compute_capability && gpu.boost_mhz == whole.boost_mhz);
            before = gpu;
        }
    }
    assert_compare(sliced_count, >=, 8);
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    assert_string_equal(name_of("a100:3g.20gb"), "A100-SXM-40GB:3g.20gb");
    static const char *const wrong[] = {"A100:",    ":3g.20gb",    "no such GPU at all:3g.20gb",
                                        "3g.20gb",  "MIG 3g.20gb", " MIG 3g.20gb",
                                        "-3g.20gb", "A100 3g",     "A100 MIG"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(mdot_gpu_find(wrong[i], &gpu, &err), MDOT_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_a_column),
        cmocka_unit_test(every_name_is_found),
        cmocka_unit_test(names_are_found_in_common_forms),
        cmocka_unit_test(names_are_found_as_the_driver_reports_them),
        cmocka_unit_test(unknown_names_are_refused_with_the_five_most_similar),
        cmocka_unit_test(a_model_with_a_number_names_both_options),
        cmocka_unit_test(separators_and_case_make_no_difference),
        cmocka_unit_test(unprintable_names_are_shown_safely),
        cmocka_unit_test(a_misspelt_name_gets_a_suggestion),
        cmocka_unit_test(the_suggestion_is_the_first_of_the_similar_names),
        cmocka_unit_test(no_two_gpus_share_a_name),
        cmocka_unit_test(spec_values_are_consistent),
        cmocka_unit_test(a_slice_is_a_part_of_its_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
