/* reservation.c — a job's progress through slots with given GPUs. */
#include "simulator/policy/reservation.h"
#include "simulator/policy/adaptive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 1 << 22 }; /* eight years */

void sc_free_slots_reset(sc_free_slots *free_slots, int gpus)
{
    free_slots->count = 0;
    free_slots->gpus = gpus;
}

void sc_free_slots_destroy(sc_free_slots *free_slots)
{
    free(free_slots->left);
    *free_slots = (sc_free_slots){0};
}

static int free_gpus_in(const sc_free_slots *free_slots, size_t slot)
{
    return slot < free_slots->count ? free_slots->left[slot] : free_slots->gpus;
}

static mdot_status reach(sc_free_slots *free_slots, size_t slots, mdot_error *err)
{
    if (slots > free_slots->capacity) {
        size_t capacity = slots + slots / 2;
        int *left = realloc(free_slots->left, capacity * sizeof *left);
        if (left == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        free_slots->left = left;
        free_slots->capacity = capacity;
    }
    for (; free_slots->count < slots; free_slots->count++) free_slots->left[free_slots->count] = free_slots->gpus;
    return MDOT_OK;
}

mdot_status sc_free_slots_reserve(sc_free_slots *free_slots, const sc_reservation *plan, mdot_error *err)
{
    size_t slots = plan->count - plan->first;
    mdot_status status = reach(free_slots, slots, err);
    for (size_t i = 0; status == MDOT_OK && i < slots; i++) free_slots->left[i] -= plan->gpus[plan->first + i];
    return status;
}

void sc_reservation_free(sc_reservation *plan)
{
    free(plan->gpus);
    *plan = (sc_reservation){0};
}

void sc_reservation_shift(sc_reservation *plan, size_t slots)
{
    plan->first = plan->count - plan->first > slots ? plan->first + slots : plan->count;
}

int sc_reservation_width(const sc_reservation *plan) { return plan->first < plan->count ? plan->gpus[plan->first] : 0; }

/* Predicted work per second on as few nodes as possible. */
static double speed_on(const sc_view *view, uint32_t job, int gpus)
{
    double batch;
    return sc_goodput(view, job, 0, gpus, false, &batch);
}

int sc_reservation_next_width(const sc_view *view, uint32_t job, int width)
{
    const sc_job *j = &view->workload->jobs[job];
    double present = width > 0 ? speed_on(view, job, width) : 0;
    for (int successor = 1; successor <= view->cluster->types[0].gpus && sc_width_of(successor) < SC_WIDTHS;
         successor *= 2)
        if (successor > width && speed_on(view, job, successor) > present) return successor;
    return width == 0 && speed_on(view, job, j->gpus) > 0 ? j->gpus : 0;
}

typedef struct walk {
    const sc_view *view;
    uint32_t job;
    double at_s, remaining, busy_s; /* busy_s: remaining seconds of restoring state */
    double gpu_s, end_s;
    int width;
    double speed; /* on so many GPUs */
    bool has_run;
} walk;

static walk begin_walk(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    bool runs = state->phase == SC_RUNNING;
    return (walk){.view = view,
                  .job = job,
                  .at_s = view->now_s,
                  .remaining = sc_view_planned_work(view, job),
                  .busy_s = runs ? fmax(0, state->busy_s - view->now_s) : 0,
                  .end_s = INFINITY,
                  .width = runs ? state->gpus : 0,
                  .speed = runs ? speed_on(view, job, state->gpus) : 0,
                  .has_run = isfinite(state->start_s)};
}

/* Advances by `span_s` seconds on so many GPUs; true if the job ends within them. */
static bool step(walk *w, int width, double span_s)
{
    if (width != w->width) {
        w->busy_s = width > 0 ? sc_restart_s(w->view->restart, width, !w->has_run) : 0;
        w->width = width;
        w->speed = width > 0 ? speed_on(w->view, w->job, width) : 0;
    }
    if (width > 0) {
        double needed_s = w->busy_s + w->remaining / w->speed;
        w->has_run = true;
        if (needed_s <= span_s) {
            w->end_s = w->at_s + needed_s;
            w->gpu_s += needed_s * width;
            return true;
        }
        w->remaining -= fmax(0, span_s - w->busy_s) * w->speed;
        w->busy_s = fmax(0, w->busy_s - span_s);
        w->gpu_s += span_s * width;
    }
    w->at_s += span_s;
    return false;
}

/* Returns the job's greatest width up to `most` and `level`. */
static int widest(const sc_view *view, uint32_t job, int level, int maximum)
{
    int width = 0;
    for (int successor;
         (successor = sc_reservation_next_width(view, job, width)) != 0 && successor <= level && successor <= maximum;)
        width = successor;
    return width;
}

/* Returns the slots until the job ends with a level's widths; 0 if the deadline comes first. */
static size_t slots_at(const sc_view *view, uint32_t job, const sc_free_slots *free_slots, int level)
{
    walk w = begin_walk(view, job);
    double deadline_s = view->workload->jobs[job].deadline_s;
    int free_gpus = -1, width = 0; /* of the slot before: neighbours are mostly equal */
    for (size_t slot = 0; slot < MAX_SLOTS && w.at_s < deadline_s; slot++) {
        int gpus = free_gpus_in(free_slots, slot);
        if (gpus != free_gpus) width = widest(view, job, level, free_gpus = gpus);
        if (step(&w, width, SC_SLOT_S)) return w.end_s <= deadline_s ? slot + 1 : 0;
    }
    return 0;
}

mdot_status sc_reservation_make(const sc_view *view, uint32_t job, sc_free_slots *free_slots, sc_reservation *out_plan,
                                bool *out_fits, mdot_error *err)
{
    size_t slots = 0;
    int level = 0;
    while (slots == 0 && (level = sc_reservation_next_width(view, job, level)) != 0)
        slots = slots_at(view, job, free_slots, level);
    *out_fits = slots > 0;
    if (slots == 0) return MDOT_OK;
    sc_reservation plan = {.gpus = calloc(slots, sizeof *plan.gpus), .count = slots};
    if (plan.gpus == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < slots; i++) plan.gpus[i] = widest(view, job, level, free_gpus_in(free_slots, i));
    mdot_status status = sc_free_slots_reserve(free_slots, &plan, err);
    if (status == MDOT_OK)
        *out_plan = plan;
    else
        sc_reservation_free(&plan);
    return status;
}

sc_outcome sc_reservation_outcome(const sc_view *view, uint32_t job, const sc_reservation *plan, int width)
{
    walk w = begin_walk(view, job);
    if (!step(&w, width, SC_SLOT_S)) {
        size_t slots = plan->count - plan->first;
        for (size_t i = 1; i < slots; i++)
            if (step(&w, plan->gpus[plan->first + i], SC_SLOT_S)) return (sc_outcome){w.end_s, w.gpu_s};
        if (w.width > 0) step(&w, w.width, INFINITY);
    }
    return (sc_outcome){w.end_s, w.gpu_s};
}
