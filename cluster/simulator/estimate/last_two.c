/* last_two.c — the estimate of Tsafrir, Etsion and Feitelson (IEEE TPDS 2007): the mean of the same user's last two
 * completed jobs. */
#include "base/status.h"
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

static const char *user_of(const void *job)
{
    const sc_job *j = *(const sc_job *const *)job;
    return j->user != NULL ? j->user : j->group != NULL ? j->group : "";
}

static int by_user(const void *a, const void *b) { return strcmp(user_of(a), user_of(b)); }

mdot_status sc_estimator_make_last_two(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err)
{
    size_t count = workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(last_two, user, count), SC_ARRAY(last_two, users, count)};
    void *self;
    BS_TRY(SC_STATE(last_two, arrays, &self, err));
    mdot_status status = sc_number_classes(workload, by_user, ((last_two *)self)->user, err);
    if (status == MDOT_OK)
        *out_estimator = (sc_estimator){.factor = factor, .learn = learn, .destroy = free, .self = self};
    else
        free(self);
    return status;
}
