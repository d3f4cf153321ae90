/* cpu_linear_amx.c — the linear kernel with matrix tiles: see cpu_linear.h.
 *
 *   for each strip of columns             64: a panel of the weights
 *     for each group of rows              32
 *       for each half of the strip        two tiles of sums by two, over all of k
 *       epilogue                          of the group's sums, which are in scratch
 *
 * If the epilogue is expensive, the vectors of one block of two by two tiles are finished between the products of the
 * next block. The blocks of all strips and whole groups form one sequence in the same order.
 *
 * Sums start from the bias: one row of it, repeated. A block of two by two tiles needs one tile load per product,
 * from the L1 cache or, for weights, equally well from the L2 cache, and four tiles for the factors. Rows of A are
 * read in place if they are whole tiles. The rest of the last group is copied, so that tile loads stay inside the
 * buffer.
 */
#include "codegen/cpu/cpu_linear.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

enum { SIDE = 2, TILE_COLUMNS = CG_AMX_ROW_BYTES / 4, LEFT = SIDE * SIDE, RIGHT = LEFT + SIDE };

static_assert(CG_AMX_GROUP == SIDE * CG_AMX_ROWS, "two tiles of rows");
static_assert(CG_BF16_ROWS == 2 * CG_AMX_BF16, "packed weights are whole tiles");

typedef struct group {
    const cg_linear_block *l;
    LLVMValueRef a, a_bytes; /* address of the first row; bytes between rows */
    LLVMValueRef panel;      /* first word of the strip */
} group;

/* Tile i * SIDE + j holds rows i, columns j of the block. */
static LLVMValueRef staged(cg_emitter *e, const group *g, int i, int64_t column)
{
    return cg_at(e, e->f32, g->l->stage, cg_int(e, i * CG_AMX_ROWS * g->l->width + column));
}

static void start_sums(cg_emitter *e, const group *g, LLVMValueRef column, int columns)
{
    const cg_linear_block *l = g->l;
    for (int t = 0; t < SIDE * SIDE; t++) {
        if (t % SIDE >= columns) continue;
        if (l->k->bias < 0) {
            cg_amx_zero(e, t);
            continue;
        }
        LLVMValueRef position = cg_iadd(e, cg_iadd(e, l->column, column), cg_int(e, t % SIDE * TILE_COLUMNS));
        cg_amx_load(e, t, cg_at(e, e->f32, l->buffers[l->k->bias], position), cg_int(e, 0));
    }
}

/* The epilogue of an earlier block (32 × 32), done in pieces: one vector each. */
enum { BLOCK_COLUMNS = SIDE * TILE_COLUMNS, PIECES = SIDE * CG_AMX_GROUP };
static_assert(SIDE == 2, "two stages alternate, and a piece is half a row of a block");
enum { FEWEST_STEPS = 4 }; /* with fewer, products would hide little of a 64-vector epilogue */
typedef struct overlap {
    const cg_linear_block *l; /* the block's first row; `stage` has rows of BLOCK_COLUMNS */
    LLVMValueRef column;
    int per_step; /* pieces per step of k */
} overlap;

static void finish_piece(cg_emitter *e, const overlap *o, LLVMValueRef piece)
{
    LLVMValueRef row = LLVMBuildLShr(e->builder, piece, cg_int(e, 1), "");
    LLVMValueRef right = cg_imul(e, LLVMBuildAnd(e->builder, piece, cg_int(e, 1), ""), cg_int(e, TILE_COLUMNS));
    LLVMValueRef source = cg_at(e, e->f32, o->l->stage, cg_imul(e, piece, cg_int(e, TILE_COLUMNS)));
    cg_finish_vector(e, o->l, source, row, cg_iadd(e, o->column, right), TILE_COLUMNS);
}

/* Pieces of step `step`; part `part` of `parts` is emitted. */
static void finish_pieces(cg_emitter *e, const overlap *o, LLVMValueRef step, int part, int parts)
{
    if (o == NULL) return;
    LLVMValueRef first = cg_imul(e, step, cg_int(e, o->per_step));
    for (int i = o->per_step * part / parts; i < o->per_step * (part + 1) / parts; i++)
        finish_piece(e, o, cg_iadd(e, first, cg_int(e, i)));
}

/* Adds the products for `columns` column tiles, for steps of k; the first is `column` into the strip. */
static void add_steps(cg_emitter *e, const group *g, LLVMValueRef column, int columns, int64_t source, int64_t target,
                      const overlap *o)
{
    LLVMValueRef panel = cg_at(e, e->f32, g->panel, column), panel_bytes = cg_int(e, 4 * CG_PANEL_COLUMNS);
    if (source == target) return;
    CG_FOR_NONEMPTY (e, k, cg_int(e, source), cg_int(e, target), 1) {
        LLVMValueRef a = cg_at(e, e->i8, g->a, cg_imul(e, k.index, cg_int(e, CG_AMX_ROW_BYTES)));
        LLVMValueRef b = cg_at(e, e->f32, panel, cg_imul(e, k.index, cg_int(e, CG_AMX_BF16 * CG_PANEL_COLUMNS)));
        for (int i = 0; i < SIDE; i++) {
            LLVMValueRef row = cg_imul(e, g->a_bytes, cg_int(e, i * CG_AMX_ROWS));
            cg_amx_load(e, LEFT + i, cg_at(e, e->i8, a, row), g->a_bytes);
        }
        for (int j = 0; j < columns; j++)
            cg_amx_load(e, RIGHT + j, cg_at(e, e->f32, b, cg_int(e, j * TILE_COLUMNS)), panel_bytes);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < columns; j++) {
                cg_amx_dot(e, i * SIDE + j, LEFT + i, RIGHT + j);
                finish_pieces(e, o, k.index, i * columns + j, SIDE * columns);
            }
    }
}

static void emit_group(cg_emitter *e, const group *g, int64_t columns, LLVMValueRef rows)
{
    int64_t width = SIDE * TILE_COLUMNS;
    LLVMValueRef stage_bytes = cg_int(e, 4 * g->l->width);
    for (int64_t column = 0; column < columns; column += width) {
        int tiles = columns - column > TILE_COLUMNS ? SIDE : 1;
        start_sums(e, g, cg_int(e, column), tiles);
        add_steps(e, g, cg_int(e, column), tiles, 0, g->l->steps, NULL);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < tiles; j++)
                cg_amx_store(e, i * SIDE + j, staged(e, g, i, column + j * TILE_COLUMNS), stage_bytes);
    }
    cg_finish_rows(e, g->l, columns, cg_int(e, 0), rows);
}

/* The strip's groups from row `first` on. */
static void emit_strip(cg_emitter *e, cg_linear_block *l, LLVMValueRef column, int64_t columns, LLVMValueRef first,
                       bool copies)
{
    LLVMValueRef panel_column = cg_imul(e, column, cg_int(e, l->steps * CG_AMX_BF16));
    LLVMValueRef stride = cg_imul(e, l->a_stride, cg_int(e, 2)), size = cg_int(e, CG_AMX_GROUP);
    LLVMValueRef copy_stride = cg_int(e, 2 * cg_copy_stride(l));
    CG_FOR (e, rows, first, l->row_count, CG_AMX_GROUP) {
        cg_linear_block shifted = *l;
        shifted.column = column;
        shifted.first_row = cg_iadd(e, l->first_row, rows.index);
        shifted.out = cg_at(e, l->out_type, l->out, cg_imul(e, rows.index, l->out_stride));
        LLVMValueRef left = cg_isub(e, l->row_count, rows.index);
        group g = {.l = &shifted, .panel = cg_at(e, e->f32, l->buffers[l->k->weight], panel_column)};
        if (copies) {
            g.a = cg_at(e, e->i8, l->copy, cg_imul(e, rows.index, copy_stride));
            g.a_bytes = copy_stride;
        } else {
            LLVMValueRef is_whole = LLVMBuildICmp(e->builder, LLVMIntSGE, left, size, "");
            LLVMValueRef in_place = cg_at(e, e->i8, l->a, cg_imul(e, rows.index, stride));
            g.a = cg_select(e, is_whole, in_place, l->copy);
            g.a_bytes = cg_select(e, is_whole, stride, copy_stride);
        }
        emit_group(e, &g, columns, cg_imin(e, left, size));
    }
}

static void copy_last_group(cg_emitter *e, const cg_linear_block *l)
{
    LLVMValueRef whole = cg_round_down(e, l->row_count, CG_AMX_GROUP);
    LLVMValueRef first = cg_at(e, e->i16, l->a, cg_imul(e, whole, l->a_stride));
    CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, whole, l->row_count, ""))
        cg_copy_rows(e, l, first, l->a_stride, cg_isub(e, l->row_count, whole));
}

/* A two-by-two tile block in the sequence: the first row and column. */
typedef struct position {
    LLVMValueRef row, column;
} position;

/* The strip's other half, then the next row group, then the next strip. */
static position next_position(cg_emitter *e, position p, LLVMValueRef whole_rows)
{
    LLVMValueRef half = cg_int(e, BLOCK_COLUMNS), zero = cg_int(e, 0);
    LLVMValueRef below = cg_iadd(e, p.row, cg_int(e, CG_AMX_GROUP));
    LLVMValueRef is_left = LLVMBuildICmp(e->builder, LLVMIntEQ, LLVMBuildAnd(e->builder, p.column, half, ""), zero, "");
    LLVMValueRef has_below = LLVMBuildICmp(e->builder, LLVMIntSLT, below, whole_rows, "");
    LLVMValueRef right = cg_iadd(e, p.column, half), left = cg_isub(e, p.column, half);
    return (position){cg_select(e, is_left, p.row, cg_select(e, has_below, below, zero)),
                      cg_select(e, is_left, right, cg_select(e, has_below, left, right))};
}

static LLVMValueRef half_stage(cg_emitter *e, const cg_linear_block *l, LLVMValueRef number)
{
    LLVMValueRef half = LLVMBuildAnd(e->builder, number, cg_int(e, 1), "");
    return cg_at(e, e->f32, l->stage, cg_imul(e, half, cg_int(e, CG_AMX_GROUP * BLOCK_COLUMNS)));
}

/* The block's rows as a separate linear block, with sums in `stage`. */
static cg_linear_block rows_of(cg_emitter *e, const cg_linear_block *l, position p, LLVMValueRef stage)
{
    cg_linear_block rows = *l;
    rows.column = cg_int(e, 0);
    rows.first_row = cg_iadd(e, l->first_row, p.row);
    rows.out = cg_at(e, l->out_type, l->out, cg_imul(e, p.row, l->out_stride));
    rows.stage = stage;
    return rows;
}

/* Computes the sums of a whole block, and finishes the block `o` between the products. */
static void emit_block(cg_emitter *e, const cg_linear_block *l, position p, LLVMValueRef stage, bool copies,
                       const overlap *o)
{
    cg_linear_block rows = rows_of(e, l, p, stage);
    LLVMValueRef strip = cg_round_down(e, p.column, CG_PANEL_COLUMNS), inside = cg_isub(e, p.column, strip);
    group g = {.l = &rows, .a = copies ? l->copy : l->a};
    g.a_bytes = cg_imul(e, copies ? cg_int(e, cg_copy_stride(l)) : l->a_stride, cg_int(e, 2));
    g.a = cg_at(e, e->i8, g.a, cg_imul(e, p.row, g.a_bytes));
    g.panel = cg_at(e, e->f32, l->buffers[l->k->weight], cg_imul(e, strip, cg_int(e, l->steps * CG_AMX_BF16)));
    start_sums(e, &g, p.column, SIDE);
    int64_t busy = o != NULL ? PIECES / o->per_step : 0;
    add_steps(e, &g, inside, SIDE, 0, busy, o);
    add_steps(e, &g, inside, SIDE, busy, l->steps, NULL);
    LLVMValueRef bytes = cg_int(e, 4 * BLOCK_COLUMNS);
    for (int t = 0; t < SIDE * SIDE; t++) {
        int64_t offset = (int64_t)(t / SIDE) * CG_AMX_ROWS * BLOCK_COLUMNS + t % SIDE * TILE_COLUMNS;
        cg_amx_store(e, t, cg_at(e, e->f32, stage, cg_int(e, offset)), bytes);
    }
}

/* The smallest power of two, in pieces, that finishes a block within the k steps. */
static int pieces_per_step(int64_t steps)
{
    int pieces = 1;
    while (pieces < PIECES && pieces * steps < PIECES) pieces *= 2;
    return pieces;
}

/* Whole strips of whole groups. The first block has no earlier one, and the last block is finished alone. */
static void emit_overlapping_blocks(cg_emitter *e, const cg_linear_block *l, LLVMValueRef whole_rows, bool copies)
{
    position first = {cg_int(e, 0), cg_int(e, 0)};
    LLVMValueRef state[] = {first.row, first.column}, one = cg_int(e, 1);
    LLVMValueRef groups = LLVMBuildUDiv(e->builder, whole_rows, cg_int(e, CG_AMX_GROUP), "");
    LLVMValueRef count = cg_imul(e, groups, cg_int(e, l->k->columns / l->width * (l->width / BLOCK_COLUMNS)));
    emit_block(e, l, first, half_stage(e, l, cg_int(e, 0)), copies, NULL);
    cg_loop block;
    cg_loop_begin(e, &block, one, count, 1, 2, state, false);
    position before = {block.carried[0], block.carried[1]}, now = next_position(e, before, whole_rows);
    cg_linear_block finished = rows_of(e, l, before, half_stage(e, l, cg_isub(e, block.index, one)));
    overlap o = {.l = &finished, .column = before.column, .per_step = pieces_per_step(l->steps)};
    emit_block(e, l, now, half_stage(e, l, block.index), copies, &o);
    cg_loop_end(e, &block, (LLVMValueRef[]){now.row, now.column});
    position end = {block.out[0], block.out[1]};
    cg_linear_block rows = rows_of(e, l, end, half_stage(e, l, cg_isub(e, count, one)));
    overlap rest = {.l = &rows, .column = end.column, .per_step = 1};
    CG_FOR_NONEMPTY (e, piece, cg_int(e, 0), cg_int(e, PIECES), 1) finish_piece(e, &rest, piece.index);
}

void cg_linear_amx(cg_emitter *e, cg_linear_block *l, bool copies, bool overlaps)
{
    int64_t whole = l->k->columns / l->width * l->width;
    LLVMValueRef first = cg_int(e, 0);
    if (copies)
        cg_copy_rows(e, l, l->a, l->a_stride, l->row_count);
    else
        copy_last_group(e, l);
    overlaps = overlaps && l->steps >= FEWEST_STEPS;
    if (whole > 0 && overlaps) {
        LLVMValueRef rows = cg_round_down(e, l->row_count, CG_AMX_GROUP);
        CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSGT, rows, cg_int(e, 0), ""))
            emit_overlapping_blocks(e, l, rows, copies);
        first = rows;
    }
    if (whole > 0)
        CG_FOR_NONEMPTY (e, strip, cg_int(e, 0), cg_int(e, whole), l->width)
            emit_strip(e, l, strip.index, l->width, first, copies);
    if (l->k->columns > whole) emit_strip(e, l, cg_int(e, whole), l->k->columns - whole, cg_int(e, 0), copies);
}
