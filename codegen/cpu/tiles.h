/* tiles.h — inner loops over register tiles, for linear, attention and nests. */
#pragma once

#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/emit.h"

/* ---- register_tile.c: the register tile, the single inner loop of linear and attention, and the iteration over rows
 * that feeds it.
 *
 * A tile is rows × vectors accumulators that stay in registers while a loop adds outer products: one scalar per row,
 * broadcast, times one row of a panel whose vectors are contiguous and aligned. In bf16 dot products, a scalar is two
 * consecutive bfloat16, and the panel's row is two rows of k. The bytes are the same, so that the loop is the same.
 */

typedef struct cg_tile {
    int rows, vectors;
    bool use_bf16_dot;                                        /* use bf16 dot products */
    bool unrolls;                                             /* a constant count of at most 12 has no loop */
    bool in_blocks;                                           /* inside cg_tile_accumulate: see dot_products.h */
    LLVMValueRef acc[CG_MAX_TILE_ROWS * CG_MAX_TILE_VECTORS]; /* row-major: i * vectors + j */
} cg_tile;

/* Operands of the inner loop at step k: row[i][k * row_step] for each row and panel[k * panel_step …], f32 or pairs. */
typedef struct cg_tile_operands {
    LLVMValueRef row[CG_MAX_TILE_ROWS]; /* pointers */
    LLVMValueRef row_step;
    LLVMValueRef panel; /* aligned to a vector */
    int64_t panel_step; /* a multiple of the vector */
} cg_tile_operands;

/* Other work during a tile's multiplications: one piece in each early inner loop iteration. */
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

/* The rows of one tile. In a clamped tile, surplus rows repeat the very last row. They read the same data, compute the
 * same values and store them to the same address. Therefore a tile works without bounds checks and masks. Therefore all
 * loads of a tile's results must precede the first store. */
typedef struct cg_rows {
    int count;
    bool clamped;
    LLVMValueRef index[CG_MAX_TILE_ROWS];
} cg_rows;

/* base + index[i] * stride, in elements */
LLVMValueRef cg_row_pointer(cg_emitter *e, LLVMTypeRef element, const cg_rows *rows, int i, LLVMValueRef base,
                            LLVMValueRef stride);

/* Calls `body` to emit a tile's code, once for each tile shape, inside loops that together cover rows 0 … count-1
 * (count >= 1). `carried` values pass from tile to tile: body replaces them, and afterwards they hold the last
 * values. */
typedef void (*cg_rows_body)(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried);
void cg_for_rows(cg_emitter *e, LLVMValueRef count, LLVMValueRef *carried, int carried_count, cg_rows_body body,
                 void *context);
/* Leading rows covered by unclamped tiles of target->tile_rows. */
LLVMValueRef cg_whole_tile_rows(cg_emitter *e, LLVMValueRef count);

/* ---- cpu_product.c: nests that multiply two run-time matrices, with the register tile of linear kernels ---------- */

/* Roles for a nest's loops and factors: for each point in the other output loops, out[row, column] = stores(sum over k
 * of left[row, k] * right[k, column]). */
typedef struct cg_product {
    int row_loop, column_loop, k_loop;
    const pl_expr *left, *right;
    bool transposes;  /* vectors of `right` run along k, so packing transposes them */
    bool copies_left; /* `left` is computed, or is not f32 in memory: a tile's rows are copied first */
} cg_product;

/* Is the nest such a product, worth packing, and with stores that are vectors along the columns? */
bool cg_product_find(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target, cg_product *out_product);

int64_t cg_product_scratch_bytes(const pl_plan *plan, const pl_nest *nest, const cg_product *product,
                                 const cg_cpu_target *target);

/* Are the extents large enough at the run-time length? The result is a constant if the extents are. */
LLVMValueRef cg_product_fits(cg_emitter *e, const pl_nest *nest, const cg_product *product);

/* Emits one product, for the given rows and columns. The scope holds the buffers and all other output loops. A range
 * of columns has at least one vector. */
void cg_product_emit(cg_emitter *e, const pl_plan *plan, const pl_nest *nest, const cg_product *product,
                     const cg_scope *scope, cg_range rows, cg_range columns, LLVMValueRef scratch);

/* ---- cpu_transpose.c: nests whose stores run along one loop and whose loads run along another -------------------- */

enum { CG_MAX_TRANSPOSED_LOADS = 4 };

/* The stores are vectors along the columns. The listed loads are vectors along the rows; all others are vectors or
 * scalars along the columns. */
typedef struct cg_transposition {
    int row_loop, column_loop;
    const pl_expr *load[CG_MAX_TRANSPOSED_LOADS];
    int load_count;
} cg_transposition;

bool cg_transposition_find(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target,
                           cg_transposition *out_transposition);

/* Do both loops have at least one vector at the run-time length? The result is a constant if the extents are. */
LLVMValueRef cg_transposition_fits(cg_emitter *e, const pl_nest *nest, const cg_transposition *transposition);

/* Emits the given rows and columns. The scope holds the buffers and all other loops. A range that is not empty has at
 * least one vector. */
void cg_transposition_emit(cg_emitter *e, const pl_plan *plan, const pl_nest *nest,
                           const cg_transposition *transposition, const cg_scope *scope, cg_range rows,
                           cg_range columns);
