/* batch_terms.c — work as a polynomial in the batch, from the same operators at two batches.
 *
 * Each number of an operator, for example the bytes that it reads, is a sum of products of dimensions. A dimension is
 * a constant or a multiple of the batch, and at most two of one tensor are multiples. So a number is one of {1}, {B},
 * {B^2}, or a sum of two of them, with coefficients that are whole and positive. Two batches determine such a
 * polynomial. If the batches have no common divisor, a polynomial of another kind has whole coefficients only by
 * chance. An operator whose settings multiply with the batch may have all three terms.
 */
#include "base/struct_version.h"
#include "runtime/job/job_model.h"

#include <math.h>
#include <string.h>

static const bs_struct_version operator_type = BS_SIZED(mdot_job_operator, frozen_parameters);

enum { PER_PHASE = 6, SQUARES = PER_PHASE * MDOT_PHASE_COUNT }; /* places of loads (rt_load_at) */

typedef struct terms {
    double step, sample, square;
} terms;

typedef struct batches {
    double first, other;
} batches;

static bool is_whole(long double number) { return number == rintl(number); }

static bool is_coefficient(long double number) { return number >= 0 && is_whole(number); }

/* Polynomials of two terms, and perhaps the bytes of a number, through both amounts. Without a whole one, the largest
 * term alone is kept if the other is negative, as in the 2B * (2B - 1) pairs of samples with different indices. */
static bool find_two_terms(const batches *b, long double first, long double other, terms *out)
{
    long double x = b->first, y = b->other;
    long double slope = (other - first) / (y - x), constant = first - slope * x;
    if (is_coefficient(slope) && is_coefficient(constant)) {
        *out = (terms){(double)constant, (double)slope, 0};
        return true;
    }
    long double square = 0, linear = 0;
    for (int scalar = 8; scalar >= 0; scalar -= 4) { /* for example the loss */
        square = ((other - scalar) * x - (first - scalar) * y) / (x * y * (y - x));
        linear = (first - scalar) / x - square * x;
        if (!is_coefficient(square) || !is_coefficient(linear)) continue;
        *out = (terms){scalar, (double)linear, (double)square};
        return true;
    }
    long double even = (other - first) / (y * y - x * x), rest = first - even * x * x;
    if (is_coefficient(even) && is_coefficient(rest)) {
        *out = (terms){(double)rest, 0, (double)even};
        return true;
    }
    if (is_coefficient(square) && is_whole(linear) && -linear < square * x) {
        *out = (terms){0, 0, (double)square};
        return true;
    }
    return false;
}

/* Of the polynomials with all terms, the one with the largest square. */
static bool find_three_terms(const batches *b, long double first, long double other, terms *out)
{
    long double slope = (other - first) / (b->other - b->first), sum = b->first + b->other;
    long double square = floorl(slope / sum), linear = slope - square * sum;
    long double constant = first - linear * b->first - square * b->first * b->first;
    if (!is_whole(slope) || square < 1 || constant < 0) return false;
    *out = (terms){(double)constant, (double)linear, (double)square};
    return true;
}

/* `first` and `other` are the amounts at the two batches. */
static terms terms_of(const batches *b, double first, double other, bool multiplies)
{
    long double x = b->first, y = b->other;
    terms found;
    if (first == other) return (terms){.step = first};
    if (first * y == other * x) return (terms){.sample = first / b->first};
    if (first * y * y == other * x * x) return (terms){.square = first / (b->first * b->first)};
    if (find_two_terms(b, first, other, &found)) return found;
    if (multiplies && find_three_terms(b, first, other, &found)) return found;
    /* No polynomial with whole coefficients: the term with the nearest growth. */
    double power = first > 0 && other > 0 ? log(other / first) / log(b->other / b->first) : 1;
    if (power > 1.5) return (terms){.square = other / (b->other * b->other)};
    return power > 0.5 ? (terms){.sample = other / b->other} : (terms){.step = other};
}

/* A setting that grows with the batch becomes one of a sample. */
static void combine_settings(const batches *b, mdot_job_operator *op, const mdot_job_operator *other)
{
    for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
        double x = (double)op->setting[s], y = (double)other->setting[s];
        if (x == y || x <= 0 || y <= 0) continue;
        if (log(y / x) / log(b->other / b->first) < 0.5) continue;
        op->setting[s] = llrint(y / b->other) > 0 ? llrint(y / b->other) : 1;
        op->batch_settings |= UINT64_C(1) << s;
    }
}

static void add_terms(const batches *b, double first, double other, bool multiplies, mdot_job_operator *out, int phase,
                      int part)
{
    terms t = terms_of(b, rint(first), rint(other), multiplies);
    *rt_load_at(out, PER_PHASE * phase + part) += t.sample;
    *rt_load_at(out, PER_PHASE * phase + 3 + part) += t.step;
    *rt_load_at(out, SQUARES + 3 * phase + part) += t.square;
}

static void combine(const batches *b, mdot_job_operator *op, mdot_job_operator *other)
{
    mdot_job_operator first = *op;
    bool has_squares = false;
    combine_settings(b, op, other);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        for (int part = 0; part < 3; part++) {
            int sample = PER_PHASE * phase + part, step = sample + 3;
            double x = *rt_load_at(&first, sample), y = *rt_load_at(other, sample);
            double u = *rt_load_at(&first, step), v = *rt_load_at(other, step);
            bool is_usual = rint(x * b->first) * b->other == rint(y * b->other) * b->first;
            /* A price that only one of the two programs states is one of a sample. */
            bool is_stated_once = (x == 0) != (y == 0);
            if ((is_usual || is_stated_once) && u == v) continue;
            *rt_load_at(op, sample) = *rt_load_at(op, step) = 0;
            add_terms(b, x * b->first, y * b->other, op->batch_settings != 0, op, phase, part);
            add_terms(b, u, v, op->batch_settings != 0, op, phase, part);
            has_squares = has_squares || *rt_load_at(op, SQUARES + 3 * phase + part) > 0;
        }
    }
    if (has_squares) return;
    /* A sum over all samples has a setting that grows, but its work is proportional to the batch. */
    memcpy(op->setting, first.setting, sizeof op->setting);
    op->batch_settings = 0;
}

static bool equal_operators(const mdot_job_operator *x, const mdot_job_operator *y)
{
    return x->type != NULL && y->type != NULL && strcmp(x->type, y->type) == 0 && x->parameters == y->parameters &&
           x->frozen_parameters == y->frozen_parameters && x->input_count == y->input_count &&
           (x->input_count == 0 || memcmp(x->inputs, y->inputs, x->input_count * sizeof *x->inputs) == 0);
}

mdot_status mdot_operators_combine(mdot_job_operator *operators, int64_t batch, const mdot_job_operator *others,
                                   int64_t other_batch, size_t operator_count, mdot_error *err)
{
    BS_TRY(bs_check_struct(&operator_type, operators, err));
    BS_TRY(bs_check_struct(&operator_type, others, err));
    if (batch < 1 || other_batch < 1 || batch == other_batch)
        return BS_INVALID(err, "the batches are %lld and %lld; they must be positive and differ", (long long)batch,
                          (long long)other_batch);
    const batches b = {(double)batch, (double)other_batch};
    for (int is_checked = 0; is_checked < 2; is_checked++) { /* nothing changes before everything is checked */
        for (size_t i = 0; i < operator_count; i++) {
            mdot_job_operator op, other;
            BS_TRY(bs_read_element(&operator_type, operators, i, &op, err));
            BS_TRY(bs_read_element(&operator_type, others, i, &other, err));
            if (!equal_operators(&op, &other))
                return BS_INVALID(err, "operator %zu differs between the batches %lld and %lld: %s and %s", i,
                                  (long long)batch, (long long)other_batch, op.type != NULL ? op.type : "?",
                                  other.type != NULL ? other.type : "?");
            if (is_checked == 0) continue;
            combine(&b, &op, &other);
            bs_write_struct(&operator_type, &op, bs_struct_at(operators, i), bs_struct_bytes(operators));
        }
    }
    return MDOT_OK;
}
