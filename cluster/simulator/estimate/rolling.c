/* rolling.c — the mean duration of similar jobs.
 *
 * This is the rolling estimate of Helios (Hu et al., SC 2021) without its trees: the mean over completed jobs of the
 * same group (user or name) and width, falling back to the group and then to all jobs. It learns while the simulation
 * runs.
 */
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

static void destroy(void *memory)
{
    rolling *self = memory;
    if (self == NULL) return;
    free(self->group);
    free(self->class_of);
    free(self->groups);
    free(self->classes);
    free(self);
}

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

typedef struct entry {
    const char *group;
    int gpus;
    uint32_t job;
} entry;

static int by_group(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->group, y->group);
    return order != 0 ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

mdot_status sc_estimator_make_rolling(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count;
    rolling *self = calloc(1, sizeof *self);
    entry *entries = calloc(count + 1, sizeof *entries);
    if (self != NULL) {
        self->group = calloc(count + 1, sizeof *self->group);
        self->class_of = calloc(count + 1, sizeof *self->class_of);
        self->groups = calloc(count + 1, sizeof *self->groups);
        self->classes = calloc(count + 1, sizeof *self->classes);
    }
    if (self == NULL || entries == NULL || self->group == NULL || self->class_of == NULL || self->groups == NULL ||
        self->classes == NULL) {
        destroy(self);
        free(entries);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        const sc_job *job = &workload->jobs[i];
        entries[i] = (entry){.group = job->group != NULL ? job->group : "", .gpus = job->gpus, .job = (uint32_t)i};
    }
    qsort(entries, count, sizeof *entries, by_group);
    uint32_t group = 0, class = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(entries[i].group, entries[i - 1].group) != 0) group++;
        if (i > 0 && by_group(&entries[i], &entries[i - 1]) != 0) class ++;
        self->group[entries[i].job] = group;
        self->class_of[entries[i].job] = class;
    }
    free(entries);
    *out_estimator = (sc_estimator){.factor = factor, .learn = learn, .destroy = destroy, .self = self};
    return MDOT_OK;
}
