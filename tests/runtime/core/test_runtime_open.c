/* test_runtime_open.c — what mdot_predictor_open takes and what it refuses. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/process.h"

#include <dlfcn.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static fixture shared;

static int setup(void **state)
{
    (void)state;
    unsetenv("MDOT_CPU_LEVEL");
    fixture_open(&shared);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&shared);
    return 0;
}

/* A copy of the fixture that a test may change. */
static fixture copy_fixture(void)
{
    fixture copy = shared;
    copy.bytes = malloc(shared.size_bytes);
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, shared.bytes, shared.size_bytes);
    return copy;
}

static mdot_status open_bytes(const void *bytes, size_t size_bytes, const mdot_open_options *options, mdot_error *err)
{
    char *path = fixture_save(&shared, bytes, size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_status status = mdot_predictor_open(path, options, &predictor, err);
    if (status != MDOT_OK) assert_null(predictor);
    mdot_predictor_close(predictor);
    unlink(path);
    free(path);
    return status;
}

static mdot_status open_path(const char *path, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_status status = mdot_predictor_open(path, NULL, &predictor, err);
    mdot_predictor_close(predictor);
    return status;
}

static void assert_says(const mdot_error *err, const char *words)
{
    if (strstr(err->message, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", err->message, words);
}

/* ---- Files that are no artefact ---------------------------------------------------------------------------------- */

static void missing_file_is_not_found(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_path("/nonexistent/predictor.mdot", &err), MDOT_NOT_FOUND);
    assert_says(&err, "/nonexistent/predictor.mdot");
    assert_int_equal(err.status, MDOT_NOT_FOUND);
}

static void arguments_that_are_missing_are_invalid(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    assert_int_equal(mdot_predictor_open(NULL, NULL, &predictor, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_predictor_open("x", NULL, NULL, NULL), MDOT_INVALID_ARGUMENT);
    mdot_predictor_close(NULL);
    mdot_context_destroy(NULL);
}

static void directory_is_malformed(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_path(shared.folder, &err), MDOT_MALFORMED);
    assert_says(&err, "regular file");
}

static void named_pipe_is_refused_without_waiting(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/pipe", shared.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    mdot_error err;
    assert_int_equal(open_path(path, &err), MDOT_MALFORMED);
}

static void empty_file_is_malformed(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_bytes("", 0, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "empty");
}

static void file_of_another_kind_is_malformed(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    mdot_error err;
    assert_int_equal(open_bytes(text, sizeof text, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "not an ELF file");
}

static void ordinary_shared_object_is_malformed(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    /* the same file under other section names */
    for (unsigned char *p = f.bytes; (p = memmem(p, (size_t)(f.bytes + f.size_bytes - p), ".mdot.", 6)) != NULL; p++)
        p[1] = 'o';
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "not an artefact");
    free(f.bytes);
}

static void another_machines_artefact_is_incompatible(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    ((Elf64_Ehdr *)f.bytes)->e_machine = EM_AARCH64;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    assert_says(&err, "another processor");
    free(f.bytes);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------ */

static void file_truncated_anywhere_is_malformed(void **state)
{
    (void)state;
    for (size_t size = 64; size < shared.size_bytes; size += 64) {
        mdot_error err;
        mdot_status status = open_bytes(shared.bytes, size, NULL, &err);
        if (status != MDOT_MALFORMED)
            fail_msg("%zu of %zu bytes: %s", size, shared.size_bytes, mdot_status_name(status));
    }
}

static void longer_file_is_malformed(void **state)
{
    (void)state;
    unsigned char *longer = calloc(1, shared.size_bytes + 64);
    memcpy(longer, shared.bytes, shared.size_bytes);
    mdot_error err;
    assert_int_equal(open_bytes(longer, shared.size_bytes + 64, NULL, &err), MDOT_MALFORMED);
    free(longer);
}

/* Every byte of the headers and of the table, and every 61st byte elsewhere (a prime: all columns of records are met),
 * one bit each. The machine and the ABI version are the two fields that are judged before the checksum can be. */
static void one_flipped_bit_is_found(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    size_t table_end = f.table_at + sizeof(fixture_table);
    size_t version_at = f.table_at + offsetof(mdot_abi_table, abi_version);
    for (size_t at = 0; at < f.size_bytes; at++) {
        bool dense = at < 1024 || (at >= f.table_at && at < table_end) || at + 2048 > f.size_bytes;
        if (!dense && at % 61 != 0) continue;
        f.bytes[at] ^= (unsigned char)(1u << (at % 8));
        mdot_error err;
        mdot_status status = open_bytes(f.bytes, f.size_bytes, NULL, &err);
        bool identity = (at >= offsetof(Elf64_Ehdr, e_machine) && at < offsetof(Elf64_Ehdr, e_machine) + 2) ||
                        (at >= version_at && at < version_at + 4);
        bool found = identity ? status == MDOT_INCOMPATIBLE : status == MDOT_CORRUPT || status == MDOT_MALFORMED;
        if (!found) fail_msg("byte %zu: %s", at, mdot_status_name(status));
        f.bytes[at] ^= (unsigned char)(1u << (at % 8));
    }
    free(f.bytes);
}

static void damaged_weights_are_corrupt(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    size_t at, size;
    assert_true(fixture_find_section(f.bytes, f.size_bytes, MDOT_ABI_SECTION_WEIGHTS, &at, &size));
    f.bytes[at] ^= 1;
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_CORRUPT);
    free(f.bytes);
}

static void other_abi_version_is_incompatible(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    fixture_table_of(&f)->head.abi_version = MDOT_ABI_VERSION + 1;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    char expected[48];
    snprintf(expected, sizeof expected, "reads version %d", MDOT_ABI_VERSION);
    assert_says(&err, expected);
    free(f.bytes);
}

/* ---- Tables that lie, under a checksum that holds ---------------------------------------------------------------- */

typedef struct lie {
    const char *what;
    size_t at, size;
    uint64_t value;
} lie;

#define LIE(field, value)                                                                                              \
    {                                                                                                                  \
#field " = " #value, offsetof(fixture_table, field), sizeof(((fixture_table *)0)->field), (uint64_t)(value)    \
    }

static const lie lies[] = {
    LIE(head.magic[0], 'm'),
    LIE(head.table_bytes, 64),
    LIE(head.table_bytes, 1 << 30),
    LIE(head.weights_bytes, 1 << 30),
    LIE(head.name_at, sizeof(fixture_table)),
    LIE(head.name_at, UINT32_MAX),
    LIE(head.compiler_at, UINT32_MAX),
    LIE(head.images_at, UINT32_MAX - 7),
    LIE(head.images_at, 4), /* not aligned */
    LIE(head.image_count, 0),
    LIE(head.image_count, MDOT_ABI_MAX_IMAGES + 1),
    LIE(head.image_count, UINT32_MAX),
    LIE(head.image_count, 3),  /* the next is all zeros */
    LIE(head.bucket_count, 2), /* fewer than there are */
    LIE(head.bucket_count, 4),
    LIE(cpu_image[0].kind, 0),
    LIE(cpu_image[0].kind, MDOT_IMAGE_CUDA), /* none is for CPUs */
    LIE(cpu_image[1].kind, MDOT_IMAGE_CUDA), /* without a cubin */
    LIE(cpu_image[0].number, 0),
    LIE(cpu_image[1].number, 1), /* twice */
    LIE(cpu_image[0].target_at, UINT32_MAX),
    LIE(cpu_image[0].compute_at, UINT32_MAX),
    LIE(cpu_image[0].kernels_at, UINT32_MAX - 7),
    LIE(cpu_image[0].kernels_at, 12),
    LIE(cpu_image[0].kernel_count, 2),
    LIE(cpu_image[0].kernel_count, UINT32_MAX),
    LIE(cpu_image[0].weights_offset, 1),
    LIE(cpu_image[0].weights_offset, 64), /* as many bytes lie behind it as none */
    LIE(cpu_image[0].weights_offset, UINT64_MAX - 63),
    LIE(cpu_image[0].weights_bytes, 65),
    LIE(cpu_image[0].weights_bytes, UINT64_MAX),
    LIE(function[0][0].code, FIXTURE_CODES),
    LIE(function[1][2].code, UINT32_MAX),
    LIE(function[0][0].scratch_bytes, UINT64_MAX),
    LIE(function[0][0].worker_bytes, 32),
    LIE(function[0][0].worker_bytes, 1 << 20), /* more than the first worker's */
    LIE(function[0][0].worker_bytes, UINT64_MAX - 63),
    LIE(head.entries_at, offsetof(fixture_table, entry) + 4),
    LIE(head.entries_at, UINT32_MAX - 7),
    LIE(head.entry_count, 0),
    LIE(head.entry_count, UINT32_MAX),
    LIE(head.code_count, 5),
    LIE(head.code_count, UINT32_MAX),
    LIE(entry[0].name_at, UINT32_MAX),
    LIE(entry[0].inputs_at, UINT32_MAX - 7),
    LIE(entry[0].inputs_at, 12),
    LIE(entry[0].input_count, UINT32_MAX),
    LIE(entry[0].input_count, 0), /* nothing tells the length */
    LIE(entry[0].outputs_at, UINT32_MAX - 7),
    LIE(entry[0].output_count, UINT32_MAX),
    LIE(entry[0].buckets_at, UINT32_MAX - 7),
    LIE(entry[0].bucket_count, 0),
    LIE(entry[0].bucket_count, UINT32_MAX),
    LIE(entry[0].has_length, 0),
    LIE(entry[1].has_length, 1),
    LIE(predict_input[0].name_at, UINT32_MAX),
    LIE(predict_input[0].dtype, 0),
    LIE(predict_input[0].dtype, MDOT_DTYPE_STRING),
    LIE(predict_input[0].dtype, 99),
    LIE(predict_input[0].rank, MDOT_MAX_RANK + 1),
    LIE(predict_input[0].rank, UINT32_MAX),
    LIE(predict_input[0].dim[0].scale, INT64_MAX),
    LIE(predict_input[0].dim[0].scale, -1),
    LIE(predict_input[0].dim[0].offset, INT64_MAX),
    LIE(predict_input[0].dim[0].offset, INT64_MIN),
    LIE(predict_input[0].dim[1].offset, INT64_MAX),
    LIE(predict_output[1].dim[0].offset, -4),
    LIE(double_input[0].dim[0].scale, 1),
    LIE(predict_bucket[0].max_length, 0),
    LIE(predict_bucket[0].max_length, -4),
    LIE(predict_bucket[0].max_length, FIXTURE_MAX_LENGTH),
    LIE(predict_bucket[1].max_length, INT64_MAX),
    LIE(predict_bucket[0].number, FIXTURE_IMAGE_KERNELS),
    LIE(predict_bucket[0].number, UINT32_MAX),
    LIE(predict_bucket[0].kernels_at, UINT32_MAX - 7),
    LIE(predict_bucket[0].kernel_count, UINT32_MAX),
    LIE(kernel[1].name_at, UINT32_MAX),
    LIE(kernel[1].kind_at, sizeof(fixture_table)),
    LIE(double_bucket[0].max_length, 3),
};

static void lying_table_is_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        fixture f = copy_fixture();
        memcpy((char *)fixture_table_of(&f) + lies[i].at, &lies[i].value, lies[i].size);
        fixture_seal(&f);
        mdot_error err;
        mdot_status status = open_bytes(f.bytes, f.size_bytes, NULL, &err);
        if (status != MDOT_MALFORMED) fail_msg("%s: %s", lies[i].what, mdot_status_name(status));
        free(f.bytes);
    }
}

static void equal_names_are_malformed(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    fixture_table_of(&f)->predict_input[1].name_at = fixture_table_of(&f)->predict_input[0].name_at;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "named x");
    free(f.bytes);
    f = copy_fixture();
    fixture_table_of(&f)->entry[1].name_at = fixture_table_of(&f)->entry[0].name_at;
    fixture_seal(&f);
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "two entries");
    free(f.bytes);
}

static void string_without_an_end_is_malformed(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    fixture_table *table = fixture_table_of(&f);
    memset(table->text + sizeof table->text - 8, 'x', 8);
    table->kernel[0].name_at = sizeof *table - 4;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    free(f.bytes);
}

static void code_outside_the_executable_segment_is_malformed(void **state)
{
    (void)state;
    const int64_t elsewhere[] = {0, INT64_MAX, INT64_MIN, -(INT64_C(1) << 40), INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        fixture f = copy_fixture();
        size_t at, size;
        assert_true(fixture_find_section(f.bytes, f.size_bytes, MDOT_ABI_SECTION_CODE, &at, &size));
        memcpy(f.bytes + at + 2 * sizeof(int64_t), &elsewhere[i], sizeof(int64_t));
        fixture_seal(&f);
        mdot_error err;
        assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
        assert_says(&err, "entry function 2");
        free(f.bytes);
    }
}

static void section_in_a_writable_segment_is_malformed(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)f.bytes;
    Elf64_Phdr *segment = (Elf64_Phdr *)(f.bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD) segment[i].p_flags |= PF_W;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "read-only");
    free(f.bytes);
}

static void artefact_with_an_initialiser_is_malformed(void **state)
{
    (void)state;
    fixture f = copy_fixture();
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)f.bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(f.bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_DYNAMIC) ((Elf64_Dyn *)(f.bytes + segment[i].p_offset))[0].d_tag = DT_INIT;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_says(&err, "initialiser");
    free(f.bytes);
}

/* ---- CPU levels -------------------------------------------------------------------------------------------------- */

static const char *level_in_use(const mdot_open_options *options)
{
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    if (mdot_predictor_open(path, options, &predictor, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    const char *level = strcmp(info.cpu_level, "x86-64-v3") == 0 ? "x86-64-v3" : "x86-64-v4";
    assert_string_equal(info.cpu_level, level);
    mdot_predictor_close(predictor);
    unlink(path);
    free(path);
    return level;
}

static void best_level_is_used(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    assert_string_equal(level_in_use(NULL), fixture_machine_runs(MDOT_CPU_X86_64_V4) ? "x86-64-v4" : "x86-64-v3");
}

static void level_is_forced_by_option_and_by_environment(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    assert_string_equal(
        level_in_use(&(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_level = "x86-64-v3"}),
        "x86-64-v3");
    setenv("MDOT_CPU_LEVEL", "x86-64-v3", 1);
    assert_string_equal(level_in_use(NULL), "x86-64-v3");
    setenv("MDOT_CPU_LEVEL", "x86-64-v9", 1);
    assert_string_equal(
        level_in_use(&(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_level = "x86-64-v3"}),
        "x86-64-v3");
    mdot_error err;
    assert_int_equal(open_bytes(shared.bytes, shared.size_bytes, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_says(&err, "x86-64-v9");
    unsetenv("MDOT_CPU_LEVEL");
}

static void level_that_the_artefact_lacks_is_incompatible(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = copy_fixture();
    fixture_table *table = fixture_table_of(&f);
    table->head.image_count = 1;
    table->cpu_image[0] = table->cpu_image[1];
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(
        open_bytes(f.bytes, f.size_bytes,
                   &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_level = "x86-64-v3"}, &err),
        MDOT_INCOMPATIBLE);
    assert_says(&err, "x86-64-v3 was asked for");
    assert_says(&err, "x86-64-v4 only");
    free(f.bytes);
}

static void levels_of_newer_compilers_are_passed_over(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = copy_fixture();
    fixture_table_of(&f)->cpu_image[1].number = 77;
    fixture_seal(&f);
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, NULL), MDOT_OK);
    fixture_table_of(&f)->cpu_image[0].number = 76;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    free(f.bytes);
}

/* ---- Opening twice ------------------------------------------------------------------------------------------------
 */

/* glibc knows loaded objects by name, and descriptor numbers are used again: a file must never be taken for another
 * that was opened through the same number. */
static void other_artefact_opened_while_one_is_loaded_is_itself(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = copy_fixture();
    fixture_table_of(&f)->entry[0].schema_hash = 99;
    fixture_seal(&f);
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    mdot_predictor *first = NULL, *again = NULL;
    assert_int_equal(mdot_predictor_open(path, NULL, &first, NULL), MDOT_OK);
    assert_int_equal(mdot_predictor_open(path, NULL, &again, NULL), MDOT_OK);
    mdot_predictor_close(first);
    mdot_predictor *other = fixture_predictor(&f);
    mdot_entry_info e = MDOT_INIT(mdot_entry_info);
    assert_int_equal(mdot_predictor_get_entry(other, 0, &e), MDOT_OK);
    assert_int_equal(e.schema_hash, 99);
    assert_int_equal(mdot_predictor_get_entry(again, 0, &e), MDOT_OK);
    assert_int_equal(e.schema_hash, 11);
    mdot_predictor_close(again);
    mdot_predictor_close(other);
    unlink(path);
    free(path);
    free(f.bytes);
}

static void no_descriptor_stays_open(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    int before = dup(0);
    close(before);
    mdot_predictor *p = fixture_predictor(&shared);
    assert_int_equal(open_bytes(shared.bytes, 100, NULL, NULL), MDOT_MALFORMED);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    mdot_predictor_close(p);
}

static void options_need_both_memory_functions(void **state)
{
    (void)state;
    mdot_open_options options = {.struct_size = sizeof options, .release = (void (*)(void *, void *))abort};
    mdot_error err;
    assert_int_equal(open_bytes(shared.bytes, shared.size_bytes, &options, &err), MDOT_INVALID_ARGUMENT);
    assert_says(&err, "both or neither");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_file_is_not_found),
        cmocka_unit_test(arguments_that_are_missing_are_invalid),
        cmocka_unit_test(directory_is_malformed),
        cmocka_unit_test(named_pipe_is_refused_without_waiting),
        cmocka_unit_test(empty_file_is_malformed),
        cmocka_unit_test(file_of_another_kind_is_malformed),
        cmocka_unit_test(ordinary_shared_object_is_malformed),
        cmocka_unit_test(another_machines_artefact_is_incompatible),
        cmocka_unit_test(file_truncated_anywhere_is_malformed),
        cmocka_unit_test(longer_file_is_malformed),
        cmocka_unit_test(one_flipped_bit_is_found),
        cmocka_unit_test(damaged_weights_are_corrupt),
        cmocka_unit_test(other_abi_version_is_incompatible),
        cmocka_unit_test(lying_table_is_malformed),
        cmocka_unit_test(equal_names_are_malformed),
        cmocka_unit_test(string_without_an_end_is_malformed),
        cmocka_unit_test(code_outside_the_executable_segment_is_malformed),
        cmocka_unit_test(section_in_a_writable_segment_is_malformed),
        cmocka_unit_test(artefact_with_an_initialiser_is_malformed),
        cmocka_unit_test(best_level_is_used),
        cmocka_unit_test(level_is_forced_by_option_and_by_environment),
        cmocka_unit_test(level_that_the_artefact_lacks_is_incompatible),
        cmocka_unit_test(levels_of_newer_compilers_are_passed_over),
        cmocka_unit_test(other_artefact_opened_while_one_is_loaded_is_itself),
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(options_need_both_memory_functions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
