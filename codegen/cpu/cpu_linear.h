/* cpu_linear.h — declarations shared by the linear kernel's files: cpu_linear.c, whose inner loop is the register
 * tile, cpu_linear_amx.c, with matrix tiles, and cpu_linear_rows.c, which serves both. */
#ifndef CG_CPU_LINEAR_H
#define CG_CPU_LINEAR_H

#include "codegen/cpu/emit.h"

enum { CG_LINEAR_ROW_BLOCK = 96 }; /* a multiple of all tile heights; × 64 columns of f32 is 24 KB */

/* State of a row block. */
typedef struct linear {
    const pl_plan *plan;
    const pl_linear *k;
    const LLVMValueRef *buffers;
    LLVMValueRef first_row, row_count; /* of the row block */
    LLVMValueRef a, a_stride;          /* A's first row of the block; stride in elements of a_type */
    LLVMValueRef out, out_stride;      /* first row of the result; stride in elements of out_type */
    LLVMValueRef stage;                /* scratch: rows of `width` for the current strip */
    LLVMValueRef stage_before;         /* stage of the previous strip, whose epilogue the current strip hides; NULL
                                        * if there is none */
    int64_t width;                     /* columns of a whole strip */

    cg_matmul_kind products;
    int64_t steps;                /* steps of k: elements, pairs or tiles */
    LLVMTypeRef a_type, out_type; /* element types of A as the tiles read it, and of `out` */
    LLVMValueRef wide;            /* scratch: a block of the strip's weights in f32; NULL if they are not widened */
    LLVMValueRef copy;            /* scratch: the block's rows of A in the tiles' layout; NULL if A is read in place */

    LLVMValueRef column; /* first column of the strip */
    int vectors;
    bool staged;

    LLVMValueRef k_first, k_count; /* the block of k */
    LLVMValueRef panel;
    int64_t panel_step;
    bool starts; /* the first block: accumulators start from the bias and, in a direct strip, the epilogue's terms */
} linear;

/* The epilogue of `acc`, which holds consecutive columns of a row in its lanes. Rows count from the block's first. */
LLVMValueRef cg_linear_epilogue(cg_emitter *e, const linear *l, LLVMValueRef row, LLVMValueRef column,
                                LLVMValueRef acc);
/* Applies the epilogue to `width` columns of a staged row, whose sums are at `from`, and stores them. */
void cg_finish_vector(cg_emitter *e, const linear *l, LLVMValueRef from, LLVMValueRef row, LLVMValueRef column,
                      int width);

/* Copies `count` rows of A, from `from` on, to l->copy in the tiles' layout, cg_copy_stride elements per row. Zeros
 * come first if the weights have them. `count` is at least one. */
void cg_copy_rows(cg_emitter *e, const linear *l, LLVMValueRef from, LLVMValueRef from_stride, LLVMValueRef count);
int64_t cg_copy_stride(const linear *l);

/* Applies the epilogue to rows from..to of a finished strip in scratch and writes its `columns` columns to out. */
void cg_finish_rows(cg_emitter *e, const linear *l, int64_t columns, LLVMValueRef from, LLVMValueRef to);

/* All strips of the row block with matrix tiles. l->stage holds a group of CG_AMX_GROUP rows. l->copy holds the
 * whole block if `copies` is set, otherwise the last group. */
enum { CG_AMX_GROUP = 32 };
void cg_linear_amx(cg_emitter *e, linear *l, bool copies);

#endif
