/* step_finder.h — helpers of the kernel kinds that append steps to stages: distribution over blocks, and the elements
 * that each unit accesses. */
#ifndef CU_STEP_FINDER_H
#define CU_STEP_FINDER_H

#include "codegen/cuda/stage_types.h"

/* Minimum numbers of rows and points without length that are worth distributing over blocks. */
enum { CU_MIN_FREE_ROWS = 32, CU_MIN_FREE_POINTS = 4096 };

typedef struct cu_step_finder {
    cu_stages *stages;
    ir_arena *arena;
    pl_buffer *buffers;
    cu_step *step;     /* the step being described */
    bool is_one_block; /* block 0 runs all steps, because they are those of a recurrence */
    int64_t max_steps; /* steps of that recurrence at the maximum length */
} cu_step_finder;

/* Appends a step of block 0 without accesses, and makes it the finder's step. NULL: memory ran out. */
cu_step *cu_add_step(cu_step_finder *f, const pl_kernel *kernel, cu_part part);

/* True if an extent is a multiple of the length. */
static inline bool cu_is_units(ir_dim d)
{
    return ir_dim_is_affine(d) && d.scale > 0 && d.offset == 0;
}
/* Marks that loop `loop`, of extent scale * L, runs over the units. */
void cu_tile_loop(cu_step_finder *f, int loop, ir_dim extent);
/* Distributes a step over its rows, the first loop. `note_accesses` records the accesses for the distribution that is
 * tried. */
void cu_distribute_rows(cu_step_finder *f, ir_dim rows, ir_dim columns, void (*note_accesses)(cu_step_finder *f));
/* True if the step writes only elements of its own units. */
bool cu_writes_locally(const cu_step *s);

/* Record that the step accesses elements of a buffer. Buffer -1 and expression NULL mean that there is none. */
void cu_note_access(cu_step_finder *f, int buffer, bool is_written, cu_range elements);
void cu_note_loads(cu_step_finder *f, const pl_expr *e);
void cu_note_matrix(cu_step_finder *f, const pl_matrix *m, bool is_written, cu_range columns);

/* The range of 0 … count - 1; of the index of a loop; of an offset; and of a stride times an index. */
cu_range cu_columns_range(int64_t count);
cu_range cu_extent_range(ir_dim extent, int64_t max_length);
cu_range cu_offset_range(ir_dim offset);
cu_range cu_range_times(ir_dim stride, cu_range s);

/* Elements per unit of length; 0 if the buffer has no length or a different layout. */
int64_t cu_elements_per_unit(const ir_type *type);

#endif
