/* job_order.h — jobs in an order that changes at few places: waiting jobs keep their keys, running ones do not.
 *
 * A treap over job numbers that knows the narrowest job of each subtree, so that an event costs O(running · log jobs),
 * however many jobs wait, where sorting all of them would cost that much at each event.
 *
 * Jobs of equal keys keep the order in which a stable sort would leave them: sc_order_settle takes the jobs whose keys
 * changed and says where they stand among their equals.
 */
#ifndef SC_JOB_ORDER_H
#define SC_JOB_ORDER_H

#include "simulator/core/workload.h"

typedef struct sc_order sc_order;

/* For the workload's jobs, none of which is in it yet. */
mdot_status sc_order_create(const sc_workload *workload, sc_order **out_order, mdot_error *err);
void sc_order_destroy(sc_order *order);

/* Behind, or before, all jobs whose key is equal. A job that is in the order moves. */
void sc_order_put_last(sc_order *order, uint32_t job, double key);
void sc_order_put_first(sc_order *order, uint32_t job, double key);
void sc_order_remove(sc_order *order, uint32_t job);

bool sc_order_has(const sc_order *order, uint32_t job);
double sc_order_key(const sc_order *order, uint32_t job);
size_t sc_order_count(const sc_order *order);

/* The first job behind `after` (SC_NONE: of all) that needs at most `gpus` GPUs, or SC_NONE. */
uint32_t sc_order_next(const sc_order *order, uint32_t after, int gpus);

/* Gives jobs[i] the key keys[i], as a stable sort of the whole order would place them. Either all keys that change
 * grow or all shrink. Both arrays are left sorted by the order that was. */
void sc_order_settle(sc_order *order, uint32_t *jobs, double *keys, size_t count);

#endif
