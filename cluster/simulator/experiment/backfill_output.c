/* backfill_output.c — the backfill experiment as a table and as JSON. draw.py draws the JSON. */
#include "simulator/experiment/backfill_experiment.h"
#include "simulator/experiment/experiment.h"

#include <assert.h>
#include <math.h>

enum { MAX_WINDOWS = 256 };

static double value_of(const bf_cell *cell, bf_measure measure)
{
    switch (measure) {
    case BF_WAIT: return cell->summary.mean_wait_s + 1; /* a second, so that an empty queue has a ratio */
    case BF_JCT: return cell->summary.mean_jct_s;
    default: return cell->summary.mean_slowdown;
    }
}

ex_band bf_ratio(const bf_setup *setup, const bf_cell *cells, bf_measure measure, size_t load, size_t trace,
                 size_t policy, size_t source)
{
    double values[MAX_WINDOWS];
    size_t count = 0, first = trace < setup->trace_count ? trace : 0;
    size_t final = trace < setup->trace_count ? trace + 1 : setup->trace_count;
    assert(setup->windows * setup->trace_count <= MAX_WINDOWS);
    for (size_t t = first; t < final; t++)
        for (size_t window = 0; window < setup->windows; window++)
            values[count++] = log(value_of(bf_at(setup, cells, load, t, window, policy, source), measure) /
                                  value_of(bf_at(setup, cells, load, t, window, policy, BF_REQUESTED), measure));
    ex_band band = ex_band_of(values, count);
    return (ex_band){.mean = exp(band.mean), .low = exp(band.low), .high = exp(band.high), .count = count};
}

/* Sums over all windows of all traces. */
typedef struct totals {
    double wait_h, jct_h, slowdown, utilisation, lost, cut; /* lost: fraction of held GPU time in runs cut off */
} totals;

static totals total_of(const bf_setup *setup, const bf_cell *cells, size_t load, size_t policy, size_t source)
{
    totals t = {0};
    double windows = (double)(setup->trace_count * setup->windows);
    for (size_t trace = 0; trace < setup->trace_count; trace++) {
        for (size_t window = 0; window < setup->windows; window++) {
            const sc_summary *s = &bf_at(setup, cells, load, trace, window, policy, source)->summary;
            double held_gpu_h = s->utilisation * s->makespan_s * setup->gpus / 3600;
            t.wait_h += s->mean_wait_s / 3600 / windows;
            t.jct_h += s->mean_jct_s / 3600 / windows;
            t.slowdown += s->mean_slowdown / windows;
            t.utilisation += s->utilisation / windows;
            t.lost += held_gpu_h > 0 ? s->lost_gpu_h / held_gpu_h / windows : 0;
            t.cut += (double)s->cuts / (double)s->jobs / windows;
        }
    }
    return t;
}

void bf_print_table(FILE *stream, const bf_setup *setup, const bf_cell *cells)
{
    fprintf(stream,
            "# Time limits under backfill\n\nWindows of %zu jobs on %d GPUs, %zu of each trace. Ratios are to "
            "requested limits under the same policy in the\nsame window: geometric means with 95 %% confidence over "
            "windows. Other values are means over windows. Requested limits\nare the trace's, or drawn: used part "
            "uniform, rounded up to popular values, at most %g h. The 95 %% quantile of true\nover predicted step "
            "times is %.3f.\n",
            setup->jobs, setup->gpus, setup->windows, setup->most_limit_s / 3600, setup->upper);
    for (size_t load = 0; load < setup->load_count; load++) {
        fprintf(stream,
                "\n## Load %g\n\n| policy | limits | wait, ratio | completion, ratio | slowdown, ratio | wait h | "
                "completion h | slowdown | utilisation | cut off | GPU time lost |\n| --- | --- | --- | --- | --- | "
                "--- | --- | --- | --- | --- | --- |\n",
                setup->loads[load]);
        for (size_t policy = 0; policy < BF_POLICIES; policy++) {
            for (size_t source = 0; source < BF_SOURCES; source++) {
                totals t = total_of(setup, cells, load, policy, source);
                fprintf(stream, "| %s | %s |", bf_policy_names[policy], bf_source_names[source]);
                for (bf_measure m = BF_WAIT; m <= BF_SLOWDOWN; m++) {
                    ex_band b = bf_ratio(setup, cells, m, load, setup->trace_count, policy, source);
                    fprintf(stream, source == BF_REQUESTED ? " 1 |" : " %.3f (%.3f–%.3f) |", b.mean, b.low, b.high);
                }
                fprintf(stream, " %.2f | %.2f | %.2f | %.1f %% | %.2f %% | %.2f %% |\n", t.wait_h, t.jct_h, t.slowdown,
                        100 * t.utilisation, 100 * t.cut, 100 * t.lost);
            }
        }
    }
}

void bf_print_json(FILE *stream, const bf_setup *setup, const bf_cell *cells)
{
    fprintf(stream,
            "{\"gpus\": %d, \"windows\": %zu, \"jobs\": %zu, \"most_limit_s\": %g, \"upper\": %.6g, \"cells\": [",
            setup->gpus, setup->windows, setup->jobs, setup->most_limit_s, setup->upper);
    const char *comma = "";
    for (size_t i = 0; i < bf_count(setup); i++) {
        size_t source = i % BF_SOURCES, policy = i / BF_SOURCES % BF_POLICIES, position = i / BF_SOURCES / BF_POLICIES;
        const sc_summary *s = &cells[i].summary;
        fprintf(stream, "%s\n {\"load\": %g, \"trace\": ", comma,
                setup->loads[position / setup->windows / setup->trace_count]);
        sc_print_json_string(stream, setup->trace_names[position / setup->windows % setup->trace_count]);
        fprintf(stream,
                ", \"window\": %zu, \"policy\": \"%s\", \"limits\": \"%s\", \"mean_wait_s\": %.8g, \"mean_jct_s\": "
                "%.8g, \"mean_bounded_slowdown\": %.6g, \"p95_jct_s\": %.8g, \"utilisation\": %.5f, \"cut_off\": %zu, "
                "\"lost_gpu_h\": %.6g}",
                position % setup->windows, bf_policy_names[policy], bf_source_names[source], s->mean_wait_s,
                s->mean_jct_s, s->mean_slowdown, s->p95_jct_s, s->utilisation, s->cuts, s->lost_gpu_h);
        comma = ",";
    }
    fputs("\n]}\n", stream);
}
