/* linear.c — matrix product with packed weights, bias and an epilogue: the kernel that does most of a Transformer's
 * work.
 *
 *   for each block of ROW_BLOCK rows            A's block and the staging strip stay in the L2 and L1 caches
 *     for each strip of columns                 as wide as a register tile: 64 on v4, 16 on v3
 *       for each block of at most K_BLOCK of k  the strip's weights stay in the L1 cache
 *         for each tile of rows                 tile.c
 *
 * Sums that are not finished, and all sums of a strip whose epilogue is more than an addition, lie in memory between
 * the loops. Either in `out` itself (a direct strip): then the epilogue's other terms are where the accumulators start,
 * so that a residual is added in place for free. Or in scratch (a staged strip), from where a loop of its own applies
 * the epilogue once the strip is finished; inside the tile, GELU costs 6 % more. Strips that are not whole are staged
 * too: scratch has room for the padding that `out` lacks.
 */
#include "codegen/cpu/tile.h"

enum {
    K_BLOCK = 128,  /* × 64 columns of f32 is 32 KB */
    ROW_BLOCK = 96, /* whole tiles of both sizes; × 64 columns of f32 is 24 KB */
};

typedef struct linear {
    const pl_plan *plan;
    const pl_linear *k;
    const LLVMValueRef *buffers;
    LLVMValueRef first_row, row_count; /* of the row block */
    LLVMValueRef a, a_stride;          /* A's first row of the block */
    LLVMValueRef out, out_stride;      /* the same of out */
    LLVMValueRef stage;                /* scratch: rows of `width` */
    int64_t width;                     /* columns of a whole strip */

    LLVMValueRef column; /* the strip's first */
    int vectors;
    bool staged;

    LLVMValueRef k_first, k_count; /* the block of k */
    LLVMValueRef panel;
    bool starts; /* the first block: accumulators start from bias and, in a direct strip, the epilogue's terms */
} linear;

/* ---- Epilogues -------------------------------------------------------------------------------------------------- */

static bool uses_acc(const pl_expr *expr)
{
    if (expr->op == PL_ACC) return true;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (uses_acc(expr->arg[i])) return true;
    return false;
}

/* A term that an accumulator may start from: it does not need the sum and costs little per element. */
static bool cheap_term(const pl_expr *expr)
{
    switch (expr->op) {
    case PL_CONST:
    case PL_LOAD:
        return true;
    case PL_ADD:
    case PL_SUB:
    case PL_MUL:
        return cheap_term(expr->arg[0]) && cheap_term(expr->arg[1]);
    case PL_CAST:
    case PL_NEG:
        return cheap_term(expr->arg[0]);
    default:
        return false;
    }
}

/* acc + terms, in any order: addition of the rest commutes with the summation over k. */
static bool only_adds(const pl_expr *expr)
{
    if (!expr || expr->op == PL_ACC) return true;
    if (expr->op != PL_ADD) return false;
    const pl_expr *left = expr->arg[0], *right = expr->arg[1];
    if (uses_acc(left) && uses_acc(right)) return false;
    return uses_acc(left) ? only_adds(left) && cheap_term(right) : only_adds(right) && cheap_term(left);
}

/* The epilogue of `acc`, lanes consecutive columns of a row. Rows count from the block's first. */
static LLVMValueRef epilogue(cg_emitter *e, const linear *l, LLVMValueRef row, LLVMValueRef column, LLVMValueRef acc)
{
    if (!l->k->epilogue) return acc;
    cg_scope scope = {
        .buffers = l->buffers,
        .loops = {cg_iadd(e, l->first_row, row), column},
        .vector_loop = 1,
        .lanes = cg_lanes(acc),
        .acc = {acc},
    };
    LLVMValueRef value = cg_expr(e, &scope, l->plan, l->k->epilogue);
    return cg_lanes(value) == scope.lanes ? value : cg_splat(e, value, scope.lanes);
}

/* ---- Tiles ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef vector_column(cg_emitter *e, const linear *l, int j)
{
    return cg_iadd(e, l->column, cg_int(e, (int64_t)j * e->target->lanes));
}

/* Where vector j of a tile's row lies between blocks of k. */
static LLVMValueRef result_pointer(cg_emitter *e, const linear *l, const cg_rows *rows, int i, int j)
{
    LLVMValueRef ahead = cg_int(e, (int64_t)j * e->target->lanes);
    if (l->staged) return cg_at(e, e->f32, cg_row_pointer(e, rows, i, l->stage, cg_int(e, l->width)), ahead);
    LLVMValueRef out = cg_at(e, e->f32, l->out, l->column);
    return cg_at(e, e->f32, cg_row_pointer(e, rows, i, out, l->out_stride), ahead);
}

static unsigned result_alignment(const cg_emitter *e, const linear *l)
{
    return l->staged ? 4 * (unsigned)e->target->lanes : 0;
}

static LLVMValueRef bias_vector(cg_emitter *e, const linear *l, int j)
{
    LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
    if (l->k->bias < 0) return cg_const(e, type, -0.0); /* x + -0 is x, even for x = -0 */
    LLVMValueRef address = cg_at(e, e->f32, l->buffers[l->k->bias], vector_column(e, l, j));
    return cg_load(e, type, address, 4 * (unsigned)e->target->lanes);
}

static LLVMValueRef start_value(cg_emitter *e, const linear *l, const cg_rows *rows, int i, int j)
{
    if (!l->starts) {
        LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
        return cg_load(e, type, result_pointer(e, l, rows, i, j), result_alignment(e, l));
    }
    LLVMValueRef bias = bias_vector(e, l, j);
    return l->staged ? bias : epilogue(e, l, rows->index[i], vector_column(e, l, j), bias);
}

static void emit_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    (void)carried;
    const linear *l = context;
    cg_tile tile = {.rows = rows->count, .vectors = l->vectors};
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = l->panel, .panel_step = PL_PANEL_COLUMNS};
    for (int i = 0; i < rows->count; i++)
        operands.row[i] = cg_at(e, e->f32, cg_row_pointer(e, rows, i, l->a, l->a_stride), l->k_first);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < l->vectors; j++) tile.acc[i * l->vectors + j] = start_value(e, l, rows, i, j);
    cg_tile_accumulate(e, &tile, &operands, l->k_count);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < l->vectors; j++)
            cg_store(e, tile.acc[i * l->vectors + j], result_pointer(e, l, rows, i, j), result_alignment(e, l));
}

/* ---- Strips ----------------------------------------------------------------------------------------------------- */

/* The first row of the strip's panel at k_first. */
static LLVMValueRef panel_pointer(cg_emitter *e, const linear *l)
{
    LLVMValueRef panel_column = cg_round_down(e, l->column, PL_PANEL_COLUMNS);
    LLVMValueRef inside = cg_isub(e, l->column, panel_column);
    LLVMValueRef offset = cg_iadd(e, cg_imul(e, panel_column, cg_int(e, l->k->k)), inside);
    offset = cg_iadd(e, offset, cg_imul(e, l->k_first, cg_int(e, PL_PANEL_COLUMNS)));
    return cg_at(e, e->f32, l->buffers[l->k->weight], offset);
}

static void emit_k_block(cg_emitter *e, linear *l, LLVMValueRef k_first, int64_t k_count, bool starts)
{
    l->k_first = k_first;
    l->k_count = cg_int(e, k_count);
    l->starts = starts;
    l->panel = panel_pointer(e, l);
    cg_for_rows(e, l->row_count, NULL, 0, emit_tile, l);
}

/* Blocks of equal size, a multiple of four but for the first, which takes what is left. */
static void emit_k_blocks(cg_emitter *e, linear *l)
{
    int64_t k = l->k->k, blocks = (k + K_BLOCK - 1) / K_BLOCK;
    int64_t size = blocks > 1 ? ((k + blocks - 1) / blocks + 3) / 4 * 4 : 0;
    int64_t first = blocks > 1 ? k - (blocks - 1) * size : k;
    emit_k_block(e, l, cg_int(e, 0), first, true);
    if (blocks <= 1) return;
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, first), cg_int(e, k), size, 0, NULL, false);
    emit_k_block(e, l, loop.index, size, false);
    cg_loop_end(e, &loop, NULL);
}

/* Applies the epilogue to a finished strip in scratch and writes its `columns` columns to out. */
static void finish_strip(cg_emitter *e, const linear *l, int64_t columns)
{
    int lanes = e->target->lanes;
    cg_loop row;
    cg_loop_begin(e, &row, cg_int(e, 0), l->row_count, 1, 0, NULL, false);
    LLVMValueRef stage = cg_at(e, e->f32, l->stage, cg_imul(e, row.index, cg_int(e, l->width)));
    LLVMValueRef out = cg_at(e, e->f32, cg_at(e, e->f32, l->out, cg_imul(e, row.index, l->out_stride)), l->column);
    for (int64_t c = 0; c < columns; c += lanes) {
        int width = (int)(columns - c < lanes ? columns - c : lanes);
        LLVMTypeRef type = cg_vector(e, e->f32, width);
        LLVMValueRef sum = cg_load(e, type, cg_at(e, e->f32, stage, cg_int(e, c)), 4 * (unsigned)lanes);
        LLVMValueRef value = epilogue(e, l, row.index, cg_iadd(e, l->column, cg_int(e, c)), sum);
        cg_store(e, value, cg_at(e, e->f32, out, cg_int(e, c)), 0);
    }
    cg_loop_end(e, &row, NULL);
}

static void emit_strip(cg_emitter *e, linear *l, LLVMValueRef column, int64_t columns, bool staged)
{
    int lanes = e->target->lanes;
    l->column = column;
    l->vectors = (int)((columns + lanes - 1) / lanes);
    l->staged = staged;
    emit_k_blocks(e, l);
    if (staged) finish_strip(e, l, columns);
}

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

static LLVMValueRef matrix_pointer(cg_emitter *e, const LLVMValueRef *buffers, const pl_matrix *matrix)
{
    return cg_at(e, e->f32, buffers[matrix->buffer], cg_dim(e, matrix->offset));
}

static bool needs_stage(const pl_linear *k, int64_t strip_columns)
{
    return !only_adds(k->epilogue) || k->columns % strip_columns != 0;
}

int64_t cg_linear_scratch_bytes(const pl_plan *plan, const pl_linear *k, const cg_target *target)
{
    (void)plan;
    int64_t strip_columns = (int64_t)target->tile_vectors * target->lanes;
    return needs_stage(k, strip_columns) ? ROW_BLOCK * strip_columns * 4 : 0;
}

/* The strips of rows first_row … first_row + row_count. */
static void emit_row_block(cg_emitter *e, linear *l, LLVMValueRef first_row, LLVMValueRef row_count)
{
    const pl_linear *k = l->k;
    int64_t whole = k->columns / l->width * l->width;
    l->first_row = first_row;
    l->row_count = row_count;
    l->a_stride = cg_dim(e, k->a.row_stride);
    l->a = cg_at(e, e->f32, matrix_pointer(e, l->buffers, &k->a), cg_imul(e, first_row, l->a_stride));
    l->out_stride = cg_dim(e, k->out.row_stride);
    l->out = cg_at(e, e->f32, matrix_pointer(e, l->buffers, &k->out), cg_imul(e, first_row, l->out_stride));
    if (whole > 0) {
        cg_loop strip;
        cg_loop_begin(e, &strip, cg_int(e, 0), cg_int(e, whole), l->width, 0, NULL, false);
        emit_strip(e, l, strip.index, l->width, !only_adds(k->epilogue));
        cg_loop_end(e, &strip, NULL);
    }
    if (k->columns > whole) emit_strip(e, l, cg_int(e, whole), k->columns - whole, true);
}

void cg_linear(cg_emitter *e, const pl_plan *plan, const pl_linear *k, const LLVMValueRef *buffers,
               LLVMValueRef scratch)
{
    linear l = {.plan = plan, .k = k, .buffers = buffers, .stage = scratch};
    l.width = (int64_t)e->target->tile_vectors * e->target->lanes;
    LLVMValueRef rows = cg_dim(e, k->rows);
    if (ir_dim_is_number(k->rows) && k->rows.offset <= ROW_BLOCK) { /* a constant: tiles of exactly as many rows */
        if (k->rows.offset > 0) emit_row_block(e, &l, cg_int(e, 0), rows);
        return;
    }
    cg_loop block;
    cg_loop_begin(e, &block, cg_int(e, 0), rows, ROW_BLOCK, 0, NULL, true);
    LLVMValueRef left = cg_isub(e, rows, block.index);
    emit_row_block(e, &l, block.index, cg_imin(e, left, cg_int(e, ROW_BLOCK)));
    cg_loop_end(e, &block, NULL);
}
