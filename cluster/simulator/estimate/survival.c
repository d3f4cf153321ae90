/* survival.c — durations as survival estimates: how long jobs that have run so long ran on, on average.
 *
 * The estimate of a job is the mean residual life E[D - t | D > t] over the completed jobs, where t is the time for
 * which the job has run. It uses jobs of the same width if at least 30 of them outlived t, else all jobs. Without any,
 * it is the time that the job has run, and at least an hour. It learns while the simulation runs. Failed and cancelled
 * jobs count like others, because the estimate is about the end, whichever its reason is. Durations are counted in
 * classes of an eighth of a power of two, of which sums are exact. Jobs that still run are not counted as censored
 * observations.
 */
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>

enum { CLASSES = 8 * 44, ALL = SC_WIDTHS + 1, ENOUGH = 30 };

typedef struct tally {
    double sum_s[CLASSES];
    size_t count[CLASSES];
} tally;

typedef struct survival {
    tally tallies[ALL + 1]; /* by log2 of the width; SC_WIDTHS: other widths; ALL: all */
} survival;

static size_t class_of(double duration_s)
{
    double class = 8 * log2(fmax(duration_s, 1));
    return class < CLASSES - 1 ? (size_t) class : CLASSES - 1;
}

/* Returns the mean residual life at `age_s`, and the number of jobs in the mean. */
static double residual_s(const tally *t, double age_s, size_t *out_count)
{
    double sum_s = 0;
    size_t count = 0;
    for (size_t i = class_of(age_s) + (age_s > 0); i < CLASSES; i++) {
        sum_s += t->sum_s[i];
        count += t->count[i];
    }
    *out_count = count;
    return count > 0 ? sum_s / (double)count - age_s : 0;
}

static double remaining_s(void *memory, const sc_workload *workload, uint32_t job, double executed_s)
{
    const survival *self = memory;
    size_t count;
    double rest_s = residual_s(&self->tallies[sc_width_of(workload->jobs[job].gpus)], executed_s, &count);
    if (count < ENOUGH) rest_s = residual_s(&self->tallies[ALL], executed_s, &count);
    return count > 0 ? fmax(1, rest_s) : fmax(3600, executed_s);
}

static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    return duration_s > 0 ? remaining_s(memory, workload, job, 0) / duration_s : 1;
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    survival *self = memory;
    size_t tallies[] = {sc_width_of(workload->jobs[job].gpus), ALL};
    for (size_t i = 0; i < 2; i++) {
        self->tallies[tallies[i]].sum_s[class_of(duration_s)] += duration_s;
        self->tallies[tallies[i]].count[class_of(duration_s)]++;
    }
}

mdot_status sc_estimator_make_survival(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    survival *self = calloc(1, sizeof *self);
    if (self == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out_estimator =
        (sc_estimator){.factor = factor, .learn = learn, .remaining_s = remaining_s, .destroy = free, .self = self};
    return MDOT_OK;
}
