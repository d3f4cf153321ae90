/* history_trees.c — corrects a history's durations by boosted trees, an artefact that lab/mdot_lab/durations trains.
 *
 * The trees read the history's answer (quantiles, finest key and its weight), the GPUs and the time of submission, so
 * that users, groups and names count through the history, and a site's trees need no list of them. They give the 5, 50
 * and 95 % quantiles. The corrected estimate keeps the history's tails, with new scales for both sides. */
#include "history/mdot_history.h"
#include "history/row_model.h"

#include <math.h>

enum { QUANTILES = 7, NUMBERS = QUANTILES + 6, ANSWERS = 3 };
#define LEAST_SCALE 1e-3

mdot_status mdot_history_trees_open(const char *path, mdot_history_trees **out_trees, mdot_error *err)
{
    static const hs_row row = {"numbers", "log_s", NUMBERS, ANSWERS};
    return hs_row_model_open(path, &row, out_trees, err);
}

void mdot_history_trees_close(mdot_history_trees *trees) { hs_row_model_close(trees); }

void mdot_history_trees_correct(const mdot_history_trees *trees, const mdot_history_job *job, mdot_history_estimate *e)
{
    static const double probabilities[QUANTILES] = {.05, .1, .25, .5, .75, .9, .95}, day_s = 86400;
    float numbers[NUMBERS], answers[ANSWERS];
    for (int i = 0; i < QUANTILES; i++) numbers[i] = (float)log(mdot_history_quantile_s(e, probabilities[i]));
    numbers[QUANTILES] = (float)e->early_failure;
    numbers[QUANTILES + 1] = (float)e->key;
    numbers[QUANTILES + 2] = (float)log1p(e->weight);
    numbers[QUANTILES + 3] = (float)log2(fmax(job->gpus, 1));
    numbers[QUANTILES + 4] = (float)((job->submit_s - day_s * floor(job->submit_s / day_s)) / 3600);
    numbers[QUANTILES + 5] = (float)floor((job->submit_s - 7 * day_s * floor(job->submit_s / (7 * day_s))) / day_s);
    if (hs_row_model_ask(trees, numbers, answers, NULL) != MDOT_OK) return;
    double below = numbers[QUANTILES / 2] - numbers[0], above = numbers[QUANTILES - 1] - numbers[QUANTILES / 2];
    if (!(below > 0 && above > 0)) return; /* a history that is certain */
    e->median_s = exp(fmin(fmax(answers[1], log(1e-3)), log(1e12)));
    e->lower_scale = fmax(e->lower_scale * (answers[1] - answers[0]) / below, LEAST_SCALE);
    e->upper_scale = fmax(e->upper_scale * (answers[2] - answers[1]) / above, LEAST_SCALE);
}
