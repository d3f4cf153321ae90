/* experiment_table.c — writes the experiment as Markdown and as JSON. */
#include "simulator/experiment/experiment.h"
#include "simulator/report/simulation_report.h"

static const char *trace_name(const ex_setup *setup, size_t trace)
{
    return trace < setup->trace_count ? setup->trace_names[trace] : "all";
}

static void print_cell(FILE *stream, ex_band band)
{
    fprintf(stream, " %.3f (%.3f–%.3f) |", band.mean, band.low, band.high);
}

static void print_load(FILE *stream, const ex_setup *setup, const ex_results *results, size_t load)
{
    if (setup->loads[load] > 0)
        fprintf(stream, "\n### At load %.2g\n\n", setup->loads[load]);
    else
        fprintf(stream, "\n### Unmodified traces\n\n");
    fputs("| arm | mean error |", stream);
    for (size_t trace = 0; trace <= setup->trace_count; trace++) fprintf(stream, " %s |", trace_name(setup, trace));
    for (size_t trace = 0; trace < setup->trace_count; trace++) fprintf(stream, " %s, h |", trace_name(setup, trace));
    fputs("\n| --- | --- |", stream);
    for (size_t i = 0; i < 2 * setup->trace_count + 1; i++) fputs(" --- |", stream);
    fputs("\n", stream);
    for (size_t arm = 0; arm < setup->arm_count; arm++) {
        fprintf(stream, "| %s |", setup->arms[arm].label);
        if (setup->arms[arm].kind == EX_BLIND || setup->arms[arm].error < 0)
            fputs(" – |", stream);
        else
            fprintf(stream, " %.1f %% |", 100 * setup->arms[arm].error);
        for (size_t trace = 0; trace <= setup->trace_count; trace++)
            print_cell(stream, ex_ratio_band(setup, results, load, trace, arm));
        for (size_t trace = 0; trace < setup->trace_count; trace++)
            fprintf(stream, " %.2f |", ex_hours_band(setup, results, load, trace, arm).mean);
        fputs("\n", stream);
    }
}

void ex_print_table(FILE *stream, const ex_setup *setup, const ex_results *results)
{
    fprintf(
        stream,
        "Each ratio is a mean completion time divided by that of SRSF with exact durations in the same window. It is "
        "the geometric\nmean over windows, with its 95 %% confidence interval (Student's t). The last columns are mean "
        "completion times in hours.\nWe ran %zu windows of %zu jobs of each trace on %d GPUs, with %zu seeds.\n\n"
        "Loads of the unmodified windows:",
        setup->windows, setup->jobs, setup->gpus, setup->seeds);
    for (size_t trace = 0; trace < setup->trace_count; trace++) {
        fprintf(stream, "%s %s", trace > 0 ? ";" : "", setup->trace_names[trace]);
        for (size_t window = 0; window < setup->windows; window++)
            fprintf(stream, "%s %.1f", window > 0 ? "," : "", results->window_loads[trace * setup->windows + window]);
    }
    fputs(".\n", stream);
    for (size_t load = 0; load < EX_LOADS; load++) print_load(stream, setup, results, load);
}

static void print_json_arm(FILE *stream, const ex_setup *setup, const ex_results *results, size_t load, size_t trace,
                           size_t arm)
{
    ex_band band = ex_ratio_band(setup, results, load, trace, arm);
    fputs("    {\"trace\": ", stream);
    sc_print_json_string(stream, trace_name(setup, trace));
    fprintf(stream, ", \"load\": %.6g, \"arm\": ", setup->loads[load]);
    sc_print_json_string(stream, setup->arms[arm].label);
    fprintf(stream,
            ", \"policy\": \"%s\", \"error\": %.6g, \"ratio\": %.6f, \"ratio_low\": %.6f, \"ratio_high\": %.6f, "
            "\"mean_jct_h\": %.6f",
            setup->arms[arm].policy->name, setup->arms[arm].error, band.mean, band.low, band.high,
            ex_hours_band(setup, results, load, trace, arm).mean);
    if (trace < setup->trace_count) {
        fputs(", \"windows_mean_jct_s\": [", stream);
        for (size_t window = 0; window < setup->windows; window++)
            fprintf(stream, "%s%.3f", window > 0 ? ", " : "",
                    ex_cell_at(setup, results, load, trace, window, arm)->mean_jct_s);
        fputs("], \"tenths_ratio\": [", stream);
        for (size_t part = 0; part < EX_PARTS; part++)
            fprintf(stream, "%s%.4f", part > 0 ? ", " : "", ex_part_band(setup, results, load, trace, arm, part).mean);
        fputs("]", stream);
    }
    fputs("}", stream);
}

void ex_print_json(FILE *stream, const ex_setup *setup, const ex_results *results)
{
    fprintf(stream, "{\"gpus\": %d, \"windows\": %zu, \"jobs\": %zu, \"seeds\": %zu,\n  \"results\": [\n", setup->gpus,
            setup->windows, setup->jobs, setup->seeds);
    for (size_t load = 0; load < EX_LOADS; load++) {
        for (size_t trace = 0; trace <= setup->trace_count; trace++) {
            for (size_t arm = 0; arm < setup->arm_count; arm++) {
                bool is_last = load + 1 == EX_LOADS && trace == setup->trace_count && arm + 1 == setup->arm_count;
                print_json_arm(stream, setup, results, load, trace, arm);
                fputs(is_last ? "\n  ]}\n" : ",\n", stream);
            }
        }
    }
}
