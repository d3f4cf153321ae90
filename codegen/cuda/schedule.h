/* schedule.h — the distribution of a bucket's work over tiles of the length, blocks of a grid, and their threads.
 *
 * One structure holds all decisions. grid_stages.c, memory_placement.c, barriers.c and cuda_generate.c depend only on
 * it. Therefore another distribution, for example a cluster of blocks per tile with a slice of the columns each, is
 * another schedule beside those below, with its own versions of the steps that compute differently.
 */
#ifndef CU_SCHEDULE_H
#define CU_SCHEDULE_H

#include "codegen/cuda/cuda_text.h"
#include "plan/plan.h"

struct cu_step;
struct cu_step_finder;
struct cu_stride_visitor;
struct cu_layout;
struct cu_function;

/* Whether a step with an internal barrier (a __syncthreads in its function) reads earlier steps' results before or
 * after it. */
typedef enum cu_read_phase { CU_BEFORE_BARRIER = 1, CU_AFTER_BARRIER = 2 } cu_read_phase;

/* The functions of a kernel kind's steps. */
typedef struct cu_step_kind {
    /* Appends the kernel's steps to the stages, with their distribution and accesses (step_finder.h). False: memory
     * ran out. */
    bool (*find_steps)(struct cu_step_finder *finder, const pl_kernel *kernel);
    /* Passes the row strides of the kernel's matrices to the placement (memory_placement.h). NULL: it has none. */
    void (*visit_strides)(const pl_kernel *kernel, struct cu_stride_visitor *visitor);
    /* Prints the number of rows that a step without units distributes. NULL: it distributes points. */
    const char *(*row_count)(struct cu_function *f, const pl_kernel *kernel);
    /* Shared memory that a step needs besides its buffers' locations. A step that needs any has an internal barrier.
     * NULL: none. */
    size_t (*work_bytes)(const struct cu_step *step, const struct cu_layout *layout);
    unsigned (*reads)(const struct cu_step *step, int buffer); /* bits of cu_read_phase, for a step with an internal
                                                                * barrier */
    /* Prints the function's body. NULL: the generator prints the calls of the inner steps. */
    void (*emit)(struct cu_function *f);
    bool stores_in_any_order; /* any thread may write the first element of a result; otherwise it is thread 0 */
} cu_step_kind;

typedef struct cu_schedule cu_schedule;
struct cu_schedule {
    int tile_units; /* units of the length that are processed together; data passed between steps of a stage belongs
                     * to them */
    int threads;    /* threads per block, a multiple of the warp size */
    const char *weights;                      /* function of the source that returns the weights' address */
    const cu_step_kind *kinds[PL_KIND_COUNT]; /* indexed by pl_kind; NULL: the kind has no CUDA code */
    /* Text in a kernel. The first two open a scope of steps with the tile `t`, which the generator closes. */
    void (*put_once)(const cu_schedule *s, cu_text *to);                     /* work of a single block */
    void (*put_tiles)(const cu_schedule *s, cu_text *to, const char *count); /* `count` units or rows, tile by tile */
    /* At the end of put_tiles's scope: a block barrier if another tile follows. */
    void (*put_next_tile)(const cu_schedule *s, cu_text *to, const char *count);
    void (*put_grid_barrier)(const cu_schedule *s, cu_text *to); /* barrier for all blocks of an item */
    /* Text in a step: opens a loop over points, distributed over all threads of all blocks, or over those of one
     * block. */
    void (*put_all_points)(const cu_schedule *s, cu_text *to, const char *count);
    void (*put_tile_points)(const cu_schedule *s, cu_text *to, const char *count);
};

#endif
