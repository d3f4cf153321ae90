/* naive_pool.c — a direct implementation of the baseline policies. */
#include "tests/simulator/support/naive_pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 512, LEVELS = 3 };
static const double limits[LEVELS] = {3250, 7200, INFINITY};

typedef struct state {
    double remaining, executed, attained;
    bool running, done, started;
    int level;
} state;

typedef struct naive {
    const sc_workload *workload;
    const char *policy;
    const double *factors;
    sc_errors errors;
    int gpus;
    state states[MOST];
    size_t list[LEVELS][MOST], count[LEVELS]; /* jobs that have arrived and are incomplete; only dlas uses several
                                               * lists */
    size_t arrived, done;
    double now;
    naive_job *out;
} naive;

static bool is(const naive *n, const char *policy) { return strcmp(n->policy, policy) == 0; }

static double predicted(const naive *n, size_t job)
{
    double factor = n->factors != NULL ? n->factors[job] : 1;
    const state *s = &n->states[job];
    if (n->errors == SC_ERRORS_TOTAL) return fmax(0, factor * n->workload->jobs[job].work - s->executed);
    return factor * s->remaining;
}

static double key(const naive *n, size_t job)
{
    int gpus = n->workload->jobs[job].gpus;
    double factor = n->factors != NULL ? n->factors[job] : 1;
    if (is(n, "srtf")) return predicted(n, job);
    if (is(n, "srsf")) return predicted(n, job) * gpus;
    if (is(n, "las")) return n->states[job].attained;
    if (is(n, "qssf")) return factor * n->workload->jobs[job].work * gpus;
    return 0;
}

static void sort(naive *n, size_t level)
{
    size_t *list = n->list[level];
    for (size_t i = 1; i < n->count[level]; i++) {
        size_t job = list[i], j = i;
        for (; j > 0 && key(n, list[j - 1]) > key(n, job); j--) list[j] = list[j - 1];
        list[j] = job;
    }
}

static void drop(naive *n, size_t level, size_t job)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->count[level]; i++)
        if (n->list[level][i] != job) n->list[level][kept++] = n->list[level][i];
    n->count[level] = kept;
}

static void advance(naive *n, double end)
{
    for (size_t i = 0; i < n->workload->job_count; i++) {
        state *s = &n->states[i];
        if (!s->running) continue;
        s->remaining -= end - n->now;
        s->executed += end - n->now;
        s->attained += (end - n->now) * n->workload->jobs[i].gpus;
    }
    n->now = end;
    for (size_t i = 0; i < n->workload->job_count; i++) {
        state *s = &n->states[i];
        if (!s->running || s->remaining > 0) continue;
        s->running = false;
        s->done = true;
        drop(n, (size_t)s->level, i);
        n->out[i].end_s = n->now;
        n->done++;
    }
    while (n->arrived < n->workload->job_count && n->workload->jobs[n->arrived].submit_s <= n->now)
        n->list[0][n->count[0]++] = n->arrived++;
}

static void demote(naive *n)
{
    for (size_t i = 0; i < n->arrived; i++) {
        state *s = &n->states[i];
        if (!s->running || s->attained < limits[s->level]) continue;
        drop(n, (size_t)s->level, i);
        s->level++;
        n->list[s->level][n->count[s->level]++] = i;
    }
}

/* Moves running jobs to the front. Both parts keep their order. */
static void partition(naive *n, size_t level)
{
    size_t sorted[MOST], count = 0;
    for (int running = 1; running >= 0; running--)
        for (size_t i = 0; i < n->count[level]; i++)
            if (n->states[n->list[level][i]].running == running) sorted[count++] = n->list[level][i];
    memcpy(n->list[level], sorted, count * sizeof *sorted);
}

static void schedule(naive *n)
{
    bool keeps = is(n, "fifo") || is(n, "fjf") || is(n, "qssf"), waits = is(n, "fifo") || is(n, "qssf");
    bool was_running[MOST], blocked = false;
    int left = n->gpus;
    if (is(n, "dlas"))
        demote(n);
    else
        sort(n, 0);
    for (size_t i = 0; i < n->arrived; i++) {
        was_running[i] = n->states[i].running;
        if (keeps && was_running[i]) left -= n->workload->jobs[i].gpus;
        if (!keeps) n->states[i].running = false;
    }
    for (size_t level = 0; level < LEVELS; level++) {
        for (size_t i = 0; i < n->count[level] && !blocked; i++) {
            size_t job = n->list[level][i];
            state *s = &n->states[job];
            if (s->running) continue;
            if (n->workload->jobs[job].gpus > left) {
                blocked = waits;
                continue;
            }
            left -= n->workload->jobs[job].gpus;
            s->running = true;
            if (!s->started) n->out[job].start_s = n->now;
            s->started = true;
        }
        if (is(n, "dlas")) partition(n, level);
    }
    for (size_t i = 0; i < n->arrived; i++)
        n->out[i].preemptions += was_running[i] && !n->states[i].running && !n->states[i].done;
}

static double next_event(const naive *n)
{
    double successor = n->arrived < n->workload->job_count ? n->workload->jobs[n->arrived].submit_s : INFINITY;
    bool waits = false;
    for (size_t i = 0; i < n->arrived; i++) {
        const state *s = &n->states[i];
        waits |= !s->running && !s->done;
        if (!s->running) continue;
        successor = fmin(successor, n->now + s->remaining);
        if (is(n, "dlas") && s->level + 1 < LEVELS)
            successor = fmin(successor, n->now + ceil((limits[s->level] - s->attained) / n->workload->jobs[i].gpus));
    }
    return is(n, "las") && waits ? fmin(successor, n->now + 60) : successor;
}

void naive_simulate(const sc_workload *workload, int gpus, const char *policy, const double *factors, sc_errors errors,
                    naive_job *out_jobs)
{
    naive *n = calloc(1, sizeof *n);
    assert_non_null(n);
    assert_true(workload->job_count <= MOST);
    memset(out_jobs, 0, workload->job_count * sizeof *out_jobs);
    *n = (naive){
        .workload = workload, .policy = policy, .factors = factors, .errors = errors, .gpus = gpus, .out = out_jobs};
    for (size_t i = 0; i < workload->job_count; i++) n->states[i].remaining = workload->jobs[i].work;
    while (n->done < workload->job_count) {
        double successor = next_event(n);
        assert_true(isfinite(successor));
        advance(n, successor);
        schedule(n);
    }
    free(n);
}
