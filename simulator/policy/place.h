/* place.h — nodes for jobs, on a cluster of one type of GPUs.
 *
 * `room` says how many GPUs of each node may be taken, at most those that the plan has free: plan->node_free, or less.
 */
#ifndef SC_PLACE_H
#define SC_PLACE_H

#include "simulator/core/policy.h"

/* Of the nodes that have room for so many GPUs, the one that has the least; SC_NONE: none has. */
uint32_t sc_place_find_node(const int *room, size_t node_count, int gpus);

/* Each of these grants the job its GPUs, as wide as it is, or answers false. */

/* Where it runs, if all of that is free. */
bool sc_place_as_it_is(const sc_view *view, sc_plan *plan, uint32_t job);
/* On the node that sc_place_find_node finds. */
bool sc_place_on_one(const sc_view *view, sc_plan *plan, const int *room, uint32_t job);
/* On what is left over: from the nodes with the least room on, so that whole nodes stay free. */
bool sc_place_on_several(const sc_view *view, sc_plan *plan, const int *room, uint32_t job);

#endif
