/* history_trees.c — corrects a history's durations by boosted trees, an artefact that lab/mdot_lab/durations trains.
 *
 * The trees read the history's answer (quantiles, finest key and its weight), the GPUs and the time of submission, so
 * that users, groups and names count through the history, and a site's trees need no list of them. They give the 5, 50
 * and 95 % quantiles. The corrected estimate keeps the history's tails, with new scales for both sides. */
#include "history/mdot_history.h"

#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>

enum { QUANTILES = 7, NUMBERS = QUANTILES + 6, ANSWERS = 3 };
#define LEAST_SCALE 1e-3

struct mdot_history_trees {
    mdot_predictor *predictor;
    mdot_context *context;
};

static mdot_status ask(const mdot_history_trees *trees, const float numbers[NUMBERS], float answers[ANSWERS],
                       mdot_error *err)
{
    static const int64_t dims[] = {1, NUMBERS};
    const mdot_input in = {.name = "numbers", .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = dims, .data = numbers};
    const mdot_output out = {.name = "log_s", .data = answers, .size_bytes = ANSWERS * sizeof *answers};
    return mdot_run(trees->context, 0, &in, 1, &out, 1, err);
}

mdot_status mdot_history_trees_open(const char *path, mdot_history_trees **out_trees, mdot_error *err)
{
    mdot_history_trees *trees = calloc(1, sizeof *trees);
    float answers[ANSWERS];
    if (trees == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const mdot_open_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    mdot_status status = mdot_predictor_open(path, &on_cpu, &trees->predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(trees->predictor, &trees->context, err);
    if (status == MDOT_OK) status = ask(trees, (const float[NUMBERS]){0}, answers, err);
    if (status == MDOT_OK)
        *out_trees = trees;
    else
        mdot_history_trees_close(trees);
    return status;
}

void mdot_history_trees_close(mdot_history_trees *trees)
{
    if (trees == NULL) return;
    mdot_context_destroy(trees->context);
    mdot_predictor_close(trees->predictor);
    free(trees);
}

void mdot_history_trees_correct(const mdot_history_trees *trees, const mdot_history_job *job, mdot_history_estimate *e)
{
    static const double probabilities[QUANTILES] = {.05, .1, .25, .5, .75, .9, .95}, day_s = 86400;
    float numbers[NUMBERS], answers[ANSWERS];
    for (int i = 0; i < QUANTILES; i++) numbers[i] = (float)log(mdot_history_quantile_s(e, probabilities[i]));
    numbers[QUANTILES] = (float)e->early_failure;
    numbers[QUANTILES + 1] = (float)e->key;
    numbers[QUANTILES + 2] = (float)log1p(e->weight);
    numbers[QUANTILES + 3] = (float)log2(fmax(job->gpus, 1));
    numbers[QUANTILES + 4] = (float)fmod(job->submit_s / 3600, 24);
    numbers[QUANTILES + 5] = (float)floor(fmod(job->submit_s / day_s, 7));
    if (ask(trees, numbers, answers, NULL) != MDOT_OK || !isfinite(answers[0] + answers[1] + answers[2])) return;
    double below = numbers[QUANTILES / 2] - numbers[0], above = numbers[QUANTILES - 1] - numbers[QUANTILES / 2];
    if (!(below > 0 && above > 0)) return; /* a history that is certain */
    e->median_s = exp(fmin(fmax(answers[1], log(1e-3)), log(1e12)));
    e->lower_scale = fmax(e->lower_scale * (answers[1] - answers[0]) / below, LEAST_SCALE);
    e->upper_scale = fmax(e->upper_scale * (answers[2] - answers[1]) / above, LEAST_SCALE);
}
