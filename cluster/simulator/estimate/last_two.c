/* last_two.c — the estimate of Tsafrir, Etsion and Feitelson (IEEE TPDS 2007): the mean of the same user's last two
 * completed jobs. */
#include "simulator/estimate/estimators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    double last_s, before_s; /* 0: there is none */
} pair;

typedef struct last_two {
    uint32_t *user; /* of each job */
    pair *users;
    pair all;
} last_two;

static void destroy(void *memory)
{
    last_two *self = memory;
    if (self == NULL) return;
    free(self->user);
    free(self->users);
    free(self);
}

static double mean_s(const pair *p) { return p->before_s > 0 ? (p->last_s + p->before_s) / 2 : p->last_s; }

static double factor(void *memory, const sc_workload *workload, uint32_t job, double duration_s)
{
    const last_two *self = memory;
    const pair *known = &self->users[self->user[job]];
    if (known->last_s == 0) known = &self->all;
    double predicted_s = known->last_s > 0 ? mean_s(known) : 3600;
    return fmax(predicted_s, 1) / fmax(duration_s, 1);
}

static void learn(void *memory, const sc_workload *workload, uint32_t job, double duration_s, double now_s)
{
    last_two *self = memory;
    pair *const known[] = {&self->users[self->user[job]], &self->all};
    for (size_t i = 0; i < 2; i++) *known[i] = (pair){.last_s = fmax(duration_s, 1), .before_s = known[i]->last_s};
}

typedef struct entry {
    const char *user;
    uint32_t job;
} entry;

static int by_user(const void *a, const void *b) { return strcmp(((const entry *)a)->user, ((const entry *)b)->user); }

mdot_status sc_estimator_make_last_two(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count;
    last_two *self = calloc(1, sizeof *self);
    entry *entries = calloc(count + 1, sizeof *entries);
    if (self != NULL) {
        self->user = calloc(count + 1, sizeof *self->user);
        self->users = calloc(count + 1, sizeof *self->users);
    }
    if (self == NULL || entries == NULL || self->user == NULL || self->users == NULL) {
        destroy(self);
        free(entries);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        const sc_job *job = &workload->jobs[i];
        const char *user = job->user != NULL ? job->user : job->group;
        entries[i] = (entry){.user = user != NULL ? user : "", .job = (uint32_t)i};
    }
    qsort(entries, count, sizeof *entries, by_user);
    uint32_t user = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && by_user(&entries[i], &entries[i - 1]) != 0) user++;
        self->user[entries[i].job] = user;
    }
    free(entries);
    *out_estimator = (sc_estimator){.factor = factor, .learn = learn, .destroy = destroy, .self = self};
    return MDOT_OK;
}
