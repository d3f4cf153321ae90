/* outlook.c — runs jobs ahead of time, event by event. */
#include "simulator/policy/allocation.h"

#include <math.h>

double sc_lease_s(const sc_view *view)
{
    double lease_s = fmin(fmax(20 * sc_restart_s(view->restart, 1, false), 60), 1200);
    return fmax(lease_s, 2 * sc_restart_s(view->restart, view->cluster->gpus, false));
}

double sc_lease_end_s(double now_s, double lease_s)
{
    return lease_s > 0 ? (floor(now_s / lease_s) + 1) * lease_s : now_s;
}

sc_outlook_job sc_outlook_of(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    int gpus = view->workload->jobs[job].gpus;
    double fastest = 0;
    sc_outlook_job result = {.job = job,
                             .runs = state->phase == SC_RUNNING,
                             .is_new = !isfinite(state->start_s),
                             .type = state->type,
                             .deadline_s = view->workload->jobs[job].deadline_s};
    result.left_s = sc_view_left_s(view, job) + (result.runs ? fmax(0, state->busy_s - view->now_s) : 0);
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        result.rate[type] = sc_estimate_speed(view->estimate, job, type, gpus);
        fastest = fmax(fastest, result.rate[type]);
    }
    for (unsigned type = 0; type < view->cluster->type_count; type++) result.rate[type] /= fastest;
    return result;
}

/* Lets jobs that hold no GPUs take free ones. Returns whether one still waits. */
static bool fill(const sc_view *view, sc_outlook_job *jobs, size_t count)
{
    int left[SC_MAX_TYPES];
    bool waits = false;
    for (unsigned type = 0; type < view->cluster->type_count; type++) left[type] = view->cluster->types[type].gpus;
    for (size_t i = 0; i < count; i++)
        if (jobs[i].holds) left[jobs[i].type] -= view->workload->jobs[jobs[i].job].gpus;
    for (size_t i = 0; i < count; i++) {
        sc_outlook_job *j = &jobs[i];
        int gpus = view->workload->jobs[j->job].gpus;
        if (j->holds) continue;
        double best = 0;
        unsigned before = j->type;
        for (unsigned type = 0; type < view->cluster->type_count; type++) {
            bool stays = j->runs && type == before && j->rate[type] == best;
            if (gpus > left[type] || j->rate[type] == 0 || (j->rate[type] <= best && !stays)) continue;
            best = j->rate[type];
            j->type = type;
        }
        j->holds = best > 0;
        if (j->holds) left[j->type] -= gpus;
        if (j->holds && (!j->runs || j->type != before))
            j->left_s += best * sc_restart_s(view->restart, gpus, j->is_new);
        j->runs = j->holds;
        j->is_new &= !j->holds;
        waits |= !j->holds;
    }
    return waits;
}

bool sc_outlook_meets(const sc_view *view, sc_outlook_job *jobs, size_t count, double lease_s, double lease_end_s)
{
    double now_s = view->now_s;
    while (count > 0) {
        bool is_lease_end = now_s >= lease_end_s, waits, others_hold = false;
        for (size_t i = 0; i < count; i++) jobs[i].holds &= !is_lease_end;
        if (is_lease_end) lease_end_s = sc_lease_end_s(now_s, lease_s);
        waits = fill(view, jobs, count);
        double span_s = INFINITY;
        for (size_t i = 0; i < count; i++) {
            if (jobs[i].holds) span_s = fmin(span_s, jobs[i].left_s / jobs[i].rate[jobs[i].type]);
            others_hold |= jobs[i].holds && jobs[i].deadline_s == INFINITY;
        }
        bool wakes = lease_s > 0 && waits && (!is_lease_end || others_hold) && lease_end_s - now_s < span_s;
        if (wakes) span_s = lease_end_s - now_s;
        if (span_s == INFINITY) return false;
        now_s = wakes ? lease_end_s : now_s + span_s;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            sc_outlook_job *j = &jobs[i];
            if (j->holds) j->left_s -= span_s * j->rate[j->type];
            bool ends = j->holds && j->left_s <= 1e-9;
            if (now_s + (ends ? 0 : j->left_s) > j->deadline_s) return false;
            if (!ends) jobs[kept++] = *j;
        }
        count = kept;
    }
    return true;
}
