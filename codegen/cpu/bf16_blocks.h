/* bf16_blocks.h — the register tile by bfmmla (AArch64, FEAT_BF16), which multiplies two rows of four bfloat16 by two
 * columns of four: twice the products of bfdot, in one instruction.
 *
 * Its accumulator is a block of two rows and two columns. A vector of the tile's row has four columns; with the next
 * row it makes two blocks. Therefore a tile of an even number of rows has as many blocks as vectors. The factors stay
 * as bfdot reads them: pairs of k. Interleaving the words of two rows of a panel gives each column's four elements.
 */
#ifndef CG_CPU_BF16_BLOCKS_H
#define CG_CPU_BF16_BLOCKS_H

#include "codegen/cpu/emit.h"

enum { CG_BLOCK_STEPS = 2 }; /* pairs of k per product */

/* A tile's accumulators, as in register_tile.h: acc[i * vectors + j]. */
typedef struct cg_blocks {
    int rows, vectors;
    LLVMValueRef *acc;
} cg_blocks;

/* True if the target has the instruction and the tile an even number of rows. */
bool cg_has_blocks(const cg_emitter *e, int rows);
/* Converts the accumulators from vectors of rows to blocks, or back. */
void cg_exchange_blocks(cg_emitter *e, const cg_blocks *blocks);
/* Adds the products of two steps to the blocks. Each row has the pointer of its first pair, which the second follows.
 * The panel's rows are panel_step words apart. */
void cg_add_to_blocks(cg_emitter *e, const cg_blocks *blocks, const LLVMValueRef *rows, LLVMValueRef panel,
                      int64_t panel_step);

#endif
