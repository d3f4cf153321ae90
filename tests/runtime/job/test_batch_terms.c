/* test_batch_terms.c — runtime/job/batch_terms.c: the terms of the batch, from two batches. The law: work that is a sum
 * of products of dimensions has, at any batch, the amount of the polynomial found. */
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 4000 };

static uint64_t state = 7;

static int64_t below(int64_t bound)
{
    state = state * UINT64_C(6364136223846793005) + 1;
    return (int64_t)((state >> 33) % (uint64_t)bound);
}

typedef struct polynomial {
    double step, sample, square;
} polynomial;

static double value_of(polynomial p, double batch) { return p.step + batch * (p.sample + batch * p.square); }

/* An operator with this much forward FLOPs and bytes at the batch, all per sample, as a reader counts it. */
static mdot_job_operator operator_at(polynomial p, double batch, int64_t columns)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = "MatMul", .known = true};
    op.per_sample[MDOT_PHASE_FORWARD].flops = value_of(p, batch) / batch;
    op.per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 6912;
    op.setting[MDOT_SETTING_CHANNELS_OUT] = columns;
    op.setting[MDOT_SETTING_CHANNELS_IN] = 64;
    return op;
}

static polynomial found(const mdot_job_operator *op)
{
    const mdot_load *step = op->per_step, *sample = op->per_sample, *square = op->per_square;
    return (polynomial){step->flops, sample->flops, square->flops};
}

static mdot_job_operator combine(polynomial p, int64_t first, int64_t other, bool multiplies)
{
    mdot_job_operator op = operator_at(p, (double)first, multiplies ? first : 5),
                      at_other = operator_at(p, (double)other, multiplies ? other : 5);
    mdot_error err = {0};
    if (mdot_operators_combine(&op, first, &at_other, other, 1, &err) != MDOT_OK) fail_msg("%s", err.message);
    return op;
}

static const int64_t pairs[][2] = {{1, 7}, {2, 7}, {4, 11}, {8, 13}, {32, 37}};

/* The same work at one batch and at every other, within a hundredth. */
static void expect_polynomial(polynomial wanted, const int64_t *pair, bool multiplies, double tolerance)
{
    mdot_job_operator op = combine(wanted, pair[0], pair[1], multiplies);
    for (double batch = 1; batch <= 8192; batch *= 2) {
        double x = value_of(found(&op), batch), y = value_of(wanted, batch);
        if (!(fabs(x - y) <= tolerance * y))
            fail_msg("%g + %g B + %g B^2 from batches %lld and %lld: %g at batch %g, not %g", wanted.step,
                     wanted.sample, wanted.square, (long long)pair[0], (long long)pair[1], x, batch, y);
    }
}

/* Tensors have one term each: constants, samples or squares, four bytes an element. */
static void single_terms_are_exact(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        double amount = 4.0 * (double)(1 + below(1 << 20));
        polynomial p[3] = {{amount, 0, 0}, {0, amount, 0}, {0, 0, amount}};
        expect_polynomial(p[i % 3], pairs[i % 5], false, 1e-12);
    }
}

/* Two factors of a product, or a tensor with labels, with a scalar, or with a queue of negatives. */
static void sums_of_two_terms_are_exact(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        double large = 4.0 * (double)(1 + below(1 << 20)), small = 4.0 * (double)(1 + below(8));
        polynomial p[3] = {{large, 4 * below(1000) + 4, 0}, {0, large, small}, {small, 0, large}};
        /* Without a common divisor, a polynomial of another kind is whole by chance. */
        expect_polynomial(p[i % 3], pairs[3 + i % 2], false, i % 3 == 2 ? .01 : 1e-12);
    }
}

/* The gradient of a cross-entropy over a similarity matrix and a queue reads the gradient of the loss, too. */
static void a_scalar_beside_two_terms_is_exact(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        polynomial p = {4.0 * (double)(1 + below(2)), 4096.0 * (double)(1 + below(512)), 4.0 * (double)(1 + below(8))};
        expect_polynomial(p, pairs[3 + i % 2], false, 1e-12);
    }
}

/* A constant of the program may repeat with the batch, for example a state of zeros for each sample. */
static void constants_that_repeat_grow_with_the_batch(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        const int64_t *pair = pairs[i % 5];
        polynomial p = {4.0 * (double)below(1 << 10), 4.0 * (double)(1 + below(1 << 10)), 0};
        mdot_job_operator op = operator_at((polynomial){0, 64, 0}, (double)pair[0], 5);
        mdot_job_operator other = operator_at((polynomial){0, 64, 0}, (double)pair[1], 5);
        op.per_step[MDOT_PHASE_FORWARD].bytes_read = value_of(p, (double)pair[0]);
        other.per_step[MDOT_PHASE_FORWARD].bytes_read = value_of(p, (double)pair[1]);
        assert_int_equal(mdot_operators_combine(&op, pair[0], &other, pair[1], 1, NULL), MDOT_OK);
        double batch = 64, read = op.per_step[MDOT_PHASE_FORWARD].bytes_read;
        read += batch * op.per_sample[MDOT_PHASE_FORWARD].bytes_read;
        read += batch * batch * op.per_square[MDOT_PHASE_FORWARD].bytes_read;
        if (!(fabs(read - value_of(p, batch)) <= 1e-12 * read)) fail_msg("%g, not %g", read, value_of(p, batch));
    }
}

/* A similarity matrix with constants and labels: the operator's settings say that it multiplies with the batch. */
static void three_terms_need_settings_that_multiply(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        polynomial p = {4.0 * (double)below(4), (double)below(16), 4.0 * (double)(1 + below(1 << 16))};
        expect_polynomial(p, pairs[4], true, 1e-12);
    }
    mdot_job_operator op = combine((polynomial){0, 0, 128}, 8, 13, true);
    assert_int_equal(op.batch_settings, UINT64_C(1) << MDOT_SETTING_CHANNELS_OUT);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 1);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_IN], 64);
}

/* SimCLR compares each of 2B samples with 2B - 1 others. */
static void pairs_of_different_samples_grow_with_the_square(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        polynomial p = {0, -2, 4};
        mdot_job_operator op = combine(p, pairs[k][0], pairs[k][1], false);
        double x = value_of(found(&op), 8192), y = value_of(p, 8192);
        if (!(fabs(x - y) <= .001 * y)) fail_msg("pair %zu: %g, not %g", k, x, y);
    }
}

/* Work per sample or per step alone stays as it is, bit by bit. */
static void usual_operators_are_unchanged(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        mdot_job_operator op = {.struct_size = sizeof op, .type = "Linear", .known = true, .parameters = 77};
        for (int k = 0; k < 6 * MDOT_PHASE_COUNT; k++)
            *rt_load_at(&op, k) = (double)below(1 << 30) * (double)below(1 << 14);
        for (int s = 0; s < MDOT_SETTING_COUNT; s++) op.setting[s] = below(1000);
        mdot_job_operator before = op, other = op;
        assert_int_equal(mdot_operators_combine(&op, 1 + i % 6, &other, 7, 1, NULL), MDOT_OK);
        assert_memory_equal(&op, &before, sizeof op);
    }
}

/* A count that does not follow a polynomial keeps the nearest growth. */
static void irregular_work_keeps_the_nearest_growth(void **unused)
{
    (void)unused;
    static const struct {
        double first, other;
        int term;
    } cases[] = {{100, 103, 0}, {101, 210, 1}, {1001, 3910, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job_operator op = operator_at((polynomial){cases[i].first, 0, 0}, 16, 5);
        mdot_job_operator other = operator_at((polynomial){cases[i].other, 0, 0}, 31, 5);
        assert_int_equal(mdot_operators_combine(&op, 16, &other, 31, 1, NULL), MDOT_OK);
        polynomial p = found(&op);
        const double terms[] = {p.step, p.sample, p.square};
        double largest = fmax(terms[0], fmax(16 * terms[1], 256 * terms[2]));
        const double at_first[] = {terms[0], 16 * terms[1], 256 * terms[2]};
        if (at_first[cases[i].term] != largest) fail_msg("case %zu: %g, %g, %g", i, p.step, p.sample, p.square);
    }
}

static void different_operators_are_refused_and_nothing_changes(void **unused)
{
    (void)unused;
    static const uint32_t input[] = {0};
    mdot_job_operator ops[2] = {operator_at((polynomial){0, 0, 8}, 2, 2), operator_at((polynomial){0, 0, 8}, 2, 2)};
    mdot_job_operator others[2] = {operator_at((polynomial){0, 0, 8}, 7, 7), operator_at((polynomial){0, 0, 8}, 7, 7)};
    mdot_job_operator before[2];
    mdot_error err = {0};
    others[1].input_count = 1;
    others[1].inputs = input;
    memcpy(before, ops, sizeof ops);
    assert_int_equal(mdot_operators_combine(ops, 2, others, 7, 2, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "operator 1"));
    assert_memory_equal(ops, before, sizeof ops);
    assert_int_equal(mdot_operators_combine(ops, 2, ops, 2, 2, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_operators_combine(ops, 0, others, 7, 1, &err), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_terms_are_exact),
        cmocka_unit_test(sums_of_two_terms_are_exact),
        cmocka_unit_test(a_scalar_beside_two_terms_is_exact),
        cmocka_unit_test(constants_that_repeat_grow_with_the_batch),
        cmocka_unit_test(three_terms_need_settings_that_multiply),
        cmocka_unit_test(pairs_of_different_samples_grow_with_the_square),
        cmocka_unit_test(usual_operators_are_unchanged),
        cmocka_unit_test(irregular_work_keeps_the_nearest_growth),
        cmocka_unit_test(different_operators_are_refused_and_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
