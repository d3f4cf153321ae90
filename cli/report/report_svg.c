/* report_svg.c — the drawings of a report: lines and bars as SVG, in the page's colours (report_html.c). */
#include "cli/report/report.h"

#include <math.h>
#include <string.h>

/* Each drawing exists for large, wide and narrow pages, and the page's style shows one. In narrow bars, name and value
 * stand above the bar. Narrow lines have names in rows below the plot. */
typedef struct layout {
    const char *class;
    bool is_narrow;
    int width, name_width, value_width, row_height, bar_top;
} layout;
static const layout layouts[] = {{"wide", false, 860, 170, 120, 30, 6},
                                 {"narrow", true, 360, 0, 0, 44, 20},
                                 {"large", false, 1180, 170, 120, 30, 6}};

enum { BAR_HEIGHT = 18, LEGEND_ROW = 18, APART = 16 };

typedef struct frame {
    double left, top, width, height; /* area of the plot */
    double least, most;              /* logarithms; range of the vertical axis */
    size_t columns, batch_step;      /* each batch_step-th batch is labelled */
} frame;

static double x_of(const frame *f, size_t column)
{
    return f->left + f->width * (f->columns > 1 ? (double)column / (double)(f->columns - 1) : 0.5);
}

static double y_of(const frame *f, double value)
{
    return f->top + f->height * (f->most - log10(value)) / (f->most - f->least);
}

static void find_range(const report_job *job, frame *f)
{
    f->least = INFINITY;
    f->most = -INFINITY;
    for (size_t c = 0; c < job->result_count; c++) {
        for (size_t b = 0; b < job->batch_count; b++) {
            double ms = job->results[c].at[b].step_ms;
            if (ms <= 0) continue;
            f->least = fmin(f->least, log10(ms));
            f->most = fmax(f->most, log10(ms));
        }
    }
    if (!(f->least <= f->most)) f->least = f->most = 0;
    f->least = floor(f->least * 2) / 2;
    f->most = ceil(f->most * 2) / 2;
    if (f->most - f->least < 0.5) f->most = f->least + 0.5;
}

static void draw_axes(FILE *out, const report_job *job, const frame *f)
{
    static const int digits[] = {1, 2, 5};
    for (int power = (int)floor(f->least); power <= (int)ceil(f->most); power++) {
        for (size_t d = 0; d < 3; d++) {
            double value = digits[d] * pow(10, power);
            if (log10(value) < f->least - 1e-9 || log10(value) > f->most + 1e-9) continue;
            double y = y_of(f, value);
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>", f->left, y, f->width);
            char number[REPORT_NUMBER_BYTES];
            fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", f->left - 8,
                    y + 4, report_number(value, number));
        }
    }
    for (size_t b = 0; b < job->batch_count; b += f->batch_step)
        fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%lld</text>\n", x_of(f, b),
                f->top + f->height + 20, (long long)job->batches[b]);
    fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">batch</text>\n",
            f->left + f->width / 2, f->top + f->height + 40);
    fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">ms per step</text>\n", f->left - 44, f->top - 12);
}

/* Places each name at the line's end, and moves names apart if they would touch. */
static void place_names(const report_job *job, const frame *f, double out_y[REPORT_MAX_ROWS])
{
    size_t order[REPORT_MAX_ROWS];
    for (size_t c = 0; c < job->result_count; c++) {
        out_y[c] = f->top + f->height;
        for (size_t b = 0; b < job->batch_count; b++)
            if (job->results[c].at[b].step_ms > 0) out_y[c] = y_of(f, job->results[c].at[b].step_ms);
        size_t slot = c;
        for (; slot > 0 && out_y[order[slot - 1]] > out_y[c]; slot--) order[slot] = order[slot - 1];
        order[slot] = c;
    }
    double last = f->top - APART;
    for (size_t i = 0; i < job->result_count; i++) {
        double *y = &out_y[order[i]];
        *y = last = fmax(*y, last + APART);
    }
    double beyond = last - (f->top + f->height);
    for (size_t i = job->result_count; beyond > 0 && i-- > 0;) {
        double maximum = f->top + f->height - APART * (double)(job->result_count - 1 - i);
        if (out_y[order[i]] > maximum) out_y[order[i]] = maximum;
    }
}

static void draw_line(FILE *out, const report_job *job, size_t c, const frame *f, double name_y, bool is_narrow)
{
    char number[REPORT_NUMBER_BYTES];
    const report_result *result = &job->results[c];
    double x = f->left, y = name_y;
    bool begun = false;
    fprintf(out, "<g class=\"c%zu\"><path class=\"line\" d=\"", c % 8);
    for (size_t b = 0; b < job->batch_count; b++) {
        if (result->at[b].step_ms <= 0) continue;
        x = x_of(f, b);
        y = y_of(f, result->at[b].step_ms);
        fprintf(out, "%c%.1f %.1f", begun ? 'L' : 'M', x, y);
        begun = true;
    }
    fprintf(out, "\"/>");
    for (size_t b = 0; b < job->batch_count; b++) {
        if (result->at[b].step_ms <= 0) continue;
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", x_of(f, b), y_of(f, result->at[b].step_ms));
        report_text(out, result->name);
        fprintf(out, ", batch %lld: %s ms</title></circle>", (long long)job->batches[b],
                report_number(result->at[b].step_ms, number));
    }
    double end = f->left + f->width;
    if (is_narrow) {
        double row = f->top + f->height + 62 + LEGEND_ROW * (double)c;
        fprintf(out, "<rect class=\"fill\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\" rx=\"2\"/>", f->left,
                row - 10);
        fprintf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", f->left + 16, row);
        report_text(out, result->name);
        fprintf(out, "</text></g>\n");
        return;
    }
    fprintf(out, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x + 5, y, end + 14, name_y);
    fprintf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", end + 18, name_y + 4);
    report_text(out, result->name);
    fprintf(out, "</text></g>\n");
}

static void draw_batches(FILE *out, const report_job *job, const layout *l)
{
    enum { HEIGHT = 400, NARROW_HEIGHT = 300 };
    int below = l->is_narrow ? LEGEND_ROW * (int)job->result_count + 10 : 0;
    double plot = l->is_narrow ? NARROW_HEIGHT : fmax(HEIGHT, 110 + APART * (double)job->result_count);
    frame f = {.left = l->is_narrow ? 50 : 60,
               .top = 30,
               .width = l->width - (l->is_narrow ? 66 : 60 + l->name_width),
               .height = plot - 90,
               .columns = job->batch_count,
               .batch_step = l->is_narrow ? 2 : 1};
    double name_y[REPORT_MAX_ROWS];
    find_range(job, &f);
    place_names(job, &f, name_y);
    fprintf(out, "<svg class=\"%s\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"Step time against batch\">\n",
            l->class, l->width, plot + below);
    draw_axes(out, job, &f);
    for (size_t c = 0; c < job->result_count; c++) draw_line(out, job, c, &f, name_y[c], l->is_narrow);
    fprintf(out, "</svg>\n");
}

static double row_sum(const report_bars *bars, size_t row)
{
    double sum = 0;
    for (size_t part = 0; part < bars->part_count; part++) sum += bars->values[row][part];
    return sum;
}

static bool is_shown(const report_bars *bars, size_t part)
{
    for (size_t row = 0; row < bars->row_count; row++)
        if (bars->values[row][part] > 0) return true;
    return false;
}

/* Draws the legend, or only measures it if `out` is NULL. Returns the number of rows. */
static int draw_legend(FILE *out, const report_bars *bars, const layout *l, double y)
{
    double x = l->name_width;
    int rows = 1;
    for (size_t part = 0; part < bars->part_count; part++) {
        if (!is_shown(bars, part)) continue;
        double width = 36 + 7.0 * (double)strlen(bars->parts[part]);
        if (x > l->name_width && x + width > l->width) {
            x = l->name_width;
            y += LEGEND_ROW;
            rows++;
        }
        if (out != NULL) {
            fprintf(out, "<rect class=\"c%zu fill\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\" rx=\"2\"/>", part,
                    x, y - 10);
            fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 16, y, bars->parts[part]);
        }
        x += width;
    }
    return rows;
}

static void draw_bar(FILE *out, const report_bars *bars, const layout *l, size_t row, double maximum)
{
    char number[REPORT_NUMBER_BYTES], limit[REPORT_NUMBER_BYTES];
    double plot_width = l->width - l->name_width - l->value_width, sum = row_sum(bars, row);
    double x = l->name_width, y = (double)row * l->row_height + l->bar_top;
    double text_y = l->is_narrow ? y - 6 : y + 13;
    fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%.1f\" text-anchor=\"%s\">", l->is_narrow ? 0 : l->name_width - 12,
            text_y, l->is_narrow ? "start" : "end");
    report_text(out, bars->names[row]);
    fprintf(out, "</text>");
    for (size_t part = 0; part < bars->part_count; part++) {
        double width = maximum > 0 ? plot_width * bars->values[row][part] / maximum : 0;
        if (width <= 0) continue;
        fprintf(out, "<rect class=\"c%zu fill\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>%s: %s %s",
                part, x, y, width, BAR_HEIGHT, bars->parts[part], report_number(bars->values[row][part], number),
                bars->unit);
        fprintf(out, ", %.0f %%</title></rect>", 100 * bars->values[row][part] / sum);
        x += width;
    }
    double mark = bars->limits != NULL && maximum > 0 ? l->name_width + plot_width * bars->limits[row] / maximum : 0;
    if (bars->limits != NULL) report_number(bars->limits[row], limit);
    if (mark > 0)
        fprintf(out, "<path class=\"limit\" d=\"M%.1f %.1fv%d\"><title>the GPU offers %s %s</title></path>", mark,
                y - 3, BAR_HEIGHT + 6, limit, bars->unit);
    fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\"%s>%s", l->is_narrow ? l->width : fmax(x, mark) + 8, text_y,
            l->is_narrow ? " text-anchor=\"end\"" : "", report_number(sum, number));
    if (mark > 0) fprintf(out, " of %s", limit);
    fprintf(out, " %s</text>\n", bars->unit);
}

static void draw_bars(FILE *out, const report_bars *bars, const layout *l)
{
    double maximum = 0;
    int rows = (int)bars->row_count * l->row_height;
    for (size_t row = 0; row < bars->row_count; row++)
        maximum = fmax(maximum, fmax(row_sum(bars, row), bars->limits != NULL ? bars->limits[row] : 0));
    fprintf(out, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", l->class, l->width,
            rows + 22 + LEGEND_ROW * draw_legend(NULL, bars, l, 0), bars->title);
    for (size_t row = 0; row < bars->row_count; row++) draw_bar(out, bars, l, row, maximum);
    draw_legend(out, bars, l, rows + 32);
    fprintf(out, "</svg>\n");
}

/* Widens a layout that has a column of names to the name's length. */
static void make_space(layout *l, const char *name)
{
    enum { LETTER = 8, GAP = 16 };
    int space = GAP + LETTER * (int)strnlen(name, 48);
    if (!l->is_narrow && l->name_width < space) l->name_width = space;
}

void report_draw_batches(FILE *out, const report_job *job)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        layout l = layouts[i];
        for (size_t k = 0; k < job->result_count; k++) make_space(&l, job->results[k].name);
        draw_batches(out, job, &l);
    }
}

void report_draw_bars(FILE *out, const report_bars *bars)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        layout l = layouts[i];
        for (size_t row = 0; row < bars->row_count; row++) make_space(&l, bars->names[row]);
        draw_bars(out, bars, &l);
    }
}
