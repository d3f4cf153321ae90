/* grid_stages.h — a plan cut into stages: what may follow what without the blocks of a grid waiting for one another.
 *
 * Work is dealt out by units of the length L, a schedule's tile of them at a time. A buffer whose elements are E for
 * each unit belongs to the units in order, E elements to each. A kernel that reads of earlier results only what its own
 * units wrote can follow in the same stage; all others wait at a grid barrier.
 */
#ifndef CU_GRID_STAGES_H
#define CU_GRID_STAGES_H

#include "codegen/cuda/index_range.h"
#include "codegen/cuda/schedule.h"

typedef enum cu_spread {
    CU_TILED, /* a tile of units at a time */
    CU_FREE,  /* rows or points dealt out over all blocks without regard to units */
    CU_SINGLE /* block 0 alone: what has no length */
} cu_spread;

/* A reduction over the length to few results is two steps: of each tile to partial results, and of those. */
typedef enum cu_part { CU_WHOLE, CU_PARTIAL, CU_FINISH } cu_part;

typedef struct cu_access {
    int buffer;
    bool is_written;
    bool is_local; /* TILED: of the unit's own elements only; SINGLE: always */
} cu_access;

typedef struct cu_step {
    const pl_kernel *kernel;
    cu_part part;
    cu_spread spread;
    int64_t scale; /* rows, batches or points of the tiled loop to a unit */
    int loop;      /* NEST: the loop that runs over units, outer loops before reduction loops; -1: none */
    cu_space space;
    int access_count;
    cu_access *accesses;
    int stage;
} cu_step;

typedef struct cu_barrier { /* why the blocks meet: `after` touches what `before` touched, in another tile */
    const cu_step *before, *after;
    int buffer;
} cu_barrier;

typedef struct cu_stages {
    const pl_plan *plan;
    const cu_schedule *schedule;
    int buffer_count;         /* of the plan, and partial results behind them */
    const pl_buffer *buffers; /* partial results are SCRATCH */
    int step_count;
    cu_step *steps; /* by stage; in a stage by spread, then in the plan's order */
    int stage_count;
    cu_barrier *barriers; /* stage i's begins it; [0] is unused */
    bool meets_at_end;    /* blocks other than 0 write outputs in the last stage */
} cu_stages;

/* UNSUPPORTED names the kernel. */
mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err);
/* Whether a step deals its points out to all threads itself: a nest without units. */
static inline bool cu_deals_out_points(const cu_step *step)
{
    return step->spread == CU_FREE && step->kernel->kind == PL_NEST;
}
/* Elements to a unit of length; 0: the buffer has no length, or not in this way. */
int64_t cu_elements_per_unit(const ir_type *type);

#endif
