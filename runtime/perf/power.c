/* power.c — the power of a GPU during a step, and the time that a power limit costs.
 *
 * A GPU that waits takes IDLE_PART of its board's power limit. The rest grows with the utilisation of its arithmetic
 * units and of its memory, and saturates early: ResNet-50 takes 88 % of a V100's limit at a batch of 8 as well as of
 * 256. The demand is that of a GPU without limit. The regulator keeps the average below the limit, as a soft minimum.
 *
 * Under a limit the clock falls until the power fits. Relative to the demand, the power at a fraction f of the clock is
 *
 *   FIXED_PART + LINEAR_PART * f + STEEP_PART * f^STEEPNESS
 *
 * The first part does not depend on the clock, the second one is work at the lowest voltage, and the third one rises
 * with the voltage near the highest clocks. Caches and the path to memory slow down with the clock, so that the time
 * of the whole GPU grows as 1/f. The rest of a step waits for the host, which has no limit.
 *
 * Constants were fitted to Zeus' measurements (NSDI 2023, github.com/ml-energy/zeus at 75a8b939, trace summaries by
 * power limit): ResNet-50 and ShuffleNetV2 on V100, P100 and Quadro RTX 6000, 100 to 260 W. One curve describes the
 * three GPU models. A P100 takes at most .66 of its limit; its demand stands for GPU models older than Volta.
 * docs/explanation/prediction.md has the errors.
 */
#include "runtime/perf/step_time.h"

#include <math.h>

#define IDLE_PART 0.14
#define BUSY_PART 0.83
#define BUSY_PART_BEFORE_VOLTA 0.54
#define VOLTA_CAPABILITY 7.0
#define UTILISATION_SCALE 0.3
#define BUSY_UTILISATION 0.7 /* from here on, a step is assumed to wait for the GPU alone */

#define FIXED_PART 0.1
#define LINEAR_PART 0.6
#define STEEP_PART 0.3
#define STEEPNESS 13
enum { BISECTIONS = 40 };

/* The sum of both utilisations at the predicted time. */
static double utilisation(const rt_roofline_terms *terms, double step_ms)
{
    return (terms->compute_ms + terms->memory_ms) / step_ms;
}

/* Power as a part of the board's limit, if there were no limit. */
static double demand(const rt_configuration *configuration, double used)
{
    bool before_volta = configuration->gpu.compute_capability < VOLTA_CAPABILITY;
    double busy = before_volta ? BUSY_PART_BEFORE_VOLTA : BUSY_PART;
    return IDLE_PART + busy * (1 - exp(-used / UTILISATION_SCALE));
}

/* Soft minimum of a and b, which differs from the lower one if they are similar: (a^-8 + b^-8)^(-1/8). Every prediction
 * computes it, and square roots take half as long as pow. */
static double soft_min(double a, double b)
{
    double ratio = a / b, squared = ratio * ratio, fourth = squared * squared;
    return a / sqrt(sqrt(sqrt(1 + fourth * fourth)));
}

/* The clock fraction at which power is `part` of the demand. */
static double clock_at(double part)
{
    double low = 0, high = 1;
    for (int i = 0; i < BISECTIONS; i++) {
        double f = (low + high) / 2;
        if (FIXED_PART + LINEAR_PART * f + STEEP_PART * pow(f, STEEPNESS) < part)
            low = f;
        else
            high = f;
    }
    return high;
}

double rt_power_slowdown(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms)
{
    const mdot_gpu *gpu = &configuration->gpu;
    if (configuration->c.power_limit == 0 || gpu->watts == 0) return 1;
    double used = utilisation(terms, step_ms);
    double part = configuration->c.power_limit / (gpu->watts * demand(configuration, used));
    double busy = fmin(used / BUSY_UTILISATION, 1);
    return 1 + busy * (1 / clock_at(part) - 1);
}

double rt_average_watts(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms)
{
    double board = configuration->gpu.watts;
    if (board == 0) return 0;
    double wanted = board * demand(configuration, utilisation(terms, step_ms));
    double limit = configuration->c.power_limit > 0 ? configuration->c.power_limit : board;
    return soft_min(wanted, limit);
}
