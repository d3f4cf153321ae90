/* curves_svg.c — estimates that learn as a drawing: one panel for each trace and load.
 *
 * The horizontal axis is the position in the window, in tenths of the jobs. The vertical axis, logarithmic, is a
 * tenth's mean completion time, relative to exact SRSF. The names at the right end have the ratio of the whole
 * window. */
#include "simulator/experiment/experiment.h"

#include <math.h>

enum { PANEL_W = 300, PANEL_H = 250, LEFT = 56, TOP = 64, GAP_X = 285, GAP_Y = 74, LINE = 14 };

static const char colours[][8] = {"#000000", "#1b6ca8", "#1a7f37", "#c8501e", "#8250df",
                                  "#9a6700", "#bf3989", "#555555", "#999999"};
static const double far_above = 6, least = .92;

typedef struct panel {
    const ex_setup *setup;
    const ex_results *results;
    size_t load, trace;
    double left, top, most;
} panel;

static double x_of(const panel *p, size_t part) { return p->left + PANEL_W * ((double)part + .5) / EX_PARTS; }

static double y_of(const panel *p, double ratio)
{
    return p->top + PANEL_H * (1 - log(fmin(fmax(ratio, least), p->most) / least) / log(p->most / least));
}

static double whole(const panel *p, size_t arm)
{
    return ex_ratio_band(p->setup, p->results, p->load, p->trace, arm).mean;
}

static double of_part(const panel *p, size_t arm, size_t part)
{
    return ex_part_band(p->setup, p->results, p->load, p->trace, arm, part).mean;
}

static void put_axes(FILE *stream, const panel *p)
{
    static const double marks[] = {1, 1.1, 1.2, 1.5, 2, 3, 4, 6};
    double before = INFINITY;
    fprintf(stream, "<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n", p->left,
            p->top, PANEL_W, PANEL_H);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && marks[i] < p->most; i++) {
        double y = y_of(p, marks[i]);
        if (before - y < LINE) continue;
        before = y;
        fprintf(stream,
                "<path d=\"M%g %gh%d\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
                p->left, y, PANEL_W, p->left - 6, y + 4, marks[i]);
    }
    for (size_t part = 0; part < EX_PARTS; part++)
        fprintf(stream, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%zu</text>\n", x_of(p, part),
                p->top + PANEL_H + 16, part + 1);
    char load[32] = "unmodified";
    if (p->setup->loads[p->load] > 0) snprintf(load, sizeof load, "load %.2g", p->setup->loads[p->load]);
    fprintf(stream, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">", p->left, p->top - 8);
    ex_put_escaped(stream, p->setup->trace_names[p->trace]);
    fprintf(stream, ", %s</text>\n", load);
}

/* Draws the arms from the highest last ratio to the lowest, so the names stand apart. */
static void put_arms(FILE *stream, const panel *p)
{
    size_t arms[EX_MAX_ARMS], count = 0;
    for (size_t arm = 1; arm < p->setup->arm_count; arm++) {
        size_t i = count++;
        double last = of_part(p, arm, EX_PARTS - 1);
        for (; i > 0 && of_part(p, arms[i - 1], EX_PARTS - 1) < last; i--) arms[i] = arms[i - 1];
        arms[i] = arm;
    }
    double name_y = p->top - LINE;
    for (size_t i = 0; i < count; i++) {
        const char *colour = colours[arms[i] % (sizeof colours / sizeof colours[0])];
        fprintf(stream, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
        for (size_t part = 0; part < EX_PARTS; part++)
            fprintf(stream, "%c%.1f %.1f", part == 0 ? 'M' : 'L', x_of(p, part), y_of(p, of_part(p, arms[i], part)));
        double y = y_of(p, of_part(p, arms[i], EX_PARTS - 1));
        double lowest = p->top + PANEL_H - LINE * (double)(count - 1 - i);
        name_y = fmin(fmax(y + 4, name_y + LINE), lowest);
        fprintf(stream, "\"/><text x=\"%g\" y=\"%.1f\" fill=\"%s\">", p->left + PANEL_W + 8, name_y, colour);
        ex_put_escaped(stream, p->setup->arms[arms[i]].label);
        fprintf(stream, " %.2f</text>\n", whole(p, arms[i]));
    }
}

void ex_print_curves(FILE *stream, const ex_setup *setup, const ex_results *results)
{
    int width = LEFT + (int)setup->trace_count * (PANEL_W + GAP_X), height = TOP + EX_LOADS * (PANEL_H + GAP_Y);
    ex_put_svg_begin(stream, width, height, LEFT,
                     "Estimates that start cold and learn: mean completion time relative to exact SRSF");
    for (size_t load = 0; load < EX_LOADS; load++) {
        for (size_t trace = 0; trace < setup->trace_count; trace++) {
            panel p = {.setup = setup,
                       .results = results,
                       .load = load,
                       .trace = trace,
                       .left = LEFT + (double)trace * (PANEL_W + GAP_X),
                       .top = TOP + (double)load * (PANEL_H + GAP_Y),
                       .most = 1.3};
            for (size_t arm = 1; arm < setup->arm_count; arm++)
                for (size_t part = 0; part < EX_PARTS; part++)
                    p.most = fmax(p.most, fmin(1.1 * of_part(&p, arm, part), far_above));
            put_axes(stream, &p);
            put_arms(stream, &p);
        }
    }
    fprintf(stream,
            "<text x=\"%d\" y=\"%d\">Tenths of a window of %zu jobs on %d GPUs, in order of submission. Means over %zu "
            "windows; numbers at the names: whole windows.</text>\n</svg>\n",
            LEFT, height - 12, setup->jobs, setup->gpus, setup->windows);
}
