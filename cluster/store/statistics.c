/* statistics.c — see statistics.h. */
#include "store/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare_real(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

st_fit st_fit_student(const double *values, size_t count, double *out_weights, double *scratch)
{
    enum { DEGREES = 4, STEPS = 30 };
    const double prior = 0.02, prior_weight = 4;
    memcpy(scratch, values, count * sizeof *values);
    qsort(scratch, count, sizeof *scratch, compare_real);
    st_fit fit = {.mean = (scratch[(count - 1) / 2] + scratch[count / 2]) / 2, .spread = prior};
    for (int step = 0; step < STEPS; step++) {
        double total = 0, sum = 0, squares = 0, previous = fit.mean;
        for (size_t i = 0; i < count; i++) {
            double r = (values[i] - fit.mean) / fit.spread;
            out_weights[i] = DEGREES / (DEGREES + r * r);
            total += out_weights[i];
            sum += out_weights[i] * values[i];
        }
        fit.mean = sum / total;
        for (size_t i = 0; i < count; i++)
            squares += out_weights[i] * (values[i] - fit.mean) * (values[i] - fit.mean) * (DEGREES + 1) / DEGREES;
        fit.spread = sqrt((squares + prior_weight * prior * prior) / ((double)count + prior_weight));
        if (step > 0 && fabs(fit.mean - previous) < 1e-9) break;
    }
    return fit;
}

double st_normal_p(double z) { return erfc(fabs(z) / sqrt(2)); }

/* Continued fraction of the incomplete beta function (Lentz's method). */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS = 300 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double both[2] = {even, odd};
        double change = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + both[k] * d;
            c = 1 + both[k] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            change = c * d;
            result *= change;
        }
        if (fabs(change - 1) < 1e-14) break;
    }
    return result;
}

double st_student_p(double t, double degrees)
{
    double a = degrees / 2, b = 0.5, x = degrees / (degrees + t * t);
    if (!(x > 0)) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double st_bridge_p(double d)
{
    double p = 0;
    if (d < 0.2) return 1; /* the series converges slowly there, and the sum is 1 to twelve digits */
    for (int k = 1; k <= 20; k++) p += (k % 2 == 1 ? 2 : -2) * exp(-2.0 * k * k * d * d);
    return p > 1 ? 1 : p;
}

double st_largest_sum(const double *values, const int64_t *time, size_t count, size_t *out_split)
{
    double sum = 0, squares = 0, largest = 0;
    *out_split = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        squares += values[i] * values[i];
        if (i + 1 < count && time[i] != time[i + 1] && fabs(sum) > largest) {
            largest = fabs(sum);
            *out_split = i + 1;
        }
    }
    return squares > 0 ? largest / sqrt(squares) : 0;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* Positions of group values: group g has place[start[g]] to place[start[g + 1] - 1]. */
static void list_places(const size_t *group, size_t count, size_t groups, size_t *start, size_t *place)
{
    memset(start, 0, (groups + 1) * sizeof *start);
    for (size_t i = 0; i < count; i++) start[group[i] + 1]++;
    for (size_t g = 0; g < groups; g++) start[g + 1] += start[g];
    for (size_t i = count; i-- > 0;) place[--start[group[i] + 1]] = i;
    /* Each start now points one group too far. */
    for (size_t g = 0; g < groups; g++) start[g] = start[g + 1];
    start[groups] = count;
}

double st_change_p(const double *values, const int64_t *time, const size_t *group, size_t count, size_t groups,
                   double largest)
{
    enum { ORDERS = 999, MOST_WORK = 20000000 };
    double limit = st_bridge_p(largest);
    if (count > MOST_WORK / ORDERS) return limit;
    double *order = malloc((count + 1) * sizeof *order);
    size_t *start = malloc((groups + 1) * sizeof *start), *place = malloc((count + 1) * sizeof *place), split,
           reached = 0;
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15); /* the same report for the same store */
    bool allocated = order != NULL && start != NULL && place != NULL;
    if (allocated) {
        list_places(group, count, groups, start, place);
        memcpy(order, values, count * sizeof *order);
        for (int k = 0; k < ORDERS; k++) {
            for (size_t g = 0; g < groups; g++) {
                for (size_t i = start[g + 1] - start[g]; i > 1; i--) {
                    size_t a = place[start[g] + i - 1], b = place[start[g] + next_random(&random) % i];
                    double value = order[a];
                    order[a] = order[b];
                    order[b] = value;
                }
            }
            reached += st_largest_sum(order, time, count, &split) >= largest * (1 - 1e-12);
        }
    }
    free(order);
    free(start);
    free(place);
    if (!allocated) return 2;
    double p = ((double)reached + 1) / (ORDERS + 1);
    return reached == 0 && limit < p ? limit : p;
}

typedef struct ranked {
    double p;
    size_t at;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    return (a->p > b->p) - (a->p < b->p);
}

int st_holm(double *p, size_t count)
{
    ranked *order = malloc((count + 1) * sizeof *order);
    size_t tests = 0;
    if (order == NULL) return false;
    for (size_t i = 0; i < count; i++)
        if (p[i] >= 0) order[tests++] = (ranked){.p = p[i], .at = i};
    qsort(order, tests, sizeof *order, compare_ranked);
    double largest = 0;
    for (size_t i = 0; i < tests; i++) {
        double corrected = order[i].p * (double)(tests - i);
        if (corrected > largest) largest = corrected;
        p[order[i].at] = largest < 1 ? largest : 1;
    }
    free(order);
    return true;
}
