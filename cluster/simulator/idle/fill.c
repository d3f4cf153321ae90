/* fill.c — places jobs into windows. A heap holds the windows by the time at which they can next take a job: when
 * they open, or when the job in them ends. */
#include "base/status.h"
#include "simulator/idle/idle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sc_idle_rule_names[SC_IDLE_RULES] = {"upper", "first-fit", "oracle"};

enum { NO_JOB = 0xffffffff };

typedef struct slot {
    double at_s, to_s; /* can take a job from at_s on */
    uint32_t job;      /* job that ends, or is cut off, at at_s; NO_JOB */
} slot;

typedef struct filling {
    const sc_workload *workload;
    double *needed_s; /* time that the rule expects for each job */
    slot *heap;
    size_t heap_count;
    uint32_t *next, first, last; /* linked list of waiting jobs */
    size_t arrived;
    sc_idle_result result;
} filling;

/* At equal times, windows with a cut-off job come first, so other windows may take that job. */
static bool is_before(const slot *a, const slot *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->job != NO_JOB && b->job == NO_JOB);
}

static void sift_down(filling *f)
{
    for (size_t i = 0;;) {
        size_t minimum = i, left = 2 * i + 1;
        for (size_t child = left; child <= left + 1 && child < f->heap_count; child++)
            if (is_before(&f->heap[child], &f->heap[minimum])) minimum = child;
        if (minimum == i) return;
        slot moved = f->heap[i];
        f->heap[i] = f->heap[minimum];
        f->heap[minimum] = moved;
        i = minimum;
    }
}

static void append(filling *f, uint32_t job)
{
    f->next[job] = NO_JOB;
    if (f->first == NO_JOB)
        f->first = job;
    else
        f->next[f->last] = job;
    f->last = job;
}

/* Removes and returns the first waiting job that fits into so many seconds; NO_JOB if there is none. */
static uint32_t take(filling *f, double left_s)
{
    uint32_t before = NO_JOB;
    for (uint32_t job = f->first; job != NO_JOB; before = job, job = f->next[job]) {
        if (f->needed_s[job] > left_s) continue;
        if (before == NO_JOB)
            f->first = f->next[job];
        else
            f->next[before] = f->next[job];
        if (f->last == job) f->last = before;
        return job;
    }
    return NO_JOB;
}

/* Returns the time at which another job will wait, because it arrives or is cut off; INFINITY: never. */
static double next_waiting_s(const filling *f)
{
    double next_s = f->arrived < f->workload->job_count ? f->workload->jobs[f->arrived].submit_s : INFINITY;
    for (size_t i = 0; i < f->heap_count; i++)
        if (f->heap[i].job != NO_JOB) next_s = fmin(next_s, f->heap[i].at_s);
    return next_s;
}

/* Ends the activity in a window and begins the next one. */
static void turn(filling *f, slot *s)
{
    double now_s = s->at_s;
    const sc_job *jobs = f->workload->jobs;
    while (f->arrived < f->workload->job_count && jobs[f->arrived].submit_s <= now_s) append(f, (uint32_t)f->arrived++);
    s->job = take(f, s->to_s - now_s);
    if (s->job != NO_JOB) {
        double work_s = jobs[s->job].work;
        if (now_s + work_s <= s->to_s) {
            f->result.ended++;
            f->result.used_gpu_h += work_s / 3600;
            s->at_s = now_s + work_s;
            s->job = NO_JOB;
        } else {
            f->result.cut_off++;
            f->result.lost_gpu_h += (s->to_s - now_s) / 3600;
            s->at_s = s->to_s; /* the window waits again from then on */
        }
    } else {
        s->at_s = next_waiting_s(f);
    }
}

static void run(filling *f)
{
    while (f->heap_count > 0) {
        slot *s = &f->heap[0];
        if (s->job != NO_JOB) append(f, s->job);
        s->job = NO_JOB;
        if (s->at_s < s->to_s) turn(f, s);
        if (s->job == NO_JOB && s->at_s >= s->to_s) f->heap[0] = f->heap[--f->heap_count];
        sift_down(f);
    }
}

mdot_status sc_fill_idle_windows(const sc_workload *workload, const sc_idle_windows *windows, sc_idle_rule rule,
                                 const double *predicted_s, sc_idle_result *out_result, mdot_error *err)
{
    size_t jobs = workload->job_count;
    const sc_array arrays[] = {SC_ARRAY(filling, needed_s, jobs + 1), SC_ARRAY(filling, heap, windows->count + 1),
                               SC_ARRAY(filling, next, jobs + 1)};
    void *memory;
    mdot_status status = MDOT_OK;
    BS_TRY(SC_STATE(filling, arrays, &memory, err));
    filling *f = memory;
    f->workload = workload;
    f->heap_count = windows->count;
    f->first = f->last = NO_JOB;
    for (size_t i = 0; status == MDOT_OK && i < jobs; i++) {
        if (workload->jobs[i].gpus != 1 || workload->jobs[i].kind != SC_NONE)
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT,
                               "idle windows are single GPUs, and jobs have a duration: job %s has %d GPUs",
                               workload->jobs[i].id, workload->jobs[i].gpus);
        f->needed_s[i] = rule == SC_IDLE_ORACLE ? workload->jobs[i].work : rule == SC_IDLE_UPPER ? predicted_s[i] : 0;
    }
    if (status == MDOT_OK) {
        for (size_t i = 0; i < windows->count; i++) { /* sorted by start time, hence a valid heap */
            f->heap[i] = (slot){windows->items[i].from_s, windows->items[i].to_s, NO_JOB};
            f->result.idle_gpu_h += (windows->items[i].to_s - windows->items[i].from_s) / 3600;
        }
        run(f);
        *out_result = f->result;
    }
    free(f);
    return status;
}
