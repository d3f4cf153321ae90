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

static const double MAXIMUM = 1e15; /* of a number of the training, and of steps */

static mdot_status check_run(const mdot_training_run *run, mdot_error *err)
{
#define CHECK(member)                                                                                                  \
    if (!(run->member >= 0 && run->member <= MAXIMUM))                                                                 \
        return BS_INVALID(err, "the training's " #member " is %g; it must be from 0 to %g", run->member, MAXIMUM);
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

/* One step time of a prediction: the median, or a bound of its interval. */
typedef double step_time(const mdot_prediction *p);

static double median_ms(const mdot_prediction *p) { return p->step_ms; }
static double lower_ms(const mdot_prediction *p) { return p->lower_ms; }
static double upper_ms(const mdot_prediction *p) { return p->upper_ms; }

static double gpus_of(const mdot_plan_layout *layout) { return fmax(layout->configuration.gpu_count, 1); }

/* Each epoch has whole steps. */
static double steps_of(const mdot_training_run *run, double epochs, double samples_per_step)
{
    double whole = floor(epochs), steps = run->samples / samples_per_step;
    return whole * ceil(steps) + ceil((epochs - whole) * steps * (1 - 1e-12));
}

/* Adds a phase without its failures and start, and returns its hours. */
static double add_phase(const mdot_training_run *run, double epochs, const mdot_plan_layout *layout, step_time *time_of,
                        mdot_training_cost *out)
{
    double steps = steps_of(run, epochs, layout->samples), evaluations = 0;
    double step_hours = time_of(&layout->prediction) / MS_PER_HOUR;
    if (run->evaluation_steps > 0)
        evaluations = floor((out->steps + steps) / run->evaluation_steps) - floor(out->steps / run->evaluation_steps);
    double evaluation_hours = evaluations * run->evaluation_samples / layout->samples * step_hours *
                              forward_part(layout->configuration.recompute);
    double write = checkpoint_hours(run, layout->prediction.parameters),
           interval = checkpoint_interval(run, write, failures_per_hour(run, gpus_of(layout)));
    double useful = steps * step_hours + evaluation_hours, writing = interval > 0 ? useful / interval * write : 0;
    out->steps += steps;
    out->step_hours += steps * step_hours;
    out->evaluation_hours += evaluation_hours;
    out->checkpoint_minutes = interval * MINUTES_PER_HOUR;
    out->checkpoint_hours += writing;
    return useful + writing;
}

/* Fills all members but intervals and probabilities. Without checkpoints, a failure undoes half the training. */
static mdot_status add_hours(const mdot_training_run *run, const mdot_training_phase *phases, size_t count,
                             step_time *time_of, mdot_training_cost *out, mdot_error *err)
{
    mdot_plan_layout layout;
    mdot_training_cost unused = {.steps = 0};
    double whole = 0, last_gpus = 0;
    for (size_t i = 0; i < count; i++) {
        BS_TRY(bs_read_struct(&layout_type, phases[i].layout, &layout, err));
        whole += add_phase(run, phases[i].epochs, &layout, time_of, &unused);
    }
    *out = (mdot_training_cost){.steps = 0};
    for (size_t i = 0; i < count; i++) {
        BS_TRY(bs_read_struct(&layout_type, phases[i].layout, &layout, err));
        double gpus = gpus_of(&layout), uninterrupted = add_phase(run, phases[i].epochs, &layout, time_of, out);
        double startup = gpus != last_gpus ? run->startup_minutes / MINUTES_PER_HOUR : 0;
        double undone = (out->checkpoint_minutes > 0 ? out->checkpoint_minutes / MINUTES_PER_HOUR : whole) / 2;
        double lost = failures_per_hour(run, gpus) * (run->restart_minutes / MINUTES_PER_HOUR + undone);
        if (lost >= 1)
            return BS_INVALID(err,
                              "%.0f GPUs fail so often that training makes no progress: set storage_gbps for "
                              "checkpoints, shorten checkpoint_minutes and restart_minutes, or use fewer GPUs",
                              gpus);
        double failures = uninterrupted * lost / (1 - lost), hours = uninterrupted + failures + startup;
        out->startup_hours += startup;
        out->failure_hours += failures;
        out->hours += hours;
        out->gpu_hours += gpus * hours;
        out->kwh += layout.prediction.average_watts * gpus * hours * SECONDS_PER_HOUR / JOULES_PER_KWH;
        last_gpus = gpus;
    }
    return MDOT_OK;
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

static mdot_status check_phases(const mdot_training_phase *phases, size_t count, mdot_error *err)
{
    mdot_plan_layout layout;
    if (phases == NULL || count == 0) return BS_INVALID(err, "the training has no phases");
    for (size_t i = 0; i < count; i++) {
        BS_TRY(bs_read_struct(&layout_type, phases[i].layout, &layout, err));
        if (!(layout.samples > 0 && layout.prediction.step_ms > 0))
            return BS_INVALID(err, "the layout has %g samples and a step of %g ms; both must be above 0",
                              layout.samples, layout.prediction.step_ms);
        if (!(phases[i].epochs > 0 && isfinite(phases[i].epochs)))
            return BS_INVALID(err, "phase %zu has %g epochs; they must be a finite number above 0", i + 1,
                              phases[i].epochs);
    }
    return MDOT_OK;
}

mdot_status mdot_training_cost_of_phases(const mdot_training_run *run, const mdot_training_phase *phases, size_t count,
                                         mdot_training_cost *out_cost, mdot_error *err)
{
    mdot_training_run read;
    mdot_training_cost cost, lower, upper;
    BS_TRY(bs_read_struct(&run_type, run, &read, err));
    BS_TRY(bs_check_struct(&cost_type, out_cost, err));
    BS_TRY(check_run(&read, err));
    BS_TRY(check_phases(phases, count, err));
    BS_TRY(add_hours(&read, phases, count, median_ms, &cost, err));
    if (!(cost.steps <= MAXIMUM))
        return BS_INVALID(err, "the training has %g steps; reduce samples or epochs to at most %g steps", cost.steps,
                          MAXIMUM);
    BS_TRY(add_hours(&read, phases, count, lower_ms, &lower, err));
    BS_TRY(add_hours(&read, phases, count, upper_ms, &upper, err));
    cost.lower_hours = lower.hours;
    cost.upper_hours = upper.hours;
    cost.cost = cost.gpu_hours * read.price;
    cost.lower_cost = lower.gpu_hours * read.price;
    cost.upper_cost = upper.gpu_hours * read.price;
    cost.co2_kg = cost.kwh * read.grid_grams_per_kwh / GRAMS_PER_KG;
    cost.in_time = probability_below(read.deadline_hours, cost.hours, cost.upper_hours);
    cost.in_budget = read.price > 0 ? probability_below(read.budget, cost.cost, cost.upper_cost) : 1;
    return bs_fill_struct(&cost_type, &cost, out_cost, err);
}

mdot_status mdot_training_cost_of(const mdot_training_run *run, const mdot_plan_layout *layout,
                                  mdot_training_cost *out_cost, mdot_error *err)
{
    return mdot_training_cost_of_phases(run, &(mdot_training_phase){layout, 1}, 1, out_cost, err);
}
