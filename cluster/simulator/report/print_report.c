/* print_report.c — prints a simulation's results as a table line and as JSON. */
#include "simulator/report/simulation_report.h"

void sc_print_header(FILE *stream)
{
    fprintf(stream, "%-10s %-12s %12s %12s %12s %12s %6s %6s %6s %6s %10s %10s %9s\n", "policy", "estimate",
            "mean JCT s", "median s", "P95 s", "makespan s", "held", "used", "rho", "max", "preempted", "decisions",
            "us each");
}

void sc_print_row(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary)
{
    fprintf(stream, "%-10s %-12s %12.1f %12.1f %12.1f %12.0f %5.1f%% %5.1f%% %6.2f %6.2f %10zu %10zu %9.1f\n", policy,
            estimate, summary->mean_jct_s, summary->median_jct_s, summary->p95_jct_s, summary->makespan_s,
            100 * summary->utilisation, 100 * summary->used, summary->mean_rho, summary->max_rho, summary->preemptions,
            summary->decisions, summary->decision_us);
    if (summary->deadlines > 0)
        fprintf(stream, "%-10s %zu of %zu deadlines met, %zu jobs rejected\n", "", summary->deadlines_met,
                summary->deadlines, summary->rejected);
    if (summary->cuts > 0)
        fprintf(stream, "%-10s %zu runs cut off at their limit, %.0f GPU-hours lost\n", "", summary->cuts,
                summary->lost_gpu_h);
    if (summary->energy_kwh > 0) fprintf(stream, "%-10s %.1f kWh\n", "", summary->energy_kwh);
    if (summary->cost > 0) fprintf(stream, "%-10s cost %.2f\n", "", summary->cost);
    if (summary->notes > 0)
        fprintf(stream, "%-10s %zu decisions fell back to a simpler rule (see --log)\n", "", summary->notes);
}

void sc_print_json(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary)
{
    fputs("    {\"policy\": ", stream);
    sc_print_json_string(stream, policy);
    fputs(", \"estimate\": ", stream);
    sc_print_json_string(stream, estimate);
    fprintf(stream,
            ", \"jobs\": %zu, \"rejected\": %zu,\n"
            "     \"mean_jct_s\": %.10g, \"median_jct_s\": %.10g, \"p95_jct_s\": %.10g, \"makespan_s\": %.10g,\n"
            "     \"utilisation\": %.10g, \"preemptions\": %zu, \"decisions\": %zu, \"decision_us\": %.3f,\n"
            "     \"mean_wait_s\": %.10g, \"mean_bounded_slowdown\": %.6g, \"cut_off\": %zu, \"lost_gpu_h\": %.6g,\n"
            "     \"deadlines\": %zu, \"deadlines_met\": %zu, \"fallbacks\": %zu, \"energy_kwh\": %.6g,\n"
            "     \"used\": %.6f, \"mean_rho\": %.6g, \"max_rho\": %.6g, \"cost\": %.6g}",
            summary->jobs, summary->rejected, summary->mean_jct_s, summary->median_jct_s, summary->p95_jct_s,
            summary->makespan_s, summary->utilisation, summary->preemptions, summary->decisions, summary->decision_us,
            summary->mean_wait_s, summary->mean_slowdown, summary->cuts, summary->lost_gpu_h, summary->deadlines,
            summary->deadlines_met, summary->notes, summary->energy_kwh, summary->used, summary->mean_rho,
            summary->max_rho, summary->cost);
}
