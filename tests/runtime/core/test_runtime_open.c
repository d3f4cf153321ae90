/* test_runtime_open.c — files accepted and refused by mdot_predictor_open. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/process.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static mdot_status open_bytes(const void *bytes, size_t size_bytes, const mdot_open_options *options, mdot_error *err)
{
    char *path = fixture_save(&fixture_shared, bytes, size_bytes);
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

static void assert_message(const mdot_error *err, const char *words)
{
    if (strstr(err->message, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", err->message, words);
}

/* ---- Files that are not artefacts -------------------------------------------------------------------------------- */

static void missing_file_is_not_found(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_path("/nonexistent/predictor.mdot", &err), MDOT_NOT_FOUND);
    assert_message(&err, "/nonexistent/predictor.mdot");
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

static void a_directory_is_refused(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_path(fixture_shared.folder, &err), MDOT_IO);
    assert_message(&err, "a directory");
}

static void named_pipe_is_refused_without_waiting(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/pipe", fixture_shared.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    mdot_error err;
    assert_int_equal(open_path(path, &err), MDOT_IO);
    assert_message(&err, "pipe: not a regular file");
}

static void empty_file_is_malformed(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(open_bytes("", 0, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "empty");
}

static void file_of_another_kind_is_malformed(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    mdot_error err;
    assert_int_equal(open_bytes(text, sizeof text, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "not an ELF file");
}

static void ordinary_shared_object_is_malformed(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    /* the same file under other section names */
    for (unsigned char *p = f.bytes; (p = memmem(p, (size_t)(f.bytes + f.size_bytes - p), ".mdot.", 6)) != NULL; p++)
        p[1] = 'o';
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "not an artefact");
    free(f.bytes);
}

static void another_machines_artefact_is_incompatible(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    ((Elf64_Ehdr *)f.bytes)->e_machine = EM_AARCH64;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    assert_message(&err, "another processor");
    free(f.bytes);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------ */

static void file_truncated_anywhere_is_malformed(void **state)
{
    (void)state;
    for (size_t size = 64; size < fixture_shared.size_bytes; size += 64) {
        mdot_error err;
        mdot_status status = open_bytes(fixture_shared.bytes, size, NULL, &err);
        if (status != MDOT_MALFORMED)
            fail_msg("%zu of %zu bytes: %s", size, fixture_shared.size_bytes, mdot_status_name(status));
    }
}

static void file_with_trailing_bytes_is_malformed(void **state)
{
    (void)state;
    unsigned char *longer = calloc(1, fixture_shared.size_bytes + 64);
    memcpy(longer, fixture_shared.bytes, fixture_shared.size_bytes);
    mdot_error err;
    assert_int_equal(open_bytes(longer, fixture_shared.size_bytes + 64, NULL, &err), MDOT_MALFORMED);
    free(longer);
}

/* One bit is flipped in every byte of the headers and of the table, and in every 61st byte elsewhere. Because 61 is
 * prime, all record columns are covered. Only two fields are checked before the checksum: the machine and the ABI
 * version. */
static void one_flipped_bit_is_found(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
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
    fixture f = fixture_copy(&fixture_shared);
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
    fixture f = fixture_copy(&fixture_shared);
    fixture_table_of(&f)->head.abi_version = MDOT_ABI_VERSION + 1;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    char expected[48];
    snprintf(expected, sizeof expected, "reads version %d", MDOT_ABI_VERSION);
    assert_message(&err, expected);
    free(f.bytes);
}

/* ---- Files that request something of the loader ------------------------------------------------------------------ */

static void section_in_a_writable_segment_is_malformed(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)f.bytes;
    Elf64_Phdr *segment = (Elf64_Phdr *)(f.bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD) segment[i].p_flags |= PF_W;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "read-only");
    free(f.bytes);
}

static void artefact_with_an_initialiser_is_malformed(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)f.bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(f.bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_DYNAMIC) ((Elf64_Dyn *)(f.bytes + segment[i].p_offset))[0].d_tag = DT_INIT;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "initialiser");
    free(f.bytes);
}

/* ---- CPU levels -------------------------------------------------------------------------------------------------- */

static const char *level_in_use(const mdot_open_options *options)
{
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    if (mdot_predictor_open(path, options, &predictor, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    const char *level = strcmp(info.cpu_isa, "x86-64-v3") == 0 ? "x86-64-v3" : "x86-64-v4";
    assert_string_equal(info.cpu_isa, level);
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
        level_in_use(&(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_isa = "x86-64-v3"}),
        "x86-64-v3");
    setenv("MDOT_CPU_ISA", "x86-64-v3", 1);
    assert_string_equal(level_in_use(NULL), "x86-64-v3");
    setenv("MDOT_CPU_ISA", "x86-64-v9", 1);
    assert_string_equal(
        level_in_use(&(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_isa = "x86-64-v3"}),
        "x86-64-v3");
    mdot_error err;
    assert_int_equal(open_bytes(fixture_shared.bytes, fixture_shared.size_bytes, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_message(&err, "x86-64-v9");
    unsetenv("MDOT_CPU_ISA");
}

static void level_that_the_artefact_lacks_is_incompatible(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = fixture_copy(&fixture_shared);
    fixture_table *table = fixture_table_of(&f);
    table->head.image_count = 1;
    table->cpu_image[0] = table->cpu_image[1];
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes,
                                &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_isa = "x86-64-v3"},
                                &err),
                     MDOT_INCOMPATIBLE);
    assert_message(&err, "cpu_isa is x86-64-v3");
    assert_message(&err, "only for x86-64-v4");
    free(f.bytes);
}

static void levels_of_newer_compilers_are_skipped(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = fixture_copy(&fixture_shared);
    fixture_table_of(&f)->cpu_image[1].number = 77;
    fixture_seal(&f);
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, NULL), MDOT_OK);
    fixture_table_of(&f)->cpu_image[0].number = 76;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_INCOMPATIBLE);
    free(f.bytes);
}

/* ---- Precision --------------------------------------------------------------------------------------------------- */

/* Two images for one target. The second has precision "double", a name in the table already. */
static fixture fixture_of_two_precisions(void)
{
    fixture f = fixture_copy(&fixture_shared);
    fixture_table *table = fixture_table_of(&f);
    table->cpu_image[1] = table->cpu_image[0];
    table->cpu_image[1].compute_at = table->entry[1].name_at;
    fixture_seal(&f);
    return f;
}

static void assert_computes_in(const fixture *f, const char *requested, const char *want)
{
    char *path = fixture_save(&fixture_shared, f->bytes, f->size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_open_options options = {.struct_size = sizeof options, .kernel_precision = requested};
    mdot_error err = {0};
    if (mdot_predictor_open(path, &options, &predictor, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    assert_string_equal(info.kernel_precision, want);
    assert_string_equal(info.cpu_isa, "x86-64-v3");
    mdot_predictor_close(predictor);
    unlink(path);
    free(path);
}

static void precision_defaults_to_the_first_image_of_the_target(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = fixture_of_two_precisions();
    assert_computes_in(&f, NULL, "fp32");
    assert_computes_in(&f, "fp32", "fp32");
    assert_computes_in(&f, "double", "double");
    free(f.bytes);
}

static void precision_that_the_artefact_lacks_is_incompatible(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    mdot_error err;
    mdot_open_options options = {.struct_size = sizeof options, .kernel_precision = "bf16"};
    assert_int_equal(open_bytes(fixture_shared.bytes, fixture_shared.size_bytes, &options, &err), MDOT_INCOMPATIBLE);
    assert_message(&err, "kernel_precision is bf16");
    assert_message(&err, "computes in fp32");
}

static void duplicate_images_of_one_target_and_precision_are_malformed(void **state)
{
    (void)state;
    fixture f = fixture_of_two_precisions();
    fixture_table_of(&f)->cpu_image[1].compute_at = fixture_table_of(&f)->cpu_image[0].compute_at;
    fixture_seal(&f);
    mdot_error err;
    assert_int_equal(open_bytes(f.bytes, f.size_bytes, NULL, &err), MDOT_MALFORMED);
    assert_message(&err, "two images for x86-64-v3 in fp32");
    free(f.bytes);
}

/* ---- Opening twice ---------------------------------------------------------------------------------------------- */

static void two_artefacts_loaded_together_stay_distinct(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f = fixture_copy(&fixture_shared);
    fixture_table_of(&f)->entry[0].schema_hash = 99;
    fixture_seal(&f);
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
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
    mdot_predictor *p = fixture_predictor(&fixture_shared);
    assert_int_equal(open_bytes(fixture_shared.bytes, 100, NULL, NULL), MDOT_MALFORMED);
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
    assert_int_equal(open_bytes(fixture_shared.bytes, fixture_shared.size_bytes, &options, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_message(&err, "set both or neither");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_file_is_not_found),
        cmocka_unit_test(arguments_that_are_missing_are_invalid),
        cmocka_unit_test(a_directory_is_refused),
        cmocka_unit_test(named_pipe_is_refused_without_waiting),
        cmocka_unit_test(empty_file_is_malformed),
        cmocka_unit_test(file_of_another_kind_is_malformed),
        cmocka_unit_test(ordinary_shared_object_is_malformed),
        cmocka_unit_test(another_machines_artefact_is_incompatible),
        cmocka_unit_test(file_truncated_anywhere_is_malformed),
        cmocka_unit_test(file_with_trailing_bytes_is_malformed),
        cmocka_unit_test(one_flipped_bit_is_found),
        cmocka_unit_test(damaged_weights_are_corrupt),
        cmocka_unit_test(other_abi_version_is_incompatible),
        cmocka_unit_test(section_in_a_writable_segment_is_malformed),
        cmocka_unit_test(artefact_with_an_initialiser_is_malformed),
        cmocka_unit_test(best_level_is_used),
        cmocka_unit_test(level_is_forced_by_option_and_by_environment),
        cmocka_unit_test(level_that_the_artefact_lacks_is_incompatible),
        cmocka_unit_test(levels_of_newer_compilers_are_skipped),
        cmocka_unit_test(precision_defaults_to_the_first_image_of_the_target),
        cmocka_unit_test(precision_that_the_artefact_lacks_is_incompatible),
        cmocka_unit_test(duplicate_images_of_one_target_and_precision_are_malformed),
        cmocka_unit_test(two_artefacts_loaded_together_stay_distinct),
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(options_need_both_memory_functions),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
