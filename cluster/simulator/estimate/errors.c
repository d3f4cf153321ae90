/* errors.c — the error model of the survey's figure 4: factors exp(σ z).
 *
 * The mean of |factor - 1| over z is exp(σ²/2) (2 Φ(σ) - 1), which grows with σ: σ is found by bisection.
 */
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

double sc_error_sigma(double mean_error)
{
    double low = 0, high = 4; /* exp(8) at 4: far above any requested error */
    for (int i = 0; i < 80; i++) {
        double sigma = (low + high) / 2;
        /* 2 Φ(σ) - 1 is erf(σ / √2) */
        if (exp(sigma * sigma / 2) * erf(sigma / sqrt(2)) < mean_error)
            low = sigma;
        else
            high = sigma;
    }
    return low;
}

/* Predicted over true time, at least a hundredth. */
static double draw(sc_error_model model, double mean_error, double sigma, uint64_t *state)
{
    static const double half_pi = 1.5707963267948966;
    double normal = sc_random_normal(state), sign = normal < 0 ? -1 : 1;
    if (model == SC_ERROR_LOG_NORMAL) return exp(sigma * normal);
    return fmax(.01, 1 + mean_error * (model == SC_ERROR_NORMAL ? sqrt(half_pi) * normal : sign));
}

mdot_status sc_estimator_make_errors(size_t job_count, sc_error_model model, double mean_error, uint64_t seed,
                                     sc_estimator *out_estimator, mdot_error *err)
{
    double *factors = calloc(job_count + 1, sizeof *factors);
    if (factors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    double sigma = sc_error_sigma(mean_error);
    uint64_t state = seed;
    for (size_t i = 0; i < job_count; i++) factors[i] = draw(model, mean_error, sigma, &state);
    return sc_estimator_make_fixed(factors, out_estimator, err);
}
