/* fit_steps.c — Levenberg and Marquardt's method on the seven terms of a step model.
 *
 * Six terms are positive and are fitted as logarithms; the overlap, between 1 and 10 as in Pollux, is fitted through a
 * logistic function. Three starts with different overlaps are tried, because the error has several minima.
 */
#include "base/status.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 7, ROUNDS = 60 };

static sc_step_model to_model(const double *x)
{
    return (sc_step_model){.grad_s = exp(x[0]),
                           .grad_per_sample_s = exp(x[1]),
                           .local_s = exp(x[2]),
                           .local_per_gpu_s = exp(x[3]),
                           .node_s = exp(x[4]),
                           .node_per_gpu_s = exp(x[5]),
                           .overlap = 1 + 9 / (1 + exp(-x[6]))};
}

static double residual(const sc_step_model *model, const sc_step_row *row)
{
    return log(sc_step_model_s(model, row->placement.nodes, row->placement.gpus, row->samples, 1) / row->step_s);
}

/* Fills the residuals and returns the sum of squares. */
static double residuals(const sc_step_table *table, const double *x, double *out_residuals)
{
    sc_step_model model = to_model(x);
    double sum = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        out_residuals[i] = residual(&model, &table->rows[i]);
        sum += out_residuals[i] * out_residuals[i];
    }
    return sum;
}

/* Solves a symmetric positive system by Cholesky's decomposition, in place; false if it is not positive. */
static bool solve(double (*a)[TERMS], double *b)
{
    for (int i = 0; i < TERMS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
            if (i == j && !(sum > 0)) return false;
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    }
    for (int i = 0; i < TERMS; i++) {
        for (int k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = TERMS - 1; i >= 0; i--) {
        for (int k = i + 1; k < TERMS; k++) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    return true;
}

typedef struct scratch {
    double *residuals, *moved; /* one per row */
    double (*slopes)[TERMS];   /* of a row's residual by each term */
} scratch;

/* Adds up the error's gradient and an approximate Hessian. */
static void add_up(const sc_step_table *table, const double *x, scratch *s, double (*slopes)[TERMS], double *gradient)
{
    static const double step = 1e-5;
    memset(slopes, 0, TERMS * sizeof *slopes);
    memset(gradient, 0, TERMS * sizeof *gradient);
    for (int term = 0; term < TERMS; term++) {
        double moved[TERMS];
        memcpy(moved, x, sizeof moved);
        moved[term] += step;
        residuals(table, moved, s->moved);
        for (size_t i = 0; i < table->row_count; i++) s->slopes[i][term] = (s->moved[i] - s->residuals[i]) / step;
    }
    for (size_t i = 0; i < table->row_count; i++) {
        for (int a = 0; a < TERMS; a++) {
            gradient[a] += s->slopes[i][a] * s->residuals[i];
            for (int b = 0; b < TERMS; b++) slopes[a][b] += s->slopes[i][a] * s->slopes[i][b];
        }
    }
}

/* Descends from x in place; returns the sum of squares. */
static double descend(const sc_step_table *table, double *x, scratch *s)
{
    double damping = 1e-2, sum = residuals(table, x, s->residuals), slopes[TERMS][TERMS], gradient[TERMS];
    for (int round = 0; round < ROUNDS && damping < 1e12; round++) {
        add_up(table, x, s, slopes, gradient);
        for (bool is_better = false; !is_better && damping < 1e12;) {
            double a[TERMS][TERMS], move[TERMS], tried[TERMS];
            memcpy(a, slopes, sizeof a);
            memcpy(move, gradient, sizeof move);
            for (int i = 0; i < TERMS; i++) a[i][i] += damping * (a[i][i] + 1e-9) + 1e-12;
            bool is_solved = solve(a, move);
            /* Terms stay in a range in which no exponential overflows: 1e-11 to 1e11 s. */
            for (int i = 0; i < TERMS && is_solved; i++) tried[i] = fmin(fmax(x[i] - move[i], -25), 25);
            double then = is_solved ? residuals(table, tried, s->moved) : INFINITY;
            is_better = then < sum;
            damping = is_better ? damping / 4 : damping * 4;
            if (!is_better) continue;
            bool is_done = sum - then < 1e-9 * sum;
            sum = then;
            memcpy(x, tried, sizeof tried);
            if (is_done) return sum;
        }
        sum = residuals(table, x, s->residuals);
    }
    return sum;
}

mdot_status sc_fit_steps(sc_step_table *table, mdot_error *err)
{
    static const double overlaps[] = {-2, 0, 2};
    const sc_array arrays[] = {SC_ARRAY(scratch, residuals, table->row_count),
                               SC_ARRAY(scratch, moved, table->row_count), SC_ARRAY(scratch, slopes, table->row_count)};
    void *s;
    double minimum = INFINITY, slowest_s = 0, fastest_s = INFINITY, widest_s = 0;
    BS_TRY(SC_STATE(scratch, arrays, &s, err));
    for (size_t i = 0; i < table->row_count; i++) {
        const sc_step_row *row = &table->rows[i];
        fastest_s = fmin(fastest_s, row->step_s);
        if (row->placement.gpus == 1) slowest_s = fmax(slowest_s, row->step_s);
        widest_s = fmax(widest_s, row->step_s);
    }
    if (slowest_s == 0) slowest_s = widest_s;
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        double sync = log(fastest_s / 2),
               x[TERMS] = {log(fastest_s / 2), log(slowest_s / table->most_samples), sync, sync - 2, sync + 1, sync - 2,
                           overlaps[i]};
        double sum = descend(table, x, s);
        if (sum >= minimum) continue;
        minimum = sum;
        table->model = to_model(x);
    }
    free(s);
    return MDOT_OK;
}
