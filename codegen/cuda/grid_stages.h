/* grid_stages.h — a plan divided into stages: steps that can follow each other without a grid barrier share a stage.
 *
 * Work is distributed by units of the length L, a schedule's tile of them at a time. If a buffer has E elements per
 * unit, each unit owns E consecutive elements, in order. A kernel can follow in the same stage if it reads only
 * earlier results that its own units wrote. All others wait at a grid barrier.
 */
#ifndef CU_GRID_STAGES_H
#define CU_GRID_STAGES_H

#include "codegen/cuda/index_range.h"
#include "codegen/cuda/schedule.h"

typedef enum cu_spread {
    CU_TILED, /* one tile of units at a time */
    CU_FREE,  /* rows or points distributed over all blocks, independently of units */
    CU_SINGLE /* block 0 only, for steps without length */
} cu_spread;

/* A reduction over the length to few results has two steps: tiles to partial results, and partial results to the
 * result. */
typedef enum cu_part { CU_WHOLE, CU_PARTIAL, CU_FINISH } cu_part;

typedef struct cu_access {
    int buffer;
    bool is_written;
    bool is_local; /* TILED: only the unit's own elements; SINGLE: always true */
} cu_access;

typedef struct cu_step {
    const pl_kernel *kernel;
    cu_part part;
    cu_spread spread;
    int64_t scale; /* rows, batches or points of the tiled loop per unit */
    int loop;      /* NEST: the loop over units, outer loops before reduction loops; -1 if there is none */
    cu_space space;
    int access_count;
    cu_access *accesses;
    int stage;
} cu_step;

typedef struct cu_barrier { /* reason for a barrier: `after` touches data of `before` in another tile */
    const cu_step *before, *after;
    int buffer;
} cu_barrier;

typedef struct cu_stages {
    const pl_plan *plan;
    const cu_schedule *schedule;
    int buffer_count;         /* buffers of the plan, followed by partial results */
    const pl_buffer *buffers; /* partial results are SCRATCH */
    int step_count;
    cu_step *steps; /* ordered by stage, then by spread, then in the plan's order */
    int stage_count;
    cu_barrier *barriers; /* barrier at the beginning of stage i; [0] is unused */
    bool meets_at_end;    /* blocks other than 0 write outputs in the last stage */
} cu_stages;

/* Returns UNSUPPORTED with the kernel's name. */
mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err);
/* True if a step distributes its points over all threads itself: a nest without units. */
static inline bool cu_deals_out_points(const cu_step *step)
{
    return step->spread == CU_FREE && step->kernel->kind == PL_NEST;
}
/* Elements per unit of length; 0 if the buffer has no length or a different layout. */
int64_t cu_elements_per_unit(const ir_type *type);

#endif
