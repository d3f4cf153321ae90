/* test_job_file.c — runtime/job/job_file.c: intact, damaged and later-version `.job` files. */
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FILE_BYTES = 4096 };

typedef struct file {
    char *folder, *path;
    unsigned char bytes[MAX_FILE_BYTES];
    size_t size;
} file;

static int set_up(void **state)
{
    file *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->folder = process_make_folder();
    if (asprintf(&f->path, "%s/net.job", f->folder) < 0) return -1;
    mdot_job *job = job_file_make();
    mdot_error err = {0};
    if (mdot_job_save(job, f->path, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(job);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    f->size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    assert_compare(f->size, >, JOB_FILE_HEADER_BYTES);
    assert_compare(f->size, <, MAX_FILE_BYTES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    file *f = *state;
    process_remove_folder(f->folder);
    free(f->path);
    free(f);
    return 0;
}

static void saved_job_loads_unchanged(void **state)
{
    file *f = *state;
    mdot_job *job = job_file_make(), *loaded = NULL;
    mdot_error err = {0};
    if (mdot_job_load(f->path, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    job_file_expect_same(job, loaded);
    assert_int_equal(mdot_job_save(loaded, f->path, &err), MDOT_OK); /* overwrites the loaded file */
    mdot_job_destroy(loaded);
    assert_int_equal(mdot_job_load(f->path, &loaded, &err), MDOT_OK);
    job_file_expect_same(job, loaded);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

/* ---- Every field ------------------------------------------------------------------------------------------------- */

/* Changes field number `which` in a job. Returns false if the job has fewer fields. */
static bool change(mdot_job_description *d, mdot_job_operator *operators, int which)
{
    enum { SETTINGS = MDOT_SETTING_COUNT, COSTS = 6 * MDOT_PHASE_COUNT };
    static const uint32_t other[] = {0, 1};
    mdot_job_operator *op = &operators[2];
    if (which < SETTINGS) {
        op->setting[which]++;
        return true;
    }
    which -= SETTINGS;
    if (which < COSTS) {
        mdot_load *load = &(which % 2 ? op->per_sample : op->per_step)[which / 6];
        *(which / 2 % 3 == 0 ? &load->flops : which / 2 % 3 == 1 ? &load->bytes_read : &load->bytes_written) += 5;
        return true;
    }
    uint32_t *const traits[] = {&op->traits.number,      &op->traits.autocast,         &op->traits.saved_written,
                                &op->traits.saved_fused, &op->traits.saved_recomputed, &op->traits.reserve,
                                &op->traits.traits};
    which -= COSTS;
    if (which < 7) {
        *traits[which] += 1000;
        return true;
    }
    switch (which - 7) {
    case 0: return op->type = "com.example:Fancier", true;
    case 1: return op->known = !op->known, true;
    case 2: return op->parameters = 1, true;
    case 3: return op->inputs = other, op->input_count = 2, true;
    case 4: return op->block = 0, true;
    case 5: return op->module = NULL, true;
    case 6: return op->module = "decoder", true;
    case 7: return d->batch++, true;
    case 8: return d->optimizer = MDOT_OPTIMIZER_ADAM, true;
    case 9: return d->has_optimizer = false, true;
    case 10: return d->notes = MDOT_JOB_FOLDED, true;
    case 11: return d->notes = MDOT_JOB_MAYBE_FOLDED, true;
    case 12: return op->frozen_parameters = 1, true;
    case 13: return op->flags = MDOT_OPERATOR_RECOMPUTED, true;
    default: return false;
    }
}

static void every_field_round_trips_through_a_file(void **state)
{
    file *f = *state;
    mdot_job *plain = job_file_make();
    int count = 0;
    for (;; count++) {
        mdot_job_operator operators[4];
        mdot_job_description d = job_file_describe(operators);
        if (!change(&d, operators, count)) break;
        mdot_job *job = job_file_create(&d), *loaded = NULL;
        if (job_file_equal(plain, job)) fail_msg("change %d makes no difference", count);
        assert_int_equal(mdot_job_save(job, f->path, NULL), MDOT_OK);
        assert_int_equal(mdot_job_load(f->path, &loaded, NULL), MDOT_OK);
        if (!job_file_equal(job, loaded)) fail_msg("change %d does not come back", count);
        mdot_job_destroy(loaded);
        mdot_job_destroy(job);
    }
    assert_compare(count, >=, 60);
    mdot_job_destroy(plain);
}

static void job_without_names_has_no_module_section(void **state)
{
    file *f = *state;
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    for (int i = 0; i < 4; i++) operators[i].module = NULL;
    mdot_job *job = job_file_create(&d);
    assert_non_null(memmem(f->bytes, f->size, "encoder", 7));
    assert_int_equal(mdot_job_save(job, f->path, NULL), MDOT_OK);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    size_t size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    assert_compare(size, >, JOB_FILE_HEADER_BYTES);
    assert_compare(size, <, f->size);
    assert_null(memmem(f->bytes, size, "encoder", 7));
    mdot_job_destroy(job);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------ */

static void a_file_truncated_anywhere_is_refused(void **state)
{
    file *f = *state;
    for (size_t size = 0; size < f->size; size++) job_file_expect_fault(f->bytes, size, MDOT_MALFORMED);
    job_file_expect_fault(f->bytes, f->size + 1, MDOT_MALFORMED);
}

static void a_damaged_file_is_named(void **state)
{
    file *f = *state;
    mdot_job *none = NULL;
    mdot_error err = {0};
    assert_int_equal(truncate(f->path, (off_t)f->size - 1), 0);
    assert_int_equal(mdot_job_load(f->path, &none, &err), MDOT_MALFORMED);
    assert_null(none);
    assert_ptr_equal(strstr(err.message, f->path), err.message);
}

static void every_flipped_bit_is_found(void **state)
{
    file *f = *state;
    for (size_t bit = 0; bit < 8 * f->size; bit++) {
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = bit / 8;
        mdot_status expected = at < 8                ? MDOT_MALFORMED    /* magic */
                               : at < 12             ? MDOT_INCOMPATIBLE /* version */
                               : at >= 16 && at < 24 ? MDOT_MALFORMED    /* size */
                                                     : MDOT_CORRUPT;
        job_file_expect_fault(f->bytes, f->size, expected);
        f->bytes[at] ^= (unsigned char)(1u << bit % 8);
    }
}

/* Damage missed by the checksum, which was computed after it. */
static void damaged_content_is_refused_or_gives_a_job(void **state)
{
    file *f = *state;
    int refused = 0;
    for (size_t at = 12; at < f->size; at++) {
        if (at == 16) at = JOB_FILE_CHECKSUM_END;
        unsigned char whole = f->bytes[at];
        for (int value = 0; value < 256; value++) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            f->bytes[at] = (unsigned char)value;
            job_file_sign(f->bytes, f->size);
            mdot_status status = job_file_parse(f->bytes, f->size, &job, &err);
            assert_true(status == MDOT_OK || status == MDOT_MALFORMED || status == MDOT_INCOMPATIBLE);
            assert_int_equal(status == MDOT_OK, job != NULL);
            refused += status != MDOT_OK;
            mdot_job_destroy(job);
        }
        f->bytes[at] = whole;
    }
    assert_compare(refused, >, 1000);
    for (size_t size = JOB_FILE_CHECKSUM_END; size < f->size; size++) { /* cut, and sealed with a new checksum */
        unsigned char bytes[MAX_FILE_BYTES];
        memcpy(bytes, f->bytes, size);
        job_file_sign(bytes, size);
        job_file_expect_fault(bytes, size, MDOT_MALFORMED);
    }
}

static void too_many_operators_are_refused(void **state)
{
    file *f = *state;
    const uint32_t limit = UINT32_C(1) << 22;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t count = limit + i;
        mdot_job *job = NULL;
        mdot_error err = {0};
        memcpy(f->bytes + 12, &count, sizeof count);
        job_file_sign(f->bytes, f->size);
        assert_int_equal(job_file_parse(f->bytes, f->size, &job, &err), MDOT_MALFORMED);
        assert_int_equal(strstr(err.message, "the limit is 4194304") != NULL, i == 1);
    }
}

/* Setting 2^40 has the same encoded length as some values out of range. The checksum is valid. */
static void settings_beyond_their_range_are_refused(void **state)
{
    file *f = *state;
    static const unsigned char most[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x40};
    static const unsigned char more[][6] = {{0x82, 0x80, 0x80, 0x80, 0x80, 0x40},  /* one above the limit */
                                            {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F},  /* 2^41 - 1 */
                                            {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F},  /* -2^41 */
                                            {0x81, 0x80, 0x80, 0x80, 0x80, 0x00}}; /* -1 with a superfluous byte */
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    operators[1].setting[MDOT_SETTING_GROUPS] = INT64_C(1) << 40;
    mdot_job *job = job_file_create(&d), *loaded = NULL;
    assert_int_equal(mdot_job_save(job, f->path, NULL), MDOT_OK);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    size_t size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    unsigned char *at = memmem(f->bytes, size, most, sizeof most);
    assert_non_null(at);
    assert_int_equal(job_file_parse(f->bytes, size, &loaded, NULL), MDOT_OK);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        memcpy(at, more[i], sizeof *more);
        job_file_sign(f->bytes, size);
        job_file_expect_fault(f->bytes, size, MDOT_MALFORMED);
    }
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

enum { REQUIRED = 1 };

/* Appends a field to the section's only record (JOB), or two bytes to each record (TYPES and OPERATORS). The test's
 * record sizes fit into one byte. */
static void append_fields(job_file_section *s, unsigned char *out)
{
    size_t size = 0, at = 0;
    if (s->tag == 1) {
        memcpy(out, s->bytes, s->size);
        size = at = s->size;
        out[size++] = 77;
    }
    if (s->tag == 2) out[size++] = s->bytes[at++]; /* the type count */
    while (at < s->size) {
        size_t record = 1u + s->bytes[at];
        memcpy(out + size, s->bytes + at, record);
        out[size] = (unsigned char)(out[size] + 2);
        assert_compare(out[size], <, 0x80);
        at += record;
        size += record;
        out[size++] = s->tag == 3 ? 0 : 5; /* operators end with the mask of batch settings */
        out[size++] = 9;
    }
    s->bytes = out;
    s->size = size;
}

static void appended_fields_and_optional_sections_are_skipped(void **state)
{
    file *f = *state;
    mdot_job *job = job_file_make();
    for (uint32_t tag = 0; tag <= 3; tag++) {
        unsigned char bytes[MAX_FILE_BYTES], longer[MAX_FILE_BYTES];
        job_file_section sections[JOB_FILE_MAX_SECTIONS];
        size_t count = job_file_list_sections(f->bytes, sections);
        if (tag == 0)
            sections[count++] = (job_file_section){.tag = 9, .size = 3, .bytes = (const unsigned char *)"abc"};
        if (tag > 0) append_fields(&sections[tag - 1], longer);
        size_t size = job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES);
        assert_compare(size, >, f->size);
        mdot_job *later = NULL;
        mdot_error err = {0};
        if (job_file_parse(bytes, size, &later, &err) != MDOT_OK)
            fail_msg("section %u: %s", (unsigned)tag, err.message);
        job_file_expect_same(job, later);
        mdot_job_destroy(later);
    }
    mdot_job_destroy(job);
}

static void unknown_required_sections_are_refused(void **state)
{
    file *f = *state;
    unsigned char bytes[MAX_FILE_BYTES];
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    mdot_job *job = NULL;
    mdot_error err = {0};
    size_t count = job_file_list_sections(f->bytes, sections);
    sections[count++] =
        (job_file_section){.tag = 9, .flags = REQUIRED, .size = 3, .bytes = (const unsigned char *)"abc"};
    size_t size = job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES);
    assert_int_equal(job_file_parse(bytes, size, &job, &err), MDOT_INCOMPATIBLE);
    expect_contains(err.message, "section of kind 9");
    expect_contains(err.message, "mdot extract");
}

static void missing_repeated_and_unordered_sections_are_refused(void **state)
{
    file *f = *state;
    unsigned char bytes[MAX_FILE_BYTES];
    job_file_section all[JOB_FILE_MAX_SECTIONS];
    assert_int_equal(job_file_list_sections(f->bytes, all), 4);
    static const int orders[][4] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 0, 1, 2}, {1, 0, 2, 3}, {0, 1, 3, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        job_file_section sections[4];
        size_t count = i < 3 ? 3 : 4;
        for (size_t k = 0; k < count; k++) sections[k] = all[orders[i][k]];
        size_t size = job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES);
        job_file_expect_fault(bytes, size, MDOT_MALFORMED);
    }
    job_file_section optional[3] = {all[0], all[1], all[2]}; /* without module names */
    mdot_job *job = NULL;
    size_t size = job_file_write_sections(f->bytes, optional, 3, bytes, MAX_FILE_BYTES);
    assert_int_equal(job_file_parse(bytes, size, &job, NULL), MDOT_OK);
    mdot_job_destroy(job);
}

static void all_sections_but_the_names_of_modules_are_required(void **state)
{
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    size_t count = job_file_list_sections(((file *)*state)->bytes, sections);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) assert_int_equal(sections[i].flags, sections[i].tag == 4 ? 0 : REQUIRED);
}

/* A type record has the name, whether the type is known, and the traits. */
static void cut_records_of_types_and_other_truths_are_refused(void **state)
{
    file *f = *state;
    unsigned char bytes[MAX_FILE_BYTES], types[MAX_FILE_BYTES];
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    size_t count = job_file_list_sections(f->bytes, sections);
    job_file_section *all = &sections[1];
    assert_compare(all->tag, ==, 2);
    assert_compare(all->size, <, sizeof types);
    memcpy(types, all->bytes, all->size);
    size_t known_at = 3u + types[2]; /* behind the type count, the record size and the name */
    assert_in_range(types[known_at], 0, 1);
    all->bytes = types;
    types[known_at] = 2;
    job_file_expect_fault(bytes, job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES),
                          MDOT_MALFORMED);
    types[known_at] = 1;
    size_t end = 2u + types[1]; /* in the first record */
    memmove(types + end - 1, types + end, all->size - end);
    types[1]--;
    all->size--;
    job_file_expect_fault(bytes, job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES),
                          MDOT_MALFORMED);
}

static void bytes_behind_the_last_section_are_refused(void **state)
{
    file *f = *state;
    assert_compare(f->size + 2, <, MAX_FILE_BYTES);
    for (size_t more = 1; more <= 2; more++) {
        f->bytes[f->size + more - 1] = 0;
        job_file_sign(f->bytes, f->size + more);
        job_file_expect_fault(f->bytes, f->size + more, MDOT_MALFORMED);
    }
}

static void a_file_that_ends_behind_its_checksum_is_called_truncated(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(job_file_parse(f->bytes, JOB_FILE_CHECKSUM_END, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, "it is truncated");
    assert_int_equal(job_file_parse(f->bytes, JOB_FILE_CHECKSUM_END - 1, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, "the header of a job file");
}

static void a_list_of_no_modules_is_read(void **state)
{
    file *f = *state;
    unsigned char bytes[MAX_FILE_BYTES];
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    size_t count = job_file_list_sections(f->bytes, sections);
    sections[3].bytes = (const unsigned char[1 + JOB_FILE_OPERATORS]){0}; /* empty job and operator names */
    sections[3].size = 1 + JOB_FILE_OPERATORS;
    size_t size = job_file_write_sections(f->bytes, sections, count, bytes, MAX_FILE_BYTES);
    if (job_file_parse(bytes, size, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(mdot_job_get_operator(job, 0, &op), MDOT_OK);
    assert_null(op.module);
    mdot_job_destroy(job);
}

static void files_of_other_versions_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    static const unsigned char versions[] = {1, 2, 4};
    for (size_t i = 0; i < sizeof versions; i++) {
        char expected[64];
        f->bytes[8] = versions[i];
        job_file_sign(f->bytes, f->size);
        assert_int_equal(job_file_parse(f->bytes, f->size, &job, &err), MDOT_INCOMPATIBLE);
        snprintf(expected, sizeof expected, "the job file has format version %d, and mdot", versions[i]);
        expect_contains(err.message, expected);
        expect_contains(err.message, "reads version 3");
        expect_contains(err.message, "read the ONNX file again with `mdot extract`");
    }
}

static void files_that_cannot_be_read_or_written_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = job_file_make(), *none = NULL;
    mdot_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/absent.job", f->folder);
    assert_int_equal(mdot_job_load(path, &none, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(mdot_job_load(f->folder, &none, &err), MDOT_IO);
    snprintf(path, sizeof path, "%s/absent/net.job", f->folder);
    assert_int_equal(mdot_job_save(job, path, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_null(none);
    mdot_job_destroy(job);
}

/* A sparse file, which takes no disk space, and a file in memory with only a header. */
static void oversized_files_are_refused_unread(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(truncate(f->path, (off_t)1 << 40), 0);
    assert_int_equal(mdot_job_load(f->path, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, f->path);
    expect_contains(err.message, "the maximum is 268435456");
    assert_int_equal(mdot_job_parse(f->bytes, ((size_t)1 << 28) + 1, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, "the limit is 268435456");
    assert_null(job);
}

/* Loading and saving return at once, and the pipe stays a pipe. */
static void pipes_are_refused(void **state)
{
    file *f = *state;
    mdot_job *job = NULL, *made = job_file_make();
    mdot_error err = {0};
    struct stat info;
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    alarm(60);
    assert_int_equal(mdot_job_load(f->path, &job, &err), MDOT_IO);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(mdot_job_save(made, f->path, &err), MDOT_INVALID_ARGUMENT);
    alarm(0);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(lstat(f->path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(process_count_files(f->folder), 1);
    mdot_job_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(saved_job_loads_unchanged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_field_round_trips_through_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_without_names_has_no_module_section, set_up, tear_down),
        cmocka_unit_test_setup_teardown(appended_fields_and_optional_sections_are_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_required_sections_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_repeated_and_unordered_sections_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_sections_but_the_names_of_modules_are_required, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_records_of_types_and_other_truths_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_behind_the_last_section_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_ends_behind_its_checksum_is_called_truncated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_of_no_modules_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_other_versions_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_truncated_anywhere_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_operators_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(settings_beyond_their_range_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_content_is_refused_or_gives_a_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read_or_written_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(oversized_files_are_refused_unread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pipes_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
