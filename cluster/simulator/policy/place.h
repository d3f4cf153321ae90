/* place.h — nodes for jobs, on a cluster of one type of GPUs.
 *
 * `available` is the number of GPUs that may be taken from each node, at most the free ones of the plan:
 * plan->node_free, or less.
 */
#ifndef SC_PLACE_H
#define SC_PLACE_H

#include "simulator/core/policy.h"

/* Returns the node with the fewest GPUs in `available` that still holds so many GPUs; SC_NONE if there is none. */
uint32_t sc_place_find_node(const int *available, size_t node_count, int gpus);

/* Each of these functions grants the job its GPUs, at its own width, or returns false. */

/* Grants the GPUs on which it runs, if all of them are free. */
bool sc_place_as_it_is(const sc_view *view, sc_plan *plan, uint32_t job);
/* Grants GPUs of the node that sc_place_find_node finds. */
bool sc_place_on_one(const sc_view *view, sc_plan *plan, const int *available, uint32_t job);
/* Grants fragments, beginning with the nodes with the fewest GPUs in `available`, so that whole nodes stay free. */
bool sc_place_on_several(const sc_view *view, sc_plan *plan, const int *available, uint32_t job);

#endif
