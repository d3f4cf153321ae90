/* recorder.c — a training step's time from many step times (mdot_record.h).
 *
 * The first steps and stalled steps are dropped. The rest forms windows in order. A window's mean includes regular
 * pauses, for example a synchronisation to print the loss every few steps. The median over windows excludes the remains
 * of irregular pauses. */
#include "base/struct_version.h"
#include "mdot/mdot.h"
#include "runtime/core/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY = 4096,
    DEFAULT_WARMUP_STEPS = 10,
    DEFAULT_WINDOW_STEPS = 10,
    MOST_WARMUP_STEPS = 1 << 16,
    MOST_WINDOW_STEPS = 1024,
    LEAST_WINDOWS = 3
};
#define STALL 3.0 /* a step that takes this many times the median is stalled */

struct mdot_recorder {
    uint64_t warmup_steps, window_steps;
    uint64_t seen;                              /* number of steps so far, including the warm-up */
    double ms[CAPACITY];                        /* a ring of the last steps after the warm-up */
    double sorted[CAPACITY], windows[CAPACITY]; /* scratch of mdot_recorder_finish */
};

static const bs_struct_version options_type = BS_SIZED(mdot_recorder_options, window_steps);
static const bs_struct_version recorded_type = BS_SIZED(mdot_recorded, stalled_count);

mdot_status mdot_recorder_create(const mdot_recorder_options *options, mdot_recorder **out_recorder, mdot_error *err)
{
    mdot_recorder_options o = MDOT_INIT(mdot_recorder_options);
    if (out_recorder == NULL) return BS_INVALID(err, "mdot_recorder_create: out_recorder is NULL");
    if (options != NULL) BS_TRY(bs_read_struct(&options_type, options, &o, err));
    if (o.warmup_steps > MOST_WARMUP_STEPS)
        return BS_INVALID(err, "warmup_steps is %u; the most is %d", (unsigned)o.warmup_steps, MOST_WARMUP_STEPS);
    if (o.window_steps > MOST_WINDOW_STEPS)
        return BS_INVALID(err, "window_steps is %u; the most is %d", (unsigned)o.window_steps, MOST_WINDOW_STEPS);
    mdot_recorder *r = calloc(1, sizeof *r);
    if (r == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    r->warmup_steps = o.warmup_steps != 0 ? o.warmup_steps : DEFAULT_WARMUP_STEPS;
    r->window_steps = o.window_steps != 0 ? o.window_steps : DEFAULT_WINDOW_STEPS;
    rt_handle_register(r, RT_RECORDER);
    *out_recorder = r;
    return MDOT_OK;
}

void mdot_recorder_step(mdot_recorder *recorder, double step_ms)
{
    if (recorder == NULL || !rt_handle_is_live(recorder, RT_RECORDER, __func__)) return;
    if (!(step_ms > 0) || !isfinite(step_ms)) return;
    uint64_t index = recorder->seen++;
    if (index >= recorder->warmup_steps) recorder->ms[(index - recorder->warmup_steps) % CAPACITY] = step_ms;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The value at this fraction of a sorted array, interpolated between neighbours. */
static double quantile(const double *sorted, uint64_t count, double fraction)
{
    double position = fraction * (double)(count - 1);
    uint64_t below = (uint64_t)position, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (position - (double)below) * (sorted[above] - sorted[below]);
}

/* Writes each window's mean and counts stalled steps. Returns the number of windows. */
static uint64_t make_windows(mdot_recorder *r, uint64_t first, uint64_t count, double most_ms, uint64_t *out_stalled)
{
    uint64_t windows = 0, in_window = 0;
    double sum = 0;
    *out_stalled = 0;
    for (uint64_t i = 0; i < count; i++) {
        double ms = r->ms[(first + i) % CAPACITY];
        if (ms > most_ms) {
            ++*out_stalled;
            continue;
        }
        sum += ms;
        if (++in_window < r->window_steps) continue;
        r->windows[windows++] = sum / (double)in_window;
        sum = 0;
        in_window = 0;
    }
    return windows;
}

mdot_status mdot_recorder_finish(mdot_recorder *r, mdot_recorded *out_recorded, mdot_error *err)
{
    if (r == NULL || out_recorded == NULL)
        return BS_INVALID(err, "mdot_recorder_finish: recorder or out_recorded is NULL");
    BS_TRY(rt_handle_check(r, RT_RECORDER, __func__, err));
    uint64_t steps = r->seen > r->warmup_steps ? r->seen - r->warmup_steps : 0;
    uint64_t count = steps < CAPACITY ? steps : CAPACITY, first = steps - count;
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    if (count > 0) {
        memcpy(r->sorted, r->ms, count * sizeof *r->sorted);
        qsort(r->sorted, count, sizeof *r->sorted, compare);
        double most_ms = STALL * quantile(r->sorted, count, 0.5);
        recorded.window_count = make_windows(r, first, count, most_ms, &recorded.stalled_count);
    }
    if (recorded.window_count < LEAST_WINDOWS)
        return mdot_fail(
            err, MDOT_OUT_OF_RANGE,
            "%llu steps were recorded, including %llu of the warm-up; a measurement needs %d windows of %llu "
            "steps after the warm-up",
            (unsigned long long)r->seen, (unsigned long long)(r->seen < r->warmup_steps ? r->seen : r->warmup_steps),
            LEAST_WINDOWS, (unsigned long long)r->window_steps);
    recorded.step_count = recorded.window_count * r->window_steps;
    qsort(r->windows, recorded.window_count, sizeof *r->windows, compare);
    recorded.step_ms = quantile(r->windows, recorded.window_count, 0.5);
    recorded.spread =
        (quantile(r->windows, recorded.window_count, 0.75) - quantile(r->windows, recorded.window_count, 0.25)) /
        recorded.step_ms;
    return bs_fill_struct(&recorded_type, &recorded, out_recorded, err);
}

void mdot_recorder_destroy(mdot_recorder *recorder)
{
    if (recorder == NULL || !rt_handle_unregister(recorder, RT_RECORDER, __func__)) return;
    if (!rt_validates_handles()) free(recorder);
}
