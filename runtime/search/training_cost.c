/* training_cost.c — time and cost of a whole training, from one step. */
#include "base/struct_version.h"
#include "mdot/mdot_plan.h"

#include <math.h>

#define MINUTES_PER_HOUR 60.0
#define MS_PER_HOUR 3.6e6
#define SECONDS_PER_HOUR 3600.0
#define JOULES_PER_KWH 3.6e6
#define GRAMS_PER_KG 1e3
#define CHECKPOINT_BYTES_PER_PARAMETER 12.0 /* fp32 weights and the two moments of Adam */
#define QUANTILE_95 1.6448536269514722      /* of the normal distribution */

static const bs_struct_version run_type = BS_SIZED(mdot_training_run, budget);
static const bs_struct_version cost_type = BS_SIZED(mdot_training_cost, in_budget);
static const bs_struct_version layout_type = BS_SIZED(mdot_plan_layout, pipeline_share);

/* The members of mdot_training_run. */
#define RUN_MEMBERS(X)                                                                                                 \
    X(samples)                                                                                                         \
    X(evaluation_samples)                                                                                              \
    X(evaluation_steps)                                                                                                \
    X(checkpoint_bytes)                                                                                                \
    X(storage_gbps)                                                                                                    \
    X(checkpoint_minutes)                                                                                              \
    X(gpu_failure_hours)                                                                                               \
    X(interruptions_per_hour)                                                                                          \
    X(restart_minutes)                                                                                                 \
    X(startup_minutes)                                                                                                 \
    X(price)                                                                                                           \
    X(grid_grams_per_kwh)                                                                                              \
    X(deadline_hours)                                                                                                  \
    X(budget)

static mdot_status check_run(const mdot_training_run *run, mdot_error *err)
{
#define CHECK(member)                                                                                                  \
    if (!(run->member >= 0) || isinf(run->member))                                                                     \
        return BS_INVALID(err, "the training's " #member " is %g; it must be 0 or more", run->member);
    RUN_MEMBERS(CHECK)
#undef CHECK
    if (run->samples > 0) return MDOT_OK;
    return BS_INVALID(err, "the training's samples are 0: set the samples to train on");
}

/* Part of a trained sample's time that its forward pass takes: one of three passes, or of four with recomputation. */
static double forward_part(mdot_recompute recompute) { return recompute == MDOT_RECOMPUTE_BLOCKS ? 0.25 : 1.0 / 3; }

/* Failures of the whole allocation in an hour. */
static double failures_per_hour(const mdot_training_run *run, double gpus)
{
    double failures = run->gpu_failure_hours > 0 ? gpus / run->gpu_failure_hours : 0;
    return failures + run->interruptions_per_hour;
}

/* Hours to write a checkpoint; 0 without checkpoints. */
static double checkpoint_hours(const mdot_training_run *run, double parameters)
{
    double bytes = run->checkpoint_bytes > 0 ? run->checkpoint_bytes : CHECKPOINT_BYTES_PER_PARAMETER * parameters;
    return run->storage_gbps > 0 ? bytes / (run->storage_gbps * 1e9) / SECONDS_PER_HOUR : 0;
}

/* Hours between checkpoints; 0 without checkpoints. The best interval is the square root of 2 * cost / failure rate
 * (Young, 1974; Daly, 2006). */
static double checkpoint_interval(const mdot_training_run *run, double hours_to_write, double failure_rate)
{
    if (run->storage_gbps <= 0) return 0;
    if (run->checkpoint_minutes > 0) return run->checkpoint_minutes / MINUTES_PER_HOUR;
    return failure_rate > 0 ? sqrt(2 * hours_to_write / failure_rate) : 0;
}

/* Fills the hours for a step of this many hours. Returns false if failures leave no time for progress. */
static bool add_hours(const mdot_training_run *run, const mdot_plan_layout *layout, double step_hours,
                      mdot_training_cost *out)
{
    const mdot_configuration *c = &layout->configuration;
    double gpus = c->gpu_count > 0 ? c->gpu_count : 1, rate = failures_per_hour(run, gpus);
    out->step_hours = out->steps * step_hours;
    double evaluations = run->evaluation_steps > 0 ? floor(out->steps / run->evaluation_steps) : 0;
    out->evaluation_hours =
        evaluations * run->evaluation_samples / layout->samples * step_hours * forward_part(c->recompute);
    double write = checkpoint_hours(run, layout->prediction.parameters),
           interval = checkpoint_interval(run, write, rate);
    double useful = out->step_hours + out->evaluation_hours;
    out->checkpoint_minutes = interval * MINUTES_PER_HOUR;
    out->checkpoint_hours = interval > 0 ? useful / interval * write : 0;
    out->startup_hours = run->startup_minutes / MINUTES_PER_HOUR;
    double uninterrupted = useful + out->checkpoint_hours, undone = interval > 0 ? interval / 2 : uninterrupted / 2;
    double lost = rate * (run->restart_minutes / MINUTES_PER_HOUR + undone); /* part of the time */
    if (lost >= 1) return false;
    out->failure_hours = uninterrupted * lost / (1 - lost);
    out->hours = uninterrupted + out->failure_hours + out->startup_hours;
    return true;
}

/* Probability that a log-normal value with this median and upper 95 % quantile is at most `limit`; 1 without a
 * limit. */
static double probability_below(double limit, double median, double upper)
{
    if (limit <= 0) return 1;
    double deviation = log(upper / median) / QUANTILE_95;
    if (!(deviation > 0)) return limit >= median ? 1 : 0;
    return 0.5 * erfc(-log(limit / median) / deviation / sqrt(2));
}

static mdot_status compute(const mdot_training_run *run, const mdot_plan_layout *layout, mdot_training_cost *out,
                           mdot_error *err)
{
    const mdot_prediction *p = &layout->prediction;
    mdot_training_cost lower, upper;
    double gpus = layout->configuration.gpu_count > 0 ? layout->configuration.gpu_count : 1;
    *out = (mdot_training_cost){.steps = ceil(run->samples / layout->samples)};
    lower = upper = *out;
    if (!add_hours(run, layout, p->step_ms / MS_PER_HOUR, out) ||
        !add_hours(run, layout, p->lower_ms / MS_PER_HOUR, &lower) ||
        !add_hours(run, layout, p->upper_ms / MS_PER_HOUR, &upper))
        return BS_INVALID(err,
                          "%.0f GPUs fail so often that training makes no progress: set storage_gbps for checkpoints, "
                          "shorten checkpoint_minutes and restart_minutes, or use fewer GPUs",
                          gpus);
    out->lower_hours = lower.hours;
    out->upper_hours = upper.hours;
    out->gpu_hours = out->hours * gpus;
    out->cost = out->gpu_hours * run->price;
    out->lower_cost = lower.hours * gpus * run->price;
    out->upper_cost = upper.hours * gpus * run->price;
    out->kwh = p->average_watts * gpus * out->hours * SECONDS_PER_HOUR / JOULES_PER_KWH;
    out->co2_kg = out->kwh * run->grid_grams_per_kwh / GRAMS_PER_KG;
    out->in_time = probability_below(run->deadline_hours, out->hours, out->upper_hours);
    out->in_budget = run->price > 0 ? probability_below(run->budget, out->cost, out->upper_cost) : 1;
    return MDOT_OK;
}

mdot_status mdot_training_cost_of(const mdot_training_run *run, const mdot_plan_layout *layout,
                                  mdot_training_cost *out_cost, mdot_error *err)
{
    mdot_training_run read;
    mdot_plan_layout priced;
    mdot_training_cost cost;
    BS_TRY(bs_read_struct(&run_type, run, &read, err));
    BS_TRY(bs_read_struct(&layout_type, layout, &priced, err));
    BS_TRY(bs_check_struct(&cost_type, out_cost, err));
    BS_TRY(check_run(&read, err));
    if (!(priced.samples > 0 && priced.prediction.step_ms > 0))
        return BS_INVALID(err, "the layout has %g samples and a step of %g ms; both must be above 0", priced.samples,
                          priced.prediction.step_ms);
    BS_TRY(compute(&read, &priced, &cost, err));
    return bs_fill_struct(&cost_type, &cost, out_cost, err);
}
