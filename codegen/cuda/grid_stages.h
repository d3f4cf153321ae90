/* grid_stages.h — a plan divided into stages: steps that can follow each other without a grid barrier share a stage.
 *
 * Work is distributed by units of the length L, a schedule's tile of them at a time. If a buffer has E elements per
 * unit, each unit owns E consecutive elements, in order. A kernel can follow in the same stage if it reads only
 * earlier results that its own units wrote. All others wait at a grid barrier.
 */
#ifndef CU_GRID_STAGES_H
#define CU_GRID_STAGES_H

#include "codegen/cuda/stage_types.h"

/* Returns UNSUPPORTED with the kernel's name. */
mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err);

#endif
