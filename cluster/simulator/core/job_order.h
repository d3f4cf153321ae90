/* job_order.h — a job order with few changes: only running jobs change keys.
 *
 * It is a treap over job numbers, with the narrowest and the shortest job per subtree. An event costs O(running · log
 * jobs), for any number of waiting jobs; a sort of all jobs would depend on that number.
 *
 * Jobs with equal keys keep the order of a stable sort. sc_order_settle takes the jobs with changed keys and finds
 * positions among equals. */
#ifndef SC_JOB_ORDER_H
#define SC_JOB_ORDER_H

#include "simulator/core/workload.h"

typedef struct sc_order {
    struct sc_order_node *nodes;
    uint32_t root, first;
    size_t count;
    int64_t first_place, last_place; /* lowest and highest position assigned so far */
} sc_order;

/* Creates an empty order for the workload's jobs, which free() releases. */
mdot_status sc_order_create(const sc_workload *workload, sc_order **out_order, mdot_error *err);
/* Empties an order whose nodes, so many zeroed bytes, belong to another struct (SC_STATE). */
void sc_order_begin(sc_order *order, const sc_workload *workload);
size_t sc_order_bytes(const sc_workload *workload);

/* Puts a job behind, or before, all jobs with an equal key. A job that is already in the order moves. */
void sc_order_put_last(sc_order *order, uint32_t job, double key);
void sc_order_put_first(sc_order *order, uint32_t job, double key);
void sc_order_remove(sc_order *order, uint32_t job);

/* Sets the seconds that the job would run, for sc_order_next_in; 0 until then. The job must not be in the order. */
void sc_order_set_seconds(sc_order *order, uint32_t job, double seconds);

double sc_order_key(const sc_order *order, uint32_t job);
size_t sc_order_count(const sc_order *order);

/* Returns the first job behind `after` (SC_NONE: of all) that needs at most `gpus` GPUs, or SC_NONE. */
uint32_t sc_order_next(const sc_order *order, uint32_t after, int gpus);

/* Free GPUs, of which `spare` may be held for any time and the others for so many seconds. */
typedef struct sc_room {
    int gpus, spare;
    double seconds;
} sc_room;

/* Returns the first job behind `after` (SC_NONE: the first) that fits the room, or SC_NONE. */
uint32_t sc_order_next_in(const sc_order *order, uint32_t after, const sc_room *room);

/* Gives jobs[i] the key keys[i] at the position of a stable sort of the whole order. The changed keys must either all
 * grow or all shrink. Both arrays are left sorted by the previous order. */
void sc_order_settle(sc_order *order, uint32_t *jobs, double *keys, size_t count);

#endif
