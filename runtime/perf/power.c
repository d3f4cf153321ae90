/* power.c — the power of a GPU during a step, and the time that a power limit costs.
 *
 * A GPU that waits takes IDLE_PART of its board's power limit. The rest grows with the utilisation of its arithmetic
 * units and of its memory, and saturates early: ResNet-50 takes 88 % of a V100's limit at a batch of 8 as well as of
 * 256. The demand is that of a GPU without limit. The regulator keeps the average below the limit, as a soft minimum.
 *
 * Under a limit the clock falls until the power fits. Relative to the demand, the power at a fraction f of the clock is
 *
 *   fixed + linear * f + steep * f^steepness
 *
 * The first part does not depend on the clock, and GDDR takes more of it than HBM. The second part is work at the
 * lowest voltage, and the third one rises with the voltage near the highest clocks. Caches and the path to memory slow
 * down with the clock, so that the time of the whole GPU grows as 1/f. The demand is that while the GPU works: a slower
 * host never shortens a step.
 *
 * Where tensor cores need more power than the board has, their clock has fallen already, and the rate is proportional
 * to the limit to the power VOLTAGE, as in the predictor's prior. Llama 3 8B on H100s of 500 W (torchtitan) confirms
 * it.
 *
 * Constants were fitted to Zeus' measurements (NSDI 2023, github.com/ml-energy/zeus at 75a8b939, trace summaries by
 * power limit): ResNet-50, ShuffleNetV2 and BERT on V100, P100 and Quadro RTX 6000, 100 to 260 W. The RTX 6000's curve
 * stands for boards with GDDR, the others' for HBM. A P100 takes at most .66 of its limit; its demand stands for GPU
 * models older than Volta.
 * docs/explanation/prediction.md has the errors.
 */
#include "runtime/job/gpus.h"
#include "runtime/perf/step_time.h"

#include <math.h>

#define IDLE_PART 0.14
#define BUSY_PART 0.83
#define BUSY_PART_BEFORE_VOLTA 0.54
#define VOLTA_CAPABILITY 7.0
#define AMPERE_CAPABILITY 8.0 /* before it, CUDA cores compute in bf16 */
#define UTILISATION_SCALE 0.3
#define BUSY_UTILISATION 0.7 /* from here on, a step is assumed to wait for the GPU alone */

/* Power relative to the demand, by the fraction of the clock. */
typedef struct curve {
    double fixed, linear, steep, steepness;
} curve;

static const curve HBM = {0.1, 0.6, 0.3, 13}, GDDR = {0.23, 0.42, 0.35, 10};
enum { BISECTIONS = 40 };
#define LEAST_CLOCK 0.12 /* boards go down to 135 to 210 MHz of 1.4 to 2.5 GHz */

/* Among NVIDIA's GPUs, a family's largest chips have HBM and a whole number as compute capability. Blackwell's have
 * 10.0 and 10.3, and the consumer chips of that family have 12. */
static const curve *curve_of(const mdot_gpu *gpu)
{
    double capability = gpu->compute_capability;
    bool is_largest = capability >= 6 && capability < 12 && (capability == floor(capability) || capability > 10);
    return is_largest || rt_gpu_is_from_amd(gpu) ? &HBM : &GDDR;
}

/* Power as a part of the board's limit, if there were no limit. `used`: the sum of both utilisations */
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

/* FLOP/s per watt at 12 nm that tensor cores sustain, and the exponents of process size and power. */
#define SUSTAINED_TFLOPS_PER_WATT 0.49
/* The same in the shipped predictor's prior, and an H100's ratio of learned and sustained rates, which its efficiency
 * contains; at least 1.10539, because an H100's learned times hold. A B200 takes up to 1.3 times the learned time,
 * which SimuMax' steps of Llama 3 70B confirm. */
#define LEARNED_TFLOPS_PER_WATT 0.757
#define H100_THROTTLED 1.1054
#define PROCESS 0.85
#define VOLTAGE 0.9

static double process_nm(double capability)
{
    return capability < 8 ? 12 : capability < 8.5 ? 7 : capability < 8.8 ? 8 : 4;
}

static bool has_tensor_cores(const rt_configuration *configuration)
{
    const mdot_gpu *gpu = &configuration->gpu;
    mdot_precision p = configuration->c.precision;
    bool is_fp16 = p == MDOT_PRECISION_AMP || p == MDOT_PRECISION_MIXED_FP16;
    return rt_is_half(p) && gpu->watts > 0 && gpu->fp16_tflops > gpu->fp32_tflops &&
           gpu->compute_capability >= (is_fp16 ? VOLTA_CAPABILITY : AMPERE_CAPABILITY) && !rt_gpu_is_from_amd(gpu);
}

/* The part of the peak rate that power allows, with `tflops_per_watt` at 12 nm. */
static double allowed_part(const mdot_gpu *gpu, double tflops_per_watt)
{
    double finer = pow(12 / process_nm(gpu->compute_capability), PROCESS);
    return pow(tflops_per_watt * finer * gpu->watts / gpu->fp16_tflops, VOLTAGE);
}

double rt_throttled_matmuls(const rt_configuration *configuration, double *out_rate)
{
    const mdot_gpu *gpu = &configuration->gpu;
    *out_rate = 1;
    if (!has_tensor_cores(configuration) || gpu->compute_capability < RT_HOPPER_CAPABILITY) return 1;
    *out_rate = H100_THROTTLED * fmin(allowed_part(gpu, SUSTAINED_TFLOPS_PER_WATT), 1);
    return fmax(soft_min(allowed_part(gpu, LEARNED_TFLOPS_PER_WATT), 1) / *out_rate, 1);
}

/* Slowdown of tensor cores whose power, at the GPU's own limit, exceeds the board's; at least 1. */
static double tensor_slowdown(const rt_configuration *configuration)
{
    const mdot_gpu *gpu = &configuration->gpu;
    if (!has_tensor_cores(configuration)) return 1;
    double allowed = allowed_part(gpu, SUSTAINED_TFLOPS_PER_WATT);
    double limited = allowed * pow(fmin(configuration->c.power_limit / gpu->watts, 1), VOLTAGE);
    return fmin(allowed, 1) / fmin(limited, 1);
}

/* The clock fraction at which power is `part` of the demand. */
static double clock_at(double part, const curve *c)
{
    double low = LEAST_CLOCK, high = 1;
    for (int i = 0; i < BISECTIONS; i++) {
        double f = (low + high) / 2;
        if (c->fixed + c->linear * f + c->steep * pow(f, c->steepness) < part)
            low = f;
        else
            high = f;
    }
    return high;
}

double rt_power_slowdown(const rt_configuration *configuration, const rt_roofline_terms *terms, double busy_ms)
{
    const mdot_gpu *gpu = &configuration->gpu;
    if (configuration->c.power_limit == 0 || gpu->watts == 0) return 1;
    double used = (terms->compute_ms + terms->memory_ms) / busy_ms;
    double part = configuration->c.power_limit / (gpu->watts * demand(configuration, used));
    double busy = fmin(used / BUSY_UTILISATION, 1), slowdown = 1 / clock_at(part, curve_of(gpu));
    double on_cores = terms->compute_ms / (terms->compute_ms + terms->memory_ms);
    return 1 + busy * (slowdown - 1 + on_cores * fmax(tensor_slowdown(configuration) - slowdown, 0));
}

double rt_average_watts(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms)
{
    double board = configuration->gpu.watts;
    if (board == 0) return 0;
    double wanted = board * demand(configuration, (terms->compute_ms + terms->memory_ms) / step_ms);
    double limit = configuration->c.power_limit > 0 ? configuration->c.power_limit : board;
    return soft_min(wanted, limit);
}
