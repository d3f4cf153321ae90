/* test_job_file.c — runtime/job/job_file.c: `.job` files that are intact, damaged, or of later versions. */
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
    assert_true(f->size > JOB_FILE_HEADER_BYTES && f->size < MAX_FILE_BYTES);
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

static void a_saved_job_loads_as_it_was(void **state)
{
    file *f = *state;
    mdot_job *job = job_file_make(), *loaded = NULL;
    mdot_error err = {0};
    if (mdot_job_load(f->path, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    job_file_expect_same(job, loaded);
    assert_int_equal(mdot_job_save(loaded, f->path, &err), MDOT_OK); /* overwrites the file that was loaded */
    mdot_job_destroy(loaded);
    assert_int_equal(mdot_job_load(f->path, &loaded, &err), MDOT_OK);
    job_file_expect_same(job, loaded);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

/* ---- Every field ----------------------------------------------------------------------------------------------------
 */

/* Changes field number `which` of a job. Returns false if the job has fewer fields. */
static bool change(mdot_job_description *d, mdot_job_operator *operators, int which)
{
    enum { SETTINGS = MDOT_SETTING_COUNT, LOADS = 6 * MDOT_PHASE_COUNT };
    static const uint32_t other[] = {0, 1};
    mdot_job_operator *op = &operators[2];
    if (which < SETTINGS) {
        op->setting[which]++;
        return true;
    }
    which -= SETTINGS;
    if (which < LOADS) {
        mdot_load *load = &(which % 2 ? op->per_sample : op->per_step)[which / 6];
        *(which / 2 % 3 == 0 ? &load->flops : which / 2 % 3 == 1 ? &load->bytes_read : &load->bytes_written) += 5;
        return true;
    }
    uint32_t *const traits[] = {&op->traits.number,      &op->traits.autocast,         &op->traits.saved_written,
                                &op->traits.saved_fused, &op->traits.saved_recomputed, &op->traits.reserve,
                                &op->traits.traits};
    which -= LOADS;
    if (which < 7) {
        *traits[which] += 1000;
        return true;
    }
    switch (which - 7) {
    case 0:
        return op->type = "com.example:Fancier", true;
    case 1:
        return op->known = !op->known, true;
    case 2:
        return op->parameters = 1, true;
    case 3:
        return op->inputs = other, op->input_count = 2, true;
    case 4:
        return op->block = 0, true;
    case 5:
        return op->module = NULL, true;
    case 6:
        return op->module = "decoder", true;
    case 7:
        return d->batch++, true;
    case 8:
        return d->optimizer = MDOT_OPTIMIZER_ADAM, true;
    case 9:
        return d->has_optimizer = false, true;
    case 10:
        return d->notes = MDOT_JOB_FOLDED, true;
    case 11:
        return d->notes = MDOT_JOB_MAYBE_FOLDED, true;
    default:
        return false;
    }
}

static void every_field_comes_back_from_a_file(void **state)
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
    assert_true(count >= 60);
    mdot_job_destroy(plain);
}

static void a_job_without_names_has_no_section_for_them(void **state)
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
    assert_true(size > JOB_FILE_HEADER_BYTES && size < f->size);
    assert_null(memmem(f->bytes, size, "encoder", 7));
    mdot_job_destroy(job);
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------
 */

static void a_cut_file_is_refused_at_every_byte(void **state)
{
    file *f = *state;
    for (size_t size = 0; size < f->size; size++) job_file_expect_fault(f->bytes, size, MDOT_MALFORMED);
    job_file_expect_fault(f->bytes, f->size + 1, MDOT_MALFORMED);
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

/* Damage that the checksum misses because it was computed after the damage. */
static void broken_content_is_refused_or_a_job(void **state)
{
    file *f = *state;
    int refused = 0;
    for (size_t at = 12; at < f->size; at++) {
        if (at == 16) at = JOB_FILE_HEADER_BYTES;
        unsigned char whole = f->bytes[at];
        for (int value = 0; value < 256; value++) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            f->bytes[at] = (unsigned char)value;
            job_file_sign(f->bytes, f->size);
            mdot_status status = job_file_parse(f->bytes, f->size, &job, &err);
            assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
            assert_int_equal(status == MDOT_OK, job != NULL);
            refused += status != MDOT_OK;
            mdot_job_destroy(job);
        }
        f->bytes[at] = whole;
    }
    assert_true(refused > 1000);
    int whole = 0;
    for (size_t size = JOB_FILE_HEADER_BYTES; size < f->size; size++) { /* cut, and sealed with a new checksum */
        unsigned char bytes[MAX_FILE_BYTES];
        mdot_job *job = NULL;
        memcpy(bytes, f->bytes, size);
        job_file_sign(bytes, size);
        mdot_status status = job_file_parse(bytes, size, &job, NULL);
        assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
        whole += status == MDOT_OK;
        mdot_job_destroy(job);
    }
    assert_int_equal(whole, 1); /* the file up to the last section, which is optional */
}

static void more_operators_than_a_job_may_have_are_refused(void **state)
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
        assert_int_equal(strstr(err.message, "more than 4194304") != NULL, i == 1);
    }
}

/* A setting of 2^40 has the same encoded length as some values beyond the range. The checksum is valid. */
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

/* ---- Versions -------------------------------------------------------------------------------------------------------
 */

/* Simulates a file of a later mdot. The section with this tag has extra bytes after each of its records. With tag 0,
 * there is an additional section instead. Sizes and records of the test's job fit into one byte each. */
static size_t append_to_section(const file *f, int tag, unsigned char *out)
{
    size_t size = JOB_FILE_HEADER_BYTES, at = JOB_FILE_HEADER_BYTES;
    memcpy(out, f->bytes, JOB_FILE_HEADER_BYTES);
    while (at < f->size) {
        const unsigned char *section = f->bytes + at;
        size_t end = at + 2 + section[1];
        assert_true(section[1] < 0x80);
        out[size++] = section[0];
        size_t size_at = size++, from = size;
        at += 2;
        if (section[0] == tag && tag == 1) {
            memcpy(out + size, f->bytes + at, end - at);
            size += end - at;
            out[size++] = 77;
            at = end;
        }
        if (section[0] == tag && tag == 2) out[size++] = f->bytes[at++]; /* the count of records */
        while (at < end) {
            size_t record = section[0] == tag ? 1u + f->bytes[at] : end - at;
            memcpy(out + size, f->bytes + at, record);
            at += record;
            if (section[0] == tag) out[size] += 2;
            size += record;
            if (section[0] != tag) continue;
            out[size++] = 5;
            out[size++] = 9;
        }
        assert_true(size - from < 0x80);
        out[size_at] = (unsigned char)(size - from);
    }
    if (tag == 0) {
        static const unsigned char later[] = {9, 3, 1, 2, 3};
        memcpy(out + size, later, sizeof later);
        size += sizeof later;
    }
    return size;
}

static void what_a_later_version_appends_is_skipped(void **state)
{
    file *f = *state;
    mdot_job *job = job_file_make();
    for (int tag = 0; tag <= 3; tag++) {
        unsigned char bytes[MAX_FILE_BYTES];
        size_t size = append_to_section(f, tag, bytes);
        assert_true(size > f->size);
        job_file_sign(bytes, size);
        mdot_job *later = NULL;
        mdot_error err = {0};
        if (job_file_parse(bytes, size, &later, &err) != MDOT_OK) fail_msg("section %d: %s", tag, err.message);
        job_file_expect_same(job, later);
        mdot_job_destroy(later);
    }
    mdot_job_destroy(job);
}

static void files_of_later_versions_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    f->bytes[8] = 3;
    job_file_sign(f->bytes, f->size);
    assert_int_equal(job_file_parse(f->bytes, f->size, &job, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "version 3 of its format; this mdot reads those up to 2"));
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

/* A sparse file, which takes no disk space, and a file in memory of which only the header exists. */
static void larger_files_than_any_job_has_are_refused_unread(void **state)
{
    file *f = *state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(truncate(f->path, (off_t)1 << 40), 0);
    assert_int_equal(mdot_job_load(f->path, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, f->path);
    expect_contains(err.message, "the maximum is 268435456");
    assert_int_equal(mdot_job_parse(f->bytes, ((size_t)1 << 28) + 1, &job, &err), MDOT_MALFORMED);
    expect_contains(err.message, "more than 268435456");
    assert_null(job);
}

/* Loading and saving return at once, and the pipe stays a pipe. */
static void a_pipe_is_no_job(void **state)
{
    file *f = *state;
    mdot_job *job = NULL, *made = job_file_make();
    mdot_error err = {0};
    struct stat info;
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    alarm(20);
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
        cmocka_unit_test_setup_teardown(a_saved_job_loads_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_field_comes_back_from_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_without_names_has_no_section_for_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_later_version_appends_is_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_later_versions_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cut_file_is_refused_at_every_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_operators_than_a_job_may_have_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(settings_beyond_their_range_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_content_is_refused_or_a_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read_or_written_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(larger_files_than_any_job_has_are_refused_unread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pipe_is_no_job, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
