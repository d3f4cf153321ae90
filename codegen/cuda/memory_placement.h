/* memory_placement.h — the memory placement of the plan's buffers in a kernel.
 *
 * Data that passes between steps of one stage, within each unit, is in shared memory, one tile at a time. All other
 * data is in the item's scratch memory. Operands of matrix instructions are kept in their 16-bit type, in addition to
 * f32 or rather than it, as the plan has decided (pl_buffer.reads). */
#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_stages.h"
#include "plan/kernel_kind.h"

typedef enum cu_memory_space { CU_UNPLACED, CU_SHARED, CU_SCRATCH, CU_INPUT, CU_OUTPUT, CU_WEIGHTS } cu_memory_space;

typedef struct cu_location {
    cu_memory_space kind;
    bool is_half;
    size_t offset_bytes, size_bytes; /* for SHARED and SCRATCH */
    /* SHARED: tile element e is at e + e / width * (pitch - width). Matrix rows are padded, so a matrix instruction's
     * lanes, which read the same column in eight rows, access different banks. */
    int64_t width, pitch;
    int64_t unit; /* SHARED: elements per unit of length; 0: the whole buffer is there */
} cu_location;

/* A buffer may have several locations; a writing step writes all. */
typedef struct cu_placement {
    cu_location plain;  /* in its own type, for general operations */
    cu_location half;   /* in the 16-bit type, for matrix instructions */
    cu_location output; /* write-only */
} cu_placement;

typedef struct cu_layout {
    const cu_stages *stages;
    cg_compute kernel_precision;
    cu_placement *placements; /* indexed by buffer */
    size_t *work_offset;      /* indexed by step: offset of the step's own shared memory */
    size_t *work_bytes;       /* indexed by step: its size */
    size_t shared_bytes, scratch_bytes;
} cu_layout;

/* For cu_step_kind.visit_strides: a matrix's row stride, and attention heads, whose `dim` channels must stay
 * contiguous. */
typedef struct cu_stride_visitor cu_stride_visitor;
void cu_visit_stride(cu_stride_visitor *visitor, int buffer, ir_dim stride);
void cu_visit_heads(cu_stride_visitor *visitor, const pl_heads *h, int64_t dim);

mdot_status cu_lay_out(const cu_stages *stages, cg_compute kernel_precision, ir_arena *arena, cu_layout *out_layout,
                       mdot_error *err);

/* True if a step multiplies 16-bit factors with matrix instructions: the plan's decision, provided that the
 * precision supports it. */
static inline bool cu_is_matrix(const cu_layout *layout, const cu_step *step)
{
    return layout->kernel_precision != CG_FP32 && pl_is_matrix(layout->stages->plan, step->kernel);
}

/* The blocks of a cluster among which a step's columns or heads are split; 1: each block computes all of its tile. */
static inline int cu_split(const cu_layout *layout, const cu_step *step)
{
    return cu_is_matrix(layout, step) ? cu_blocks_of(layout->stages->schedule, step) : 1;
}

/* ---- barriers.c: the block and cluster barriers between the steps of a stage ------------------------------------- */

typedef enum cu_wait { CU_NO_WAIT, CU_BLOCK_WAIT, CU_CLUSTER_WAIT } cu_wait;

/* The barrier's statement: __syncthreads, or a cluster's. */
static inline const char *cu_wait_text(cu_wait wait)
{
    return wait == CU_CLUSTER_WAIT ? "cluster_barrier()" : "__syncthreads()";
}

/* before[s]: the barrier that precedes step s, because of earlier steps in the stage. again[s], on the last step in a
 * tile loop: the one that precedes the next tile. */
mdot_status cu_find_barriers(const cu_layout *layout, ir_arena *arena, cu_wait **out_before, cu_wait **out_again,
                             mdot_error *err);

/* before[k]: the barrier that precedes inner step k in the recurrence with this number, because of earlier inner steps,
 * in the same or the previous step. */
mdot_status cu_find_inner_barriers(const cu_layout *layout, int number, ir_arena *arena, cu_wait **out_before,
                                   mdot_error *err);

/* The end of the loop beginning at step `first`: after all tiled steps of the stage, or a single step. */
int cu_loop_end(const cu_stages *stages, int first);
