/* cpu_linear_block.h — a block of rows of a linear kernel while its code is emitted. cpu_linear.c emits it
 * with the register tile, cpu_linear_amx.c with matrix tiles; cpu_linear_rows.c serves both. */
#ifndef CG_CPU_LINEAR_BLOCK_H
#define CG_CPU_LINEAR_BLOCK_H

#include "codegen/cpu/emit.h"

/* State of a row block. */
typedef struct cg_linear_block {
    const pl_plan *plan;
    const pl_linear *k;
    const LLVMValueRef *buffers;
    LLVMValueRef first_row, row_count; /* of the row block */
    LLVMValueRef a, a_stride;          /* A's first row of the block; stride in elements of a_type */
    LLVMValueRef distances;            /* scratch: elements from `a` to each row of the block; NULL: a_stride apart */
    LLVMValueRef out, out_stride;      /* first row of the result; stride in elements of out_type */
    LLVMValueRef stage;                /* scratch: rows of `width` for the current strip */
    LLVMValueRef previous_stage;       /* stage of the previous strip, whose epilogue overlaps with the current strip;
                                        * NULL if there is none */
    int64_t width;                     /* columns of a whole strip */

    cg_matmul_kind matmul;
    int64_t steps;                /* steps of k: elements, pairs or tiles */
    LLVMTypeRef a_type, out_type; /* element types of A as the tiles read it, and of `out` */
    LLVMValueRef wide;            /* scratch: a block of the strip's weights in f32; NULL if they are multiplied as
                                   * stored */
    LLVMValueRef copy;            /* scratch: the block's rows of A in the tiles' layout; NULL if A is read in place */

    LLVMValueRef column; /* first column of the strip */
    int vectors;
    bool staged;

    LLVMValueRef k_first, k_count; /* the block of k */
    LLVMValueRef k_distance;       /* elements from a row's start to the block of k; only with `distances` */
    LLVMValueRef panel;
    int64_t panel_step;
    bool starts; /* the first block: accumulators start from the bias and, in a direct strip, the epilogue's terms */
} cg_linear_block;

#endif
