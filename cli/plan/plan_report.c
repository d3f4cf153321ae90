/* plan_report.c — `mdot plan -o FILE.html`: the layouts of a plan as one self-contained HTML page. */
#include "cli/plan/plan_request.h"
#include "cli/report/report.h"

#include <math.h>
#include <string.h>

enum { MOST_BARS = 24 };

static bool is_shown(const plan_answers *answers, const plan_row *row)
{
    return row->is_front || row == answers->recommended;
}

/* An axis with logarithms of values. */
typedef struct axis {
    double least, most, start, length; /* length < 0: upwards */
} axis;

static double position(const axis *a, double value)
{
    return a->start + a->length * (log10(value) - a->least) / (a->most - a->least);
}

static double value_of(const plan_row *row, bool is_time) { return is_time ? row->cost.hours : row->money; }

static axis make_axis(const plan_answers *answers, bool is_time, double start, double length)
{
    axis a = {INFINITY, -INFINITY, start, length};
    for (size_t i = 0; i < answers->count; i++) {
        double value = log10(value_of(&answers->rows[i], is_time));
        a.least = fmin(a.least, value - 0.05);
        a.most = fmax(a.most, value + 0.05);
    }
    return a;
}

static void draw_ticks(FILE *out, const axis *x, const axis *y, bool is_time)
{
    const axis *a = is_time ? y : x;
    static const double digits[] = {1, 2, 5};
    char number[REPORT_NUMBER_BYTES];
    for (int k = 3 * (int)floor(a->least); k < 3 * ((int)ceil(a->most) + 1); k++) {
        double value = digits[(k % 3 + 3) % 3] * pow(10, floor(k / 3.0));
        if (log10(value) < a->least || log10(value) > a->most) continue;
        double at = position(a, value);
        if (is_time)
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" ",
                    x->start, at, x->length, x->start - 8, at + 4);
        else
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" ", at,
                    y->start, y->length, at, y->start + 20);
        fprintf(out, "text-anchor=\"%s\">%s</text>\n", is_time ? "end" : "middle", report_number(value, number));
    }
}

static void draw_front(FILE *out, const plan_answers *answers, const char *class, int width)
{
    enum { HEIGHT = 380, LEFT = 60, RIGHT = 20, TOP = 30, BELOW = 64, LEAST_WITH_NAMES = 500 };
    const axis x = make_axis(answers, false, LEFT, width - LEFT - RIGHT);
    const axis y = make_axis(answers, true, HEIGHT - BELOW, -(HEIGHT - BELOW - TOP));
    char number[REPORT_NUMBER_BYTES];
    fprintf(out, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Time against cost\">\n", class,
            width, HEIGHT);
    draw_ticks(out, &x, &y, false);
    draw_ticks(out, &x, &y, true);
    fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"16\">hours</text><text class=\"tick\" x=\"%d\" y=\"%d\" ",
            LEFT - 44, width - RIGHT, HEIGHT - 24);
    fprintf(out, "text-anchor=\"end\">%s</text>\n<path class=\"line\" d=\"",
            answers->has_prices ? "cost" : "GPU-hours");
    char command = 'M';
    for (size_t i = 0; i < answers->count; i++) { /* by cost, so that times fall along the front */
        const plan_row *row = &answers->rows[i];
        if (!row->is_front) continue;
        fprintf(out, "%c%.1f %.1f", command, position(&x, row->money), position(&y, row->cost.hours));
        command = 'L';
    }
    fputs("\" style=\"--c:var(--soft)\"/>\n", out);
    for (size_t i = 0; i < answers->count; i++) {
        const plan_row *row = &answers->rows[i];
        double at = position(&x, row->money), height = position(&y, row->cost.hours);
        cell name;
        fprintf(out, "<g class=\"c%zu\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"%s><title>", row->layout.gpu_model % 8,
                at, height, row == answers->recommended ? 7 : 4, row->is_front ? "" : " opacity=\".4\"");
        report_text(out, plan_name_row(row, &name));
        fprintf(out, ": %s hours, ", report_number(row->cost.hours, number));
        fprintf(out, "%s</title></circle>", report_number(row->money, number));
        if (width >= LEAST_WITH_NAMES && is_shown(answers, row))
            fprintf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%d</text>",
                    at > width - 80 ? at - 10 : at + 9, height - 6, at > width - 80 ? "end" : "start",
                    row->layout.configuration.gpu_count);
        fputs("</g>\n", out);
    }
    fputs("</svg>\n", out);
}

static void draw_memory(FILE *out, const plan_answers *answers)
{
    cell texts[MOST_BARS];
    const char *names[MOST_BARS];
    double values[MOST_BARS][REPORT_MAX_PARTS] = {{0}}, limits[MOST_BARS];
    size_t count = 0;
    for (size_t i = 0; i < answers->count && count < MOST_BARS; i++) {
        const mdot_prediction *p = &answers->rows[i].layout.prediction;
        if (!is_shown(answers, &answers->rows[i])) continue;
        const double parts[] = {p->weight_bytes, p->gradient_bytes, p->optimizer_bytes, p->activation_bytes};
        double rest = (double)p->reserved_bytes;
        for (int k = 0; k < 4; k++) {
            values[count][k] = parts[k] / CLI_GIB;
            rest -= parts[k];
        }
        values[count][4] = fmax(rest, 0) / CLI_GIB;
        limits[count] = (double)p->usable_bytes / CLI_GIB;
        names[count] = plan_name_row(&answers->rows[i], &texts[count]);
        count++;
    }
    report_draw_bars(out,
                     &(report_bars){.title = "Memory by kind",
                                    .unit = "GiB",
                                    .parts = {"weights", "gradients", "optimizer", "activations", "allocator, CUDA"},
                                    .part_count = 5,
                                    .row_count = count,
                                    .names = names,
                                    .values = values,
                                    .limits = limits});
}

void plan_write_report(FILE *out, const plan_request *r, const plan_answers *answers)
{
    report_begin(out);
    fputs("<section class=\"job\">\n<h1>", out);
    report_text(out, r->job_path);
    fputs("</h1>\n<div class=\"sheet\"><h2>Time against cost</h2>\n", out);
    if (answers->count > 0) {
        draw_front(out, answers, "narrow", 360);
        draw_front(out, answers, "wide", 860);
        draw_front(out, answers, "large", 1180);
        fputs("<ul>", out);
        for (size_t g = 0; g < r->gpus.count; g++) {
            fprintf(out, "<li class=\"c%zu\" style=\"color:var(--c)\">", g % 8);
            report_text(out, r->gpus.item[g].name);
            fputs("</li>", out);
        }
        fputs("</ul></div>\n<div class=\"sheet\"><h2>Layouts</h2>\n<table>", out);
        plan_write_rows(out, r, answers);
        fputs("</table></div>\n<div class=\"sheet\"><h2>Memory of a GPU</h2>\n", out);
        draw_memory(out, answers);
    } else {
        fputs("<p>No layout fits.</p>\n", out);
    }
    fputs("</div>\n</section>\n", out);
    report_end(out, NULL);
}
