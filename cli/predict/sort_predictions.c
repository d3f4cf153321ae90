/* sort_predictions.c — values that compare the answers of `mdot predict`: time, throughput and cost. */
#include "cli/predict/sort_predictions.h"

#include <math.h>
#include <stdlib.h>

/* A last batch that is partly filled counts as a step. */
double predict_total_steps(const predict_request *r, const mdot_configuration *c)
{
    if (r->steps > 0) return (double)r->steps;
    return (double)r->epochs * ceil((double)r->dataset / cli_samples_of_step(c));
}

double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p)
{
    return 1000 * cli_samples_of_step(c) / p->step_ms;
}

double predict_tokens_per_second(const predict_answers *answers, size_t i)
{
    double tokens = answers->variants[answers->variant[i]].tokens_per_sample;
    return tokens * predict_samples_per_second(&answers->configurations[i], &answers->predictions[i]);
}

double predict_cost(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p)
{
    if (!r->prices.is_set) return NAN;
    double steps = predict_total_steps(r, c);
    double ms = steps > 0 ? steps * p->step_ms : 1e9 / predict_samples_per_second(c, p);
    return ms / 3.6e6 * cli_gpu_count(c) * cli_gpu_price_of(&r->prices, c->gpu_spec->name);
}

typedef struct line {
    double key; /* smaller is better */
    size_t index, variant;
    mdot_configuration configuration;
    mdot_prediction prediction;
    mdot_explanation *explanation;
    mdot_calibration_factors factors;
} line;

static int compare(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static double key_of(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p)
{
    if (r->sort == PREDICT_BY_TIME) {
        double steps = predict_total_steps(r, c);
        return steps > 0 ? steps * p->step_ms : p->step_ms;
    }
    if (r->sort == PREDICT_BY_THROUGHPUT) return -predict_samples_per_second(c, p);
    double cost = predict_cost(r, c, p);
    return isnan(cost) ? INFINITY : cost;
}

bool predict_sort(const predict_request *r, predict_answers *answers)
{
    if (r->sort == CLI_NO_CHOICE) return true;
    line *lines = calloc(answers->count, sizeof *lines);
    if (lines == NULL) return false;
    for (size_t i = 0; i < answers->count; i++) {
        const mdot_configuration *c = &answers->configurations[i];
        const mdot_prediction *p = &answers->predictions[i];
        lines[i] = (line){
            .key = key_of(r, c, p), .index = i, .variant = answers->variant[i], .configuration = *c, .prediction = *p};
        if (answers->explanations != NULL) lines[i].explanation = answers->explanations[i];
        if (answers->factors != NULL) lines[i].factors = answers->factors[i];
    }
    qsort(lines, answers->count, sizeof *lines, compare);
    for (size_t i = 0; i < answers->count; i++) {
        answers->configurations[i] = lines[i].configuration;
        answers->predictions[i] = lines[i].prediction;
        answers->variant[i] = lines[i].variant;
        if (answers->explanations != NULL) answers->explanations[i] = lines[i].explanation;
        if (answers->factors != NULL) answers->factors[i] = lines[i].factors;
    }
    free(lines);
    return true;
}
