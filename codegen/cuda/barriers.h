/* barriers.h — where the threads of a block must meet between the steps of a stage. */
#ifndef CU_BARRIERS_H
#define CU_BARRIERS_H

#include "codegen/cuda/memory_placement.h"

/* before[s]: a __syncthreads stands before step s, for what steps before it in its stage left. again[s], on the last
 * step of a loop over tiles: one stands where another tile follows. */
mdot_status cu_find_syncs(const cu_layout *layout, ir_arena *arena, bool **out_before, bool **out_again,
                          mdot_error *err);

/* Steps first … of a stage that share a loop: all tiled ones, or one alone. Returns the end. */
int cu_loop_end(const cu_stages *stages, int first);

#endif
