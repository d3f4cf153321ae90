/* reservation.h — GPUs guaranteed to a job in future slots: ElasticFlow's plans.
 *
 * Slots count from the current one. The plan follows work, restarts and deadlines slot by slot, with the policy's
 * estimated speeds and the simulator's restart costs. */
#ifndef SC_RESERVATION_H
#define SC_RESERVATION_H

#include "simulator/core/policy.h"

#define SC_SLOT_S 60. /* the paper's value */

typedef struct sc_reservation { /* all zero: empty */
    int *gpus;                  /* GPUs in each slot; 0 behind the last */
    size_t count, first;        /* all slots, and those that have passed */
} sc_reservation;

/* GPUs that are free of plans, slot by slot; all GPUs are free behind the last slot. */
typedef struct sc_free_slots {
    int *left;
    size_t count, capacity;
    int gpus;
} sc_free_slots;

void sc_free_slots_reset(sc_free_slots *free_slots, int gpus);
void sc_free_slots_destroy(sc_free_slots *free_slots);
mdot_status sc_free_slots_reserve(sc_free_slots *free_slots, const sc_reservation *plan, mdot_error *err);

/* Finds the smallest width that meets the deadline, and takes the GPUs from `free_slots`. If there is none, *out_fits
 * is false and `free_slots` stays as it was. */
mdot_status sc_reservation_make(const sc_view *view, uint32_t job, sc_free_slots *free_slots, sc_reservation *out_plan,
                                bool *out_fits, mdot_error *err);
void sc_reservation_free(sc_reservation *plan);
void sc_reservation_shift(sc_reservation *plan, size_t slots);
/* Returns the GPUs in the current slot. */
int sc_reservation_width(const sc_reservation *plan);

/* Returns the job's next width above `width`, within bounds, on which it is known to be faster: a power of two, or the
 * requested width if no power of two is known; 0: none. */
int sc_reservation_next_width(const sc_view *view, uint32_t job, int width);

/* Computes the job's end, and the GPU-seconds until then, if the current slot had `width` GPUs and later slots followed
 * the plan. Behind the plan's end, or without a plan, the job keeps its last width. end_s is INFINITY if that width is
 * 0. */
typedef struct sc_outcome {
    double end_s, gpu_s;
} sc_outcome;

sc_outcome sc_reservation_outcome(const sc_view *view, uint32_t job, const sc_reservation *plan, int width);

#endif
