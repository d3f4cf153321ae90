/* test_job_program.c — runtime/job/job_program.c: a job's program, its checks, file and frozen copies. */
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_file.h"
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FILE_BYTES = 4096 };

static const mdot_peak_moment fp32_moments[] = {
    {.per_sample = 4096, .per_step = 17, .gradients = .25, .logits = 1024, .per_square = 99},
    {.per_sample = 1024, .gradients = 1}};
static const mdot_peak_moment amp_moments[] = {{.per_sample = 2048, .weight_copies = 3456, .gradients = 1 / 3.}};
static const mdot_recorded_memory records[] = {
    {.precision = MDOT_PRECISION_FP32, .moment_count = 2, .moments = fp32_moments},
    {.precision = MDOT_PRECISION_AMP, .recompute = MDOT_RECOMPUTE_BLOCKS, .moment_count = 1, .moments = amp_moments}};

static mdot_job_program valid_program(void)
{
    return (mdot_job_program){.struct_size = sizeof(mdot_job_program),
                              .precision = MDOT_PRECISION_BF16,
                              .attention = MDOT_ATTENTION_EAGER,
                              .trained_bytes = 3456,
                              .frozen_bytes = 100,
                              .buffer_bytes = 128,
                              .has_loss = true,
                              .recorded_count = 2,
                              .recorded = records,
                              .framework = 3,
                              .check = {.dispatched_flops = {1e9, 2e9},
                                        .job_flops = {9e8, 2e9},
                                        .recorded_peak = 5e6,
                                        .predicted_peak = 4e6,
                                        .unpriced_bytes = 77,
                                        .unpriced_operators = 2,
                                        .modules = "encoder.layer.3: 1e8 FLOPs are missing"}};
}

/* The caller destroys the result. */
static mdot_job *make_with(const mdot_job_program *program)
{
    mdot_job *plain = job_file_make(), *made = NULL;
    mdot_error err = {0};
    if (mdot_job_with_program(plain, program, &made, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(plain);
    return made;
}

static mdot_job_program get(const mdot_job *job)
{
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(job, &p), MDOT_OK);
    return p;
}

static void expect_equal(const mdot_job_program *a, const mdot_job_program *b)
{
    assert_int_equal(a->precision, b->precision);
    assert_int_equal(a->attention, b->attention);
    assert_compare(a->trained_bytes, ==, b->trained_bytes);
    assert_compare(a->frozen_bytes, ==, b->frozen_bytes);
    assert_compare(a->buffer_bytes, ==, b->buffer_bytes);
    assert_int_equal(a->has_loss, b->has_loss);
    assert_int_equal(a->framework, b->framework);
    for (int i = 0; i < 2; i++) {
        assert_compare(a->check.dispatched_flops[i], ==, b->check.dispatched_flops[i]);
        assert_compare(a->check.job_flops[i], ==, b->check.job_flops[i]);
    }
    assert_compare(a->check.recorded_peak, ==, b->check.recorded_peak);
    assert_compare(a->check.predicted_peak, ==, b->check.predicted_peak);
    assert_compare(a->check.unpriced_bytes, ==, b->check.unpriced_bytes);
    assert_int_equal(a->check.unpriced_operators, b->check.unpriced_operators);
    if (a->check.modules != NULL) assert_string_equal(a->check.modules, b->check.modules);
    assert_int_equal(a->check.modules != NULL, b->check.modules != NULL);
    assert_int_equal(a->recorded_count, b->recorded_count);
    for (size_t i = 0; i < a->recorded_count; i++) {
        const mdot_recorded_memory *p = &a->recorded[i], *q = &b->recorded[i];
        assert_int_equal(p->precision, q->precision);
        assert_int_equal(p->recompute, q->recompute);
        assert_int_equal(p->moment_count, q->moment_count);
        for (size_t k = 0; k < p->moment_count; k++) {
            assert_compare(p->moments[k].per_sample, ==, q->moments[k].per_sample);
            assert_compare(p->moments[k].per_step, ==, q->moments[k].per_step);
            assert_compare(p->moments[k].weight_copies, ==, q->moments[k].weight_copies);
            assert_compare(p->moments[k].logits, ==, q->moments[k].logits);
            assert_compare(p->moments[k].per_square, ==, q->moments[k].per_square);
            assert_within(p->moments[k].gradients, q->moments[k].gradients, 1e-6);
        }
    }
}

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
    mdot_job_program p = valid_program();
    mdot_job *plain = job_file_make(), *job = make_with(&p);
    mdot_job_program got = get(job);
    expect_equal(&p, &got);
    assert_ptr_not_equal(got.recorded, records);
    job_file_expect_same(plain, job);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

static void a_single_record_is_kept(void **state)
{
    (void)state;
    mdot_job_program p = valid_program();
    p.recorded_count = 1;
    mdot_job *job = make_with(&p);
    mdot_job_program got = get(job);
    assert_non_null(got.recorded);
    expect_equal(&p, &got);
    mdot_job_destroy(job);
}

static void later_program_replaces_the_earlier_but_keeps_its_attention(void **state)
{
    (void)state;
    mdot_job_program p = valid_program();
    mdot_job *job = make_with(&p), *again = NULL;
    mdot_job_program later = {.struct_size = sizeof later, .precision = MDOT_PRECISION_PYTORCH};
    assert_int_equal(mdot_job_with_program(job, &later, &again, NULL), MDOT_OK);
    mdot_job_destroy(job);
    mdot_job_program got = get(again);
    assert_int_equal(got.attention, MDOT_ATTENTION_EAGER);
    later.attention = MDOT_ATTENTION_EAGER;
    expect_equal(&later, &got);
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
    mdot_job_program p = valid_program();
    p.precision = MDOT_PRECISION_TF32;
    expect_refusal(&p, "precision is 1");
    p = valid_program();
    p.attention = (mdot_attention)3;
    expect_refusal(&p, "attention is 3");
    double *const bytes[] = {&p.trained_bytes, &p.frozen_bytes, &p.buffer_bytes};
    static const double invalid[] = {-1, NAN, INFINITY, 1e16};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            p = valid_program();
            *bytes[i] = invalid[k];
            expect_refusal(&p, "buffer_bytes");
        }
}

/* Each number is accepted at the limits, and refused one step past them. */
static void numbers_have_limits(void **state)
{
    (void)state;
    mdot_job_program p = valid_program();
    double *const bytes[] = {&p.trained_bytes, &p.frozen_bytes, &p.buffer_bytes};
    for (size_t i = 0; i < 3; i++) {
        p = valid_program();
        *bytes[i] = 0;
        mdot_job_destroy(make_with(&p));
        *bytes[i] = 0x1p53;
        mdot_job_destroy(make_with(&p));
        *bytes[i] = 0x1p53 + 2;
        expect_refusal(&p, "from 0 to 2^53");
    }
    mdot_peak_moment many[MDOT_PEAK_MOMENTS_MAX] = {{.per_sample = 0x1p53, .logits = 0x1p53, .gradients = 1}};
    mdot_recorded_memory record = {.precision = MDOT_PRECISION_BF16, .moments = many};
    p = valid_program();
    p.recorded = &record;
    p.recorded_count = 1;
    for (record.moment_count = 1; record.moment_count <= MDOT_PEAK_MOMENTS_MAX; record.moment_count++) {
        mdot_job *job = make_with(&p);
        mdot_job_program got = get(job);
        expect_equal(&p, &got);
        mdot_job_destroy(job);
    }
    record.moment_count = 2;
    double *const numbers[] = {&many[1].per_sample, &many[1].per_step, &many[1].weight_copies};
    for (size_t i = 0; i < 3; i++) {
        *numbers[i] = 0x1p53;
        mdot_job_destroy(make_with(&p));
        *numbers[i] = 0x1p53 + 2;
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
    mdot_job_destroy(make_with(&p));
}

/* A program has one record per precision and recomputation, and all of them come back from a file. */
static void all_choices_are_accepted(void **state)
{
    (void)state;
    static const mdot_precision recorded[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_BF16};
    mdot_recorded_memory all[MDOT_RECORDED_MEMORY_MAX];
    mdot_job_program p = valid_program();
    for (int i = 0; i < MDOT_RECORDED_MEMORY_MAX; i++)
        all[i] = (mdot_recorded_memory){.precision = recorded[i / 3],
                                        .recompute = (mdot_recompute)(i % 3),
                                        .moment_count = 2,
                                        .moments = fp32_moments};
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
            mdot_job *job = make_with(&p), *loaded = NULL;
            mdot_job_program got = get(job);
            expect_equal(&p, &got);
            size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
            assert_int_equal(mdot_job_parse(bytes, size, &loaded, NULL), MDOT_OK);
            got = get(loaded);
            expect_equal(&p, &got);
            for (size_t i = 0; i < MDOT_RECORDED_MEMORY_MAX; i++)
                assert_compare(loaded->program->analytic_bytes[i], ==, job->program->analytic_bytes[i]);
            mdot_job_destroy(loaded);
            mdot_job_destroy(job);
        }
    }
    for (int precision = 0; rt_precision_names[precision] != NULL; precision++) {
        bool is_right =
            precision == MDOT_PRECISION_FP32 || precision == MDOT_PRECISION_BF16 || precision == MDOT_PRECISION_AMP;
        p = valid_program();
        p.recorded = all;
        p.recorded_count = 1;
        all[0].precision = (mdot_precision)precision;
        if (is_right)
            mdot_job_destroy(make_with(&p));
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
    mdot_job *job = make_with(&p);
    const mdot_job_program got = get(job);
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
    mdot_job_program source = valid_program();
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
    return precision == MDOT_PRECISION_AMP ? INFINITY : 0x1p60;
}

/* A file holds counts up to 2^53. */
static void estimates_fit_a_file(void **state)
{
    (void)state;
    const rt_job_analyzer analyzer = {.activation_bytes = count_many_bytes};
    mdot_job_program source = valid_program();
    rt_program p;
    rt_program_take(&source, &p);
    rt_program_estimate(&analyzer, NULL, &p);
    assert_compare(p.analytic_bytes[0], ==, RT_JOB_MAX_COUNT);
    assert_compare(p.analytic_bytes[1], ==, RT_JOB_MAX_COUNT);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    const mdot_job_program p = valid_program();
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
    mdot_job_program p = valid_program();
    mdot_recorded_memory changed[2];
    mdot_peak_moment moment;
    p.recorded_count = MDOT_RECORDED_MEMORY_MAX + 1;
    expect_refusal(&p, "10 records");
    p = valid_program();
    p.recorded = changed;
    memcpy(changed, records, sizeof changed);
    changed[1].precision = MDOT_PRECISION_PYTORCH;
    expect_refusal(&p, "recorded[1].precision is 5");
    memcpy(changed, records, sizeof changed);
    changed[1].recompute = (mdot_recompute)3;
    expect_refusal(&p, "recorded[1].recompute is 3");
    changed[1] = changed[0];
    expect_refusal(&p, "recorded[1] has the precision");
    memcpy(changed, records, sizeof changed);
    changed[0].moment_count = 0;
    expect_refusal(&p, "recorded[0] has 0 moments");
    changed[0].moment_count = MDOT_PEAK_MOMENTS_MAX + 1;
    expect_refusal(&p, "recorded[0] has 17 moments");
    memcpy(changed, records, sizeof changed);
    changed[1].moments = &moment;
    double *const numbers[] = {&moment.per_sample, &moment.per_step, &moment.weight_copies, &moment.gradients};
    for (size_t i = 0; i < 4; i++) {
        moment = amp_moments[0];
        *numbers[i] = -1;
        expect_refusal(&p, "recorded[1].moments[0]");
    }
    moment = amp_moments[0];
    moment.logits = 2049; /* more than the whole */
    expect_refusal(&p, "logits at most per_sample");
    moment = amp_moments[0];
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
    mdot_job_program p = valid_program();
    static const char *const patterns[] = {"encoder.layer"};
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = patterns, .frozen_count = 1};
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    assert_int_equal(mdot_job_freeze(job, &freezing, &frozen, NULL), MDOT_OK);
    mdot_job_program got = get(frozen);
    p.frozen_bytes += p.trained_bytes * 3 / 4;
    p.trained_bytes /= 4;
    expect_equal(&p, &got);
    mdot_job_destroy(frozen);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

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
    mdot_job_program p = valid_program();
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    size_t size = save(job, bytes);
    assert_int_equal(mdot_job_parse(bytes, size, &loaded, NULL), MDOT_OK);
    job_file_expect_same(job, loaded);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    for (size_t i = 0; i < JOB_FILE_OPERATORS; i++) {
        assert_int_equal(mdot_job_get_operator(loaded, i, &op), MDOT_OK);
        assert_int_equal(op.flags, i == 2 ? MDOT_OPERATOR_RECOMPUTED : 0);
    }
    mdot_job_program before = get(job), after = get(loaded);
    expect_equal(&before, &after);
    assert_int_equal(save(loaded, again), size);
    assert_memory_equal(bytes, again, size);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* If a job lacks a program, mdot 0.3 writes the sections and fields from 0.2, so mdot 0.2 reads the file. */
static void file_without_a_program_lacks_the_section(void **state)
{
    (void)state;
    unsigned char bytes[MAX_FILE_BYTES];
    uint32_t count, tag, flags;
    mdot_job_program p = valid_program();
    mdot_job *plain = job_file_make(), *job = make_with(&p);
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
    mdot_job_program p = valid_program();
    mdot_job *job = make_with(&p);
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
            mdot_job_program got = get(loaded);
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
        {3, UINT64_C(1) << 53, true},
        {3, (UINT64_C(1) << 53) + 1, false},
        {4, UINT64_C(1) << 53, true},
        {4, (UINT64_C(1) << 53) + 1, false},
        {5, UINT64_C(1) << 53, true},
        {5, (UINT64_C(1) << 53) + 1, false},
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
        cmocka_unit_test(program_and_flags_come_back_from_a_file),
        cmocka_unit_test(file_without_a_program_lacks_the_section),
        cmocka_unit_test(damaged_sections_are_refused_or_give_a_valid_program),
        cmocka_unit_test(cut_records_are_refused),
        cmocka_unit_test(numbers_of_the_section_have_limits),
        cmocka_unit_test(unknown_flags_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
