/* report_html.c — a report as one self-contained HTML file, free of scripts, fonts and network access. */
#include "cli/predict/predict_request.h"
#include "cli/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void report_begin(FILE *out) { fputs(cli_report_head, out); }

void report_end(FILE *out, const char *predictor)
{
    fprintf(out, "<footer><p>Made by mdot %s%s", mdot_version(), predictor != NULL ? " with the predictor " : "");
    if (predictor != NULL) report_text(out, predictor);
    fprintf(out, ". Times are predicted medians. Nine of ten steps should lie in the interval.</p></footer>\n"
                 "</main>\n</body>\n</html>\n");
}

static double rate_of(const report_result *result)
{
    return 1000 * cli_samples_of_step(&result->configuration) / result->prediction.step_ms;
}

/* Does the GPU wait for the host in most of the step? Then a faster GPU would not help. */
static bool waits_for_host(const report_result *result)
{
    mdot_explanation_info e = predict_explained(result->explanation, &result->prediction);
    return e.host_busy_ms > e.gpu_busy_ms;
}

/* Returns the GPU with the highest throughput among those that the job fits; the first if it fits none. */
static size_t best_result(const report_job *job)
{
    size_t best = 0;
    for (size_t i = 1; i < job->result_count; i++) {
        bool fits = job->results[i].prediction.fits, best_fits = job->results[best].prediction.fits;
        if (fits && (!best_fits || rate_of(&job->results[i]) > rate_of(&job->results[best]))) best = i;
    }
    return best;
}

/* Is the GPU as fast as the best one, because both wait for the host? */
static bool equals_best(const report_job *job, size_t i)
{
    const report_result *result = &job->results[i], *best = &job->results[best_result(job)];
    return result->prediction.fits && waits_for_host(best) && waits_for_host(result) &&
           rate_of(result) > 0.8 * rate_of(best);
}

static size_t count_equal(const report_job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < job->result_count; i++) count += equals_best(job, i);
    return count;
}

static void write_tile(FILE *out, const char *value, const char *what)
{
    fprintf(out, "<div class=\"tile\"><b>");
    report_text(out, value);
    fprintf(out, "</b><span>%s</span></div>\n", what);
}

static void write_tiles(FILE *out, const report_job *job)
{
    const report_result *best = &job->results[best_result(job)];
    char number[16], text[64], figure[REPORT_NUMBER_BYTES];
    size_t equal = count_equal(job);
    fputs("<div class=\"tiles\">\n", out);
    if (equal > 1) {
        snprintf(text, sizeof text, "%zu %s", equal, strchr(best->name, ',') == NULL ? "GPUs" : "rows");
        write_tile(out, text, "wait for the host, so that they are about equally fast");
    } else {
        write_tile(out, best->name,
                   best->prediction.fits ? "fastest GPU whose memory suffices" : "has too little memory");
    }
    snprintf(text, sizeof text, "%s ms", report_number(best->prediction.step_ms, figure));
    write_tile(out, text, "per training step");
    snprintf(text, sizeof text, "%s", cli_short_number(rate_of(best), number));
    write_tile(out, text, "samples per second");
    snprintf(text, sizeof text, "%s GiB", report_number((double)best->prediction.peak_memory_bytes / CLI_GIB, figure));
    write_tile(out, text, "peak memory");
    fputs("</div>\n", out);
}

static void write_number(FILE *out, const char *class, double value)
{
    char text[REPORT_NUMBER_BYTES];
    fprintf(out, "<td%s>%s</td>", class, report_number(value, text));
}

/* Writes the headings for the whole training, if the options state its length or a price. */
static void write_total_headings(FILE *out, const report_job *job)
{
    bool is_long = cli_total_steps(job->total, &job->results[0].configuration) > 0;
    if (is_long) fputs("<th>hours</th>", out);
    if (job->total->prices.is_set) fputs(is_long ? "<th>cost</th>" : "<th>cost of 10<sup>6</sup> samples</th>", out);
}

static void write_total(FILE *out, const report_job *job, const report_result *result)
{
    double steps = cli_total_steps(job->total, &result->configuration);
    double cost = cli_total_cost(job->total, &result->configuration, &result->prediction);
    if (steps > 0) write_number(out, "", steps * result->prediction.step_ms / 3.6e6);
    if (job->total->prices.is_set && isnan(cost))
        fputs("<td>-</td>", out);
    else if (job->total->prices.is_set)
        write_number(out, "", cost);
}

static void write_table(FILE *out, const report_job *job)
{
    static const char always[] = "", more[] = " class=\"more\"";
    size_t best = best_result(job);
    bool several = count_equal(job) > 1;
    fprintf(out,
            "<div class=\"sheet\"><h2>On each GPU</h2>\n<table>\n<tr><th>GPU</th><th>step, ms</th><th%s>90 %% "
            "interval</th><th%s>samples/s</th><th>GiB</th><th%s>reserved</th><th>of</th><th>fits</"
            "th><th%s>utilisation</th>",
            more, more, more, more);
    write_total_headings(out, job);
    fputs("</tr>\n", out);
    for (size_t i = 0; i < job->result_count; i++) {
        const report_result *result = &job->results[i];
        const mdot_prediction *p = &result->prediction;
        char lower[REPORT_NUMBER_BYTES], upper[REPORT_NUMBER_BYTES];
        bool is_best = several ? equals_best(job, i) : i == best && p->fits;
        fprintf(out, "<tr%s><td>", is_best ? " class=\"best\"" : "");
        report_text(out, result->name);
        fputs("</td>", out);
        write_number(out, always, p->step_ms);
        fprintf(out, "<td%s>%s to %s</td>", more, report_number(p->lower_ms, lower), report_number(p->upper_ms, upper));
        write_number(out, more, rate_of(result));
        write_number(out, always, (double)p->peak_memory_bytes / CLI_GIB);
        write_number(out, more, (double)p->reserved_bytes / CLI_GIB);
        write_number(out, always, (double)p->usable_bytes / CLI_GIB);
        fprintf(out, "<td class=\"%s\">%s</td><td%s>%.0f %%</td>", p->fits ? "yes" : "no", p->fits ? "yes" : "no", more,
                100 * fmax(p->compute_share, p->memory_share));
        write_total(out, job, result);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

static void write_times(FILE *out, const report_job *job)
{
    double values[REPORT_MAX_ROWS][REPORT_MAX_PARTS] = {{0}};
    const char *names[REPORT_MAX_ROWS];
    bool estimated = false;
    for (size_t i = 0; i < job->result_count; i++) {
        mdot_explanation_info e = predict_explained(job->results[i].explanation, &job->results[i].prediction);
        const double ms[] = {e.forward_ms,   e.data_gradient_ms, e.weight_gradient_ms,
                             e.optimizer_ms, e.host_ms,          e.communication_ms,
                             e.idle_ms,      e.data_ms};
        memcpy(values[i], ms, sizeof ms);
        names[i] = job->results[i].name;
        estimated = estimated || e.approximate != 0;
    }
    fprintf(out, "<div class=\"sheet\"><h2>Time by phase</h2>\n");
    report_draw_bars(out, &(report_bars){.title = "Time of a step by phase",
                                         .unit = "ms",
                                         .parts = {"forward", "data gradients", "weight gradients", "optimizer", "host",
                                                   "other GPUs", "idle", "data"},
                                         .part_count = 8,
                                         .row_count = job->result_count,
                                         .names = names,
                                         .values = values});
    if (estimated) fputs("<p class=\"soft\">Estimated analytically where the predictor lacks an input.</p>\n", out);
    fputs("</div>\n", out);
}

static void write_memory(FILE *out, const report_job *job)
{
    double values[REPORT_MAX_ROWS][REPORT_MAX_PARTS] = {{0}}, limits[REPORT_MAX_ROWS];
    const char *names[REPORT_MAX_ROWS];
    for (size_t i = 0; i < job->result_count; i++) {
        const mdot_prediction *p = &job->results[i].prediction;
        values[i][0] = p->weight_bytes / CLI_GIB;
        values[i][1] = p->gradient_bytes / CLI_GIB;
        values[i][2] = p->activation_bytes / CLI_GIB;
        values[i][3] = p->optimizer_bytes / CLI_GIB;
        values[i][4] = (double)(p->reserved_bytes - p->peak_memory_bytes) / CLI_GIB;
        limits[i] = (double)p->usable_bytes / CLI_GIB;
        names[i] = job->results[i].name;
    }
    fprintf(out, "<div class=\"sheet\"><h2>Memory of the job and of each GPU</h2>\n");
    report_draw_bars(out, &(report_bars){.title = "Memory by purpose",
                                         .unit = "GiB",
                                         .parts = {"weights", "gradients", "activations", "optimizer", "reserved"},
                                         .part_count = 5,
                                         .row_count = job->result_count,
                                         .names = names,
                                         .values = values,
                                         .limits = limits});
    fputs("<p class=\"soft\">Reserved: fragmentation, CUDA context, workspaces and NCCL's buffers. The mark is the "
          "memory that a process can use. The 90 % interval of the allocated memory is ",
          out);
    const mdot_prediction *first = &job->results[0].prediction;
    fprintf(out, "%.0f to %.0f %% of the estimate.</p></div>\n",
            100 * (double)first->memory_lower_bytes / (double)first->peak_memory_bytes,
            100 * (double)first->memory_upper_bytes / (double)first->peak_memory_bytes);
}

enum { MOST_TYPES = 8 };

/* False if memory ran out. */
static bool write_types(FILE *out, const report_job *job)
{
    size_t best = best_result(job);
    const report_result *result = &job->results[best];
    const predict_variant *variant = &job->answers->variants[job->answers->variant[best]];
    size_t count = variant->info.operator_count;
    cli_type_time *types = calloc(count > MOST_TYPES ? count : MOST_TYPES, sizeof *types);
    if (types == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_operator_time s = predict_explained_operator(result->explanation, &result->prediction, i);
        mdot_job_get_operator(variant->job, i, &op);
        types[i].type = op.type;
        types[i].ms[CLI_FORWARD_PART] = s.forward_ms;
        types[i].ms[CLI_BACKWARD_PART] = s.data_gradient_ms + s.weight_gradient_ms;
        types[i].ms[CLI_OPTIMIZER_PART] = s.optimizer_ms;
    }
    count = cli_sum_by_type(types, count);
    for (size_t t = MOST_TYPES; t < count; t++) {
        types[MOST_TYPES - 1].type = "others";
        for (int k = 0; k < CLI_TYPE_PARTS; k++) types[MOST_TYPES - 1].ms[k] += types[t].ms[k];
    }
    if (count > MOST_TYPES) count = MOST_TYPES;
    double values[MOST_TYPES + 1][REPORT_MAX_PARTS] = {{0}};
    const char *names[MOST_TYPES + 1];
    for (size_t t = 0; t < count; t++) {
        names[t] = types[t].type;
        memcpy(values[t], types[t].ms, sizeof types[t].ms);
    }
    mdot_explanation_info e = predict_explained(result->explanation, &result->prediction);
    values[count][CLI_WAITING_PART] = e.host_ms + e.communication_ms + e.idle_ms + e.data_ms;
    names[count++] = "waiting";
    fprintf(out, "<div class=\"sheet\"><h2>By operator, on ");
    report_text(out, result->name);
    fputs("</h2>\n", out);
    report_draw_bars(out, &(report_bars){.title = "Time by operator",
                                         .unit = "ms",
                                         .parts = {"forward", "backward", "", "optimizer", "waiting"},
                                         .part_count = CLI_TYPE_PARTS,
                                         .row_count = count,
                                         .names = names,
                                         .values = values});
    fputs("</div>\n", out);
    free(types);
    return true;
}

static void write_warnings(FILE *out, const report_job *job)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < job->result_count; i++) bits |= cli_shown_warnings(&job->results[i].prediction);
    if (bits == 0) return;
    fputs("<div class=\"sheet\"><h2>Warnings</h2>\n<ul>\n", out);
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((bits & 1u << bit) == 0 || mdot_warning_text(1u << bit) == NULL) continue;
        if (1u << bit == MDOT_WARN_IMPLAUSIBLE) continue; /* below, with the bound */
        fprintf(out, "<li>%s</li>\n", mdot_warning_text(1u << bit));
    }
    for (size_t i = 0; i < job->result_count; i++) {
        const char *text = mdot_implausible_text(job->results[i].prediction.implausible);
        if (text == NULL) continue;
        fputs("<li>", out);
        report_text(out, job->results[i].name);
        fprintf(out, ": %s</li>\n", text);
    }
    fputs("</ul></div>\n", out);
}

bool report_write_job(FILE *out, const report_job *job, const cli_training *training)
{
    const report_result *first = &job->results[0];
    char parameters[CLI_PARAMETERS_SIZE], flops[16];
    cli_sentence sentence;
    fputs("<section class=\"job\">\n<h1>", out);
    report_text(out, job->path);
    fprintf(out, "</h1>\n<p class=\"soft\">batch %lld, ", (long long)first->configuration.batch);
    bool is_estimated = (first->prediction.warnings & MDOT_WARN_ANALYTIC_ESTIMATE) != 0;
    report_text(out, cli_describe_training(&sentence, training, &first->configuration, &job->answers->job,
                                           &job->answers->choices, is_estimated));
    fprintf(out, ". %s, %s FLOP per sample.", cli_parameters(&job->answers->job, parameters),
            cli_short_number(first->prediction.flops_per_sample, flops));
    size_t measured = job->answers->calibrated_rows;
    if (measured > 0) fprintf(out, " Calibrated by %zu measured step%s.", measured, measured == 1 ? "" : "s");
    if (job->answers->left_out > 0) {
        fprintf(out, " %zu combinations are left out, for example: ", job->answers->left_out);
        report_text(out, job->answers->reason.message);
    }
    fputs("</p>\n", out);
    write_tiles(out, job);
    write_table(out, job);
    fputs("<div class=\"sheet\"><h2>Time against batch</h2>\n", out);
    report_draw_batches(out, job);
    fputs("</div>\n", out);
    write_times(out, job);
    bool is_whole = write_types(out, job);
    write_memory(out, job);
    write_warnings(out, job);
    fputs("</section>\n", out);
    return is_whole;
}
