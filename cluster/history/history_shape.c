/* history_shape.c — see history_shape.h, and the functions in mdot_history.h on one estimate. */
#include "history/history_learning.h"

#include <math.h>

static const double all_degrees[] = {INFINITY, 4, 2, 1};
enum { DEGREES = sizeof all_degrees / sizeof all_degrees[0] };

double hs_t_probability(double degrees, double t)
{
    if (degrees < 1.5) return 0.5 + atan(t) / M_PI;
    if (degrees < 3) return 0.5 + t / (2 * sqrt(2 + t * t));
    if (degrees < 8) {
        double u = t / sqrt(1 + t * t / 4);
        return 0.5 + 0.375 * u * (1 - t * t / (12 * (1 + t * t / 4)));
    }
    return erfc(-t / sqrt(2)) / 2;
}

/* The normal distribution's inverse: Tukey's lambda distribution, which is within .02, and Newton's method. */
static double normal_quantile(double probability)
{
    double z = 4.91 * (pow(probability, .14) - pow(1 - probability, .14));
    for (int i = 0; i < 3; i++) z += (probability - erfc(-z / sqrt(2)) / 2) * sqrt(2 * M_PI) * exp(z * z / 2);
    return z;
}

double hs_t_quantile(double degrees, double probability)
{
    double p = probability, alpha = 4 * p * (1 - p);
    if (p == 0.5) return 0;
    if (degrees < 1.5) return tan(M_PI * (p - 0.5));
    if (degrees < 3) return 2 * (p - 0.5) * sqrt(2 / alpha);
    if (degrees < 8) return copysign(2 * sqrt(fmax(cos(acos(sqrt(alpha)) / 3) / sqrt(alpha) - 1, 0)), p - 0.5);
    return normal_quantile(p);
}

static const double bin_width = 0.125, stretch = 8;

/* Returns the error at a bin's beginning. */
static double begin_of(double bin) { return sinh((bin - HS_BINS / 2) * bin_width) / stretch; }

void hs_errors_begin(hs_errors *errors)
{
    const double assumed = 30;
    double before = 0;
    for (int i = 0; i < HS_BINS; i++) {
        double below = i + 1 < HS_BINS ? hs_t_probability(2, begin_of(i + 1)) : 1;
        errors->bins[i] = assumed * (below - before);
        before = below;
    }
}

void hs_errors_add(hs_errors *errors, double z)
{
    double bin = floor(asinh(stretch * z) / bin_width) + HS_BINS / 2;
    for (int i = 0; i < HS_BINS; i++) errors->bins[i] *= 0.999;
    errors->bins[(int)fmin(fmax(bin, 0), HS_BINS - 1)]++;
}

/* Computes quantiles for ascending probabilities; within a bin, they are linear in the stretched coordinate. */
static void quantiles_of(const hs_errors *errors, const double *probabilities, int count, double *out)
{
    double total = 0, below = 0;
    int bin = 0;
    for (int i = 0; i < HS_BINS; i++) total += errors->bins[i];
    for (int i = 0; i < count; i++) {
        double wanted = probabilities[i] * total;
        while (bin < HS_BINS - 1 && below + errors->bins[bin] < wanted) below += errors->bins[bin++];
        out[i] = begin_of(bin + fmin(fmax((wanted - below) / errors->bins[bin], 0), 1));
    }
}

/* Each side has the scale with the best fit to three quantiles, relative to the distances from the median. */
static hs_shape fit_degrees(double degrees, const double *probabilities, const double *quantiles, double *out_misfit)
{
    const double minimum = 1e-3;
    double sum[2] = {0, 0}, distance[7], t[7];
    *out_misfit = 0;
    for (int i = 0; i < 7; i++) {
        t[i] = fabs(hs_t_quantile(degrees, probabilities[i]));
        distance[i] = fmax(fabs(quantiles[i] - quantiles[3]), minimum);
        if (i != 3) sum[i > 3] += log(distance[i] / t[i]) / 3;
    }
    for (int i = 0; i < 7; i++)
        if (i != 3) *out_misfit += pow(log(distance[i] / t[i]) - sum[i > 3], 2);
    return (hs_shape){quantiles[3], exp(sum[0]), exp(sum[1]), degrees};
}

hs_shape hs_shape_fit(const hs_errors *errors)
{
    static const double probabilities[] = {.05, .1, .25, .5, .75, .9, .95};
    double quantiles[7], minimum = INFINITY, misfit;
    hs_shape best = {0, 1, 1, 2};
    quantiles_of(errors, probabilities, 7, quantiles);
    for (int i = 0; i < DEGREES; i++) {
        hs_shape shape = fit_degrees(all_degrees[i], probabilities, quantiles, &misfit);
        if (misfit < minimum) {
            minimum = misfit;
            best = shape;
        }
    }
    return best;
}

static double scale_of(const mdot_history_estimate *e, bool is_upper)
{
    return is_upper ? e->upper_scale : e->lower_scale;
}

double mdot_history_quantile_s(const mdot_history_estimate *e, double probability)
{
    double p = fmin(fmax(probability, .001), .999);
    double log_s = log(e->median_s) + scale_of(e, p > .5) * hs_t_quantile(e->degrees, p);
    return exp(fmin(fmax(log_s, log(1e-3)), log(1e12)));
}

double mdot_history_remaining_s(const mdot_history_estimate *e, double executed_s, double probability)
{
    const double least_s = 1e-3;
    if (!(executed_s > 0)) return mdot_history_quantile_s(e, probability);
    double t = (log(executed_s) - log(e->median_s)) / scale_of(e, executed_s > e->median_s);
    double p = fmin(fmax(probability, .001), .999), passed = hs_t_probability(e->degrees, t);
    if (passed < .998) return fmax(mdot_history_quantile_s(e, passed + p * (1 - passed)) - executed_s, least_s);
    /* Beyond the table, the remaining time stays in proportion to the elapsed time. */
    double end_s = mdot_history_quantile_s(e, .998);
    return fmax((mdot_history_quantile_s(e, .999) / end_s - 1) * executed_s, least_s);
}
