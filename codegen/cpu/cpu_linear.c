/* cpu_linear.c — matrix product with packed weights, bias and an epilogue: the kernel that does most of a Transformer's
 * work.
 *
 *   for each block of ROW_BLOCK rows            A's block and the staging strip stay in the L2 and L1 caches
 *     for each strip of columns                 as wide as a register tile: 64 on v4, 16 on v3
 *       for each block of at most K_BLOCK of k  the strip's weights stay in the L1 cache
 *         for each tile of rows                 tile.c
 *
 * Sums that are not finished, and all sums of a strip whose epilogue is more than an addition, lie in memory between
 * the loops. Either in `out` itself (a direct strip): then the epilogue's other terms are where the accumulators start,
 * so that a residual is added in place for free. Or in scratch (a staged strip), from where the epilogue is applied
 * once the strip is finished: by a loop of its own or, where it is as long as GELU's, a vector at a time in the inner
 * loop of the next strip, whose multiplications hide half of it. Strips that are not whole are staged too: scratch has
 * room for the padding that `out` lacks.
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
    LLVMValueRef stage;                /* scratch: rows of `width`, for this strip */
    LLVMValueRef stage_before;         /* the finished strip before, whose epilogue this strip hides; NULL: none */
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
    if (expr == NULL || expr->op == PL_ACC) return true;
    if (expr->op != PL_ADD) return false;
    const pl_expr *left = expr->arg[0], *right = expr->arg[1];
    if (uses_acc(left) && uses_acc(right)) return false;
    return uses_acc(left) ? only_adds(left) && cheap_term(right) : only_adds(right) && cheap_term(left);
}

/* Long enough that hiding it pays. */
static bool takes_long(const pl_expr *expr)
{
    switch (expr->op) {
    case PL_EXP:
    case PL_LOG:
    case PL_SIN:
    case PL_COS:
    case PL_TANH:
    case PL_ERF:
    case PL_SIGMOID:
    case PL_GELU:
    case PL_GELU_TANH:
    case PL_POW:
        return true;
    default:
        break;
    }
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (takes_long(expr->arg[i])) return true;
    return false;
}

/* The epilogue of `acc`, lanes consecutive columns of a row. Rows count from the block's first. */
static LLVMValueRef epilogue(cg_emitter *e, const linear *l, LLVMValueRef row, LLVMValueRef column, LLVMValueRef acc)
{
    if (l->k->epilogue == NULL) return acc;
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

/* Epilogue and store of `width` columns of a staged row. */
static void finish_vector(cg_emitter *e, const linear *l, LLVMValueRef from, LLVMValueRef row, LLVMValueRef column,
                          int width)
{
    LLVMTypeRef type = cg_vector(e, e->f32, width);
    LLVMValueRef sum = cg_load(e, type, from, 4 * (unsigned)e->target->lanes);
    LLVMValueRef out = cg_at(e, e->f32, cg_at(e, e->f32, l->out, cg_imul(e, row, l->out_stride)), column);
    cg_store(e, epilogue(e, l, row, column, sum), out, 0);
}

/* A tile's shadow: the same rows of the strip before, a vector a turn. */
typedef struct strip_before {
    const linear *l;
    LLVMValueRef first_row;
} strip_before;

static void finish_one_before(cg_emitter *e, void *context, LLVMValueRef piece)
{
    const strip_before *before = context;
    const linear *l = before->l;
    LLVMValueRef vectors = cg_int(e, l->vectors), lanes = cg_int(e, e->target->lanes);
    LLVMValueRef row = cg_iadd(e, before->first_row, LLVMBuildUDiv(e->builder, piece, vectors, ""));
    LLVMValueRef ahead = cg_imul(e, LLVMBuildURem(e->builder, piece, vectors, ""), lanes);
    LLVMValueRef column = cg_iadd(e, cg_isub(e, l->column, cg_int(e, l->width)), ahead);
    LLVMValueRef first = cg_at(e, e->f32, l->stage_before, cg_imul(e, before->first_row, cg_int(e, l->width)));
    finish_vector(e, l, cg_at(e, e->f32, first, cg_imul(e, piece, lanes)), row, column, e->target->lanes);
}

static void emit_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    (void)carried;
    const linear *l = context;
    cg_tile tile = {.rows = rows->count, .vectors = l->vectors};
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = l->panel, .panel_step = CG_PANEL_COLUMNS};
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_at(e, e->f32, cg_row_pointer(e, rows, i, l->a, l->a_stride), l->k_first);
        for (int j = 0; j < l->vectors; j++) tile.acc[i * l->vectors + j] = start_value(e, l, rows, i, j);
    }
    strip_before before = {l, rows->index[0]};
    cg_shadow shadow = {rows->count * l->vectors, finish_one_before, &before};
    bool hides = l->stage_before != NULL && l->starts && rows->count == e->target->tile_rows && !rows->clamped;
    cg_tile_accumulate(e, &tile, &operands, l->k_count, hides ? &shadow : NULL);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < l->vectors; j++)
            cg_store(e, tile.acc[i * l->vectors + j], result_pointer(e, l, rows, i, j), result_alignment(e, l));
}

/* ---- Strips ----------------------------------------------------------------------------------------------------- */

/* The first row of the strip's panel at k_first. */
static LLVMValueRef panel_pointer(cg_emitter *e, const linear *l)
{
    LLVMValueRef panel_column = cg_round_down(e, l->column, CG_PANEL_COLUMNS);
    LLVMValueRef inside = cg_isub(e, l->column, panel_column);
    LLVMValueRef offset = cg_iadd(e, cg_imul(e, panel_column, cg_int(e, l->k->k)), inside);
    offset = cg_iadd(e, offset, cg_imul(e, l->k_first, cg_int(e, CG_PANEL_COLUMNS)));
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

/* Blocks of k have equal size, a multiple of four, but for the first, which takes what is left. */
static int64_t later_block_size(int64_t k)
{
    int64_t blocks = (k + K_BLOCK - 1) / K_BLOCK;
    return blocks > 1 ? ((k + blocks - 1) / blocks + 3) / 4 * 4 : 0;
}

static int64_t first_block_size(int64_t k)
{
    int64_t blocks = (k + K_BLOCK - 1) / K_BLOCK;
    return blocks > 1 ? k - (blocks - 1) * later_block_size(k) : k;
}

/* The sums of a strip of `columns` columns. */
static void emit_sums(cg_emitter *e, linear *l, LLVMValueRef column, int64_t columns, bool staged)
{
    int64_t k = l->k->k, first = first_block_size(k);
    l->column = column;
    l->vectors = (int)((columns + e->target->lanes - 1) / e->target->lanes);
    l->staged = staged;
    emit_k_block(e, l, cg_int(e, 0), first, true);
    if (first == k) return;
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, first), cg_int(e, k), later_block_size(k), 0, NULL, false);
    emit_k_block(e, l, loop.index, later_block_size(k), false);
    cg_loop_end(e, &loop, NULL);
}

/* Applies the epilogue to rows from..to of a finished strip in scratch and writes its `columns` columns to out. */
static void finish_rows(cg_emitter *e, const linear *l, int64_t columns, LLVMValueRef from, LLVMValueRef to)
{
    int lanes = e->target->lanes;
    cg_loop row;
    cg_loop_begin(e, &row, from, to, 1, 0, NULL, true);
    LLVMValueRef stage = cg_at(e, e->f32, l->stage, cg_imul(e, row.index, cg_int(e, l->width)));
    for (int64_t c = 0; c < columns; c += lanes) {
        int width = (int)(columns - c < lanes ? columns - c : lanes);
        LLVMValueRef column = cg_iadd(e, l->column, cg_int(e, c));
        finish_vector(e, l, cg_at(e, e->f32, stage, cg_int(e, c)), row.index, column, width);
    }
    cg_loop_end(e, &row, NULL);
}

static void emit_strip(cg_emitter *e, linear *l, LLVMValueRef column, int64_t columns, bool staged)
{
    emit_sums(e, l, column, columns, staged);
    if (staged) finish_rows(e, l, columns, cg_int(e, 0), l->row_count);
}

/* Staged strips 0 … end whose epilogues hide in one another: strip s finishes the whole tiles' rows of strip s-1, which
 * lie in the other half of the stage; the last strip's are left for the end. Rows of clamped tiles, which repeat, are
 * finished strip by strip. */
static void emit_hiding_strips(cg_emitter *e, linear *l, int64_t end)
{
    LLVMValueRef whole_rows = cg_whole_tile_rows(e, l->row_count);
    LLVMValueRef stages[2] = {l->stage, cg_at(e, e->f32, l->stage, cg_int(e, ROW_BLOCK * l->width))};
    emit_sums(e, l, cg_int(e, 0), l->width, true);
    finish_rows(e, l, l->width, whole_rows, l->row_count);
    cg_loop strip;
    cg_loop_begin(e, &strip, cg_int(e, l->width), cg_int(e, end), l->width, 2, stages, false);
    l->stage_before = strip.carried[0];
    l->stage = strip.carried[1];
    emit_sums(e, l, strip.index, l->width, true);
    finish_rows(e, l, l->width, whole_rows, l->row_count);
    cg_loop_end(e, &strip, (LLVMValueRef[]){l->stage, l->stage_before});
    l->stage = strip.out[0];
    l->stage_before = NULL;
    l->column = cg_int(e, end - l->width);
    finish_rows(e, l, l->width, cg_int(e, 0), whole_rows);
}

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

static LLVMValueRef matrix_pointer(cg_emitter *e, const LLVMValueRef *buffers, const pl_matrix *matrix)
{
    return cg_at(e, e->f32, buffers[matrix->buffer], cg_dim(e, matrix->offset));
}

static int64_t strip_columns(const cg_cpu_target *target)
{
    return (int64_t)target->tile_vectors * target->lanes;
}

/* Whether strips hide one another's epilogues: the tile has to leave registers for it, as only 32 of them do, and to
 * take a turn for each of its vectors. */
static bool hides_epilogues(const pl_linear *k, const cg_cpu_target *target)
{
    int vectors = target->tile_rows * target->tile_vectors;
    return k->epilogue != NULL && takes_long(k->epilogue) && target->tile_vectors == CG_MAX_TILE_VECTORS &&
           k->columns >= 2 * strip_columns(target) && cg_tile_turns(first_block_size(k->k)) >= vectors;
}

int64_t cg_linear_scratch_bytes(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    (void)plan;
    int64_t stage_bytes = ROW_BLOCK * strip_columns(target) * 4;
    if (hides_epilogues(k, target)) return 2 * stage_bytes;
    return !only_adds(k->epilogue) || k->columns % strip_columns(target) != 0 ? stage_bytes : 0;
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
    if (hides_epilogues(k, e->target)) {
        emit_hiding_strips(e, l, whole);
    } else if (whole > 0) {
        cg_loop strip;
        cg_loop_begin(e, &strip, cg_int(e, 0), cg_int(e, whole), l->width, 0, NULL, false);
        emit_strip(e, l, strip.index, l->width, !only_adds(k->epilogue));
        cg_loop_end(e, &strip, NULL);
    }
    if (k->columns > whole) emit_strip(e, l, cg_int(e, whole), k->columns - whole, true);
}

bool cg_linear_is_split(const pl_linear *k)
{
    return !ir_dim_is_number(k->rows) || k->rows.offset > ROW_BLOCK;
}

void cg_linear(cg_emitter *e, const pl_plan *plan, const pl_linear *k, const LLVMValueRef *buffers,
               LLVMValueRef scratch)
{
    linear l = {.plan = plan, .k = k, .buffers = buffers, .stage = scratch};
    l.width = strip_columns(e->target);
    LLVMValueRef rows = cg_dim(e, k->rows);
    if (!cg_linear_is_split(k)) { /* a constant: tiles of exactly as many rows */
        if (k->rows.offset > 0) emit_row_block(e, &l, cg_int(e, 0), rows);
        return;
    }
    cg_range share = cg_share_in_grains(e, rows, e->target->tile_rows);
    cg_loop block;
    cg_loop_begin(e, &block, share.from, share.to, ROW_BLOCK, 0, NULL, true);
    LLVMValueRef left = cg_isub(e, share.to, block.index);
    emit_row_block(e, &l, block.index, cg_imin(e, left, cg_int(e, ROW_BLOCK)));
    cg_loop_end(e, &block, NULL);
}
