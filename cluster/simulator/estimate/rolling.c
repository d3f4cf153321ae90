/* rolling.c — the mean duration of similar jobs.
 *
 * This is the rolling estimate of Helios (Hu et al., SC 2021) without its trees: the mean over completed jobs of the
 * same group (user or name) and width, falling back to the group and then to all jobs. It learns while the simulation
 * runs.
 */
#include "base/status.h"
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
    double sum_s;
    size_t count;
} tally;

typedef struct rolling {
    uint32_t *group, *class_of; /* per job: group, and group with width */
    tally *groups, *classes;
    tally all;
} rolling;

static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    const rolling *self = memory;
    const tally *known = &self->classes[self->class_of[job]];
    if (known->count == 0) known = &self->groups[self->group[job]];
    if (known->count == 0) known = &self->all;
    double predicted_s = known->count > 0 ? known->sum_s / (double)known->count : 3600;
    return fmax(predicted_s, 1) / fmax(duration_s, 1);
}

static void add(tally *target, double duration_s)
{
    target->sum_s += duration_s;
    target->count++;
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    rolling *self = memory;
    add(&self->classes[self->class_of[job]], duration_s);
    add(&self->groups[self->group[job]], duration_s);
    add(&self->all, duration_s);
}

static const char *group_of(const void *job)
{
    const char *group = (*(const sc_job *const *)job)->group;
    return group != NULL ? group : "";
}

static int by_group(const void *a, const void *b) { return strcmp(group_of(a), group_of(b)); }

static int by_class(const void *a, const void *b)
{
    const sc_job *x = *(const sc_job *const *)a, *y = *(const sc_job *const *)b;
    int order = by_group(a, b);
    return order != 0 ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

mdot_status sc_number_classes(const sc_workload *workload, int (*compare)(const void *, const void *),
                              uint32_t *out_numbers, mdot_error *err)
{
    uint32_t number = 0;
    const sc_job **jobs = calloc(workload->job_count + 1, sizeof *jobs);
    if (jobs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < workload->job_count; i++) jobs[i] = &workload->jobs[i];
    qsort(jobs, workload->job_count, sizeof *jobs, compare);
    for (size_t i = 0; i < workload->job_count; i++) {
        number += i > 0 && compare(&jobs[i], &jobs[i - 1]) != 0;
        out_numbers[jobs[i] - workload->jobs] = number;
    }
    free(jobs);
    return MDOT_OK;
}

mdot_status sc_estimator_make_rolling(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(rolling, group, count), SC_ARRAY(rolling, class_of, count),
                               SC_ARRAY(rolling, groups, count), SC_ARRAY(rolling, classes, count)};
    void *self;
    BS_TRY(SC_STATE(rolling, arrays, &self, err));
    mdot_status status = sc_number_classes(workload, by_group, ((rolling *)self)->group, err);
    if (status == MDOT_OK) status = sc_number_classes(workload, by_class, ((rolling *)self)->class_of, err);
    if (status == MDOT_OK)
        *out_estimator = (sc_estimator){.factor = factor, .learn = learn, .destroy = free, .self = self};
    else
        free(self);
    return status;
}
