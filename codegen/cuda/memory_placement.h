/* memory_placement.h — where a kernel keeps the plan's buffers.
 *
 * What only passes from step to step of one stage, each unit's own, lies in shared memory, a tile at a time; the rest
 * in the item's scratch memory. What matrix instructions read is kept in their 16-bit type, beside or in place of f32,
 * as the plan has decided (pl_buffer.reads).
 */
#ifndef CU_MEMORY_PLACEMENT_H
#define CU_MEMORY_PLACEMENT_H

#include "codegen/cuda/cuda_backend.h"
#include "codegen/cuda/grid_stages.h"

typedef enum cu_space_kind { CU_NOWHERE, CU_SHARED, CU_SCRATCH, CU_INPUT, CU_OUTPUT, CU_WEIGHTS } cu_space_kind;

typedef struct cu_place {
    cu_space_kind kind;
    bool is_half;
    size_t offset_bytes, size_bytes; /* SHARED, SCRATCH */
    /* SHARED: element e of the tile lies at e + e / width * (pitch - width). Rows of a matrix are padded so that the
     * lanes of a matrix instruction, which read the same column of eight rows, find them in different banks. */
    int64_t width, pitch;
    int64_t unit; /* SHARED: elements to a unit of length; 0: the whole buffer is there */
} cu_place;

/* A buffer may have several: whoever writes it writes them all. */
typedef struct cu_placement {
    cu_place plain;  /* in its own type, for what computes */
    cu_place half;   /* for matrix instructions */
    cu_place output; /* never read */
} cu_placement;

typedef struct cu_layout {
    const cu_stages *stages;
    cg_compute kernel_precision;
    cu_placement *homes; /* by buffer */
    size_t *work_offset; /* by step: shared memory of its own … */
    size_t *work_bytes;  /* … and how much */
    size_t shared_bytes, scratch_bytes;
} cu_layout;

/* Whether a dimension or a distance is a multiple, whatever the length. */
static inline bool cu_divides(int64_t divisor, ir_dim d)
{
    return d.scale % divisor == 0 && d.offset % divisor == 0;
}

mdot_status cu_lay_out(const cu_stages *stages, cg_compute kernel_precision, ir_arena *arena, cu_layout *out_layout,
                       mdot_error *err);

/* Whether a step multiplies 16-bit factors by matrix instructions: the plan's decision, where the arithmetic has them.
 */
static inline bool cu_is_matrix(const cu_layout *layout, const cu_step *step)
{
    return layout->kernel_precision != CG_FP32 && pl_is_matrix(layout->stages->plan, step->kernel);
}

#endif
