/* cpu_linear_rows.h — rows of A and of the result, for both forms of linear. */
#ifndef CG_CPU_LINEAR_ROWS_H
#define CG_CPU_LINEAR_ROWS_H

#include "codegen/cpu/cpu_linear_block.h"

/* The epilogue of `acc`, which holds consecutive columns of a row in its lanes. Rows count from the block's first. */
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
/* Windows that are read in place: stores the distance of each row of the block to l->distances; and the distance of
 * column `column` from the start of its row. */
void cg_note_windows(cg_emitter *e, const cg_linear_block *l);
LLVMValueRef cg_window_column(cg_emitter *e, const pl_windows *windows, LLVMValueRef column);
int64_t cg_copy_stride(const cg_linear_block *l);

/* Applies the epilogue to rows from..to of a finished strip in scratch and writes its `columns` columns to out. */
void cg_finish_rows(cg_emitter *e, const cg_linear_block *l, int64_t columns, LLVMValueRef from, LLVMValueRef to);

#endif
