/* sort_predictions.c — values that compare the answers of `mdot predict`: time, throughput and cost. */
#include "cli/predict/predict_request.h"

#include <math.h>
#include <stdlib.h>

double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p)
{
    return 1000 * cli_samples_of_step(c) / p->step_ms;
}

double predict_tokens_per_second(const predict_answers *answers, size_t i)
{
    double tokens = answers->variants[answers->variant[i]].tokens_per_sample;
    return tokens * predict_samples_per_second(&answers->configurations[i], &answers->predictions[i]);
}

typedef struct line {
    bool fits;  /* first, because a step that does not fit is no choice */
    double key; /* smaller is better */
    size_t index, variant, combination;
    mdot_configuration configuration;
    mdot_prediction prediction;
    mdot_explanation *explanation;
    mdot_calibration_factors factors;
} line;

static int compare(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static double key_of(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p)
{
    if (r->sort == PREDICT_BY_TIME) {
        double steps = cli_total_steps(&r->total, c);
        return steps > 0 ? steps * p->step_ms : p->step_ms;
    }
    if (r->sort == PREDICT_BY_THROUGHPUT) return -predict_samples_per_second(c, p);
    double cost = cli_total_cost(&r->total, c, p);
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
        lines[i] = (line){.fits = p->fits,
                          .key = key_of(r, c, p),
                          .index = i,
                          .variant = answers->variant[i],
                          .combination = answers->combination[i],
                          .configuration = *c,
                          .prediction = *p};
        if (answers->explanations != NULL) lines[i].explanation = answers->explanations[i];
        if (answers->factors != NULL) lines[i].factors = answers->factors[i];
    }
    qsort(lines, answers->count, sizeof *lines, compare);
    for (size_t i = 0; i < answers->count; i++) {
        answers->configurations[i] = lines[i].configuration;
        answers->predictions[i] = lines[i].prediction;
        answers->variant[i] = lines[i].variant;
        answers->combination[i] = lines[i].combination;
        if (answers->explanations != NULL) answers->explanations[i] = lines[i].explanation;
        if (answers->factors != NULL) answers->factors[i] = lines[i].factors;
    }
    free(lines);
    return true;
}
