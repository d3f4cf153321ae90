/* amx.h — matrix tiles of AMX-BF16: the few operations that kernels use on them.
 *
 * There are eight tiles of 16 rows of 64 bytes: sums, 16 × 16 of f32; a left factor, 16 rows of 32 bfloat16; a right
 * factor, 16 rows of 16 pairs, which is sixteen columns of cg_pack_bf16. A configuration is valid from an entry
 * function's beginning to its end (llvm_module.c). A target with use_generic_vectors keeps the tiles in memory instead.
 */
#ifndef CG_CPU_AMX_H
#define CG_CPU_AMX_H

#include "codegen/cpu/emit.h"

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

#endif
