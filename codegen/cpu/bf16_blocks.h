/* bf16_blocks.h — the register tile by bfmmla (AArch64, FEAT_BF16), which multiplies two rows of four bfloat16 by two
 * columns of four: twice the products of bfdot, in one instruction.
 *
 * Its accumulator is a block of two rows and two columns. A vector of the tile's row has four columns; with the next
 * row it makes two blocks. Therefore a tile of an even number of rows has as many blocks as vectors. The factors stay
 * as bfdot reads them: pairs of k. Interleaving the words of two rows of a panel gives each column's four elements.
 */
#ifndef CG_CPU_BF16_BLOCKS_H
#define CG_CPU_BF16_BLOCKS_H

#include "codegen/cpu/register_tile.h"

enum { CG_BLOCK_STEPS = 2 }; /* pairs of k per product */

/* True if the target has the instruction and the tile an even number of rows. */
bool cg_tile_has_blocks(const cg_emitter *e, const cg_tile *tile);
/* Convert the accumulators between vectors of rows and blocks. */
void cg_tile_to_blocks(cg_emitter *e, cg_tile *tile);
void cg_tile_from_blocks(cg_emitter *e, cg_tile *tile);
/* Adds the products of two steps to the blocks. `at` has the rows at the first step, whose pairs are consecutive, and
 * `panel` is the panel's row of that step. */
void cg_tile_add_blocks(cg_emitter *e, cg_tile *tile, const cg_tile_operands *at, LLVMValueRef panel);

#endif
