/* test_job_program.c — runtime/job/job_program.c: a job's program, its checks and frozen copies. */
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

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static void job_without_a_program_is_not_found(void **state)
{
    (void)state;
    mdot_job *job = job_file_make();
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(job, &p), MDOT_NOT_FOUND);
    assert_int_equal(mdot_job_get_program(NULL, &p), MDOT_INVALID_ARGUMENT);
    p.struct_size = 1;
    assert_int_equal(mdot_job_get_program(job, &p), MDOT_INVALID_ARGUMENT);
    mdot_job_destroy(job);
}

static void program_is_copied_with_the_job(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    mdot_job *plain = job_file_make(), *job = program_fixture_job(&p);
    mdot_job_program got = program_fixture_of(job);
    program_fixture_expect_equal(&p, &got);
    assert_ptr_not_equal(got.recorded, program_fixture().recorded);
    job_file_expect_same(plain, job);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

static void a_single_record_is_kept(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    p.recorded_count = 1;
    mdot_job *job = program_fixture_job(&p);
    mdot_job_program got = program_fixture_of(job);
    assert_non_null(got.recorded);
    program_fixture_expect_equal(&p, &got);
    mdot_job_destroy(job);
}

static void later_program_replaces_the_earlier_but_keeps_its_attention(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    mdot_job *job = program_fixture_job(&p), *again = NULL;
    mdot_job_program later = {.struct_size = sizeof later, .precision = MDOT_PRECISION_PYTORCH};
    assert_int_equal(mdot_job_with_program(job, &later, &again, NULL), MDOT_OK);
    mdot_job_destroy(job);
    mdot_job_program got = program_fixture_of(again);
    assert_int_equal(got.attention, MDOT_ATTENTION_EAGER);
    later.attention = MDOT_ATTENTION_EAGER;
    program_fixture_expect_equal(&later, &got);
    assert_null(got.recorded);
    mdot_job_destroy(again);
}

static void expect_refusal(const mdot_job_program *p, const char *word)
{
    mdot_job *plain = job_file_make(), *made = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_with_program(plain, p, &made, &err), MDOT_INVALID_ARGUMENT);
    if (strstr(err.message, word) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, word);
    mdot_job_destroy(plain);
}

static void invalid_numbers_are_refused(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    p.precision = MDOT_PRECISION_TF32;
    expect_refusal(&p, "precision is 1");
    p = program_fixture();
    p.attention = (mdot_attention)3;
    expect_refusal(&p, "attention is 3");
    double *const bytes[] = {&p.trained_bytes, &p.frozen_bytes, &p.buffer_bytes};
    static const double invalid[] = {-1, NAN, INFINITY, 1e19};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            p = program_fixture();
            *bytes[i] = invalid[k];
            expect_refusal(&p, "buffer_bytes");
        }
}

/* Each number is accepted at the limits, and refused one step past them. */
static void numbers_have_limits(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    double *const bytes[] = {&p.trained_bytes, &p.frozen_bytes, &p.buffer_bytes};
    for (size_t i = 0; i < 3; i++) {
        p = program_fixture();
        *bytes[i] = 0;
        mdot_job_destroy(program_fixture_job(&p));
        *bytes[i] = 0x1p62;
        mdot_job_destroy(program_fixture_job(&p));
        *bytes[i] = 0x1p62 + 1024;
        expect_refusal(&p, "from 0 to 2^62");
    }
    mdot_peak_moment many[MDOT_PEAK_MOMENTS_MAX] = {{.per_sample = 0x1p62, .logits = 0x1p62, .gradients = 1}};
    mdot_recorded_memory record = {.precision = MDOT_PRECISION_BF16, .moments = many};
    p = program_fixture();
    p.recorded = &record;
    p.recorded_count = 1;
    for (record.moment_count = 1; record.moment_count <= MDOT_PEAK_MOMENTS_MAX; record.moment_count++) {
        mdot_job *job = program_fixture_job(&p);
        mdot_job_program got = program_fixture_of(job);
        program_fixture_expect_equal(&p, &got);
        mdot_job_destroy(job);
    }
    record.moment_count = 2;
    record.compiled = true;
    expect_refusal(&p, "recorded[0] is compiled: its recompute must be selective or blocks");
    record.compiled = false;
    double *const numbers[] = {&many[1].per_sample, &many[1].per_step, &many[1].weight_copies};
    for (size_t i = 0; i < 3; i++) {
        *numbers[i] = 0x1p62;
        mdot_job_destroy(program_fixture_job(&p));
        *numbers[i] = 0x1p62 + 1024;
        expect_refusal(&p, "recorded[0].moments[1]");
        *numbers[i] = 0;
    }
    many[1].logits = -1;
    expect_refusal(&p, "recorded[0].moments[1]");
    record.moments = NULL;
    expect_refusal(&p, "recorded[0] has 0 moments");
    p.recorded = NULL;
    expect_refusal(&p, "the program has 0 records");
    p.recorded_count = 0;
    mdot_job_destroy(program_fixture_job(&p));
}

/* A program has one record per precision and recomputation, and two of compiled code. All come back from a file. */
static void all_choices_are_accepted(void **state)
{
    (void)state;
    static const mdot_precision recorded[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_BF16};
    mdot_recorded_memory all[MDOT_RECORDED_MEMORY_MAX];
    mdot_job_program p = program_fixture();
    for (int i = 0; i < MDOT_RECORDED_MEMORY_MAX; i++)
        all[i] = (mdot_recorded_memory){.precision = recorded[i / 5],
                                        .recompute = (mdot_recompute)(i % 5 < 3 ? i % 5 : 5 - i % 5),
                                        .compiled = i % 5 >= 3,
                                        .moment_count = 2,
                                        .moments = program_fixture().recorded[0].moments};
    p.recorded = all;
    p.recorded_count = MDOT_RECORDED_MEMORY_MAX;
    for (int precision = 0; rt_precision_names[precision] != NULL; precision++) {
        bool is_right = precision == MDOT_PRECISION_PYTORCH || precision == MDOT_PRECISION_BF16 ||
                        precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_AMP_BF16;
        p.precision = (mdot_precision)precision;
        if (!is_right) {
            expect_refusal(&p, "the program's precision is");
            continue;
        }
        for (int attention = MDOT_ATTENTION_PROGRAM; attention <= MDOT_ATTENTION_FLASH; attention++) {
            unsigned char bytes[MAX_FILE_BYTES];
            p.attention = (mdot_attention)attention;
            p.has_loss = attention == MDOT_ATTENTION_FLASH;
            mdot_job *job = program_fixture_job(&p), *loaded = NULL;
            mdot_job_program got = program_fixture_of(job);
            program_fixture_expect_equal(&p, &got);
            size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
            assert_int_equal(mdot_job_parse(bytes, size, &loaded, NULL), MDOT_OK);
            got = program_fixture_of(loaded);
            program_fixture_expect_equal(&p, &got);
            for (size_t i = 0; i < MDOT_RECORDED_MEMORY_MAX; i++)
                assert_compare(loaded->program->analytic_bytes[i], ==, job->program->analytic_bytes[i]);
            mdot_job_destroy(loaded);
            mdot_job_destroy(job);
        }
    }
    for (int precision = 0; rt_precision_names[precision] != NULL; precision++) {
        bool is_right =
            precision == MDOT_PRECISION_FP32 || precision == MDOT_PRECISION_BF16 || precision == MDOT_PRECISION_AMP;
        p = program_fixture();
        p.recorded = all;
        p.recorded_count = 1;
        all[0].precision = (mdot_precision)precision;
        if (is_right)
            mdot_job_destroy(program_fixture_job(&p));
        else
            expect_refusal(&p, "recorded[0].precision is");
    }
}

/* Numbers are rounded, and fractions to 2^-20 multiples. */
static void numbers_are_rounded(void **state)
{
    (void)state;
    const mdot_peak_moment moment = {
        .per_sample = 10.4, .per_step = 2.6, .weight_copies = 3.5, .gradients = 1 / 3., .logits = 7.7};
    const mdot_recorded_memory record = {.precision = MDOT_PRECISION_AMP, .moment_count = 1, .moments = &moment};
    const mdot_job_program p = {.struct_size = sizeof p,
                                .precision = MDOT_PRECISION_PYTORCH,
                                .trained_bytes = 1.6,
                                .frozen_bytes = 2.4,
                                .buffer_bytes = 3.6,
                                .recorded_count = 1,
                                .recorded = &record};
    mdot_job *job = program_fixture_job(&p);
    const mdot_job_program got = program_fixture_of(job);
    const mdot_peak_moment *m = &got.recorded[0].moments[0];
    assert_compare(got.trained_bytes, ==, 2);
    assert_compare(got.frozen_bytes, ==, 2);
    assert_compare(got.buffer_bytes, ==, 4);
    assert_compare(m->per_sample, ==, 10);
    assert_compare(m->per_step, ==, 3);
    assert_compare(m->weight_copies, ==, 4);
    assert_compare(m->logits, ==, 8);
    assert_compare(m->gradients, ==, 349525 / 1048576.);
    mdot_job_destroy(job);
}

static mdot_attention asked;

static double count_bytes(const rt_analysis *analysis, mdot_precision precision, mdot_attention attention,
                          mdot_recompute recompute)
{
    (void)analysis;
    asked = attention;
    return 100.4 + 10 * (double)precision + (double)recompute;
}

/* Known bytes stay, however few, because the recorded job may have been another one. */
static void missing_bytes_are_estimated(void **state)
{
    (void)state;
    const rt_job_analyzer analyzer = {.activation_bytes = count_bytes};
    mdot_job_program source = program_fixture();
    for (int attention = MDOT_ATTENTION_PROGRAM; attention <= MDOT_ATTENTION_FLASH; attention++) {
        rt_program p;
        source.attention = (mdot_attention)attention;
        rt_program_take(&source, &p);
        p.analytic_bytes[0] = 1;
        rt_program_estimate(&analyzer, NULL, &p);
        assert_compare(p.analytic_bytes[0], ==, 1);
        assert_compare(p.analytic_bytes[1], ==, 100 + 10 * MDOT_PRECISION_AMP + MDOT_RECOMPUTE_BLOCKS);
        assert_compare(p.analytic_bytes[2], ==, 0);
        assert_int_equal(asked, attention == MDOT_ATTENTION_EAGER ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH);
    }
}

static double count_many_bytes(const rt_analysis *analysis, mdot_precision precision, mdot_attention attention,
                               mdot_recompute recompute)
{
    (void)analysis, (void)attention, (void)recompute;
    return precision == MDOT_PRECISION_AMP ? INFINITY : 0x1p70;
}

/* A file holds counts up to 2^62. */
static void estimates_fit_a_file(void **state)
{
    (void)state;
    const rt_job_analyzer analyzer = {.activation_bytes = count_many_bytes};
    mdot_job_program source = program_fixture();
    rt_program p;
    rt_program_take(&source, &p);
    rt_program_estimate(&analyzer, NULL, &p);
    assert_compare(p.analytic_bytes[0], ==, RT_JOB_MAX_COUNT);
    assert_compare(p.analytic_bytes[1], ==, RT_JOB_MAX_COUNT);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    const mdot_job_program p = program_fixture();
    mdot_job *job = job_file_make(), *out = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_with_program(NULL, &p, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "job or out_job is NULL"));
    err = (mdot_error){0};
    assert_int_equal(mdot_job_with_program(job, &p, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "job or out_job is NULL"));
    assert_int_equal(mdot_job_with_program(job, NULL, &out, &err), MDOT_INVALID_ARGUMENT);
    mdot_job_program small = p;
    small.struct_size = 1;
    assert_int_equal(mdot_job_with_program(job, &small, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_null(out);
    mdot_job_destroy(job);
}

static void invalid_records_are_refused(void **state)
{
    (void)state;
    mdot_job_program p = program_fixture();
    mdot_recorded_memory changed[2];
    mdot_peak_moment moment;
    p.recorded_count = MDOT_RECORDED_MEMORY_MAX + 1;
    expect_refusal(&p, "16 records");
    p = program_fixture();
    p.recorded = changed;
    memcpy(changed, program_fixture().recorded, sizeof changed);
    changed[1].precision = MDOT_PRECISION_PYTORCH;
    expect_refusal(&p, "recorded[1].precision is 5");
    memcpy(changed, program_fixture().recorded, sizeof changed);
    changed[1].recompute = (mdot_recompute)3;
    expect_refusal(&p, "recorded[1].recompute is 3");
    changed[1] = changed[0];
    expect_refusal(&p, "recorded[1] has the precision");
    memcpy(changed, program_fixture().recorded, sizeof changed);
    changed[0].moment_count = 0;
    expect_refusal(&p, "recorded[0] has 0 moments");
    changed[0].moment_count = MDOT_PEAK_MOMENTS_MAX + 1;
    expect_refusal(&p, "recorded[0] has 17 moments");
    memcpy(changed, program_fixture().recorded, sizeof changed);
    changed[1].moments = &moment;
    double *const numbers[] = {&moment.per_sample, &moment.per_step, &moment.weight_copies, &moment.gradients};
    for (size_t i = 0; i < 4; i++) {
        moment = program_fixture().recorded[1].moments[0];
        *numbers[i] = -1;
        expect_refusal(&p, "recorded[1].moments[0]");
    }
    moment = program_fixture().recorded[1].moments[0];
    moment.logits = 2049; /* more than the whole */
    expect_refusal(&p, "logits at most per_sample");
    moment = program_fixture().recorded[1].moments[0];
    moment.gradients = 1.5;
    expect_refusal(&p, "a fraction from 0 to 1");
}

/* ---- Freezing ---------------------------------------------------------------------------------------------------- */

static void freezing_moves_bytes_and_keeps_the_records(void **state)
{
    (void)state;
    mdot_job_operator operators[JOB_FILE_OPERATORS];
    mdot_job_description d = job_file_describe(operators);
    operators[1].parameters = 5184; /* with operator 0's 1728, a quarter stays trained */
    mdot_job *plain = job_file_create(&d), *job = NULL, *frozen = NULL;
    mdot_job_program p = program_fixture();
    static const char *const patterns[] = {"encoder.layer"};
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = patterns, .frozen_count = 1};
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    assert_int_equal(mdot_job_freeze(job, &freezing, &frozen, NULL), MDOT_OK);
    mdot_job_program got = program_fixture_of(frozen);
    p.frozen_bytes += p.trained_bytes * 3 / 4;
    p.trained_bytes /= 4;
    program_fixture_expect_equal(&p, &got);
    mdot_job_destroy(frozen);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_without_a_program_is_not_found),
        cmocka_unit_test(program_is_copied_with_the_job),
        cmocka_unit_test(a_single_record_is_kept),
        cmocka_unit_test(later_program_replaces_the_earlier_but_keeps_its_attention),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(all_choices_are_accepted),
        cmocka_unit_test(numbers_are_rounded),
        cmocka_unit_test(missing_bytes_are_estimated),
        cmocka_unit_test(estimates_fit_a_file),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(invalid_records_are_refused),
        cmocka_unit_test(freezing_moves_bytes_and_keeps_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
