/* cpu_product.c — products of two run-time matrices: see tiles.h.
 *
 *   for each strip of columns              as wide as a register tile, or half as wide at the end
 *     pack the strip of the right factor   into scratch, as rows of k; transposed if its vectors run along k
 *     for each tile of rows                register_tile.c
 *       the tile's sums go to a stage, then through the stores, one vector at a time
 *
 * The panel has all of k, so that a tile's sums are complete when they leave the registers. A panel of 64 columns and
 * 1024 rows is 256 KB, which the L2 cache holds; the register tile needs about 21 bytes of it per cycle.
 *
 * The last vectors of a range of columns are moved back to end with the range, as in cpu_nest.c. Therefore some columns
 * occur twice in a panel. They have equal sums and are stored twice, so a nest that also loads from a stored buffer is
 * no product here.
 */
#include "codegen/cpu/tiles.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/dot_products.h"
#include "plan/expr.h"

enum {
    FEWEST_ROWS = 6, /* with fewer, packing costs as much as it saves */
    FEWEST_K = 4,
    MOST_K = 1 << 14 /* a panel of 4 MB */
};

/* Number of loads whose elements are apart along the loop, so each lane needs a separate load. */
static int irregular_loads(const pl_expr *expr, int loop)
{
    int64_t stride;
    if (expr->op == PL_LOAD) {
        bool is_affine = pl_expr_stride(expr->arg[0], loop, &stride);
        return !is_affine || stride < -1 || stride > 1;
    }
    int count = 0;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++) count += irregular_loads(expr->arg[i], loop);
    return count;
}

/* Is an index affine in k, with a coefficient that is the same for all rows? The coefficient may depend on the
 * length. */
static bool is_affine_in_k(const pl_expr *index, const cg_product *p)
{
    switch (index->op) {
    case PL_INDEX: return true;
    case PL_ADD:
    case PL_SUB: return is_affine_in_k(index->arg[0], p) && is_affine_in_k(index->arg[1], p);
    case PL_MUL:
        for (int i = 0; i < 2; i++) {
            const pl_expr *other_expr = index->arg[1 - i];
            if (!pl_expr_uses_index(other_expr, p->k_loop) && !pl_expr_uses_index(other_expr, p->row_loop))
                return is_affine_in_k(index->arg[i], p);
        }
        return !pl_expr_uses_index(index, p->k_loop);
    default: return !pl_expr_uses_index(index, p->k_loop);
    }
}

static bool reads_in_place(const pl_plan *plan, const cg_product *p, const cg_cpu_target *target)
{
    return p->left->op == PL_LOAD && cg_stored_dtype(target, &plan->buffers[p->left->i]) == MDOT_DTYPE_F32 &&
           is_affine_in_k(p->left->arg[0], p);
}

static bool is_at_least(ir_dim extent, int64_t count) { return !ir_dim_is_number(extent) || extent.offset >= count; }

/* An extent of the length wins over a constant. Buckets share code, so the maximum length may not decide. */
static int longest_row_loop(const pl_nest *nest, const cg_product *p)
{
    int best = -1;
    int64_t maximum = FEWEST_ROWS - 1;
    for (int loop = 0; loop < nest->loop_count; loop++) {
        if (loop == p->column_loop || !pl_expr_uses_index(p->left, loop) || pl_expr_uses_index(p->right, loop))
            continue;
        ir_dim dim = nest->extent[loop];
        int64_t extent = ir_dim_is_number(dim) ? dim.offset : INT64_MAX;
        if (extent > maximum) best = loop, maximum = extent;
    }
    return best;
}

/* Vectors along k end with k, so it has at least one. */
static int64_t fewest_k(const cg_product *p, const cg_cpu_target *target)
{
    return p->transposes || p->copies_left ? target->lanes : 1;
}

static bool find_roles(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target, int column_loop,
                       cg_product *out)
{
    const pl_expr *const *factor = nest->body->arg;
    bool first = pl_expr_uses_index(factor[0], column_loop), second = pl_expr_uses_index(factor[1], column_loop);
    if (first == second || !cg_stores_along(nest, column_loop)) return false;
    *out = (cg_product){
        .column_loop = column_loop, .k_loop = nest->loop_count, .left = factor[first], .right = factor[second]};
    out->row_loop = longest_row_loop(nest, out);
    if (out->row_loop < 0) return false;
    out->transposes = irregular_loads(out->right, out->k_loop) < irregular_loads(out->right, column_loop);
    out->copies_left = !reads_in_place(plan, out, target);
    return is_at_least(nest->extent[out->k_loop], fewest_k(out, target));
}

bool cg_product_find(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target, cg_product *out_product)
{
    if (nest->reducer != PL_REDUCE_SUM || nest->reduce_count != 1 || nest->body->op != PL_MUL) return false;
    ir_dim k = nest->extent[nest->loop_count];
    if (nest->body->dtype != MDOT_DTYPE_F32 || !is_at_least(k, FEWEST_K) || cg_is_in_place(nest)) return false;
    if (ir_dim_is_number(k) && k.offset > MOST_K) return false;
    for (int loop = nest->loop_count - 1; loop >= 0; loop--)
        if (is_at_least(nest->extent[loop], target->lanes) && find_roles(plan, nest, target, loop, out_product))
            return true;
    return false;
}

static int64_t strip_columns(const cg_cpu_target *target) { return (int64_t)target->tile_vectors * target->lanes; }

/* Scratch parts: a tile's sums, copied left factor rows if there are any, and the panel. Only the last two depend on k.
 * Their places follow from its run-time value, because buckets share code. */
static int64_t stage_elements(const cg_cpu_target *target) { return CG_MAX_TILE_ROWS * strip_columns(target); }

static int64_t copied_rows(const cg_product *p) { return p->copies_left ? CG_MAX_TILE_ROWS : 0; }

int64_t cg_product_scratch_bytes(const pl_plan *plan, const pl_nest *nest, const cg_product *product,
                                 const cg_cpu_target *target)
{
    int64_t k = ir_dim_most(nest->extent[product->k_loop], 1, plan->max_length);
    if (k > MOST_K) k = MOST_K;
    int64_t padded = (k + target->lanes - 1) / target->lanes * target->lanes;
    return 4 * (stage_elements(target) + copied_rows(product) * padded + k * strip_columns(target));
}

typedef struct multiplication {
    const pl_plan *plan;
    const pl_nest *nest;
    const cg_product *p;
    cg_scope scope;
    cg_range rows, columns;
    LLVMValueRef k_count;
    LLVMValueRef panel, stage, copy; /* scratch: packed columns, a tile's sums, a tile's left rows */
    LLVMValueRef copy_stride;
    LLVMValueRef strip; /* first column */
    int vectors;        /* width of the strip */
} multiplication;

/* First column of the strip's vector `number`. */
static LLVMValueRef vector_column(cg_emitter *e, const multiplication *m, LLVMValueRef number)
{
    LLVMValueRef ahead = cg_imul(e, number, cg_int(e, e->target->lanes));
    return cg_vector_within(e, cg_iadd(e, m->strip, ahead), m->columns.to);
}

static LLVMValueRef panel_vector(cg_emitter *e, const multiplication *m, LLVMValueRef k, LLVMValueRef number)
{
    int lanes = e->target->lanes;
    LLVMValueRef row = cg_at(e, e->f32, m->panel, cg_imul(e, k, cg_int(e, (int64_t)m->vectors * lanes)));
    return cg_at(e, e->f32, row, cg_imul(e, number, cg_int(e, lanes)));
}

/* Blocks of lanes × lanes elements are loaded along k and transposed. */
static void pack_transposed(cg_emitter *e, const multiplication *m)
{
    enum { MAX_LANES = 16 };
    int lanes = e->target->lanes;
    LLVMValueRef block[MAX_LANES];
    cg_scope scope = m->scope;
    scope.vector_loop = m->p->k_loop;
    scope.lanes = lanes;
    CG_FOR_NONEMPTY (e, number, cg_int(e, 0), cg_int(e, m->vectors), 1) {
        LLVMValueRef column = vector_column(e, m, number.index);
        CG_FOR_NONEMPTY (e, k, cg_int(e, 0), m->k_count, lanes) {
            LLVMValueRef first = cg_vector_within(e, k.index, m->k_count);
            scope.loops[m->p->k_loop] = first;
            for (int i = 0; i < lanes; i++) {
                scope.loops[m->p->column_loop] = cg_iadd(e, column, cg_int(e, i));
                block[i] = cg_expr(e, &scope, m->plan, m->p->right);
            }
            cg_transpose(e, block);
            for (int i = 0; i < lanes; i++)
                cg_store(e, block[i], panel_vector(e, m, cg_iadd(e, first, cg_int(e, i)), number.index),
                         4 * (unsigned)lanes);
        }
    }
}

static void pack_rows(cg_emitter *e, const multiplication *m)
{
    cg_scope scope = m->scope;
    scope.vector_loop = m->p->column_loop;
    scope.lanes = e->target->lanes;
    CG_FOR_NONEMPTY (e, k, cg_int(e, 0), m->k_count, 1) {
        scope.loops[m->p->k_loop] = k.index;
        for (int j = 0; j < m->vectors; j++) {
            scope.loops[m->p->column_loop] = vector_column(e, m, cg_int(e, j));
            LLVMValueRef value = cg_expr(e, &scope, m->plan, m->p->right);
            cg_store(e, value, panel_vector(e, m, k.index, cg_int(e, j)), 4 * (unsigned)e->target->lanes);
        }
    }
}

/* Copies a tile's left rows, from row `first` on. */
static void copy_left(cg_emitter *e, const multiplication *m, LLVMValueRef first, int rows)
{
    cg_scope scope = m->scope;
    scope.vector_loop = m->p->k_loop;
    scope.lanes = e->target->lanes;
    LLVMValueRef last_value = cg_isub(e, m->rows.to, cg_int(e, 1));
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), cg_int(e, rows), 1) {
        scope.loops[m->p->row_loop] = cg_imin(e, cg_iadd(e, first, row.index), last_value);
        LLVMValueRef target = cg_at(e, e->f32, m->copy, cg_imul(e, row.index, m->copy_stride));
        CG_FOR_NONEMPTY (e, k, cg_int(e, 0), m->k_count, e->target->lanes) {
            scope.loops[m->p->k_loop] = cg_vector_within(e, k.index, m->k_count);
            LLVMValueRef value = cg_expr(e, &scope, m->plan, m->p->left);
            cg_store(e, value, cg_at(e, e->f32, target, scope.loops[m->p->k_loop]), 0);
        }
    }
}

static LLVMValueRef left_index(cg_emitter *e, const multiplication *m, LLVMValueRef row, int64_t k)
{
    cg_scope scope = m->scope;
    scope.lanes = 1;
    scope.loops[m->p->row_loop] = row;
    scope.loops[m->p->k_loop] = cg_int(e, k);
    return cg_expr(e, &scope, m->plan, m->p->left->arg[0]);
}

static cg_tile_operands operands_of(cg_emitter *e, const multiplication *m, const cg_rows *rows)
{
    cg_tile_operands operands = {
        .row_step = cg_int(e, 1), .panel = m->panel, .panel_step = (int64_t)m->vectors * e->target->lanes};
    LLVMValueRef first = cg_iadd(e, m->rows.from, rows->index[0]);
    if (m->p->copies_left) {
        copy_left(e, m, first, rows->count);
        for (int i = 0; i < rows->count; i++)
            operands.row[i] = cg_at(e, e->f32, m->copy, cg_imul(e, cg_int(e, i), m->copy_stride));
        return operands;
    }
    int64_t step;
    if (pl_expr_stride(m->p->left->arg[0], m->p->k_loop, &step)) {
        operands.row_step = cg_int(e, step);
    } else {
        LLVMValueRef second = left_index(e, m, first, 1);
        operands.row_step = cg_isub(e, second, left_index(e, m, first, 0));
    }
    for (int i = 0; i < rows->count; i++) {
        LLVMValueRef row = cg_iadd(e, m->rows.from, rows->index[i]);
        operands.row[i] = cg_at(e, e->f32, m->scope.buffers[m->p->left->i], left_index(e, m, row, 0));
    }
    return operands;
}

static LLVMValueRef stage_vector(cg_emitter *e, const multiplication *m, LLVMValueRef row, int j)
{
    int lanes = e->target->lanes;
    LLVMValueRef start = cg_at(e, e->f32, m->stage, cg_imul(e, row, cg_int(e, (int64_t)m->vectors * lanes)));
    return cg_at(e, e->f32, start, cg_int(e, (int64_t)j * lanes));
}

/* Passes the staged sums through the stores. Rows that a clamped tile repeats are left out. */
static void finish_tile(cg_emitter *e, const multiplication *m, const cg_rows *rows)
{
    int lanes = e->target->lanes;
    cg_scope scope = m->scope;
    scope.vector_loop = m->p->column_loop;
    scope.lanes = lanes;
    LLVMValueRef first = cg_iadd(e, m->rows.from, rows->index[0]), count = cg_int(e, rows->count);
    if (rows->clamped) count = cg_imin(e, count, cg_isub(e, m->rows.to, first));
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), count, 1) {
        scope.loops[m->p->row_loop] = cg_iadd(e, first, row.index);
        for (int j = 0; j < m->vectors; j++) {
            LLVMTypeRef type = cg_vector(e, e->f32, lanes);
            scope.acc[0] = cg_load(e, type, stage_vector(e, m, row.index, j), 4 * (unsigned)lanes);
            scope.loops[m->p->column_loop] = vector_column(e, m, cg_int(e, j));
            cg_expr_stores(e, &scope, m->plan, m->nest->store, m->nest->store_count);
        }
    }
}

static void emit_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    const multiplication *m = context;
    int lanes = e->target->lanes;
    cg_tile tile = {.rows = rows->count, .vectors = m->vectors};
    cg_tile_operands operands = operands_of(e, m, rows);
    for (int i = 0; i < rows->count * m->vectors; i++) tile.acc[i] = cg_const(e, cg_vector(e, e->f32, lanes), 0);
    cg_tile_accumulate(e, &tile, &operands, m->k_count, NULL);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < m->vectors; j++)
            cg_store(e, tile.acc[i * m->vectors + j], stage_vector(e, m, cg_int(e, i), j), 4 * (unsigned)lanes);
    finish_tile(e, m, rows);
}

/* Strips with `vectors` vectors beginning at columns from … to - 1. */
static void emit_strips(cg_emitter *e, multiplication *m, LLVMValueRef source, LLVMValueRef target, int vectors)
{
    bool are_known = LLVMIsAConstantInt(source) != NULL && LLVMIsAConstantInt(target) != NULL;
    if (are_known && LLVMConstIntGetSExtValue(source) >= LLVMConstIntGetSExtValue(target)) return;
    CG_FOR (e, strip, source, target, (int64_t)vectors * e->target->lanes) {
        m->strip = strip.index;
        m->vectors = vectors;
        if (m->p->transposes)
            pack_transposed(e, m);
        else
            pack_rows(e, m);
        cg_for_rows(e, cg_isub(e, m->rows.to, m->rows.from), NULL, 0, emit_tile, m);
    }
}

/* Whole strips as long as more than half of one remains, then one strip for the remainder. */
static void emit_columns(cg_emitter *e, multiplication *m)
{
    int64_t width = strip_columns(e->target);
    int lanes = e->target->lanes, last_vectors = e->target->tile_vectors / 2;
    LLVMValueRef source = m->columns.from, count = cg_isub(e, m->columns.to, source), wholes;
    if (LLVMIsAConstantInt(count) != NULL) {
        int64_t known = LLVMConstIntGetSExtValue(count), remainder = known % width;
        last_vectors = (int)((remainder + lanes - 1) / lanes);
        wholes = cg_int(e, known - remainder);
    } else {
        wholes = cg_round_down(e, cg_iadd(e, count, cg_int(e, width / 2 - 1)), width);
    }
    LLVMValueRef end = cg_iadd(e, source, wholes);
    emit_strips(e, m, source, end, e->target->tile_vectors);
    if (last_vectors > 0) emit_strips(e, m, end, m->columns.to, last_vectors);
}

LLVMValueRef cg_product_fits(cg_emitter *e, const pl_nest *nest, const cg_product *product)
{
    const struct {
        int loop;
        int64_t fewest, maximum;
    } bounds[] = {{product->row_loop, 1, INT64_MAX},
                  {product->column_loop, e->target->lanes, INT64_MAX},
                  {product->k_loop, fewest_k(product, e->target), MOST_K}};
    LLVMValueRef fits = LLVMConstInt(e->i1, 1, false);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        LLVMValueRef extent = cg_dim(e, nest->extent[bounds[i].loop]);
        LLVMValueRef enough = LLVMBuildICmp(e->builder, LLVMIntSGE, extent, cg_int(e, bounds[i].fewest), "");
        LLVMValueRef not_more = LLVMBuildICmp(e->builder, LLVMIntSLE, extent, cg_int(e, bounds[i].maximum), "");
        fits = LLVMBuildAnd(e->builder, fits, LLVMBuildAnd(e->builder, enough, not_more, ""), "");
    }
    return fits;
}

void cg_product_emit(cg_emitter *e, const pl_plan *plan, const pl_nest *nest, const cg_product *roles,
                     const cg_scope *scope, cg_range rows, cg_range columns, LLVMValueRef scratch)
{
    int lanes = e->target->lanes;
    multiplication m = {.plan = plan,
                        .nest = nest,
                        .p = roles,
                        .scope = *scope,
                        .rows = rows,
                        .columns = columns,
                        .k_count = cg_dim(e, nest->extent[roles->k_loop]),
                        .stage = scratch};
    m.copy = cg_at(e, e->f32, m.stage, cg_int(e, stage_elements(e->target)));
    m.copy_stride = cg_round_down(e, cg_iadd(e, m.k_count, cg_int(e, lanes - 1)), lanes);
    m.panel = cg_at(e, e->f32, m.copy, cg_imul(e, cg_int(e, copied_rows(roles)), m.copy_stride));
    CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, rows.from, rows.to, "")) emit_columns(e, &m);
}
