/* register_tile.h — the register tile, the single inner loop of linear and attention, and the iteration over rows that
 * feeds it.
 *
 * A tile is rows × vectors accumulators that stay in registers while a loop adds outer products: one scalar per row,
 * broadcast, times one row of a panel whose vectors are contiguous and aligned. In bf16 dot products, a scalar is two
 * consecutive bfloat16, and the panel's row is two rows of k. The bytes are the same, so that the loop is the same.
 */
#ifndef CG_CPU_REGISTER_TILE_H
#define CG_CPU_REGISTER_TILE_H

#include "codegen/cpu/emit.h"

typedef struct cg_tile {
    int rows, vectors;
    bool use_bf16_dot;                                        /* use bf16 dot products */
    bool in_blocks;                                           /* inside of cg_tile_accumulate: see bf16_blocks.h */
    LLVMValueRef acc[CG_MAX_TILE_ROWS * CG_MAX_TILE_VECTORS]; /* row-major: i * vectors + j */
} cg_tile;

/* Operands of the inner loop at step k: row[i][k * row_step] for each row and panel[k * panel_step …], f32 or pairs. */
typedef struct cg_tile_operands {
    LLVMValueRef row[CG_MAX_TILE_ROWS]; /* pointers */
    LLVMValueRef row_step;
    LLVMValueRef panel; /* aligned to a vector */
    int64_t panel_step; /* a multiple of the vector */
} cg_tile_operands;

/* Other work that overlaps with a tile's multiplications: one piece in each of the inner loop's first iterations. */
typedef struct cg_overlap {
    int pieces; /* at most cg_tile_iterations */
    void (*emit)(cg_emitter *e, void *context, LLVMValueRef piece);
    void *context;
} cg_overlap;

/* acc[i, j] += sum over k < count of row i's scalar times vector j of the panel's row. A constant count needs no
 * remainder loop. A shadow requires a constant count; otherwise it must be NULL. */
void cg_tile_accumulate(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef count,
                        const cg_overlap *overlap);
int64_t cg_tile_iterations(const cg_cpu_target *target, bool use_bf16_dot, int64_t count);

/* The rows of one tile. In a clamped tile, surplus rows repeat the very last row. They read the same data, compute
 * the same values and store them to the same address. Therefore a tile works without bounds checks and masks.
 * Therefore all loads of a tile's results must precede its first store. */
typedef struct cg_rows {
    int count;
    bool clamped;
    LLVMValueRef index[CG_MAX_TILE_ROWS];
} cg_rows;

/* base + index[i] * stride, in elements */
LLVMValueRef cg_row_pointer(cg_emitter *e, LLVMTypeRef element, const cg_rows *rows, int i, LLVMValueRef base,
                            LLVMValueRef stride);

/* Calls `body` to emit the code of a tile, once for each tile shape, inside loops that together cover rows 0 …
 * count-1 (count >= 1). `carried` values pass from tile to tile: body replaces them, and afterwards they hold the
 * last values. */
typedef void (*cg_rows_body)(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried);
void cg_for_rows(cg_emitter *e, LLVMValueRef count, LLVMValueRef *carried, int carried_count, cg_rows_body body,
                 void *context);
/* Number of leading rows that unclamped tiles of target->tile_rows cover. */
LLVMValueRef cg_whole_tile_rows(cg_emitter *e, LLVMValueRef count);

#endif
