/* amx.h — matrix tiles of AMX-BF16, the handful of operations by which kernels reach them.
 *
 * There are eight tiles of 16 rows of 64 bytes: sums, 16 × 16 of f32; a left factor, 16 rows of 32 bfloat16; a right
 * one, 16 rows of 16 pairs, which is sixteen columns of cg_pack_bf16. A configuration holds from an entry function's
 * beginning to its end (llvm_module.c). A target in plain vectors has the tiles in memory instead.
 */
#ifndef CG_CPU_AMX_H
#define CG_CPU_AMX_H

#include "codegen/cpu/emit.h"

enum { CG_AMX_TILES = 8, CG_AMX_ROWS = 16, CG_AMX_ROW_BYTES = 64, CG_AMX_BF16 = 16 };

/* Around all kernels of a call: every tile whole. */
void cg_amx_configure(cg_emitter *e);
void cg_amx_release(cg_emitter *e);

/* In a kernel's first block, before any of the following. Tiles hold nothing then. */
void cg_amx_begin_kernel(cg_emitter *e);
void cg_amx_zero(cg_emitter *e, int tile);
/* Sixteen rows, `stride` bytes (i64) from one to the next; a stride of 0 repeats one. */
void cg_amx_load(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride);
void cg_amx_store(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride);
/* sums += left × right */
void cg_amx_dot(cg_emitter *e, int sums, int left, int right);

#endif
