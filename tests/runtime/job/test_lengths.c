/* test_lengths.c — runtime/job/lengths.c and length_section.c: one job for all lengths. The law: a job whose numbers
 * are polynomials of degree two equals, at any length, the job that was made at that length. */
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NETWORKS = 15, MAX_OPERATORS = 40, MAX_FILE_BYTES = 1 << 17 };

typedef struct polynomial {
    int64_t constant, linear, square;
} polynomial;

/* A network with random polynomials, which differ from number to number. */
typedef struct network {
    size_t count;
    polynomial setting[MAX_OPERATORS][MDOT_SETTING_COUNT], load[MAX_OPERATORS][RT_LOAD_COUNT],
        parameters[MAX_OPERATORS];
    polynomial moments[3][2]; /* per_sample and per_square of each moment */
    uint32_t inputs[MAX_OPERATORS];
    bool has_program;
} network;

static uint64_t state = 20261128;

static int64_t below(int64_t bound)
{
    state = state * UINT64_C(6364136223846793005) + 1;
    return (int64_t)((state >> 33) % (uint64_t)bound);
}

static polynomial random_polynomial(int64_t scale)
{
    switch (below(4)) {
    case 0: return (polynomial){0, 0, 0};
    case 1: return (polynomial){below(scale), 0, 0};
    case 2: return (polynomial){below(scale), 1 + below(scale), 0};
    default: return (polynomial){below(scale), below(scale), 1 + below(scale)};
    }
}

static double value_of(polynomial p, int64_t length)
{
    return (double)(p.constant + length * (p.linear + length * p.square));
}

static void make_network(network *n)
{
    *n = (network){.count = 1 + (size_t)below(MAX_OPERATORS), .has_program = below(2) != 0};
    for (size_t i = 0; i < n->count; i++) {
        for (int s = 0; s < MDOT_SETTING_COUNT; s++) n->setting[i][s] = random_polynomial(100);
        for (int k = 0; k < RT_LOAD_COUNT; k++) n->load[i][k] = random_polynomial(100000);
        n->parameters[i] = random_polynomial(1000);
        n->inputs[i] = i > 0 ? (uint32_t)below((int64_t)i) : 0;
    }
    for (int k = 0; k < 3; k++)
        for (int f = 0; f < 2; f++) n->moments[k][f] = random_polynomial(10000);
}

static mdot_job *add_program(mdot_job *plain, const network *n, int64_t length)
{
    mdot_peak_moment moments[3];
    mdot_job *made = NULL;
    for (int k = 0; k < 3; k++)
        moments[k] = (mdot_peak_moment){.per_sample = value_of(n->moments[k][0], length),
                                        .per_square = value_of(n->moments[k][1], length),
                                        .gradients = k / 4.};
    mdot_recorded_memory record = {.precision = MDOT_PRECISION_FP32, .moment_count = 3, .moments = moments};
    mdot_job_program program = {
        .struct_size = sizeof program, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &record};
    assert_int_equal(mdot_job_with_program(plain, &program, &made, NULL), MDOT_OK);
    mdot_job_destroy(plain);
    return made;
}

static mdot_job *job_at(const network *n, int64_t length)
{
    static mdot_job_operator operators[MAX_OPERATORS];
    memset(operators, 0, sizeof operators);
    for (size_t i = 0; i < n->count; i++) {
        mdot_job_operator *op = &operators[i];
        op->struct_size = sizeof *op;
        op->type = i % 3 == 0 ? "MatMul" : "Relu";
        op->known = true;
        op->module = i % 2 == 0 ? "encoder" : "head";
        for (int s = 0; s < MDOT_SETTING_COUNT; s++) op->setting[s] = (int64_t)value_of(n->setting[i][s], length);
        for (int k = 0; k < RT_LOAD_COUNT; k++) *rt_load_at(op, k) = value_of(n->load[i][k], length);
        op->parameters = value_of(n->parameters[i], length);
        op->input_count = i > 0;
        op->inputs = &n->inputs[i];
        op->batch_settings = i % 5 == 0 ? 1 << MDOT_SETTING_KEYS : 0;
    }
    mdot_job_description d = {.struct_size = sizeof d, .operators = operators, .operator_count = n->count, .batch = 4};
    mdot_job *job = job_file_create(&d);
    return n->has_program ? add_program(job, n, length) : job;
}

static mdot_job *join(const network *n, const int64_t lengths[3])
{
    mdot_job *jobs[3], *out = NULL;
    mdot_error err = {0};
    for (int k = 0; k < 3; k++) jobs[k] = job_at(n, lengths[k]);
    if (mdot_job_of_lengths((const mdot_job *const *)jobs, lengths, "sequence", &out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    for (int k = 0; k < 3; k++) mdot_job_destroy(jobs[k]);
    return out;
}

static mdot_job *at_length(const mdot_job *job, int64_t length)
{
    mdot_job *out = NULL;
    mdot_error err = {0};
    if (mdot_job_with_length(job, length, &out, &err) != MDOT_OK) fail_msg("%s", err.message);
    return out;
}

static void expect_equal_numbers(const mdot_job *a, const mdot_job *b)
{
    assert_int_equal(a->info.operator_count, b->info.operator_count);
    for (size_t i = 0; i < a->info.operator_count; i++) {
        mdot_job_operator *x = &a->operators[i], *y = &b->operators[i];
        assert_memory_equal(x->setting, y->setting, sizeof x->setting);
        for (int k = 0; k < RT_LOAD_COUNT; k++) assert_compare(*rt_load_at(x, k), ==, *rt_load_at(y, k));
        assert_compare(x->parameters, ==, y->parameters);
        assert_compare(x->frozen_parameters, ==, y->frozen_parameters);
        assert_int_equal(x->batch_settings, y->batch_settings);
    }
    assert_int_equal(a->program != NULL, b->program != NULL);
    for (int k = 0; a->program != NULL && k < 3; k++)
        assert_memory_equal(&a->program->moments[0][k], &b->program->moments[0][k], sizeof(mdot_peak_moment));
}

static mdot_job *through_file(const mdot_job *job)
{
    static unsigned char bytes[MAX_FILE_BYTES], again[MAX_FILE_BYTES];
    mdot_job *loaded = NULL;
    mdot_error err = {0};
    size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
    if (job_file_parse(bytes, size, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    job_file_expect_same(job, loaded);
    assert_int_equal(job_file_bytes_of(loaded, again, sizeof again), size);
    assert_memory_equal(bytes, again, size);
    return loaded;
}

static void any_length_equals_the_job_made_there(void **unused)
{
    (void)unused;
    for (int i = 0; i < NETWORKS; i++) {
        network n;
        make_network(&n);
        int64_t lengths[3] = {16 + below(100), 128 + below(100), 256 + below(1000)};
        mdot_job *joined = join(&n, lengths), *loaded = through_file(joined);
        assert_int_equal(loaded->info.length, lengths[0]);
        for (int k = 0; k < 4; k++) {
            int64_t length = k < 3 ? 1 + below(8192) : lengths[1];
            mdot_job *wanted = job_at(&n, length), *found = at_length(loaded, length);
            assert_int_equal(found->info.length, length);
            expect_equal_numbers(found, wanted);
            if (found->program != NULL) /* a maximum of sums is no polynomial */
                assert_compare(found->program->analytic_bytes[0], ==, wanted->program->analytic_bytes[0]);
            /* A file of the job at that length has all other lengths, too. */
            mdot_job *moved = through_file(found), *back = at_length(moved, lengths[0]);
            expect_equal_numbers(back, joined);
            mdot_job_destroy(back);
            mdot_job_destroy(moved);
            mdot_job_destroy(found);
            mdot_job_destroy(wanted);
        }
        mdot_job_destroy(loaded);
        mdot_job_destroy(joined);
    }
}

static void freezing_and_lengths_may_come_in_either_order(void **unused)
{
    (void)unused;
    static const char *const head = "head";
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = &head, .frozen_count = 1};
    for (int i = 0; i < NETWORKS; i++) {
        network n;
        mdot_job *frozen = NULL, *wanted = NULL;
        make_network(&n);
        n.count = n.count < 2 ? 2 : n.count;
        n.inputs[1] = 0;
        for (size_t k = 0; k < n.count; k++) n.parameters[k] = (polynomial){1 + below(9), 1 + below(9), 0};
        mdot_job *joined = join(&n, (const int64_t[3]){8, 16, 100}), *plain = at_length(joined, 333);
        assert_int_equal(mdot_job_freeze(joined, &freezing, &frozen, NULL), MDOT_OK);
        assert_int_equal(mdot_job_freeze(plain, &freezing, &wanted, NULL), MDOT_OK);
        mdot_job *found = at_length(frozen, 333);
        expect_equal_numbers(found, wanted);
        mdot_job_destroy(found);
        mdot_job_destroy(wanted);
        mdot_job_destroy(frozen);
        mdot_job_destroy(plain);
        mdot_job_destroy(joined);
    }
}

static void a_number_that_is_no_polynomial_stays_positive(void **unused)
{
    (void)unused;
    network n = {.count = 1};
    mdot_job *jobs[3];
    const int64_t lengths[3] = {100, 200, 300};
    const int64_t flops[3] = {0, 0, 70};
    for (int k = 0; k < 3; k++) {
        n.load[0][0].constant = flops[k];
        jobs[k] = job_at(&n, lengths[k]);
    }
    mdot_job *joined = NULL;
    assert_int_equal(mdot_job_of_lengths((const mdot_job *const *)jobs, lengths, "n", &joined, NULL), MDOT_OK);
    mdot_job *between = at_length(joined, 150);
    assert_compare(between->operators[0].per_sample[0].flops, ==, 0);
    mdot_job_destroy(between);
    mdot_job_destroy(joined);
    for (int k = 0; k < 3; k++) mdot_job_destroy(jobs[k]);
}

static void faults_are_named(void **unused)
{
    (void)unused;
    network n, other;
    mdot_job *out = NULL;
    mdot_error err = {0};
    make_network(&n);
    n.count = 3;
    other = n;
    other.count = 2;
    mdot_job *fixed = job_at(&n, 8), *shorter = job_at(&other, 16), *joined = join(&n, (const int64_t[3]){8, 16, 32});
    assert_int_equal(mdot_job_with_length(fixed, 16, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "no symbolic length"));
    assert_int_equal(mdot_job_with_length(joined, 0, &out, &err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_with_length(joined, RT_MAX_LENGTH + 1, &out, &err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_with_length(NULL, 1, &out, &err), MDOT_INVALID_ARGUMENT);
    const mdot_job *three[3] = {fixed, shorter, fixed};
    assert_int_equal(mdot_job_of_lengths(three, (const int64_t[3]){8, 16, 32}, "n", &out, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "3 and 2 operators"));
    three[1] = fixed;
    assert_int_equal(mdot_job_of_lengths(three, (const int64_t[3]){8, 8, 32}, "n", &out, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_of_lengths(three, (const int64_t[3]){8, 16, 0}, "n", &out, &err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_of_lengths(three, (const int64_t[3]){8, 16, 32}, "", &out, &err), MDOT_INVALID_ARGUMENT);
    assert_null(out);
    mdot_job_destroy(fixed);
    mdot_job_destroy(shorter);
    mdot_job_destroy(joined);
}

static void work_beyond_the_limits_is_out_of_range(void **unused)
{
    (void)unused;
    network n = {.count = 1};
    n.load[0][0] = (polynomial){0, 0, 1 << 20};
    static unsigned char bytes[MAX_FILE_BYTES];
    mdot_job *joined = join(&n, (const int64_t[3]){1, 2, 3}), *out = NULL;
    mdot_error err = {0};
    for (int k = 0; k <= 21; k++) { /* up to 2^62 FLOPs, which also a file holds */
        mdot_job *job = at_length(joined, INT64_C(1) << k), *loaded = NULL;
        size_t size = job_file_bytes_of(job, bytes, sizeof bytes);
        assert_int_equal(mdot_job_parse(bytes, size, &loaded, &err), MDOT_OK);
        assert_compare(*rt_load_at(&loaded->operators[0], 0), ==, ldexp(1, 20 + 2 * k));
        mdot_job_destroy(loaded);
        mdot_job_destroy(job);
    }
    assert_int_equal(mdot_job_with_length(joined, (INT64_C(1) << 21) + 1, &out, &err), MDOT_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "length 2097153, an operator has more than 2^62"));
    mdot_job_destroy(joined);
}

/* Numbers of operators and slots that a job lacks are left out; everything else that breaks the format is refused. */
static void damaged_sections_are_refused_or_dropped(void **unused)
{
    (void)unused;
    static unsigned char bytes[MAX_FILE_BYTES], damaged[MAX_FILE_BYTES];
    network n = {.count = 2};
    n.load[0][0] = (polynomial){5, 7, 0};
    mdot_job *joined = join(&n, (const int64_t[3]){8, 16, 32}), *out = NULL;
    job_file_bytes_of(joined, bytes, sizeof bytes);
    job_file_section sections[JOB_FILE_MAX_SECTIONS];
    size_t count = job_file_list_sections(bytes, sections);
    job_file_section *last = &sections[count - 1];
    assert_int_equal(last->tag, 6);
    assert_int_equal(last->flags, 0);
    unsigned char changed[64];
    assert_compare(last->size, <=, sizeof changed);
    memcpy(changed, last->bytes, last->size);
    last->bytes = changed;
    enum { NAME_BYTES = 9 }; /* "sequence" and its length */
    static const struct {
        size_t offset;
        unsigned char value;
        mdot_status status;
    } cases[] = {{0, 0, MDOT_MALFORMED},
                 {NAME_BYTES, 0, MDOT_MALFORMED},
                 {NAME_BYTES + 1, 16, MDOT_MALFORMED},
                 {NAME_BYTES + 4, 90, MDOT_MALFORMED},
                 {NAME_BYTES + 5, 99, MDOT_OK},
                 {NAME_BYTES + 6, 127, MDOT_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char before = changed[cases[i].offset];
        changed[cases[i].offset] = cases[i].value;
        size_t size = job_file_write_sections(bytes, sections, count, damaged, sizeof damaged);
        mdot_status status = job_file_parse(damaged, size, &out, NULL);
        if (status != cases[i].status) fail_msg("case %zu: status %d", i, (int)status);
        if (status == MDOT_OK) assert_int_equal(out->lengths->count, 0);
        mdot_job_destroy(out);
        out = NULL;
        changed[cases[i].offset] = before;
    }
    mdot_job_destroy(joined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_length_equals_the_job_made_there),
        cmocka_unit_test(freezing_and_lengths_may_come_in_either_order),
        cmocka_unit_test(a_number_that_is_no_polynomial_stays_positive),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(work_beyond_the_limits_is_out_of_range),
        cmocka_unit_test(damaged_sections_are_refused_or_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
