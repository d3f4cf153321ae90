/* element_bounds.c — see compiler.h. */
#include "compiler/compiler.h"
#include "ir/ops.h"

#include <math.h>
#include <stdlib.h>

/* Code rounds at other places than the evaluators: for example, scales are folded into weights, and sums have another
 * order. Its error may be this many times the sensitivity that one evaluation shows. */
static const double single_margin = 32, half_margin = 12, mean_square_margin = 4;
/* The same for noise that moves values by steps: one of 970 right outputs exceeded 4 times the change, and no wrong one
 * was between 4 and 6 times. */
static const double loud_margin = 6;
/* A value between two steps may be rounded to either, and moves later ones by some steps. check_moved limits how many
 * move. */
static const double steps_off = 8 + 0x1p-7;
/* A change by more than this share of the scale shows no sensitivity, but a value that f32 decides: for example the
 * scores of a row beside -1e9. There the code must agree with the evaluation in f32. */
static const double decided = 0.02;

typedef struct grid {                       /* an output as rows of its last dimension */
    int64_t rows, columns, channels, inner; /* inner: elements of a channel that follow one another */
    double *channel;                        /* greatest magnitude; not limited if there is one channel */
    double *column, *row;                   /* column: greatest magnitude. row: greatest share of that */
    double *sensitive, *factor; /* of each column, relative to the scale; and of each row, relative to its columns */
    double *sample;             /* one column or row */
    double margin;              /* of changes by noise */
} grid;

static double magnitude(double value) { return isfinite(value) ? fabs(value) : 0; }

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(double *values, int64_t count, double share)
{
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[(int64_t)(share * (double)(count - 1) + 0.5)];
}

/* The lesser scale of the element's column and channel. */
static double greatest_near(const grid *g, int64_t i)
{
    double column = g->column[i % g->columns];
    return g->channels > 1 ? fmin(column, g->channel[i / g->inner % g->channels]) : column;
}

static void measure_scales(grid *g, const ir_wide *values)
{
    double greatest = 0;
    for (int64_t i = 0; i < values->count; i++) {
        double *column = &g->column[i % g->columns], *channel = &g->channel[i / g->inner % g->channels];
        double size = magnitude(values->f[i]);
        *column = fmax(*column, size);
        *channel = fmax(*channel, size);
        greatest = fmax(greatest, size);
    }
    double least = fmax(1e-6 * greatest, 1e-7);
    for (int64_t j = 0; j < g->columns; j++) g->column[j] = fmax(g->column[j], least);
    for (int64_t c = 0; c < g->channels; c++) g->channel[c] = fmax(g->channel[c], least);
    for (int64_t i = 0; i < g->rows; i++) {
        double share = g->columns < 4 || g->rows < 2 ? 1 : 1e-2; /* few numbers make no scale */
        for (int64_t j = 0; j < g->columns; j++)
            share = fmax(share, magnitude(values->f[i * g->columns + j]) / greatest_near(g, i * g->columns + j));
        g->row[i] = share;
    }
}

static double scale_of(const grid *g, int64_t i) { return greatest_near(g, i) * g->row[i / g->columns]; }

/* The greatest change of the element in any evaluation, relative to its scale. */
static double sensitivity(const grid *g, const co_expected *x, int half, int64_t i)
{
    double single = x->single->f[i], scale = scale_of(g, i);
    double exact = fabs(x->exact->f[i] - single), noise = fabs(x->noisy->f[i] - single), change = 0;
    if (isfinite(exact) && exact <= decided * scale) change = exact;
    if (isfinite(noise)) change = fmax(change, noise);
    change *= g->margin;
    if (half >= 0) {
        double rounded = half_margin * fabs(x->rounded[half]->f[i] - single);
        if (isfinite(rounded)) change = fmax(change, rounded);
    }
    return change / scale;
}

/* The columns' sensitivities exclude the greatest tenth, so that rows near zero do not excuse the others. */
static void measure_sensitivities(grid *g, const co_expected *x, int half)
{
    for (int64_t j = 0; j < g->columns; j++) {
        for (int64_t i = 0; i < g->rows; i++) g->sample[i] = sensitivity(g, x, half, i * g->columns + j);
        g->sensitive[j] = quantile(g->sample, g->rows, 0.9);
    }
    for (int64_t i = 0; i < g->rows; i++) {
        for (int64_t j = 0; j < g->columns; j++)
            g->sample[j] = sensitivity(g, x, half, i * g->columns + j) / fmax(g->sensitive[j], 1e-12);
        g->factor[i] = g->columns < 4 ? 1 : fmax(1, quantile(g->sample, g->columns, 0.5));
    }
}

static bool make_grid(grid *g, const ir_wide *values, bool has_channels, ir_arena *arena)
{
    g->columns = values->rank > 0 ? values->dims[values->rank - 1] : 1;
    g->rows = values->count / g->columns;
    g->channels = has_channels ? values->dims[1] : 1;
    g->inner = values->count / (has_channels ? values->dims[0] * values->dims[1] : 1);
    if (g->inner < 8) g->channels = 1, g->inner = values->count; /* few numbers make no scale */
    g->channel = IR_NEW_ARRAY(arena, double, g->channels);
    g->column = IR_NEW_ARRAY(arena, double, g->columns);
    g->row = IR_NEW_ARRAY(arena, double, g->rows);
    g->sensitive = IR_NEW_ARRAY(arena, double, g->columns);
    g->factor = IR_NEW_ARRAY(arena, double, g->rows);
    g->sample = IR_NEW_ARRAY(arena, double, g->columns > g->rows ? g->columns : g->rows);
    return g->channel != NULL && g->column != NULL && g->row != NULL && g->sensitive != NULL && g->factor != NULL &&
           g->sample != NULL;
}

bool co_find_bounds(const co_expected *x, bool has_channels, int half, double base, double step, double exact,
                    double units, double *typical, ir_arena *arena, co_bounds *out_bounds, double *out_vague)
{
    const ir_wide *values = x->single;
    co_bounds b = {.base = base, .step = steps_off * step, .tight = exact};
    grid g = {.margin = fmax(loud_margin, 2 * single_margin / units)};
    *out_vague = 0;
    *out_bounds = b;
    for (int64_t i = 0; values->f == NULL && i < values->count; i++) {
        out_bounds->moved += (values->i[i] != x->noisy->i[i]) / (double)values->count;
        *typical = fmax(*typical, fabs((double)values->i[i] - (double)x->noisy->i[i]));
    }
    if (values->f == NULL && step > 0) out_bounds->step += g.margin * *typical;
    if (values->f == NULL || values->count == 0) return true;
    b.scale = IR_NEW_ARRAY(arena, double, values->count);
    b.error = IR_NEW_ARRAY(arena, double, values->count);
    b.rounding = half >= 0 ? IR_NEW_ARRAY(arena, double, values->count) : NULL;
    if (!make_grid(&g, values, has_channels, arena) || b.scale == NULL || b.error == NULL ||
        (half >= 0 && b.rounding == NULL))
        return false;
    measure_scales(&g, values);
    measure_sensitivities(&g, x, half);
    for (int64_t j = 0; j < g.columns; j++) g.sample[j] = g.sensitive[j];
    *typical = fmax(*typical, quantile(g.sample, g.columns, 0.5));
    int64_t vague = 0;
    for (int64_t i = 0; i < values->count; i++) {
        double relative = fmax(base, *typical);
        relative = fmax(relative, g.sensitive[i % g.columns] * g.factor[i / g.columns]);
        double own = sensitivity(&g, x, half, i);
        b.moved += (own > exact) / (double)values->count;
        relative = fmax(relative, own);
        b.scale[i] = scale_of(&g, i);
        b.error[i] = relative * b.scale[i];
        if (half >= 0) b.rounding[i] = fabs(x->rounded[half]->f[i] - values->f[i]);
        vague += relative > fmax(0.1, 2 * base);
    }
    *out_vague = (double)vague / (double)values->count;
    *out_bounds = b;
    return true;
}

/* An element's error. Where f32 decides the value, the evaluation in f32 counts; elsewhere the nearer one. */
static double error_of(double actual, const co_expected *x, int64_t i, double bound, bool skips_nan)
{
    double single = x->single->f[i], exact = x->exact->f[i], noisy = x->noisy->f[i];
    if (isnan(single) && (skips_nan || !isnan(noisy) || !isnan(exact))) return 0;
    if (isinf(single) != isinf(noisy) || (isfinite(single) && isnan(noisy))) return 0; /* as above: rounding decides */
    if (isinf(actual) && fabs(noisy - single) > fabs(single) / 2) return 0;            /* as beside a division by 0 */
    double error = co_distance(actual, single);
    bool is_decided = isfinite(single) && isfinite(exact) && fabs(single - exact) > bound;
    return is_decided ? error : fmin(error, co_distance(actual, exact));
}

/* Integers as large as these differ between the evaluations as fractional powers only. */
static bool is_open_power(int64_t actual, int64_t exact, int64_t noisy)
{
    double x = (double)exact;
    return fabs(x) >= IR_EXACT_POWER && fabs((double)actual - x) <= fabs((double)noisy - x);
}

static void note(co_worst *w, double error, double bound, double scale)
{
    double share = error / bound;
    if (share <= w->share && w->bound > 0) return;
    *w = (co_worst){share, error / scale, bound / scale, 0, w->length};
}

/* Errors of rounding in a column vary around zero, while those of wrong weights grow with the values. So the mean
 * square is limited more closely than single errors. Columns of few rows share the limit of all. */
static void check_mean_squares(const ir_wide *values, const double *error, const co_bounds *b, co_worst *worst)
{
    int64_t columns = values->rank > 0 ? values->dims[values->rank - 1] : 1, rows = values->count / columns;
    double all = 0;
    for (int64_t i = 0; i < values->count; i++) {
        double share = b->rounding[i] / b->scale[i];
        all += isfinite(share) ? fmin(share * share, 1) : 0;
    }
    all = sqrt(all / (double)values->count);
    for (int64_t j = 0; j < columns && rows >= 8; j++) {
        double actual = 0, rounding = 0;
        for (int64_t i = j; i < values->count; i += columns) {
            double share = b->rounding[i] / b->scale[i], wrong = fmax(0, error[i] - b->step) / b->scale[i];
            rounding += isfinite(share) ? fmin(share * share, 1) : 1;
            actual += isfinite(wrong) ? wrong * wrong : 0;
        }
        double limit = fmax(b->base / 2, mean_square_margin * fmax(sqrt(rounding / (double)rows), all));
        note(worst, sqrt(actual / (double)rows), limit, 1);
    }
}

mdot_status co_find_worst(const co_tensor *actual, const co_expected *x, const co_bounds *bounds, bool skips_nan,
                          co_worst *out_worst, mdot_error *err)
{
    const ir_wide *values = x->single;
    bool is_same = actual->dtype == values->dtype && actual->count == values->count && actual->rank == values->rank;
    for (int i = 0; is_same && i < actual->rank; i++) is_same = actual->dims[i] == values->dims[i];
    co_worst worst = {INFINITY, INFINITY, bounds->base, 1, out_worst->length};
    *out_worst = worst;
    if (!is_same) return MDOT_OK;
    ir_tensor stored = {.dtype = actual->dtype, .rank = actual->rank, .count = actual->count, .data = actual->data};
    for (int i = 0; i < actual->rank; i++) stored.dims[i] = actual->dims[i];
    ir_arena *arena = ir_arena_create(0);
    const ir_wide *wide = arena != NULL ? ir_wide_from_tensor(arena, &stored) : NULL;
    double *error = arena != NULL ? IR_NEW_ARRAY(arena, double, values->count) : NULL;
    worst = (co_worst){0, 0, bounds->base, 0, out_worst->length};
    int64_t moved = 0;
    for (int64_t i = 0; wide != NULL && error != NULL && i < values->count; i++) {
        if (values->f != NULL) {
            error[i] = error_of(wide->f[i], x, i, bounds->error[i], skips_nan);
            moved += error[i] > bounds->tight * bounds->scale[i];
            if (error[i] > bounds->error[i] && error[i] <= bounds->step) continue;
            note(&worst, error[i], bounds->error[i], bounds->scale[i]);
            continue;
        }
        moved += wide->i[i] != values->i[i];
        if (wide->i[i] != values->i[i] && wide->i[i] != x->exact->i[i] && wide->i[i] != x->noisy->i[i] &&
            !is_open_power(wide->i[i], x->exact->i[i], x->noisy->i[i]) &&
            !(bounds->step > 0 && fabs((double)wide->i[i] - (double)values->i[i]) <= bounds->step)) {
            worst.share = worst.error = INFINITY;
        }
    }
    bool made = wide != NULL && error != NULL;
    if (made && values->f != NULL && values->count > 0 && bounds->rounding != NULL)
        check_mean_squares(values, error, bounds, &worst);
    ir_arena_destroy(arena);
    if (!made) return BS_OUT_OF_MEMORY(err, "the comparison of output \"%s\"", actual->name);
    worst.moved = values->count > 0 ? (double)moved / (double)values->count : 0;
    *out_worst = worst;
    return MDOT_OK;
}
