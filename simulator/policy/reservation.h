/* reservation.h — which GPUs a job is sure of in slots to come: ElasticFlow's plans.
 *
 * Slots count from the one that begins now. Work, restarts and deadlines are followed slot by slot with what the policy
 * believes of the job's speed, and the restart cost as the simulator charges it.
 */
#ifndef SC_RESERVATION_H
#define SC_RESERVATION_H

#include "simulator/core/policy.h"

#define SC_SLOT_S 60. /* of the paper's */

typedef struct sc_reservation { /* all zero: of nothing */
    int *gpus;                  /* in each slot; 0 behind the last */
    size_t count, first;        /* slots in all, and those that have passed */
} sc_reservation;

/* GPUs that no plan has, slot by slot; all of them behind the last. */
typedef struct sc_room {
    int *left;
    size_t count, capacity;
    int gpus;
} sc_room;

void sc_room_clear(sc_room *room, int gpus);
void sc_room_free(sc_room *room);
mdot_status sc_room_take(sc_room *room, const sc_reservation *plan, mdot_error *err);

/* The least width that lets the job end before its deadline within the room, which it is taken from. *out_fits is
 * false, and nothing changed, where none does. */
mdot_status sc_reservation_make(const sc_view *view, uint32_t job, sc_room *room, sc_reservation *out_plan,
                                bool *out_fits, mdot_error *err);
void sc_reservation_free(sc_reservation *plan);
void sc_reservation_shift(sc_reservation *plan, size_t slots);
/* GPUs in this slot. */
int sc_reservation_width(const sc_reservation *plan);

/* The next width that is known of the job: a power of two, or its own where it has no kind; 0: there is none. */
int sc_reservation_next_width(const sc_view *view, uint32_t job, int width);

/* When it would end, and what it would hold until then, if this slot had `width` GPUs and the others the plan's; behind
 * the plan's end, or without one, it keeps what it had last. end_s is INFINITY where it had none. */
typedef struct sc_outcome {
    double end_s, gpu_s;
} sc_outcome;

sc_outcome sc_reservation_outcome(const sc_view *view, uint32_t job, const sc_reservation *plan, int width);

#endif
