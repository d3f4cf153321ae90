/* cpu_transpose.c — transposes in registers: see tiles.h.
 *
 * A block is one vector of rows times one vector of columns. The elements are loaded along the rows, transposed in
 * registers, and used as the values of the loads along the columns. Without this, each lane has a load and a separate
 * insertion. The last blocks are moved back to end with the loops, as in cpu_nest.c. */
#include "codegen/cpu/tiles.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/dot_products.h"
#include "plan/expr.h"

enum { MAX_LANES = 16, VISIT_BUDGET = 1024 };

/* The output loop other than the columns along which an index runs through adjacent elements; -1: there is none. */
static int loop_along(const pl_nest *nest, const pl_expr *index, int column_loop)
{
    for (int loop = 0; loop < nest->loop_count; loop++) {
        int64_t stride;
        if (loop != column_loop && pl_expr_stride(index, loop, &stride) && stride == 1) return loop;
    }
    return -1;
}

/* Lists the loads that are apart along the columns. False: some cannot be transposed. */
static bool list_loads(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target, const pl_expr *expr,
                       int *budget, cg_transposition *t)
{
    if (--*budget < 0) return false;
    if (expr->op != PL_LOAD) {
        for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
            if (!list_loads(plan, nest, target, expr->arg[i], budget, t)) return false;
        return true;
    }
    int64_t stride;
    bool is_affine = pl_expr_stride(expr->arg[0], t->column_loop, &stride);
    if (is_affine && stride >= -1 && stride <= 1) return true;
    for (int i = 0; i < t->load_count; i++)
        if (t->load[i] == expr) return true;
    int loop = loop_along(nest, expr->arg[0], t->column_loop);
    if (loop < 0 || t->load_count == CG_MAX_TRANSPOSED_LOADS || (t->load_count > 0 && loop != t->row_loop))
        return false;
    if (cg_stored_dtype(target, &plan->buffers[expr->i]) != MDOT_DTYPE_F32) return false;
    t->row_loop = loop;
    t->load[t->load_count++] = expr;
    return true;
}

static bool has_a_vector(ir_dim extent, const cg_cpu_target *target)
{
    return !ir_dim_is_number(extent) || extent.offset >= target->lanes;
}

bool cg_transposition_find(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target,
                           cg_transposition *out_transposition)
{
    if (nest->body != NULL || cg_is_in_place(nest)) return false;
    for (int loop = nest->loop_count - 1; loop >= 0; loop--) {
        cg_transposition t = {.column_loop = loop};
        int budget = VISIT_BUDGET;
        bool applies = has_a_vector(nest->extent[loop], target) && cg_stores_along(nest, loop);
        for (int s = 0; s < nest->store_count && applies; s++)
            applies = list_loads(plan, nest, target, nest->store[s].value, &budget, &t);
        if (!applies || t.load_count == 0 || !has_a_vector(nest->extent[t.row_loop], target)) continue;
        *out_transposition = t;
        return true;
    }
    return false;
}

LLVMValueRef cg_transposition_fits(cg_emitter *e, const pl_nest *nest, const cg_transposition *transposition)
{
    LLVMValueRef lanes = cg_int(e, e->target->lanes);
    LLVMValueRef rows = cg_dim(e, nest->extent[transposition->row_loop]);
    LLVMValueRef columns = cg_dim(e, nest->extent[transposition->column_loop]);
    return LLVMBuildICmp(e->builder, LLVMIntSGE, cg_imin(e, rows, columns), lanes, "");
}

/* Sets block[i] to the load's elements in block row i. */
static void load_block(cg_emitter *e, const pl_plan *plan, const cg_transposition *t, const cg_scope *scope,
                       const pl_expr *load, LLVMValueRef *block)
{
    int lanes = e->target->lanes;
    cg_scope along_rows = *scope;
    along_rows.vector_loop = t->row_loop;
    for (int i = 0; i < lanes; i++) {
        along_rows.loops[t->column_loop] = cg_iadd(e, scope->loops[t->column_loop], cg_int(e, i));
        block[i] = cg_expr(e, &along_rows, plan, load);
    }
    cg_transpose(e, block);
}

void cg_transposition_emit(cg_emitter *e, const pl_plan *plan, const pl_nest *nest,
                           const cg_transposition *transposition, const cg_scope *outer, cg_range rows,
                           cg_range columns)
{
    const cg_transposition *t = transposition;
    int lanes = e->target->lanes;
    LLVMValueRef block[CG_MAX_TRANSPOSED_LOADS][MAX_LANES];
    cg_known_value known[CG_MAX_TRANSPOSED_LOADS];
    cg_scope scope = *outer;
    scope.vector_loop = t->column_loop;
    scope.lanes = lanes;
    CG_FOR (e, row, rows.from, rows.to, lanes) {
        LLVMValueRef first_row = cg_vector_within(e, row.index, rows.to);
        CG_FOR (e, column, columns.from, columns.to, lanes) {
            scope.loops[t->row_loop] = first_row;
            scope.loops[t->column_loop] = cg_vector_within(e, column.index, columns.to);
            for (int l = 0; l < t->load_count; l++) load_block(e, plan, t, &scope, t->load[l], block[l]);
            scope.known = known;
            scope.known_count = t->load_count;
            for (int i = 0; i < lanes; i++) {
                for (int l = 0; l < t->load_count; l++) known[l] = (cg_known_value){t->load[l], block[l][i]};
                scope.loops[t->row_loop] = cg_iadd(e, first_row, cg_int(e, i));
                cg_expr_stores(e, &scope, plan, nest->store, nest->store_count);
            }
        }
    }
}
