/* svg.c — the experiment as a drawing: one panel for each trace and load.
 *
 * The horizontal axis is the mean error of estimates. The vertical axis, logarithmic, is the mean completion time
 * relative to exact SRSF. Errors of step times and of totals are curves within bands. Predictors are points at their
 * own error. Policies that use no estimates are horizontal lines, with their names at the right.
 */
#include "simulator/experiment/experiment.h"

#include <math.h>

enum { PANEL_W = 340, PANEL_H = 260, LEFT = 56, TOP = 84, GAP_X = 150, GAP_Y = 74, NAMES = 8 };

static const char curve_colours[][8] = {"#1b6ca8", "#c8501e"}; /* colours of EX_SCALE, EX_TOTAL */
static const char predictor_colour[] = "#1a7f37", blind_colour[] = "#555555";

typedef struct panel {
    const ex_setup *setup;
    const ex_results *results;
    size_t load, trace;
    double left, top; /* corner of the plot */
    double most_error, most_ratio;
} panel;

static double x_of(const panel *p, double error) { return p->left + PANEL_W * error / p->most_error; }

static double y_of(const panel *p, double ratio)
{
    static const double minimum = .92;
    return p->top + PANEL_H * (1 - log(fmax(ratio, minimum) / minimum) / log(p->most_ratio / minimum));
}

static ex_band band_of(const panel *p, size_t arm)
{
    return ex_ratio_band(p->setup, p->results, p->load, p->trace, arm);
}

/* Values far above the others would flatten the plot, so the panel ends above the last value that is within this
 * factor. */
static const double far_above = 4;

static void set_scale(panel *p)
{
    p->most_error = .8;
    p->most_ratio = 1.2;
    for (size_t arm = 0; arm < p->setup->arm_count; arm++) {
        ex_band band = band_of(p, arm);
        p->most_error = fmax(p->most_error, 1.05 * p->setup->arms[arm].error);
        if (band.mean <= far_above) p->most_ratio = fmax(p->most_ratio, 1.1 * band.mean);
    }
}

static void put_axes(FILE *stream, const panel *p)
{
    static const double marks[] = {1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500};
    double previous = INFINITY;
    fprintf(stream, "<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n", p->left,
            p->top, PANEL_W, PANEL_H);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && marks[i] < p->most_ratio; i++) {
        double y = y_of(p, marks[i]);
        if (previous - y < 13) continue; /* names would overlap */
        previous = y;
        fprintf(stream,
                "<path d=\"M%g %gh%d\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
                p->left, y, PANEL_W, p->left - 6, y + 4, marks[i]);
    }
    for (int percent = 0; percent <= 100 * p->most_error; percent += 25)
        fprintf(stream, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%d %%</text>\n", x_of(p, percent / 100.),
                p->top + PANEL_H + 16, percent);
    char load[32] = "unmodified";
    if (p->setup->loads[p->load] > 0) snprintf(load, sizeof load, "load %.2g", p->setup->loads[p->load]);
    fprintf(stream, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">", p->left, p->top - 8);
    ex_put_escaped(stream, p->setup->trace_names[p->trace]);
    fprintf(stream, ", %s</text>\n", load);
}

/* Draws the exact arm and the arms of this kind, by error. */
static void put_curve(FILE *stream, const panel *p, ex_kind kind)
{
    const char *colour = curve_colours[kind == EX_TOTAL];
    size_t arms[EX_MAX_ARMS] = {0}, count = 1;
    for (size_t arm = 1; arm < p->setup->arm_count; arm++)
        if (p->setup->arms[arm].kind == kind) arms[count++] = arm;
    fputs("<path d=\"", stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(p, p->setup->arms[arms[i]].error),
                y_of(p, fmin(band_of(p, arms[i]).high, p->most_ratio)));
    for (size_t i = count; i-- > 0;)
        fprintf(stream, "L%.1f %.1f", x_of(p, p->setup->arms[arms[i]].error), y_of(p, band_of(p, arms[i]).low));
    fprintf(stream, "Z\" fill=\"%s\" opacity=\".18\"/>\n<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
            colour, colour);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(p, p->setup->arms[arms[i]].error),
                y_of(p, band_of(p, arms[i]).mean));
    fputs("\"/>\n", stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                x_of(p, p->setup->arms[arms[i]].error), y_of(p, band_of(p, arms[i]).mean), colour);
}

/* Draws points, from right to left. A name that would overlap the previous one moves above it, at the end of a line.
 * The line crosses no other, because the names below begin further right. */
static void put_predictors(FILE *stream, const panel *p)
{
    enum { NAME_W = 80 };
    size_t arms[EX_MAX_ARMS], count = 0;
    for (size_t arm = 0; arm < p->setup->arm_count; arm++) {
        if (p->setup->arms[arm].kind != EX_PREDICTED) continue;
        size_t i = count++;
        for (; i > 0 && p->setup->arms[arms[i - 1]].error < p->setup->arms[arm].error; i--) arms[i] = arms[i - 1];
        arms[i] = arm;
    }
    double name_x = INFINITY, name_y = 0;
    for (size_t i = 0; i < count; i++) {
        const ex_arm *a = &p->setup->arms[arms[i]];
        ex_band band = band_of(p, arms[i]);
        double x = x_of(p, a->error), y = y_of(p, band.mean);
        name_y = name_x - x < NAME_W ? fmin(y - 10, name_y - 13) : y - 10;
        name_x = x;
        fprintf(stream,
                "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/><path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\" "
                "stroke-width=\".5\"/><rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"%s\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">",
                x, y_of(p, fmin(band.high, p->most_ratio)), y_of(p, band.low), predictor_colour, x, y, name_y - 8,
                predictor_colour, x - 4, y - 4, predictor_colour, x + 3, name_y, predictor_colour);
        ex_put_escaped(stream, p->setup->predictions.names[a->column]);
        fputs("</text>\n", stream);
    }
}

/* Draws horizontal lines. Their names are moved apart if they would overlap, from the lowest up. */
static void put_horizontal_lines(FILE *stream, const panel *p)
{
    size_t arms[EX_MAX_ARMS], count = 0;
    for (size_t arm = 0; arm < p->setup->arm_count; arm++) {
        if (p->setup->arms[arm].kind != EX_BLIND) continue;
        size_t i = count++;
        for (; i > 0 && band_of(p, arms[i - 1]).mean > band_of(p, arm).mean; i--) arms[i] = arms[i - 1];
        arms[i] = arm;
    }
    double name_y = INFINITY;
    for (size_t i = 0; i < count; i++) {
        ex_band band = band_of(p, arms[i]);
        if (band.mean > p->most_ratio) {
            name_y = fmin(p->top + 6, name_y - 13);
            fprintf(stream, "<text x=\"%g\" y=\"%.1f\" fill=\"%s\">↑ %s %.1f</text>\n", p->left + PANEL_W + NAMES,
                    name_y, blind_colour, p->setup->arms[arms[i]].label, band.mean);
            continue;
        }
        double y = y_of(p, band.mean), high = y_of(p, fmin(band.high, p->most_ratio)), low = y_of(p, band.low);
        name_y = fmin(y + 4, name_y - 13);
        fprintf(stream,
                "<rect x=\"%g\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\" opacity=\".08\"/>"
                "<path d=\"M%g %.1fh%d\" stroke=\"%s\" stroke-dasharray=\"%zu 3\"/>"
                "<text x=\"%g\" y=\"%.1f\" fill=\"%s\">%s %.2f</text>\n",
                p->left, high, PANEL_W, low - high, blind_colour, p->left, y, PANEL_W, blind_colour, 3 + 4 * i,
                p->left + PANEL_W + NAMES, name_y, blind_colour, p->setup->arms[arms[i]].label, band.mean);
    }
}

static void put_legend(FILE *stream)
{
    static const char *const texts[] = {"SRSF, step times mispredicted (log-normal, median one)",
                                        "SRSF, totals mispredicted, never corrected"};
    for (size_t i = 0; i < 2; i++)
        fprintf(stream, "<path d=\"M%zu 46h24\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%zu\" y=\"50\">%s</text>\n",
                LEFT + i * 400, curve_colours[i], LEFT + 30 + i * 400, texts[i]);
}

void ex_print_svg(FILE *stream, const ex_setup *setup, const ex_results *results)
{
    int width = LEFT + (int)setup->trace_count * (PANEL_W + GAP_X), height = TOP + EX_LOADS * (PANEL_H + GAP_Y);
    ex_put_svg_begin(stream, width, height, LEFT,
                     "Cost of mispredicted durations: mean completion time relative to exact SRSF");
    put_legend(stream);
    for (size_t load = 0; load < EX_LOADS; load++) {
        for (size_t trace = 0; trace < setup->trace_count; trace++) {
            panel p = {.setup = setup,
                       .results = results,
                       .load = load,
                       .trace = trace,
                       .left = LEFT + (double)trace * (PANEL_W + GAP_X),
                       .top = TOP + (double)load * (PANEL_H + GAP_Y)};
            set_scale(&p);
            put_axes(stream, &p);
            put_horizontal_lines(stream, &p);
            put_curve(stream, &p, EX_TOTAL);
            put_curve(stream, &p, EX_SCALE);
            put_predictors(stream, &p);
        }
    }
    fprintf(stream,
            "<text x=\"%d\" y=\"%d\">Mean error of the estimate. Bands: 95 %% confidence of the mean over %zu windows "
            "of %zu jobs on %d GPUs; %zu seeds.</text>\n</svg>\n",
            LEFT, height - 12, setup->windows, setup->jobs, setup->gpus, setup->seeds);
}
