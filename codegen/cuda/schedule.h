/* schedule.h — how a bucket's work is dealt out: to tiles of the length, to the blocks of a grid, to their threads.
 *
 * Everything that decides it is in one structure. grid_stages.c, memory_placement.c, barriers.c and cuda_generate.c ask it and nothing
 * else, so that another way (a cluster of blocks to a tile, each with a share of the columns) is a schedule beside
 * those below, with such steps of its own as compute otherwise.
 */
#ifndef CU_SCHEDULE_H
#define CU_SCHEDULE_H

#include "codegen/cuda/cuda_text.h"
#include "ir/plan/plan.h"

struct cu_step;
struct cu_layout;
struct cu_function;

/* When a step that meets inside (a __syncthreads in its function) reads what earlier steps wrote. */
typedef enum cu_when { CU_BEFORE_MEETING = 1, CU_BEHIND_MEETING = 2 } cu_when;

/* How the steps of a kernel kind are done. */
typedef struct cu_step_kind {
    /* Shared memory that a step needs beside its buffers' places; it meets inside where it needs any. NULL: none. */
    size_t (*work_bytes)(const struct cu_step *step, const struct cu_layout *layout);
    unsigned (*reads)(const struct cu_step *step, int buffer); /* cu_when, of a step that meets inside */
    void (*emit)(struct cu_function *f);                       /* puts the function's body */
} cu_step_kind;

typedef struct cu_schedule cu_schedule;
struct cu_schedule {
    int tile_units; /* units of the length that are done together: what passes between steps of a stage is theirs */
    int threads;    /* of a block: whole warps */
    const char *weights;                      /* the function of the source that tells where the weights are */
    const cu_step_kind *kinds[PL_SEQUENTIAL]; /* by pl_kind; what is sequential has no CUDA code */
    /* Text in a kernel. The first two open a scope of steps with `t`, the tile, in it, which the generator closes. */
    void (*put_once)(const cu_schedule *s, cu_text *to);                     /* what is done by one block */
    void (*put_tiles)(const cu_schedule *s, cu_text *to, const char *count); /* so many units or rows, tile by tile */
    /* At the end of put_tiles's scope: the threads meet where they go on with another tile. */
    void (*put_next_tile)(const cu_schedule *s, cu_text *to, const char *count);
    void (*put_grid_barrier)(const cu_schedule *s, cu_text *to); /* all blocks of an item meet */
    /* Text in a step: opens a loop over points, dealt out to all threads of all blocks, or to those of one. */
    void (*put_all_points)(const cu_schedule *s, cu_text *to, const char *count);
    void (*put_tile_points)(const cu_schedule *s, cu_text *to, const char *count);
};

extern const cu_schedule cu_blocks; /* a block to a tile (tile_schedule.c) */

#endif
