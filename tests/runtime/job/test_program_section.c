/* test_program_section.c — runtime/job/program_section.c: a job's program in a `.job` file. */
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_file.h"
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"
#include "tests/support/program_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FILE_BYTES = 4096 };

static size_t save(const mdot_job *job, unsigned char out_bytes[MAX_FILE_BYTES])
{
    return job_file_bytes_of(job, out_bytes, MAX_FILE_BYTES);
}

static void program_and_flags_come_back_from_a_file(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES], again[MAX_FILE_BYTES];
    mdot_job_operator operators[JOB_FILE_OPERATORS];
    mdot_job_description d = job_file_describe(operators);
    operators[2].flags = MDOT_OPERATOR_RECOMPUTED;
    mdot_job *plain = job_file_create(&d), *job = NULL, *loaded = NULL;
    mdot_job_program p = program_fixture();
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    size_t size = save(job, bytes);
    assert_int_equal(mdot_job_parse(bytes, size, &loaded, NULL), MDOT_OK);
    job_file_expect_same(job, loaded);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    for (size_t i = 0; i < JOB_FILE_OPERATORS; i++) {
        assert_int_equal(mdot_job_get_operator(loaded, i, &op), MDOT_OK);
        assert_int_equal(op.flags, i == 2 ? MDOT_OPERATOR_RECOMPUTED : 0);
    }
    mdot_job_program before = program_fixture_of(job), after = program_fixture_of(loaded);
    program_fixture_expect_equal(&before, &after);
    assert_int_equal(save(loaded, again), size);
    assert_memory_equal(bytes, again, size);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* The work check belongs to a pass at any batch, so its numbers have no limit; a file keeps them up to 2^63. */
static void any_work_check_comes_back_from_a_file(void **state)
{
    (void)state;
    static const double numbers[] = {0, 1, 0x1p53, 0x1p53 + 2, 0x1p62, 0x1p63 - 1024, 0x1p63, 1e30, INFINITY};
    for (int i = 0; i < 7; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers + 2; k++) {
            mdot_job_program p = program_fixture();
            mdot_job_check *c = &p.check;
            double *const fields[] = {&c->dispatched_flops[0], &c->dispatched_flops[1], &c->job_flops[0],
                                      &c->job_flops[1],        &c->recorded_peak,       &c->predicted_peak,
                                      &c->unpriced_bytes};
            mdot_job *plain = job_file_make(), *job = NULL, *loaded = NULL;
            bool is_number = k < sizeof numbers / sizeof *numbers;
            unsigned char bytes[MAX_FILE_BYTES];
            *fields[i] = is_number ? numbers[k] : (double[]){-1, NAN}[k - sizeof numbers / sizeof *numbers];
            mdot_status status = mdot_job_with_program(plain, &p, &job, NULL);
            assert_int_equal(status, is_number ? MDOT_OK : MDOT_INVALID_ARGUMENT);
            if (is_number) {
                assert_int_equal(mdot_job_parse(bytes, save(job, bytes), &loaded, NULL), MDOT_OK);
                *fields[i] = fmin(numbers[k], 0x1p63 - 1024);
                mdot_job_program after = program_fixture_of(loaded);
                program_fixture_expect_equal(&p, &after);
            }
            mdot_job_destroy(plain);
            mdot_job_destroy(job);
            mdot_job_destroy(loaded);
        }
}

/* If a job lacks a program, mdot 0.3 writes the sections and fields from 0.2, so mdot 0.2 reads the file. */
static void file_without_a_program_lacks_the_section(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    uint32_t count, tag, flags;
    mdot_job_program p = program_fixture();
    mdot_job *plain = job_file_make(), *job = program_fixture_job(&p);
    save(plain, bytes);
    memcpy(&count, bytes + JOB_FILE_CHECKSUM_END, sizeof count);
    assert_int_equal(count, 4);
    save(job, bytes);
    memcpy(&count, bytes + JOB_FILE_CHECKSUM_END, sizeof count);
    assert_int_equal(count, 5);
    const unsigned char *entry = bytes + JOB_FILE_HEADER_BYTES + 4 * JOB_FILE_ENTRY_BYTES;
    memcpy(&tag, entry, sizeof tag);
    memcpy(&flags, entry + sizeof tag, sizeof flags);
    assert_int_equal(tag, 5);
    assert_int_equal(flags, 1); /* required */
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* Damage missed by the checksum, which was computed after it. */
static void damaged_sections_are_refused_or_give_a_valid_program(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    mdot_job_program p = program_fixture();
    mdot_job *job = program_fixture_job(&p);
    size_t size = save(job, bytes), refused = 0, section_bytes;
    memcpy(&section_bytes, bytes + JOB_FILE_HEADER_BYTES + 4 * JOB_FILE_ENTRY_BYTES + 8, sizeof section_bytes);
    for (size_t at = size - section_bytes; at < size; at++) {
        unsigned char whole = bytes[at];
        for (int value = 0; value < 256; value++) {
            mdot_job *loaded = NULL, *again = NULL;
            bytes[at] = (unsigned char)value;
            job_file_sign(bytes, size);
            mdot_status status = job_file_parse(bytes, size, &loaded, NULL);
            assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
            refused += status != MDOT_OK;
            if (status != MDOT_OK) continue;
            mdot_job_program got = program_fixture_of(loaded);
            assert_int_equal(mdot_job_with_program(loaded, &got, &again, NULL), MDOT_OK);
            mdot_job_destroy(again);
            mdot_job_destroy(loaded);
        }
        bytes[at] = whole;
    }
    assert_compare(refused, >, 1000);
    mdot_job_destroy(job);
}

/* A record's numbers are the precision, the recomputation, the analytic bytes and the moment count, and the sizes for
 * each moment. */
static void cut_records_are_refused(void **state)
{
    (void)state;
    enum { HEAD = 4, MOMENT = 5, NUMBERS = HEAD + 2 * MOMENT };
    static const uint64_t numbers[NUMBERS] = {
        MDOT_PRECISION_BF16, MDOT_RECOMPUTE_BLOCKS, 77, 2, 40, 7, 8, RT_PROGRAM_FRACTIONS, 9, 50, 1, 2, 0, 3};
    for (size_t count = 0; count <= NUMBERS + 1; count++) { /* one more belongs to a later version */
        rt_writer w = {0}, record = {0};
        rt_program p;
        for (size_t i = 0; i < count; i++) rt_put(&record, i < NUMBERS ? numbers[i] : 5);
        static const uint64_t head[] = {MDOT_PRECISION_AMP, MDOT_ATTENTION_FLASH, 1, 10, 20, 30, 1};
        for (size_t i = 0; i < sizeof head / sizeof *head; i++) rt_put(&w, head[i]);
        rt_put_part(&w, &record);
        rt_reader r = {.at = w.bytes, .end = w.bytes + w.size};
        rt_get_program(&r, &p);
        assert_int_equal(r.failed, count < NUMBERS);
        if (!r.failed) {
            const mdot_peak_moment *m = p.program.recorded[0].moments;
            assert_compare(p.program.trained_bytes, ==, 10);
            assert_compare(p.program.frozen_bytes, ==, 20);
            assert_compare(p.program.buffer_bytes, ==, 30);
            assert_true(p.program.has_loss);
            assert_compare(p.analytic_bytes[0], ==, 77);
            assert_compare(p.program.recorded[0].moment_count, ==, 2);
            assert_compare(m[0].per_sample, ==, 40);
            assert_compare(m[0].per_step, ==, 7);
            assert_compare(m[0].weight_copies, ==, 8);
            assert_compare(m[0].logits, ==, 9);
            assert_compare(m[0].gradients, ==, 1);
            assert_compare(m[1].per_sample, ==, 50);
            assert_compare(m[1].gradients, ==, 0);
            assert_compare(m[1].logits, ==, 3);
        }
        free(w.bytes);
        free(record.bytes);
    }
}

/* Each number in the section at the limit and one past it; the last ones break a program rule. */
static void numbers_of_the_section_have_limits(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t number;
        bool is_right;
    } cases[] = {
        {0, MDOT_PRECISION_PYTORCH, true},
        {0, MDOT_PRECISION_PYTORCH + 1, false},
        {1, MDOT_ATTENTION_FLASH, true},
        {1, MDOT_ATTENTION_FLASH + 1, false},
        {2, 0, true},
        {2, 1, true},
        {2, 2, false},
        {3, UINT64_C(1) << 62, true},
        {3, (UINT64_C(1) << 62) + 1, false},
        {4, UINT64_C(1) << 62, true},
        {4, (UINT64_C(1) << 62) + 1, false},
        {5, UINT64_C(1) << 62, true},
        {5, (UINT64_C(1) << 62) + 1, false},
        {6, 0, true},
        {6, MDOT_RECORDED_MEMORY_MAX + 1, false},
        {6, 1, false},
        {0, MDOT_PRECISION_TF32, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t numbers[] = {MDOT_PRECISION_AMP, MDOT_ATTENTION_FLASH, 1, 10, 20, 30, 0};
        rt_writer w = {0};
        rt_program p;
        numbers[cases[i].at] = cases[i].number;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) rt_put(&w, numbers[k]);
        rt_reader r = {.at = w.bytes, .end = w.bytes + w.size};
        rt_get_program(&r, &p);
        if (r.failed == cases[i].is_right) fail_msg("case %zu", i);
        free(w.bytes);
    }
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    mdot_job_operator operators[JOB_FILE_OPERATORS];
    mdot_job_description d = job_file_describe(operators);
    mdot_job *job = NULL;
    mdot_error err = {0};
    operators[1].flags = MDOT_OPERATOR_FLAGS_ALL + 1;
    assert_int_equal(mdot_job_create(&d, &job, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "operator 1 of the job (Relu) sets flags"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_and_flags_come_back_from_a_file),
        cmocka_unit_test(any_work_check_comes_back_from_a_file),
        cmocka_unit_test(file_without_a_program_lacks_the_section),
        cmocka_unit_test(damaged_sections_are_refused_or_give_a_valid_program),
        cmocka_unit_test(cut_records_are_refused),
        cmocka_unit_test(numbers_of_the_section_have_limits),
        cmocka_unit_test(unknown_flags_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
