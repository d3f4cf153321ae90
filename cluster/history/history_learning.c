#include "history/history_learning.h"

#include <math.h>

static const double candidates[HS_CANDIDATES] = {.05, .25, .5, 1, 2, 4, 16, 64, INFINITY};
enum { FIRST_CANDIDATE = 3 };

void hs_learning_begin(hs_learning *l)
{
    *l = (hs_learning){0};
    for (int key = 0; key < HS_KEYS; key++) {
        l->passing[key][0] = 5;
        l->passing[key][1] = 1.5;
    }
    for (int step = 0; step < HS_STEPS; step++)
        for (int c = 0; c < HS_CANDIDATES; c++) l->losses[step][c] = fabs((double)(c - FIRST_CANDIDATE));
    for (int i = 0; i < HS_ERROR_CLASSES; i++) hs_errors_begin(&l->errors[i]);
}

double hs_decay(double half_life_s, double at_s, double now_s) { return exp2(-fmax(now_s - at_s, 0) / half_life_s); }

static int best_of(const double losses[HS_CANDIDATES])
{
    int best = 0;
    for (int c = 1; c < HS_CANDIDATES; c++)
        if (losses[c] < losses[best]) best = c;
    return best;
}

/* Returns the position between `from` and `towards` after a step. */
static double step_to(double start, double towards, double weight, double against)
{
    return isinf(against) ? start : start + (towards - start) * weight / (weight + against);
}

static void take_step(const hs_learning *l, hs_forecast *f, int step, double towards, double weight)
{
    f->steps[step].weight = weight;
    f->steps[step].before = f->log_s;
    f->steps[step].towards = towards;
    f->log_s = step_to(f->log_s, towards, weight, candidates[best_of(l->losses[step])]);
    f->steps[step].after = f->log_s;
}

static int weight_class_of(double weight) { return weight < 1.3 ? 0 : weight < 3.3 ? 1 : weight < 8 ? 2 : 3; }

/* The usual error for estimates like this one. */
static double usual_error(const hs_learning *l, int key, int weight_class)
{
    const double assumed = 10, *known = l->usual[key][weight_class];
    return (known[0] * known[1] + assumed * l->passing[key][1]) / (known[0] + assumed);
}

hs_forecast hs_forecast_of(const hs_learning *l, const hs_nodes *nodes, const hs_keys *keys, double half_life_s,
                           double known_s, double now_s)
{
    const double spread_against = 4, failures_against = 4, most_recent = 2;
    const double least_weight = 0.1; /* keys with less weight are forgotten, because several would add up */
    const double least_scale = 0.01;
    hs_forecast f = {.log_s = log(3600), .early_failure = 0.05, .failure_log_s = log(60)};
    double spread = 1;
    for (int key = 0; key < HS_KEYS; key++) {
        const hs_node *node = keys->hash[key] != 0 ? hs_nodes_find(nodes, keys->hash[key]) : NULL;
        if (node == NULL) continue;
        const hs_durations *durations = hs_node_at(node, known_s);
        double kept = hs_decay(half_life_s, node->at_s, now_s);
        double weight = durations != NULL ? durations->weight * hs_decay(half_life_s, durations->at_s, now_s) : 0;
        bool is_crossing = key == MDOT_HISTORY_KEY_HOUR;
        if (weight < least_weight) weight = 0;
        if (weight > 0) take_step(l, &f, 2 * key, is_crossing ? f.log_s + durations->mean : durations->mean, weight);
        if (is_crossing) continue;
        if (weight > 0 && key >= MDOT_HISTORY_KEY_USER)
            take_step(l, &f, 2 * key + 1, durations->recent, fmin(weight, most_recent));
        if (weight > 0 || key == MDOT_HISTORY_KEY_ALL) {
            f.key = key;
            f.weight = weight;
        }
        spread =
            (kept * node->misses * node->spread + spread_against * spread) / (kept * node->misses + spread_against);
        f.failure_log_s = (kept * node->failures * node->failure + failures_against * f.failure_log_s) /
                          (kept * node->failures + failures_against);
        f.early_failure =
            (kept * node->failures + failures_against * f.early_failure) / (kept * node->ends + failures_against);
    }
    f.weight_class = weight_class_of(f.weight);
    f.error_class = f.key < MDOT_HISTORY_KEY_NAME ? HS_ERROR_CLASSES - 1 : f.weight_class;
    f.usual = usual_error(l, f.key, f.weight_class);
    f.scale = fmax(f.usual * spread, least_scale);
    return f;
}

static void add_to_mean(double mean[2], double value, double kept)
{
    mean[0] = mean[0] * kept + 1;
    mean[1] += (value - mean[1]) / mean[0];
}

/* Adds each candidate's error, and subtracts the least sum to keep sums small. */
static void learn_step(double losses[HS_CANDIDATES], double before, double towards, double weight, double log_s)
{
    double minimum = INFINITY;
    for (int c = 0; c < HS_CANDIDATES; c++) {
        double error = fabs(step_to(before, towards, weight, candidates[c]) - log_s);
        losses[c] = losses[c] * 0.999 + error;
        minimum = fmin(minimum, losses[c]);
    }
    for (int c = 0; c < HS_CANDIDATES; c++) losses[c] -= minimum;
}

void hs_learn(hs_learning *l, const hs_forecast *f, double log_s)
{
    double error = fabs(log_s - f->log_s);
    for (int step = 0; step < HS_STEPS; step++) {
        if (f->steps[step].weight == 0) continue;
        learn_step(l->losses[step], f->steps[step].before, f->steps[step].towards, f->steps[step].weight, log_s);
        bool is_last_of_key = step % 2 == 1 || f->steps[step + 1].weight == 0;
        double *passing = l->passing[step / 2];
        if (is_last_of_key) add_to_mean(passing, fmin(fabs(log_s - f->steps[step].after), 8 * passing[1]), 0.999);
    }
    hs_errors_add(&l->errors[f->error_class], (log_s - f->log_s) / f->scale);
    add_to_mean(l->usual[f->key][f->weight_class], fmin(error, 8 * f->usual), 0.999);
}
