/* cpu_linear_amx.c — the linear kernel with matrix tiles: see cpu_linear_block.h.
 *
 *   for each strip of columns             64: a panel of the weights
 *     for each group of rows              32
 *       for each half of the strip        two tiles of sums by two, over all of k
 *       epilogue                          of the group's sums, which are in scratch
 *
 * Sums start from the bias: one row of it, repeated. A block of two by two tiles needs one tile load per product,
 * from the L1 cache or, for weights, equally well from the L2 cache, and four tiles for the factors. Rows of A are
 * read in place if they are whole tiles. The rest of the last group is copied, so that tile loads stay inside the
 * buffer.
 */
#include "codegen/cpu/cpu_linear_amx.h"
#include "codegen/cpu/amx.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/pack.h"

#include "codegen/cpu/cpu_linear_rows.h"

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

static void start_sums(cg_emitter *e, const group *g, int64_t column, int columns)
{
    const cg_linear_block *l = g->l;
    for (int t = 0; t < SIDE * SIDE; t++) {
        if (t % SIDE >= columns) continue;
        if (l->k->bias < 0) {
            cg_amx_zero(e, t);
            continue;
        }
        LLVMValueRef at = cg_iadd(e, l->column, cg_int(e, column + t % SIDE * TILE_COLUMNS));
        cg_amx_load(e, t, cg_at(e, e->f32, l->buffers[l->k->bias], at), cg_int(e, 0));
    }
}

/* Adds the products of `columns` tiles of columns; the first is `column` into the strip. */
static void add_matmul(cg_emitter *e, const group *g, int64_t column, int columns)
{
    const cg_linear_block *l = g->l;
    LLVMValueRef panel = cg_at(e, e->f32, g->panel, cg_int(e, column)), panel_bytes = cg_int(e, 4 * CG_PANEL_COLUMNS);
    cg_loop k;
    cg_loop_begin(e, &k, cg_int(e, 0), cg_int(e, l->steps), 1, 0, NULL, false);
    LLVMValueRef a = cg_at(e, e->i8, g->a, cg_imul(e, k.index, cg_int(e, CG_AMX_ROW_BYTES)));
    LLVMValueRef b = cg_at(e, e->f32, panel, cg_imul(e, k.index, cg_int(e, CG_AMX_BF16 * CG_PANEL_COLUMNS)));
    for (int i = 0; i < SIDE; i++) {
        LLVMValueRef row = cg_imul(e, g->a_bytes, cg_int(e, i * CG_AMX_ROWS));
        cg_amx_load(e, LEFT + i, cg_at(e, e->i8, a, row), g->a_bytes);
    }
    for (int j = 0; j < columns; j++)
        cg_amx_load(e, RIGHT + j, cg_at(e, e->f32, b, cg_int(e, j * TILE_COLUMNS)), panel_bytes);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < columns; j++) cg_amx_dot(e, i * SIDE + j, LEFT + i, RIGHT + j);
    cg_loop_end(e, &k, NULL);
}

static void emit_group(cg_emitter *e, const group *g, int64_t columns, LLVMValueRef rows)
{
    int64_t width = SIDE * TILE_COLUMNS;
    LLVMValueRef stage_bytes = cg_int(e, 4 * g->l->width);
    for (int64_t column = 0; column < columns; column += width) {
        int tiles = columns - column > TILE_COLUMNS ? SIDE : 1;
        start_sums(e, g, column, tiles);
        add_matmul(e, g, column, tiles);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < tiles; j++)
                cg_amx_store(e, i * SIDE + j, staged(e, g, i, column + j * TILE_COLUMNS), stage_bytes);
    }
    cg_finish_rows(e, g->l, columns, cg_int(e, 0), rows);
}

static void emit_strip(cg_emitter *e, cg_linear_block *l, LLVMValueRef column, int64_t columns, bool copies)
{
    LLVMValueRef panel_column = cg_imul(e, column, cg_int(e, l->steps * CG_AMX_BF16));
    LLVMValueRef stride = cg_imul(e, l->a_stride, cg_int(e, 2)), size = cg_int(e, CG_AMX_GROUP);
    LLVMValueRef copy_stride = cg_int(e, 2 * cg_copy_stride(l));
    cg_loop rows;
    cg_loop_begin(e, &rows, cg_int(e, 0), l->row_count, CG_AMX_GROUP, 0, NULL, false);
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
    cg_loop_end(e, &rows, NULL);
}

static void copy_last_group(cg_emitter *e, const cg_linear_block *l)
{
    LLVMValueRef whole = cg_round_down(e, l->row_count, CG_AMX_GROUP);
    LLVMValueRef first = cg_at(e, e->i16, l->a, cg_imul(e, whole, l->a_stride));
    cg_if is_partial;
    cg_if_begin(e, &is_partial, LLVMBuildICmp(e->builder, LLVMIntSLT, whole, l->row_count, ""));
    cg_copy_rows(e, l, first, l->a_stride, cg_isub(e, l->row_count, whole));
    cg_if_end(e, &is_partial);
}

void cg_linear_amx(cg_emitter *e, cg_linear_block *l, bool copies)
{
    int64_t whole = l->k->columns / l->width * l->width;
    if (copies)
        cg_copy_rows(e, l, l->a, l->a_stride, l->row_count);
    else
        copy_last_group(e, l);
    if (whole > 0) {
        cg_loop strip;
        cg_loop_begin(e, &strip, cg_int(e, 0), cg_int(e, whole), l->width, 0, NULL, false);
        emit_strip(e, l, strip.index, l->width, copies);
        cg_loop_end(e, &strip, NULL);
    }
    if (l->k->columns > whole) emit_strip(e, l, cg_int(e, whole), l->k->columns - whole, copies);
}
