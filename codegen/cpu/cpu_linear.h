/* cpu_linear.h — a linear kernel's row block while code is emitted. cpu_linear.c emits it with the register tile,
 * cpu_linear_amx.c with matrix tiles; cpu_linear_rows.c serves both. */
#pragma once

#include "codegen/cpu/emit.h"

/* State of a row block. */
typedef struct cg_linear_block {
    const pl_plan *plan;
    const pl_linear *k;
    const LLVMValueRef *buffers;
    LLVMValueRef first_row, row_count; /* of the row block */
    LLVMValueRef a, a_stride;          /* A's first row in the block; stride in a_type elements */
    LLVMValueRef distances;            /* scratch: elements from `a` to each row of the block; NULL: a_stride apart */
    LLVMValueRef out, out_stride;      /* the result's first row; stride in out_type elements */
    LLVMValueRef stage;                /* scratch: rows of `width` for the current strip */
    LLVMValueRef previous_stage;       /* stage of the previous strip, whose epilogue overlaps with the current strip;
                                        * NULL if there is none */
    int64_t width;                     /* columns of a whole strip */

    cg_matmul_kind matmul;
    int64_t steps;                /* steps of k: elements, pairs or tiles */
    LLVMTypeRef a_type, out_type; /* element types: A as read by tiles, and `out` */
    LLVMValueRef wide;            /* scratch: a block of the strip's weights in f32; NULL if they are multiplied as
                                   * stored */
    LLVMValueRef copy;            /* scratch: the block's rows of A in the tiles' layout; NULL if A is read in place */

    LLVMValueRef column; /* first column of the strip */
    int vectors;
    bool staged;

    int64_t run; /* steps of one run of a window, if a tile goes through the windows' runs; otherwise 0 */
    LLVMValueRef k_first, k_count; /* the block of k */
    LLVMValueRef k_distance;       /* elements from a row's start to the block of k; only with `distances` */
    LLVMValueRef panel;
    int64_t panel_step;
    bool starts; /* the first block: accumulators start from the bias and, in a direct strip, the epilogue's terms */
} cg_linear_block;

/* ---- cpu_linear_rows.c: rows of A and of the result, for both forms of linear ------------------------------------ */

/* A vector of the bias, from the column on. */
LLVMValueRef cg_linear_bias(cg_emitter *e, const cg_linear_block *l, LLVMValueRef column);
/* The epilogue of `acc`, whose lanes hold consecutive columns in a row. Rows count from the block's first. */
LLVMValueRef cg_linear_epilogue(cg_emitter *e, const cg_linear_block *l, LLVMValueRef row, LLVMValueRef column,
                                LLVMValueRef acc);
/* Applies the epilogue to `width` columns of a staged row, whose sums are at `from`, and stores them. */
void cg_finish_vector(cg_emitter *e, const cg_linear_block *l, LLVMValueRef from, LLVMValueRef row, LLVMValueRef column,
                      int width);

/* Copies `count` rows of A, from `from` on, to l->copy in the tiles' layout, cg_copy_stride elements per row. Zeros
 * come first if the weights have them. `count` is at least one. If rows are windows, `from` is the first element of A,
 * and the rows are those from l->first_row on. */
void cg_copy_rows(cg_emitter *e, const cg_linear_block *l, LLVMValueRef from, LLVMValueRef from_stride,
                  LLVMValueRef count);
/* Windows read in place: stores each block row's distance to l->distances; and the distance of column `column` from the
 * row start. */
void cg_note_windows(cg_emitter *e, const cg_linear_block *l);
LLVMValueRef cg_window_column(cg_emitter *e, const pl_windows *windows, LLVMValueRef column);
int64_t cg_copy_stride(const cg_linear_block *l);

/* Applies the epilogue to rows from..to in a finished scratch strip and writes its `columns` columns to out. */
void cg_finish_rows(cg_emitter *e, const cg_linear_block *l, int64_t columns, LLVMValueRef from, LLVMValueRef to);

/* ---- cpu_linear_amx.c: linear with matrix tiles ------------------------------------------------------------------ */

/* All strips in the row block with matrix tiles. l->stage holds CG_AMX_GROUP rows. l->copy holds the whole block if
 * `copies` is set, otherwise the last group. If `overlaps` is set, each block's epilogue runs between the next block's
 * products. */
enum { CG_AMX_GROUP = 32 };
void cg_linear_amx(cg_emitter *e, cg_linear_block *l, bool copies, bool overlaps);

/* ---- cpu_linear_winograd.c: linears over 3x3 windows by the transform F(2x2, 3x3) of Winograd -------------------- */

/* Are the weights packed as transformed taps (cg_pack_taps)? */
bool cg_has_transformed_taps(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target);

/* Emits the whole kernel; is_split: it computes the call's slice. l->stage is the scratch memory. */
void cg_linear_winograd(cg_emitter *e, cg_linear_block *l, bool is_split);
int64_t cg_linear_winograd_scratch(const pl_linear *k, const cg_cpu_target *target);
