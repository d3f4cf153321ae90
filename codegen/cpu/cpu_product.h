/* cpu_product.h — nests that multiply two run-time matrices, with the register tile of linear kernels. */
#ifndef CG_CPU_PRODUCT_H
#define CG_CPU_PRODUCT_H

#include "codegen/cpu/cpu_expr.h"
#include "codegen/cpu/emit.h"

/* Roles of a nest's loops and factors: for each point of the other output loops,
 * out[row, column] = stores(sum over k of left[row, k] * right[k, column]). */
typedef struct cg_product {
    int row_loop, column_loop, k_loop;
    const pl_expr *left, *right;
    bool transposes;  /* vectors of `right` run along k, so that packing transposes them */
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

#endif
