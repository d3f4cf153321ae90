/* scheduler_loop.c — the loop of a scheduler that places jobs by predictions. Jobs are encoded when they arrive. Each
 * round predicts every waiting job on every GPU model that has a free GPU, and starts the job that ends first. The
 * program needs libmdot alone. Time is simulated: a job takes the predicted median.
 *
 *     scheduler_loop PREDICTOR.mdot GPU=COUNT[,GPU=COUNT…] JOB.job=BATCH=STEPS...
 */
#include "mdot/mdot.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_JOBS = 64, MAX_POOLS = 8, MS_PER_HOUR = 3600000 };

typedef struct pool { /* GPUs of one model */
    const char *gpu;
    int free_count;
} pool;

typedef struct waiting_job {
    const char *name;
    mdot_job *job;
    mdot_encoding *encoding; /* made once, used in every round */
    int64_t batch;
    double steps;
    int pool; /* of a running job; -1: it waits */
    double end_hours;
    bool is_done;
} waiting_job;

typedef struct choice {
    int job, pool;
    double hours, limit_hours;
} choice;

static void fail(const char *subject, const char *reason)
{
    fprintf(stderr, "scheduler_loop: %s: %s\n", subject, reason);
    exit(EXIT_FAILURE);
}

static int read_pools(char *text, pool pools[])
{
    int count = 0;
    for (char *part = strtok(text, ","); part != NULL; part = strtok(NULL, ","), count++) {
        char *equals = strchr(part, '=');
        if (equals == NULL || atoi(equals + 1) < 1) fail(part, "expected GPU=COUNT");
        if (count == MAX_POOLS) fail(part, "the program holds 8 GPU models");
        *equals = '\0';
        pools[count] = (pool){part, atoi(equals + 1)};
    }
    return count;
}

static waiting_job read_job(mdot_context *context, char *text)
{
    mdot_error err = {0};
    waiting_job read = {.name = text, .pool = -1};
    char *equals = strchr(text, '='), *steps = equals != NULL ? strchr(equals + 1, '=') : NULL;
    if (steps == NULL) fail(text, "expected JOB.job=BATCH=STEPS");
    *equals = '\0';
    read.batch = strtoll(equals + 1, NULL, 10);
    read.steps = atof(steps + 1);
    if (mdot_job_load(text, &read.job, &err) != MDOT_OK ||
        mdot_encoding_create(context, read.job, &read.encoding, &err) != MDOT_OK)
        fail(text, err.message);
    return read;
}

/* Returns the waiting job and the free GPU that end first, or a choice whose job is -1. */
static choice choose(mdot_context *context, const waiting_job *jobs, int job_count, const pool *pools, int pool_count)
{
    choice best = {-1, -1, 0, 0};
    for (int i = 0; i < job_count; i++) {
        if (jobs[i].pool >= 0 || jobs[i].is_done) continue;
        mdot_configuration configurations[MAX_POOLS];
        mdot_prediction answers[MAX_POOLS];
        mdot_error err = {0};
        for (int p = 0; p < pool_count; p++) {
            configurations[p] = (mdot_configuration){.struct_size = sizeof configurations[p],
                                                     .batch = jobs[i].batch,
                                                     .gpu = pools[p].gpu,
                                                     .precision = MDOT_PRECISION_AMP};
            answers[p] = MDOT_INIT(mdot_prediction);
        }
        if (mdot_evaluate(context, jobs[i].encoding, configurations, (size_t)pool_count, answers, &err) != MDOT_OK)
            fail(jobs[i].name, err.message); /* names the wrong argument, for example the GPU */
        for (int p = 0; p < pool_count; p++) {
            double hours = jobs[i].steps * answers[p].step_ms / MS_PER_HOUR;
            if (!answers[p].fits || pools[p].free_count == 0) continue;
            if (best.job < 0 || hours < best.hours)
                best = (choice){i, p, hours, jobs[i].steps * answers[p].upper_ms / MS_PER_HOUR};
        }
    }
    return best;
}

static void start_jobs(mdot_context *context, waiting_job *jobs, int job_count, pool *pools, int pool_count, double now)
{
    for (choice c; (c = choose(context, jobs, job_count, pools, pool_count)).job >= 0;) {
        jobs[c.job].pool = c.pool;
        jobs[c.job].end_hours = now + c.hours;
        pools[c.pool].free_count--;
        printf("%5.1f h  starts  %s on %s, for %.1f h, time limit %.1f h\n", now, jobs[c.job].name, pools[c.pool].gpu,
               c.hours, c.limit_hours);
    }
}

/* Ends the running job that ends first, and returns its index; -1 if none runs. */
static int end_next(waiting_job *jobs, int job_count, pool *pools)
{
    int next = -1;
    for (int i = 0; i < job_count; i++)
        if (jobs[i].pool >= 0 && (next < 0 || jobs[i].end_hours < jobs[next].end_hours)) next = i;
    if (next >= 0) {
        pools[jobs[next].pool].free_count++;
        jobs[next].pool = -1;
        jobs[next].is_done = true;
    }
    return next;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > MAX_JOBS + 3)
        return fprintf(stderr, "usage: scheduler_loop PREDICTOR.mdot GPU=COUNT,… JOB.job=BATCH=STEPS...\n"), 2;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL; /* one for each thread that predicts */
    mdot_error err = {0};
    if (mdot_predictor_open(argv[1], NULL, &predictor, &err) != MDOT_OK) fail(argv[1], err.message);
    if (mdot_context_create(predictor, &context, &err) != MDOT_OK) fail(argv[1], err.message);
    pool pools[MAX_POOLS];
    waiting_job jobs[MAX_JOBS];
    int pool_count = read_pools(argv[2], pools), job_count = argc - 3;
    for (int i = 0; i < job_count; i++) jobs[i] = read_job(context, argv[3 + i]);

    double now = 0;
    int ended;
    do { /* a round whenever a job has ended */
        start_jobs(context, jobs, job_count, pools, pool_count, now);
        ended = end_next(jobs, job_count, pools);
        if (ended >= 0) {
            now = jobs[ended].end_hours;
            printf("%5.1f h  ends    %s\n", now, jobs[ended].name);
        }
    } while (ended >= 0);
    for (int i = 0; i < job_count; i++) {
        if (!jobs[i].is_done) printf("%s fits no GPU\n", jobs[i].name);
        mdot_encoding_destroy(jobs[i].encoding); /* before the job, which it borrows */
        mdot_job_destroy(jobs[i].job);
    }
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return 0;
}
