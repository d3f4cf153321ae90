/* stage_types.h — the steps of a plan, in stages, as data. */
#ifndef CU_STAGE_TYPES_H
#define CU_STAGE_TYPES_H

#include "codegen/cuda/index_range.h"
#include "codegen/cuda/schedule.h"

typedef enum cu_distribution {
    CU_TILED, /* one tile of units at a time */
    CU_FREE,  /* rows or points distributed over all blocks, independently of units */
    CU_SINGLE /* block 0 only, for steps without length */
} cu_distribution;

/* A reduction over the length to few results has two steps: tiles to partial results, and partial results to the
 * result. A scatter has two steps: it copies the data, and then updates the copy. */
typedef enum cu_part { CU_WHOLE, CU_PARTIAL, CU_FINISH, CU_COPY, CU_UPDATE } cu_part;

typedef struct cu_access {
    int buffer;
    bool is_written;
    bool is_local; /* TILED: only the unit's own elements; SINGLE: always true */
} cu_access;

typedef struct cu_step {
    const pl_kernel *kernel;
    const cu_step_kind *kind; /* the schedule's functions for the kernel's kind */
    cu_part part;
    cu_distribution distribution;
    int64_t scale; /* rows, batches or points of the tiled loop per unit */
    int loop;      /* NEST: the loop over units, outer loops before reduction loops; -1 if there is none */
    cu_space space;
    int access_count;
    cu_access *accesses;
    int stage;
    int inner_count;       /* RECURRENCE: the steps that block 0 runs once per step of the recurrence */
    struct cu_step *inner; /* their distribution is SINGLE, or FREE if the number of rows follows the length */
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
    cu_step *steps; /* ordered by stage, then by distribution, then in the plan's order */
    int stage_count;
    cu_barrier *barriers; /* barrier at the beginning of stage i; [0] is unused */
    bool barrier_at_end;  /* blocks other than 0 write outputs in the last stage */
} cu_stages;

/* True if a step distributes its points over all threads itself: its kind lacks rows, and units do not divide it. */
static inline bool cu_distributes_points(const cu_step *step)
{
    return step->distribution == CU_FREE && step->kind->row_count == NULL;
}

#endif
