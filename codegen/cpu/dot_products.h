/* dot_products.h — products of 16-bit factors: bf16 pairs, bfmmla and AMX. */
#pragma once

#include "codegen/cpu/emit.h"

/* ---- bf16.c: bfloat16 in CPU kernels: the buffers stored in it, conversions, and bf16 dot products --------------- */

/* Element type of a buffer in memory: BF16 if the plan keeps it in 16 bits and the target's kernels read that,
 * otherwise the buffer's own type. */
mdot_dtype cg_stored_dtype(const cg_cpu_target *target, const pl_buffer *buffer);

/* True if a kernel rounds both factors to bf16 on the target. */
bool cg_multiplies_bf16(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel);

/* An f32 buffer's elements in either stored type: the type, and loads and stores for `lanes` elements. */
LLVMTypeRef cg_stored_type(cg_emitter *e, const pl_plan *plan, int buffer);
LLVMValueRef cg_load_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef address, int lanes);
void cg_store_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef value, LLVMValueRef address);

/* Converts f32 to bfloat16 in memory (i16), scalar or vector; rounding to nearest, half to even. */
LLVMValueRef cg_f32_to_bf16(cg_emitter *e, LLVMValueRef value);

/* Pair vectors: one i32 per lane, with the pair's first element in the low half. The results are f32. */
LLVMValueRef cg_low_of_bf16(cg_emitter *e, LLVMValueRef pairs);
LLVMValueRef cg_high_of_bf16(cg_emitter *e, LLVMValueRef pairs);
/* acc + high(a) * high(b) + low(a) * low(b), lane by lane, acc in f32. */
LLVMValueRef cg_bf16_dot(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc);

/* ---- bf16_blocks.c: the register tile by bfmmla (AArch64, FEAT_BF16), which multiplies two rows of four bfloat16 by
 * two columns of four: twice the products of bfdot, in one instruction.
 *
 * Its accumulator is a block of two rows and two columns. A vector of the tile's row has four columns; with the next
 * row it makes two blocks. Therefore a tile of an even number of rows has as many blocks as vectors. The factors stay
 * as bfdot reads them: pairs of k. Interleaving the words of two rows of a panel gives each column's four elements.
 */

enum { CG_BLOCK_STEPS = 2 }; /* pairs of k per product */

/* A tile's accumulators, as in tiles.h: acc[i * vectors + j]. */
typedef struct cg_blocks {
    int rows, vectors;
    LLVMValueRef *acc;
} cg_blocks;

/* True if the target has the instruction and the tile an even number of rows. */
bool cg_has_blocks(const cg_emitter *e, int rows);
/* Converts the accumulators from vectors of rows to blocks, or back. */
void cg_exchange_blocks(cg_emitter *e, const cg_blocks *blocks);
/* Adds two steps' products to the blocks. Each row has the pointer of the first pair, which the second follows. The
 * panel's rows are panel_step words apart. */
void cg_add_to_blocks(cg_emitter *e, const cg_blocks *blocks, const LLVMValueRef *rows, LLVMValueRef panel,
                      int64_t panel_step);

/* ---- amx.c: matrix tiles of AMX-BF16: the few operations that kernels use on them.
 *
 * There are eight tiles of 16 rows of 64 bytes: sums, 16 × 16 of f32; a left factor, 16 rows of 32 bfloat16; a right
 * factor, 16 rows of 16 pairs, which is sixteen columns of cg_pack_bf16. A configuration is valid from an entry
 * function's beginning to its end (llvm_module.c). A target with use_generic_vectors keeps the tiles in memory instead.
 */

enum { CG_AMX_TILES = 8, CG_AMX_ROWS = 16, CG_AMX_ROW_BYTES = 64, CG_AMX_BF16 = 16 };

/* Called around all kernels of a call: configures every tile at full size, and releases the tiles. */
void cg_amx_configure(cg_emitter *e);
void cg_amx_release(cg_emitter *e);

/* Called in a kernel's first block, before the following functions. The tiles' contents are then undefined. */
void cg_amx_begin_kernel(cg_emitter *e);
void cg_amx_zero(cg_emitter *e, int tile);
/* Load or store sixteen rows, `stride` bytes (i64) apart. A stride of 0 repeats one row. */
void cg_amx_load(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride);
void cg_amx_store(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride);
/* sums += left × right */
void cg_amx_dot(cg_emitter *e, int sums, int left, int right);
