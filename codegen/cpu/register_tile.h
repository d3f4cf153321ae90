/* register_tile.h — the register tile, the one inner loop of linear and attention, and the walk over rows that feeds it.
 *
 * A tile is rows × vectors accumulators that stay in registers while a loop adds outer products: one scalar a row,
 * broadcast, times one row of a panel whose vectors are contiguous and aligned. Of products of pairs a scalar is two
 * consecutive bfloat16, and the panel's row is two rows of k: as many bytes, so that the loop is the same.
 */
#ifndef CG_CPU_REGISTER_TILE_H
#define CG_CPU_REGISTER_TILE_H

#include "codegen/cpu/emit.h"

enum { CG_MAX_TILE_ROWS = 8, CG_MAX_TILE_VECTORS = 4 };

typedef struct cg_tile {
    int rows, vectors;
    bool pairs;                                               /* of bfloat16 are what is multiplied */
    LLVMValueRef acc[CG_MAX_TILE_ROWS * CG_MAX_TILE_VECTORS]; /* row-major: i * vectors + j */
} cg_tile;

/* What the inner loop reads at step k: row[i][k * row_step] for each row and panel[k * panel_step …], f32 or pairs. */
typedef struct cg_tile_operands {
    LLVMValueRef row[CG_MAX_TILE_ROWS]; /* pointers */
    LLVMValueRef row_step;
    LLVMValueRef panel; /* aligned to a vector */
    int64_t panel_step; /* a multiple of the vector */
} cg_tile_operands;

/* Other work, in the shadow of a tile's multiplications: a piece of it in each of the inner loop's first turns. */
typedef struct cg_shadow {
    int pieces; /* at most cg_tile_turns */
    void (*emit)(cg_emitter *e, void *context, LLVMValueRef piece);
    void *context;
} cg_shadow;

/* acc[i, j] += sum over k < count of row i's scalar times vector j of the panel's row. A constant count needs no
 * remainder loop, and only with one may there be a shadow; else it is NULL. */
void cg_tile_accumulate(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef count,
                        const cg_shadow *shadow);
int64_t cg_tile_turns(bool pairs, int64_t count);

/* The rows that one tile covers. In a clamped tile surplus rows repeat the last row of all: they read the same data,
 * compute the same values and store them to the same place, so that a tile needs neither bounds checks nor masks. It
 * follows that all loads of a tile's results must come before its first store. */
typedef struct cg_rows {
    int count;
    bool clamped;
    LLVMValueRef index[CG_MAX_TILE_ROWS];
} cg_rows;

/* base + index[i] * stride, in elements */
LLVMValueRef cg_row_pointer(cg_emitter *e, LLVMTypeRef element, const cg_rows *rows, int i, LLVMValueRef base,
                            LLVMValueRef stride);

/* Calls `body` to emit the code of a tile, once for each shape of tile, inside loops that together cover rows 0 …
 * count-1 (count >= 1). `carried` go from tile to tile: body replaces them; afterwards they hold the last values. */
typedef void (*cg_rows_body)(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried);
void cg_for_rows(cg_emitter *e, LLVMValueRef count, LLVMValueRef *carried, int carried_count, cg_rows_body body,
                 void *context);
/* How many of the rows, from the first on, are covered by tiles of target->tile_rows that are not clamped. */
LLVMValueRef cg_whole_tile_rows(cg_emitter *e, LLVMValueRef count);

#endif
