/* test_job_file_content.c — runtime/job/job_file.c: the bytes in a `.job` file, at each number's limits, without the
 * newer fields, and with sections in other orders. */
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FILE_BYTES = 8192, JOB = 0, TYPES, OPERATORS, MODULES, REQUIRED = 1, COUNT_AT = 12, MAX_NAMES = 16 };

static mdot_job *parse(const unsigned char *bytes, size_t size)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (job_file_parse(bytes, size, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void expect_message(const unsigned char *bytes, size_t size, mdot_status expected, const char *part)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(job_file_parse(bytes, size, &job, &err), expected);
    assert_int_equal(err.status, expected);
    expect_contains(err.message, part);
    assert_null(job);
}

static void expect_round_trip(const mdot_job_description *d)
{
    unsigned char bytes[MAX_FILE_BYTES], again[MAX_FILE_BYTES];
    mdot_job *job = job_file_create(d);
    size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
    mdot_job *loaded = parse(bytes, size);
    job_file_expect_same(job, loaded);
    assert_int_equal(job_file_bytes_of(loaded, again, sizeof again), size); /* equal jobs have equal files */
    assert_memory_equal(bytes, again, size);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Reads the names in a section whose numbers are below 128: a count, then texts (in records if `in_records` is set). */
static size_t read_names(const job_file_section *s, bool in_records, char names[MAX_NAMES][32])
{
    size_t count = s->bytes[0], at = 1;
    assert_compare(count, <=, MAX_NAMES);
    for (size_t i = 0; i < count; i++) {
        size_t text = at + in_records, length = s->bytes[text];
        assert_compare(length, <, 32);
        assert_compare(text + length, <, s->size);
        memcpy(names[i], s->bytes + text + 1, length);
        names[i][length] = '\0';
        at = in_records ? at + 1 + s->bytes[at] : text + 1 + length;
    }
    return count;
}

static void expect_names(const mdot_job_description *d, size_t section, size_t count, const char *const *expected)
{
    unsigned char bytes[MAX_FILE_BYTES];
    char names[MAX_NAMES][32];
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    mdot_job *job = job_file_create(d);
    job_file_bytes_of(job, bytes, sizeof bytes);
    job_file_list_sections(bytes, sections);
    assert_int_equal(read_names(&sections[section], section == TYPES, names), count);
    for (size_t i = 0; i < count; i++) assert_string_equal(names[i], expected[i]);
    mdot_job_destroy(job);
}

/* Names shared by several operators, in every operator order, and at other addresses each time. */
static void names_are_written_once_in_alphabetical_order(void **state)
{
    (void)state;
    enum { COUNT = 9 };
    static const char *const orders[] = {"abcabcabc", "aaabbbccc", "cccbbbaaa", "cbacbacba", "acbbcaabc", "bbbaaaccc"};
    static const char *const expected[] = {"a", "b", "c"};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        char names[COUNT][2] = {{0}};
        mdot_job_operator operators[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            names[i][0] = orders[o][i];
            operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = names[i], .module = names[i]};
        }
        const mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = COUNT};
        expect_names(&d, TYPES, 3, expected);
        expect_names(&d, MODULES, 3, expected);
        expect_round_trip(&d);
    }
}

/* Operators with one type may differ in whether mdot knows them, and in traits. Such a type has a record for each. */
static void types_of_one_name_with_other_traits_are_kept_apart(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    static const char *const expected[] = {"Op", "Op", "Op", "Op"};
    mdot_job_operator operators[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = "Op", .known = i % 2};
        operators[i].traits.number = 5 + i / 2 % 2;
    }
    const mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = COUNT};
    expect_names(&d, TYPES, 4, expected);
    expect_round_trip(&d);
    for (uint32_t i = 0; i < COUNT; i++) operators[i].traits = (mdot_operator_traits){.traits = i % 3 == 0};
    expect_names(&d, TYPES, 4, expected);
    expect_round_trip(&d);
}

/* ---- Limits of numbers ------------------------------------------------------------------------------------------- */

static void the_largest_numbers_come_back(void **state)
{
    (void)state;
    mdot_job_operator operators[JOB_FILE_OPERATORS];
    mdot_job_description d = job_file_describe(operators);
    d.batch = INT64_MAX;
    expect_round_trip(&d);
    d.batch = 0;
    d.notes = MDOT_JOB_NOTES_ALL;
    expect_round_trip(&d);
    for (uint32_t i = 0; i < JOB_FILE_OPERATORS; i++) operators[i].block = i + 1; /* as many blocks as operators */
    operators[3].flags = MDOT_OPERATOR_FLAGS_ALL;
    operators[3].parameters = operators[3].frozen_parameters = 0x1p62;
    operators[3].traits = (mdot_operator_traits){.number = 65535,
                                                 .autocast = UINT32_MAX,
                                                 .saved_written = UINT32_MAX,
                                                 .saved_fused = UINT32_MAX,
                                                 .saved_recomputed = UINT32_MAX,
                                                 .reserve = UINT32_MAX,
                                                 .traits = UINT32_MAX};
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) operators[3].setting[s] = INT64_C(1) << 40;
    operators[2].setting[MDOT_SETTING_PADDING_H] = operators[2].setting[MDOT_SETTING_PADDING_W] = -(INT64_C(1) << 40);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        operators[3].per_sample[phase] = operators[3].per_step[phase] = (mdot_load){0x1p62, 0x1p62, 0x1p62};
    expect_round_trip(&d);
}

/* Replaces a section in the fixture's file, and returns the new file size. */
static size_t replace(unsigned char *out, size_t section, const unsigned char *bytes, size_t size)
{
    unsigned char whole[MAX_FILE_BYTES];
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    mdot_job *job = job_file_make();
    job_file_bytes_of(job, whole, sizeof whole);
    mdot_job_destroy(job);
    size_t count = job_file_list_sections(whole, sections);
    assert_int_equal(count, 4);
    sections[section].bytes = bytes;
    sections[section].size = size;
    return job_file_write_sections(whole, sections, count, out, MAX_FILE_BYTES);
}

static void numbers_of_the_job_have_limits(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    static const struct {
        unsigned char content[12];
        size_t size;
        uint32_t notes;
        bool is_right, has_optimizer;
    } cases[] = {
        {{8, 3, 1}, 3, 1, true, true},                        /* AdamW */
        {{8, 4, 1}, 3, 0, false, false},                      /* no optimizer has this number */
        {{8, 0, 2}, 3, 2, true, false},                       /* none */
        {{8, 1, 3}, 3, 3, true, true},                        /* SGD */
        {{8, 1}, 2, 0, true, true},                           /* before there were notes */
        {{8, 1, 0xff, 1}, 4, MDOT_JOB_NOTES_ALL, true, true}, /* later-version notes */
        {{8, 1, MDOT_JOB_NOTES_ALL + 1}, 3, 0, true, true},
        {{8}, 1, 0, false, false},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, 0}, 12, 0, false, false}, /* batch 2^63 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = replace(bytes, JOB, cases[i].content, cases[i].size);
        if (!cases[i].is_right) {
            job_file_expect_fault(bytes, size, MDOT_MALFORMED);
            continue;
        }
        mdot_job *job = parse(bytes, size);
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        assert_int_equal(info.batch, 8);
        assert_int_equal(info.notes, cases[i].notes);
        assert_int_equal(info.has_optimizer, cases[i].has_optimizer);
        assert_int_equal(info.optimizer, cases[i].content[1] > 0 ? cases[i].content[1] - 1 : MDOT_OPTIMIZER_SGD);
        mdot_job_destroy(job);
    }
}

/* Four type-0 operators without settings, loads and inputs, the last with these further bytes behind the inputs. */
static size_t with_last_fields(unsigned char *out, const unsigned char *fields, size_t count)
{
    unsigned char content[64];
    size_t size = 0;
    for (int i = 0; i < JOB_FILE_OPERATORS; i++) {
        size_t more = i == 3 ? count : 1;
        content[size++] = (unsigned char)(5 + more);
        memset(content + size, 0, 5 + more);
        if (i == 3) memcpy(content + size + 5, fields, count);
        size += 5 + more;
    }
    return replace(out, OPERATORS, content, size);
}

static void fields_that_early_files_lack_are_zero(void **state)
{
    (void)state;
    static const unsigned char fields[] = {1, 7, 2}; /* block, frozen parameters and flags */
    for (size_t count = 0; count <= sizeof fields; count++) {
        unsigned char bytes[MAX_FILE_BYTES];
        size_t size = with_last_fields(bytes, fields, count);
        if (count == 0) {
            job_file_expect_fault(bytes, size, MDOT_MALFORMED);
            continue;
        }
        mdot_job *job = parse(bytes, size);
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, 3, &op), MDOT_OK);
        assert_int_equal(op.block, 1);
        assert_compare(op.frozen_parameters, ==, count > 1 ? 7 : 0);
        assert_int_equal(op.flags, count > 2 ? 2 : 0);
        mdot_job_destroy(job);
    }
}

static void numbers_of_operators_have_limits(void **state)
{
    (void)state;
    static const struct {
        unsigned char fields[8];
        size_t count;
        mdot_status status;
    } cases[] = {
        {{1, 0, 127}, 3, MDOT_OK},
        {{1, 0, 0x80, 0x01}, 4, MDOT_INCOMPATIBLE},                   /* a later-version flag */
        {{1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}, 7, MDOT_INCOMPATIBLE}, /* all flags */
        {{1, 0, 0x80, 0x80, 0x80, 0x80, 0x10}, 7, MDOT_MALFORMED},    /* more than 32 */
        {{2}, 1, MDOT_MALFORMED},                                     /* block 2 without a block 1 */
        {{5}, 1, MDOT_MALFORMED},                                     /* more blocks than operators */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[MAX_FILE_BYTES];
        mdot_job *job = NULL;
        size_t size = with_last_fields(bytes, cases[i].fields, cases[i].count);
        mdot_status status = job_file_parse(bytes, size, &job, NULL);
        if (status != cases[i].status) fail_msg("case %zu: status %d", i, (int)status);
        mdot_job_destroy(job);
    }
}

/* The fixture has four types and two modules. */
static void indices_of_types_and_modules_have_limits(void **state)
{
    (void)state;
    for (unsigned char index = 0; index < 7; index++) {
        unsigned char bytes[MAX_FILE_BYTES], modules[] = {2, 1, 'a', 1, 'b', 0, 1, 2, index};
        unsigned char operators[28] = {0};
        for (size_t i = 0; i < 4; i++) operators[7 * i] = 6;
        operators[22] = index;
        mdot_job *job = NULL;
        size_t size = replace(bytes, OPERATORS, operators, sizeof operators);
        assert_int_equal(job_file_parse(bytes, size, &job, NULL), index < 4 ? MDOT_OK : MDOT_MALFORMED);
        mdot_job_destroy(job);
        job = NULL;
        size = replace(bytes, MODULES, modules, sizeof modules);
        assert_int_equal(job_file_parse(bytes, size, &job, NULL), index <= 2 ? MDOT_OK : MDOT_MALFORMED);
        if (job != NULL) {
            static const char *const names[] = {NULL, "a", "b"};
            mdot_job_operator op = MDOT_INIT(mdot_job_operator);
            assert_int_equal(mdot_job_get_operator(job, 3, &op), MDOT_OK);
            if (index == 0) assert_null(op.module);
            if (index > 0) assert_string_equal(op.module, names[index]);
        }
        mdot_job_destroy(job);
    }
}

/* Each type trait is a 32-bit number. */
static void traits_have_limits(void **state)
{
    (void)state;
    enum { TRAITS = 7 };
    for (int t = 0; t < TRAITS; t++) {
        for (int beyond = 0; beyond < 2; beyond++) {
            unsigned char bytes[MAX_FILE_BYTES], types[64] = {4};
            size_t size = 1;
            for (int i = 0; i < 4; i++) {
                static const unsigned char most[] = {0xff, 0xff, 0xff, 0xff, 0x0f},
                                           more[] = {0x80, 0x80, 0x80, 0x80, 0x10};
                size_t record = size++;
                types[size++] = 1;
                types[size++] = (unsigned char)('a' + i);
                types[size++] = 1;
                for (int k = 0; k < TRAITS; k++) {
                    if (i > 0 || k != t) {
                        types[size++] = 0;
                        continue;
                    }
                    memcpy(types + size, beyond ? more : most, sizeof most);
                    size += sizeof most;
                }
                types[record] = (unsigned char)(size - record - 1);
            }
            mdot_job *job = NULL;
            size_t total = replace(bytes, TYPES, types, size);
            /* Type id 2^32 - 1 is read, and then exceeds the id limit. */
            assert_int_equal(job_file_parse(bytes, total, &job, NULL), beyond || t == 0 ? MDOT_MALFORMED : MDOT_OK);
            mdot_job_destroy(job);
        }
    }
}

/* ---- Headers and tables ------------------------------------------------------------------------------------------ */

static void a_file_that_begins_like_a_job_is_not_called_foreign(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    mdot_job *job = job_file_make();
    size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
    mdot_job_destroy(job);
    for (size_t cut = 0; cut < JOB_FILE_CHECKSUM_END; cut++)
        expect_message(bytes, cut, MDOT_MALFORMED, "the file lacks the header of a job file");
    bytes[7] = 'S';
    expect_message(bytes, size, MDOT_MALFORMED, "the file lacks the header of a job file");
    expect_message(bytes, 8, MDOT_MALFORMED, "the file lacks the header of a job file");
    memcpy(bytes, "GGUF", 4);
    expect_message(bytes, size, MDOT_MALFORMED, "a GGUF file");
}

/* Signs a file with these operator and entry counts. */
static void sign_counts(unsigned char *bytes, size_t size, uint32_t operator_count, uint32_t entry_count)
{
    memcpy(bytes + COUNT_AT, &operator_count, sizeof operator_count);
    if (size >= JOB_FILE_HEADER_BYTES) memcpy(bytes + JOB_FILE_CHECKSUM_END, &entry_count, sizeof entry_count);
    job_file_sign(bytes, size);
}

static void operators_and_entries_fit_into_the_file(void **state)
{
    (void)state;
    enum { MIN_OPERATOR_BYTES = 5 };
    unsigned char bytes[MAX_FILE_BYTES];
    mdot_job *job = job_file_make();
    size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
    mdot_job_destroy(job);
    uint32_t most = (uint32_t)((size - JOB_FILE_CHECKSUM_END) / MIN_OPERATOR_BYTES);
    sign_counts(bytes, size, most, 4);
    expect_message(bytes, size, MDOT_MALFORMED, "its content breaks the rules");
    sign_counts(bytes, size, most + 1, 4);
    expect_message(bytes, size, MDOT_MALFORMED, "operators extend beyond its end");
    for (size_t cut = JOB_FILE_CHECKSUM_END; cut < JOB_FILE_HEADER_BYTES; cut++) {
        sign_counts(bytes, cut, 0, 0);
        expect_message(bytes, cut, MDOT_MALFORMED, "table of sections extends");
    }
    for (uint32_t entries = 0; entries < 4; entries++) {
        size_t end = JOB_FILE_HEADER_BYTES + entries * JOB_FILE_ENTRY_BYTES;
        sign_counts(bytes, end, 1, entries);
        expect_message(bytes, end, MDOT_MALFORMED, "its content breaks the rules");
        sign_counts(bytes, end, 1, entries + 1);
        expect_message(bytes, end, MDOT_MALFORMED, "table of sections extends");
        sign_counts(bytes, end + JOB_FILE_ENTRY_BYTES - 1, 1, entries + 1);
        expect_message(bytes, end + JOB_FILE_ENTRY_BYTES - 1, MDOT_MALFORMED, "table of sections extends");
    }
}

static void missing_arguments_are_named(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    mdot_job *job = job_file_make(), *out = NULL;
    mdot_error err = {0};
    size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
    mdot_job_destroy(job);
    assert_int_equal(mdot_job_parse(NULL, size, &out, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_parse: bytes or out_job is NULL");
    err = (mdot_error){0};
    assert_int_equal(mdot_job_parse(bytes, size, NULL, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_parse: bytes or out_job is NULL");
    assert_int_equal(mdot_job_load("net.job", NULL, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_load: out_job is NULL");
    assert_int_equal(mdot_job_save(NULL, "net.job", &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_save: job is NULL");
    assert_null(out);
}

/* ---- Sections ---------------------------------------------------------------------------------------------------- */

static mdot_job *make_with_program(void)
{
    const mdot_job_program program = {
        .struct_size = sizeof program, .precision = MDOT_PRECISION_BF16, .trained_bytes = 3456};
    mdot_job *plain = job_file_make(), *job = NULL;
    assert_int_equal(mdot_job_with_program(plain, &program, &job, NULL), MDOT_OK);
    mdot_job_destroy(plain);
    return job;
}

static void expect_program(const mdot_job *job)
{
    mdot_job_program got = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(job, &got), MDOT_OK);
    assert_int_equal(got.precision, MDOT_PRECISION_BF16);
    assert_compare(got.trained_bytes, ==, 3456);
}

/* Sections 6 and 9 belong to later versions. */
static void optional_sections_may_be_absent_and_required_ones_be_known(void **state)
{
    (void)state;
    static const unsigned char text[] = "abc";
    static const struct {
        uint32_t order[7], flags; /* section flags unknown to this version */
        mdot_status status;
    } cases[] = {
        {{1, 2, 3, 4, 5}, 0, MDOT_OK},        {{1, 2, 3, 5}, 0, MDOT_OK},
        {{1, 2, 3, 5, 9}, 0, MDOT_OK},        {{1, 2, 3, 9}, 0, MDOT_OK},
        {{1, 2, 3, 7, 9}, 0, MDOT_OK},        {{1, 2, 3, 4, 5, 7, 9}, 0, MDOT_OK},
        {{1, 2, 3, 7}, 1, MDOT_INCOMPATIBLE}, {{1, 2, 3, 4, 5, 7}, 2, MDOT_INCOMPATIBLE},
        {{1, 2, 3, 9, 7}, 0, MDOT_MALFORMED}, {{1, 2, 3, 5, 4}, 0, MDOT_MALFORMED},
        {{1, 2, 3, 5, 5}, 0, MDOT_MALFORMED}, {{1, 2, 9}, 0, MDOT_MALFORMED},
        {{1, 2, 5}, 0, MDOT_MALFORMED},       {{1, 2, 3, 3}, 0, MDOT_MALFORMED},
        {{1, 2}, 0, MDOT_MALFORMED},          {{1, 3}, 0, MDOT_MALFORMED},
        {{2, 3}, 0, MDOT_MALFORMED},
    };
    unsigned char whole[MAX_FILE_BYTES], bytes[MAX_FILE_BYTES];
    job_file_section all[JOB_FILE_MAX_SECTIONS];
    mdot_job *made = make_with_program();
    job_file_bytes_of(made, whole, sizeof whole);
    assert_int_equal(job_file_list_sections(whole, all), 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_file_section sections[7];
        size_t count = 0;
        bool has_program = false;
        for (; count < 7 && cases[i].order[count] > 0; count++) {
            uint32_t tag = cases[i].order[count];
            has_program = has_program || tag == 5;
            sections[count] = tag <= 5 ? all[tag - 1] : (job_file_section){tag, cases[i].flags, 3, text};
        }
        mdot_job *job = NULL;
        size_t size = job_file_write_sections(whole, sections, count, bytes, sizeof bytes);
        mdot_status status = job_file_parse(bytes, size, &job, NULL);
        if (status != cases[i].status) fail_msg("case %zu: status %d", i, (int)status);
        if (job != NULL && has_program) expect_program(job);
        mdot_job_destroy(job);
    }
    for (size_t i = 0; i < 5; i++) all[i].flags ^= REQUIRED; /* means nothing for known sections */
    mdot_job *job = parse(bytes, job_file_write_sections(whole, all, 5, bytes, sizeof bytes));
    job_file_expect_same(made, job);
    expect_program(job);
    mdot_job_destroy(job);
    mdot_job_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_written_once_in_alphabetical_order),
        cmocka_unit_test(types_of_one_name_with_other_traits_are_kept_apart),
        cmocka_unit_test(the_largest_numbers_come_back),
        cmocka_unit_test(numbers_of_the_job_have_limits),
        cmocka_unit_test(fields_that_early_files_lack_are_zero),
        cmocka_unit_test(numbers_of_operators_have_limits),
        cmocka_unit_test(indices_of_types_and_modules_have_limits),
        cmocka_unit_test(traits_have_limits),
        cmocka_unit_test(a_file_that_begins_like_a_job_is_not_called_foreign),
        cmocka_unit_test(operators_and_entries_fit_into_the_file),
        cmocka_unit_test(missing_arguments_are_named),
        cmocka_unit_test(optional_sections_may_be_absent_and_required_ones_be_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
