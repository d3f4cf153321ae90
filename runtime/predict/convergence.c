/* convergence.c — steps to a target loss, from the beginning of a curve of losses.
 *
 * The curve is floor + slope * (step + shift)^-exponent. The exponent 1 is Optimus' form, 1 / (b0 step + b1) + b2
 * (Y. Peng et al., EuroSys 2018, doi 10.1145/3190508.3190517). For each exponent and shift of a grid, floor and slope
 * follow from least squares and are at least 0. Late losses weigh more, because an extrapolation begins there. */
#include "base/struct_version.h"
#include "mdot/mdot_plan.h"
#include "runtime/predict/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64, SHIFTS = 8, EXPONENTS = 6, FORMS = EXPONENTS * SHIFTS, SAMPLES = 200, RUN = 2, FEWEST = 10 };

static const double exponents[EXPONENTS] = {.15, .25, .35, .5, .7, 1};
static const double shifts[SHIFTS] = {1e-4, .01, .03, .1, .3, 1, 3, 10}; /* relative to the last step */
static const double weight_exponent = 2.5;                               /* of the point's number */

static const bs_struct_version convergence_type = BS_SIZED(mdot_convergence, exponent);

typedef struct curve {
    size_t count;
    double steps[POINTS], losses[POINTS], weights[POINTS]; /* the weights' sum is 1 */
    double basis[FORMS][POINTS];
} curve;

typedef struct fit {
    size_t form;
    double slope, floor;
} fit;

/* Reduces the points to medians of at most POINTS blocks, clamps each to its neighbours, because it may be an outlier,
 * and fills the forms. */
static mdot_status make_curve(const double *steps, const double *losses, size_t count, curve *c, mdot_error *err)
{
    double *sorted = malloc(count * sizeof *sorted), sum = 0;
    if (sorted == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    memcpy(sorted, losses, count * sizeof *sorted);
    c->count = count <= POINTS ? count : count / 3 < POINTS ? count / 3 : POINTS;
    for (size_t i = 0; i < c->count; i++) {
        size_t begin = count * i / c->count, end = count * (i + 1) / c->count;
        c->losses[i] = rt_median(sorted + begin, end - begin);
        c->steps[i] = (steps[begin] + steps[end - 1]) / 2 / steps[count - 1];
    }
    free(sorted);
    for (size_t i = 1; i + 1 < c->count; i++) {
        double before = c->losses[i - 1], behind = c->losses[i + 1];
        c->losses[i] = fmin(fmax(c->losses[i], fmin(before, behind)), fmax(before, behind));
    }
    for (size_t i = 0; i < c->count; i++) sum += c->weights[i] = pow((double)(i + 1), weight_exponent);
    for (size_t i = 0; i < c->count; i++) c->weights[i] /= sum;
    for (size_t form = 0; form < FORMS; form++)
        for (size_t i = 0; i < c->count; i++)
            c->basis[form][i] = pow(c->steps[i] + shifts[form % SHIFTS], -exponents[form / SHIFTS]);
    return MDOT_OK;
}

static fit fit_of(const curve *c, const double *losses)
{
    fit best = {0};
    double least = INFINITY;
    for (size_t form = 0; form < FORMS; form++) {
        double y = 0, x = 0, xx = 0, xy = 0, error = 0; /* weighted sums; the weights' sum is 1 */
        for (size_t i = 0; i < c->count; i++) {
            double weighted = c->weights[i] * c->basis[form][i];
            y += c->weights[i] * losses[i];
            x += weighted;
            xx += weighted * c->basis[form][i];
            xy += weighted * losses[i];
        }
        double slope = fmax((xy * (1 - 1e-12) - x * y) / (xx - x * x), 0); /* 0 for equal losses */
        fit f = {form, slope, y - slope * x};
        if (f.floor < 0) f = (fit){form, xy / xx, 0};
        for (size_t i = 0; i < c->count; i++)
            error += c->weights[i] * pow(losses[i] - f.floor - f.slope * c->basis[form][i], 2);
        if (error < least) least = error, best = f;
    }
    return best;
}

/* Steps relative to the last one, and at least 1. */
static double steps_of(fit f, double target)
{
    if (target <= f.floor) return INFINITY;
    return fmax(pow(f.slope / (target - f.floor), 1 / exponents[f.form / SHIFTS]) - shifts[f.form % SHIFTS], 1);
}

/* Fits curves with runs of the best fit's residuals, for their steps to the target. The residuals are wider by the four
 * fitted numbers and because clamping made them smaller. Numbers are drawn by MMIX' generator (Knuth). */
static void resample(const curve *c, fit best, double target, double *out_steps)
{
    double fitted[POINTS], losses[POINTS], widening = 1.5 * sqrt((double)c->count / (double)(c->count - 4));
    uint64_t state = 1;
    for (size_t i = 0; i < c->count; i++) fitted[i] = best.floor + best.slope * c->basis[best.form][i];
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        for (size_t i = 0, from = 0; i < c->count; i++, from++) {
            if (i % RUN == 0) {
                state = state * 6364136223846793005 + 1442695040888963407;
                from = (size_t)(state >> 33) % (c->count - RUN + 1);
            }
            losses[i] = fitted[i] + widening * (c->losses[from] - fitted[from]);
        }
        out_steps[sample] = steps_of(fit_of(c, losses), target);
    }
}

/* Do more than three quarters of all pairs of points rise, as an accuracy's? */
static bool rises(const curve *c)
{
    size_t rising = 0;
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < i; k++) rising += c->losses[i] > c->losses[k];
    return 8 * rising > 3 * c->count * (c->count - 1);
}

static mdot_status check(const double *steps, const double *losses, size_t count, double target, mdot_error *err)
{
    if (!(target > 0 && isfinite(target)))
        return BS_INVALID(err, "the target loss is %g; it must be a finite number above 0", target);
    if (count < FEWEST)
        return BS_INVALID(err, "the curve has %zu point%s, but a fit needs at least %d; record more losses", count,
                          count == 1 ? "" : "s", FEWEST);
    for (size_t i = 0; i < count; i++)
        if (!(losses[i] >= 0 && isfinite(losses[i]) && isfinite(steps[i])) || steps[i] < 0 ||
            (i > 0 && steps[i] <= steps[i - 1]))
            return BS_INVALID(err, "point %zu, step %.15g and loss %g: steps must ascend from 0, losses be at least 0",
                              i + 1, steps[i], losses[i]);
    return MDOT_OK;
}

mdot_status mdot_steps_to_loss(const double *steps, const double *losses, size_t count, double target,
                               mdot_convergence *out_convergence, mdot_error *err)
{
    curve c = {.count = 0};
    if (steps == NULL || losses == NULL || out_convergence == NULL)
        return BS_INVALID(err, "mdot_steps_to_loss: steps, losses or out_convergence is NULL");
    BS_TRY(bs_check_struct(&convergence_type, out_convergence, err));
    BS_TRY(check(steps, losses, count, target, err));
    BS_TRY(make_curve(steps, losses, count, &c, err));
    const fit best = fit_of(&c, c.losses);
    double samples[SAMPLES], last = steps[count - 1], sum = 0;
    size_t window = c.count < 32 ? 1 : c.count / 16, finite = 0, i = 0;
    for (; i < c.count; i++) {
        sum += c.losses[i] - (i >= window ? c.losses[i - window] : 0);
        if (sum / (double)(i < window ? i + 1 : window) <= target) break;
    }
    if (rises(&c) || (i == c.count && best.slope == 0))
        return BS_INVALID(err, "the losses do not decrease; record more, or give a falling one, as 1 - accuracy");
    resample(&c, best, target, samples);
    for (size_t sample = 0; i < c.count && sample < SAMPLES; sample++) samples[sample] = c.steps[i]; /* reached */
    rt_median(samples, SAMPLES);
    while (finite < SAMPLES && isfinite(samples[finite])) finite++;
    const mdot_convergence result = {.struct_size = sizeof result,
                                     .steps = last * samples[SAMPLES / 2],
                                     .lower_steps = last * samples[SAMPLES / 20],
                                     .upper_steps = last * samples[SAMPLES - 1 - SAMPLES / 20],
                                     .reach_probability = (double)finite / SAMPLES,
                                     .asymptote = best.floor,
                                     .exponent = exponents[best.form / SHIFTS]};
    return bs_fill_struct(&convergence_type, &result, out_convergence, err);
}
