/* register_tile.c — the register tile and the iteration over rows: see tiles.h. */
#include "codegen/cpu/tiles.h"

#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include <assert.h>

/* Steps of k per iteration of the inner loop: enough to hide the loop's own instructions; more brings no gain. With
 * bf16 dot products there are half as many steps in total, and the loop must still have an iteration for each piece
 * of overlapped work. */
enum { UNROLL = 4, UNROLL_BF16 = 2, MAX_UNROLLED = 12 };

static int64_t steps_per_iteration(const cg_cpu_target *target, bool use_bf16_dot)
{
    return use_bf16_dot && !target->by_element ? UNROLL_BF16 : UNROLL;
}

/* Tiles at the end of the iteration. Four rows still keep two FMA units busy on sixteen accumulators. */
enum { TAIL_ROWS = 4 };

/* One outer product: the panel's row at `panel`, the rows' scalars at `offset` from their pointers. */
static void add_outer_product(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef offset,
                              LLVMValueRef panel)
{
    int lanes = e->target->lanes;
    LLVMTypeRef element = tile->use_bf16_dot ? e->i32 : e->f32, vector = cg_vector(e, element, lanes);
    unsigned scalar_alignment = tile->use_bf16_dot ? 2 : 0; /* of bfloat16, because rows may begin at any element */
    LLVMValueRef right[CG_MAX_TILE_VECTORS];
    for (int j = 0; j < tile->vectors; j++)
        right[j] = cg_load(e, vector, cg_at(e, element, panel, cg_int(e, (int64_t)j * lanes)), 4 * (unsigned)lanes);
    for (int i = 0; i < tile->rows; i++) {
        LLVMValueRef scalar = cg_load(e, element, cg_at(e, element, operands->row[i], offset), scalar_alignment);
        LLVMValueRef left = cg_splat(e, scalar, lanes);
        LLVMValueRef *acc = tile->acc + i * tile->vectors;
        for (int j = 0; j < tile->vectors; j++)
            acc[j] = tile->use_bf16_dot ? cg_bf16_dot(e, left, right[j], acc[j]) : cg_fma(e, left, right[j], acc[j]);
    }
}

/* The same for `lanes` consecutive steps at `k`, whose scalars are consecutive, too: one load per row takes a scalar of
 * each step, and the products are by element. One vector of the panel is live at a time, because the accumulators and
 * rows leave registers for two. */
static void add_by_element(cg_emitter *e, cg_tile *tile, const cg_tile_operands *at_k, LLVMValueRef panel)
{
    int lanes = e->target->lanes;
    LLVMTypeRef element = tile->use_bf16_dot ? e->i32 : e->f32, vector = cg_vector(e, element, lanes);
    LLVMValueRef left[CG_MAX_TILE_ROWS];
    for (int i = 0; i < tile->rows; i++) left[i] = cg_load(e, vector, at_k->row[i], tile->use_bf16_dot ? 2 : 0);
    for (int s = 0; s < lanes; s++) {
        LLVMValueRef row = cg_at(e, element, panel, cg_int(e, s * at_k->panel_step));
        for (int j = 0; j < tile->vectors; j++) {
            LLVMValueRef address = cg_at(e, element, row, cg_int(e, (int64_t)j * lanes));
            LLVMValueRef right = cg_load(e, vector, address, 4 * (unsigned)lanes);
            for (int i = 0; i < tile->rows; i++) {
                LLVMValueRef scalar = LLVMBuildExtractElement(e->builder, left[i], cg_const_int(e->i32, s), "");
                LLVMValueRef splat = cg_splat(e, scalar, lanes), *acc = &tile->acc[i * tile->vectors + j];
                *acc = tile->use_bf16_dot ? cg_bf16_dot(e, splat, right, *acc) : cg_fma(e, splat, right, *acc);
            }
        }
    }
}

static bool is_one(LLVMValueRef value)
{
    return LLVMIsAConstantInt(value) != NULL && LLVMConstIntGetSExtValue(value) == 1;
}

/* Is a panel's row wider than a tile, which then reads a line and leaves out some, unlike hardware that looks ahead? */
static bool is_narrow(const cg_cpu_target *target, const cg_tile_operands *operands)
{
    return !target->by_element && operands->panel_step > (int64_t)target->tile_vectors * target->lanes;
}

/* Asks for the row of a later step. It may be behind the weights, because a prefetch has no faults. */
static void prefetch_row(cg_emitter *e, LLVMValueRef row, int64_t panel_step)
{
    enum { READ = 0, ALL_CACHES = 3, DATA = 1, STEPS_AHEAD = 24 };
    LLVMValueRef ahead = cg_int(e, STEPS_AHEAD * panel_step);
    LLVMValueRef next = LLVMBuildGEP2(e->builder, e->f32, row, &ahead, 1, "");
    LLVMValueRef how[] = {next, cg_const_int(e->i32, READ), cg_const_int(e->i32, ALL_CACHES),
                          cg_const_int(e->i32, DATA)};
    cg_intrinsic(e, "llvm.prefetch", LLVMTypeOf(next), how, 4);
}

/* The outer products of steps k … k + steps - 1. */
static void add_steps(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef k, int steps)
{
    cg_tile_operands at_k = *operands;
    LLVMValueRef row_offset = cg_imul(e, k, operands->row_step);
    for (int i = 0; i < tile->rows; i++) at_k.row[i] = cg_at(e, e->f32, operands->row[i], row_offset);
    LLVMValueRef panel = cg_at(e, e->f32, operands->panel, cg_imul(e, k, cg_int(e, operands->panel_step)));
    if (tile->in_blocks) {
        cg_add_to_blocks(e, &(cg_blocks){tile->rows, tile->vectors, tile->acc}, at_k.row, panel, at_k.panel_step);
        return;
    }
    if (e->target->by_element && steps == e->target->lanes && is_one(operands->row_step)) {
        add_by_element(e, tile, &at_k, panel);
        return;
    }
    for (int s = 0; s < steps; s++) {
        LLVMValueRef row = cg_at(e, e->f32, panel, cg_int(e, s * operands->panel_step));
        if (is_narrow(e->target, operands)) prefetch_row(e, row, operands->panel_step);
        LLVMValueRef ahead = cg_imul(e, cg_int(e, s), operands->row_step);
        add_outer_product(e, tile, &at_k, ahead, row);
    }
}

static void add_loop(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef source,
                     LLVMValueRef target, int steps, bool guarded, const cg_overlap *overlap)
{
    cg_loop loop;
    int count = tile->rows * tile->vectors;
    cg_loop_begin(e, &loop, source, target, steps, count, tile->acc, guarded);
    for (int i = 0; i < count; i++) tile->acc[i] = loop.carried[i];
    add_steps(e, tile, operands, loop.index, steps);
    if (overlap != NULL) {
        LLVMValueRef iteration = LLVMBuildUDiv(e->builder, cg_isub(e, loop.index, source), cg_int(e, steps), "");
        overlap->emit(e, overlap->context, iteration);
    }
    cg_loop_end(e, &loop, tile->acc);
    for (int i = 0; i < count; i++) tile->acc[i] = loop.out[i];
}

int64_t cg_tile_iterations(const cg_cpu_target *target, bool use_bf16_dot, int64_t count)
{
    return count / steps_per_iteration(target, use_bf16_dot);
}

void cg_tile_accumulate(cg_emitter *e, cg_tile *tile, const cg_tile_operands *operands, LLVMValueRef count,
                        const cg_overlap *overlap)
{
    int64_t unroll = steps_per_iteration(e->target, tile->use_bf16_dot);
    if (LLVMIsAConstantInt(count) == NULL) {
        assert(overlap == NULL);
        LLVMValueRef whole = cg_round_down(e, count, unroll);
        add_loop(e, tile, operands, cg_int(e, 0), whole, (int)unroll, true, NULL);
        add_loop(e, tile, operands, whole, count, 1, true, NULL);
        return;
    }
    int64_t steps = LLVMConstIntGetSExtValue(count), done = steps % unroll;
    if (tile->unrolls && steps <= MAX_UNROLLED) done = steps;
    if (done > 0) add_steps(e, tile, operands, cg_int(e, 0), (int)done);
    if (overlap != NULL) {
        int64_t end = done + overlap->pieces * unroll;
        assert(overlap->pieces > 0 && end <= steps);
        add_loop(e, tile, operands, cg_int(e, done), cg_int(e, end), (int)unroll, false, overlap);
        done = end;
    }
    if (steps == done) return;
    const cg_blocks blocks = {tile->rows, tile->vectors, tile->acc};
    tile->in_blocks = tile->use_bf16_dot && is_one(operands->row_step) && cg_has_blocks(e, tile->rows);
    if (tile->in_blocks) cg_exchange_blocks(e, &blocks);
    if (tile->in_blocks) unroll = CG_BLOCK_STEPS; /* of more, LLVM's scheduler would make spills */
    add_loop(e, tile, operands, cg_int(e, done), count, (int)unroll, false, NULL);
    if (tile->in_blocks) cg_exchange_blocks(e, &blocks);
    tile->in_blocks = false;
}

LLVMValueRef cg_row_pointer(cg_emitter *e, LLVMTypeRef element, const cg_rows *rows, int i, LLVMValueRef base,
                            LLVMValueRef stride)
{
    if (rows->clamped) return cg_at(e, element, base, cg_imul(e, rows->index[i], stride));
    /* relative to the tile's first row, so a constant stride becomes a displacement of one address */
    LLVMValueRef first = cg_at(e, element, base, cg_imul(e, rows->index[0], stride));
    return cg_at(e, element, first, cg_imul(e, cg_int(e, i), stride));
}

/* Rows for tiles of TAIL_ROWS if tiles of tile_rows leave `remainder` rows. A few whole tiles are replaced to minimise
 * surplus rows. For tiles of six: 0 7 8 3 4 11. */
static int tail_rows(int tile_rows, int remainder)
{
    int best = remainder, minimum = TAIL_ROWS;
    for (int rows = remainder; rows < remainder + TAIL_ROWS * tile_rows; rows += tile_rows) {
        int surplus = (TAIL_ROWS - rows % TAIL_ROWS) % TAIL_ROWS;
        if (surplus < minimum) best = rows, minimum = surplus;
    }
    return best;
}

/* Whole tiles cover rows 0 … the result, and tiles of TAIL_ROWS the rest. One constant holds tail_rows of every
 * remainder, one byte each. */
LLVMValueRef cg_whole_tile_rows(cg_emitter *e, LLVMValueRef count)
{
    int tile_rows = e->target->tile_rows;
    uint64_t table = 0;
    assert(tile_rows <= 8 && tail_rows(tile_rows, tile_rows - 1) < 256);
    for (int r = 0; r < tile_rows; r++) table |= (uint64_t)tail_rows(tile_rows, r) << (8 * r);
    LLVMValueRef remainder = LLVMBuildURem(e->builder, count, cg_int(e, tile_rows), "");
    LLVMValueRef shifted =
        LLVMBuildLShr(e->builder, cg_int(e, (int64_t)table), cg_imul(e, remainder, cg_int(e, 8)), "");
    LLVMValueRef tail = LLVMBuildAnd(e->builder, shifted, cg_int(e, 255), "");
    return cg_imax(e, cg_isub(e, count, tail), cg_int(e, 0)); /* if there are too few rows to replace a tile, all are
                                                               * tail rows */
}

static void for_tiles(cg_emitter *e, LLVMValueRef source, LLVMValueRef target, int tile_rows, bool clamped,
                      LLVMValueRef *carried, int carried_count, cg_rows_body body, void *context)
{
    cg_loop loop;
    cg_rows rows = {.count = tile_rows, .clamped = clamped};
    LLVMValueRef last_value = cg_isub(e, target, cg_int(e, 1));
    cg_loop_begin(e, &loop, source, target, tile_rows, carried_count, carried, true);
    for (int i = 0; i < tile_rows; i++) {
        LLVMValueRef row = cg_iadd(e, loop.index, cg_int(e, i));
        rows.index[i] = clamped && i > 0 ? cg_imin(e, row, last_value) : row;
    }
    for (int i = 0; i < carried_count; i++) carried[i] = loop.carried[i];
    body(e, context, &rows, carried);
    cg_loop_end(e, &loop, carried);
    for (int i = 0; i < carried_count; i++) carried[i] = loop.out[i];
}

void cg_for_rows(cg_emitter *e, LLVMValueRef count, LLVMValueRef *carried, int carried_count, cg_rows_body body,
                 void *context)
{
    int tile_rows = e->target->tile_rows;
    if (LLVMIsAConstantInt(count) != NULL && LLVMConstIntGetSExtValue(count) <= tile_rows) {
        cg_rows rows = {.count = (int)LLVMConstIntGetSExtValue(count)};
        for (int i = 0; i < rows.count; i++) rows.index[i] = cg_int(e, i);
        body(e, context, &rows, carried);
        return;
    }
    LLVMValueRef split = cg_whole_tile_rows(e, count);
    for_tiles(e, cg_int(e, 0), split, tile_rows, false, carried, carried_count, body, context);
    for_tiles(e, split, count, TAIL_ROWS, true, carried, carried_count, body, context);
}
