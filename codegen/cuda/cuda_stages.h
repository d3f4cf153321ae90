/* cuda_stages.h — plans as stages of steps, and the schedule that maps them to blocks. */
#pragma once

#include "codegen/cuda/cuda_text.h"
#include "plan/plan.h"

/* ---- index_range.c: the range of an integer expression, and its dependence on the current unit of length --------- */

/* The values unit * u + [low, high], where u is the unit of length (0 … L-1) of the surrounding loops. Unbounded
 * ends are INT64_MIN and INT64_MAX. */
typedef struct cu_range {
    int64_t unit, low, high;
} cu_range;

cu_range cu_range_constant(int64_t n);
cu_range cu_range_between(int64_t low, int64_t high);
bool cu_range_is_bounded(cu_range s);
cu_range cu_range_add(cu_range a, cu_range b);
cu_range cu_range_scale(cu_range s, int64_t factor);

/* The ranges of a kernel's loops; max_length bounds the length itself, and max_steps the enclosing recurrence. */
typedef struct cu_space {
    int64_t max_length, max_steps;
    int loop_count;
    cu_range loop[PL_MAX_LOOPS];
} cu_space;

/* An integer or BOOL expression's range. It is conservative: it contains all values and may be wider. */
cu_range cu_range_of(const cu_space *space, const pl_expr *expr);
/* The same with the values of u substituted, so unit is 0. */
cu_range cu_range_whole(const cu_space *space, cu_range s);

/* ---- Distribution of work: each bucket's tiles, the grid's blocks, and the blocks' threads.
 *
 * One structure holds all decisions. grid_stages.c, memory_placement.c, barriers.c and cuda_generate.c depend only on
 * it.
 *
 * With several blocks per tile, these form a cluster, and each keeps the tile's shared data whole. Matrix steps are
 * split: each block computes a slice of the columns or heads and stores it in the shared memory of all. The other steps
 * run in each block alike, and the first block alone writes their global results.
 */

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
    /* Appends the kernel's steps to the stages, with their distribution and accesses (cuda_stages.h). False: memory
     * ran out. */
    bool (*find_steps)(struct cu_step_finder *finder, const pl_kernel *kernel);
    /* Passes the row strides of the kernel's matrices to the placement (memory_placement.h). NULL: it has none. */
    void (*visit_strides)(const pl_kernel *kernel, struct cu_stride_visitor *visitor);
    /* Prints the number of rows distributed by a step without units. NULL: it distributes points. */
    const char *(*row_count)(struct cu_function *f, const pl_kernel *kernel);
    /* A step's shared memory besides buffer locations. A step that needs any has an internal barrier. NULL: none. */
    size_t (*work_bytes)(const struct cu_step *step, const struct cu_layout *layout);
    unsigned (*reads)(const struct cu_step *step, int buffer); /* bits of cu_read_phase, for a step with an internal
                                                                * barrier */
    /* Prints the function's body. NULL: the generator prints the calls of the inner steps. */
    void (*emit)(struct cu_function *f);
    bool stores_in_any_order; /* any thread may write a result's first element; otherwise it is thread 0 */
} cu_step_kind;

typedef struct cu_schedule cu_schedule;
struct cu_schedule {
    int tile_units;      /* units of length processed together; data passed between a stage's steps belongs to them */
    int threads;         /* threads per block, a multiple of the warp size */
    int blocks_per_tile; /* 1: no clusters */
    const char *weights; /* source function returning the weights' address */
    const cu_step_kind *kinds[PL_KIND_COUNT]; /* indexed by pl_kind; NULL: the kind has no CUDA code */
    /* Text in a kernel. The first two open a scope of steps with the tile `t`, which the generator closes. */
    void (*put_once)(const cu_schedule *s, cu_text *to); /* work of a single block */
    /* `count` units or rows, tile by tile; `blocks` blocks take a tile together. */
    void (*put_tiles)(const cu_schedule *s, cu_text *to, const char *count, int blocks);
    /* At the end of put_tiles's scope: the statement `barrier` if another tile follows. */
    void (*put_next_tile)(const cu_schedule *s, cu_text *to, const char *count, int blocks, const char *barrier);
    void (*put_grid_barrier)(const cu_schedule *s, cu_text *to); /* barrier for all blocks of an item */
    /* Text in a step: opens a loop over points, distributed over all threads, or one block's. */
    void (*put_all_points)(const cu_schedule *s, cu_text *to, const char *count);
    void (*put_tile_points)(const cu_schedule *s, cu_text *to, const char *count);
};

/* ---- the steps of a plan, in stages, as data --------------------------------------------------------------------- */

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
    int inner_count;       /* RECURRENCE: steps run by block 0, once per step of the recurrence */
    struct cu_step *inner; /* distribution: SINGLE, or FREE if the row count follows the length */
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

/* The blocks that take each of a step's tiles together. */
static inline int cu_blocks_of(const cu_schedule *schedule, const cu_step *step)
{
    return step->distribution == CU_TILED ? schedule->blocks_per_tile : 1;
}

/* True if a step distributes points over all threads itself: the kind lacks rows, and units do not divide it. */
static inline bool cu_distributes_points(const cu_step *step)
{
    return step->distribution == CU_FREE && step->kind->row_count == NULL;
}

/* ---- step_finder.c: helpers of the kernel kinds that append steps to stages: distribution over blocks, and the
 * elements that each unit accesses. */

/* Minimum rows and points without length that are worth distributing over blocks. */
enum { CU_MIN_FREE_ROWS = 32, CU_MIN_FREE_POINTS = 4096 };

typedef struct cu_step_finder {
    cu_stages *stages;
    ir_arena *arena;
    pl_buffer *buffers;
    cu_step *step;     /* the step being described */
    bool is_one_block; /* block 0 runs all steps, because they are those of a recurrence */
    int64_t max_steps; /* the recurrence's steps at the maximum length */
} cu_step_finder;

/* Appends a step of block 0 without accesses, and makes it the finder's step. NULL: memory ran out. */
cu_step *cu_add_step(cu_step_finder *f, const pl_kernel *kernel, cu_part part);

/* True if an extent is a multiple of the length. */
static inline bool cu_is_units(ir_dim d) { return ir_dim_is_affine(d) && d.scale > 0 && d.offset == 0; }
/* Lets loop `loop`, with extent scale * L, run over the units. */
void cu_tile_loop(cu_step_finder *f, int loop, ir_dim extent);
/* Distributes a step over rows, the first loop. `note_accesses` records the accesses for the tried distribution. */
void cu_distribute_rows(cu_step_finder *f, ir_dim rows, ir_dim columns, void (*note_accesses)(cu_step_finder *f));
/* True if units write only elements they own. */
bool cu_writes_locally(const cu_step *s);

/* Record an access to a buffer's elements. Buffer -1 and expression NULL: none. */
void cu_note_access(cu_step_finder *f, int buffer, bool is_written, cu_range elements);
void cu_note_loads(cu_step_finder *f, const pl_expr *e);
void cu_note_matrix(cu_step_finder *f, const pl_matrix *m, bool is_written, cu_range columns);

/* Ranges: 0 … count - 1; a loop's index; an offset; a stride times an index. */
cu_range cu_columns_range(int64_t count);
cu_range cu_extent_range(ir_dim extent, int64_t max_length);
cu_range cu_offset_range(ir_dim offset);
cu_range cu_range_times(ir_dim stride, cu_range s);

/* ---- grid_stages.c: a plan divided into stages: steps that can follow each other without a grid barrier share a
 * stage.
 *
 * Work is distributed by units of the length L, a schedule's tile of them at a time. If a buffer has E elements per
 * unit, each unit owns E consecutive elements, in order. A kernel can follow in the same stage if it reads only earlier
 * results that its own units wrote. All others wait at a grid barrier.
 */

/* Returns UNSUPPORTED with the kernel's name. */
mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err);

/* ---- the implementations of the kernel kinds for one block and one tile, in one file or two each: rows of a
 * schedule's table. */

extern const cu_step_kind cu_linear_kind;     /* cuda_linear.c */
extern const cu_step_kind cu_attention_kind;  /* cuda_attention.c */
extern const cu_step_kind cu_norm_kind;       /* cuda_norm.c */
extern const cu_step_kind cu_nest_kind;       /* cuda_nest.c */
extern const cu_step_kind cu_sequential_kind; /* cuda_sequential.c, cuda_scatter.c */
extern const cu_step_kind cu_recurrence_kind; /* cuda_recurrence.c */

extern const cu_schedule cu_blocks;   /* one block per tile */
extern const cu_schedule cu_clusters; /* up to eight, for Hopper and Blackwell; only with matrix instructions */

/* The schedule for lengths up to `max_length` (0: none): as many blocks per tile as a GPU has multiprocessors for. */
cu_schedule cu_fit_schedule(const cu_schedule *schedule, int64_t max_length);
