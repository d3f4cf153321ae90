/* cpu_transpose.h — nests whose stores run along one loop and whose loads run along another. */
#ifndef CG_CPU_TRANSPOSE_H
#define CG_CPU_TRANSPOSE_H

#include "codegen/cpu/cpu_expr.h"
#include "codegen/cpu/emit.h"

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

#endif
