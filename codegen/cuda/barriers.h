/* barriers.h — the block barriers between the steps of a stage. */
#ifndef CU_BARRIERS_H
#define CU_BARRIERS_H

#include "codegen/cuda/memory_placement.h"

/* before[s]: a __syncthreads precedes step s, because of earlier steps in its stage. again[s], on the last step of a
 * loop over tiles: a __syncthreads precedes the next tile. */
mdot_status cu_find_barriers(const cu_layout *layout, ir_arena *arena, bool **out_before, bool **out_again,
                             mdot_error *err);

/* before[k]: a __syncthreads precedes inner step k of the recurrence with this number, because of the inner steps
 * before it, in the same step of the recurrence or in the one before. */
mdot_status cu_find_inner_barriers(const cu_layout *layout, int number, ir_arena *arena, bool **out_before,
                                   mdot_error *err);

/* The end of the steps from `first` on that share a loop: all tiled ones of the stage, or a single one. */
int cu_loop_end(const cu_stages *stages, int first);

#endif
