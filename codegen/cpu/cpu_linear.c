/* cpu_linear.c — matmul with packed weights, bias and an epilogue: the kernel that does most of a Transformer's
 * work.
 *
 *   for each block of ROW_BLOCK rows            A's block and the staging strip stay in the L2 and L1 caches
 *     for each strip of columns                 as wide as a register tile: 64 on v4, 16 on v3
 *       for each block of at most K_BLOCK of k  the strip's weights stay in the L1 cache
 *         for each tile of rows                 register_tile.c
 *
 * Between the loops, memory holds the unfinished sums, and all sums of a strip whose epilogue is more than an
 * addition. In a direct strip they are in `out` itself. The epilogue's other terms are then the accumulators'
 * initial values, so that a residual is added in place for free. In a staged strip they are in scratch, and the
 * epilogue is applied when the strip is finished: by a separate loop or, if it is as long as GELU's, one vector at a
 * time in the inner loop of the next strip, whose multiplications hide half of it. Strips that end within a vector are
 * staged, too, because scratch has the padding that `out` lacks.
 */
#include "codegen/cpu/cpu_linear.h"
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/signatures.h"
#include "codegen/cpu/tiles.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"

enum { ROW_BLOCK = 96 }; /* a multiple of all tile heights; with 64 f32 columns 24 KB */
_Static_assert((int)PL_LINEAR_UNSPLIT_ROWS <= ROW_BLOCK, "an undivided linear is one block");

enum { K_BLOCK = 128 }; /* × 64 columns of f32 is 32 KB */

static bool uses_acc(const pl_expr *expr)
{
    if (expr->op == PL_ACC) return true;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (uses_acc(expr->arg[i])) return true;
    return false;
}

/* A term that may start an accumulator: it does not use the sum and costs little per element. */
static bool is_cheap_term(const pl_expr *expr)
{
    switch (expr->op) {
    case PL_CONST:
    case PL_LOAD: return true;
    case PL_ADD:
    case PL_SUB:
    case PL_MUL: return is_cheap_term(expr->arg[0]) && is_cheap_term(expr->arg[1]);
    case PL_CAST:
    case PL_NEG: return is_cheap_term(expr->arg[0]);
    default: return false;
    }
}

/* acc + terms, in any order: adding the other terms commutes with the summation over k. */
static bool only_adds(const pl_expr *expr)
{
    if (expr == NULL || expr->op == PL_ACC) return true;
    if (expr->op != PL_ADD) return false;
    const pl_expr *left = expr->arg[0], *right = expr->arg[1];
    if (uses_acc(left) && uses_acc(right)) return false;
    return uses_acc(left) ? only_adds(left) && is_cheap_term(right) : only_adds(right) && is_cheap_term(left);
}

/* True if the expression costs enough that overlapping it with multiplications pays off. */
static bool is_expensive(const pl_expr *expr)
{
    if (pl_expr_op_is_function(expr->op)) return true;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (is_expensive(expr->arg[i])) return true;
    return false;
}

static LLVMValueRef vector_column(cg_emitter *e, const cg_linear_block *l, int j)
{
    return cg_iadd(e, l->column, cg_int(e, (int64_t)j * e->target->lanes));
}

/* Address of vector j in a tile row, between k blocks. */
static LLVMValueRef result_pointer(cg_emitter *e, const cg_linear_block *l, const cg_rows *rows, int i, int j)
{
    LLVMValueRef ahead = cg_int(e, (int64_t)j * e->target->lanes);
    if (l->staged) return cg_at(e, e->f32, cg_row_pointer(e, e->f32, rows, i, l->stage, cg_int(e, l->width)), ahead);
    LLVMValueRef out = cg_at(e, e->f32, l->out, l->column);
    return cg_at(e, e->f32, cg_row_pointer(e, e->f32, rows, i, out, l->out_stride), ahead);
}

static unsigned result_alignment(const cg_emitter *e, const cg_linear_block *l)
{
    return l->staged ? 4 * (unsigned)e->target->lanes : 0;
}

static LLVMValueRef start_value(cg_emitter *e, const cg_linear_block *l, const cg_rows *rows, int i, int j)
{
    if (!l->starts) {
        LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
        return cg_load(e, type, result_pointer(e, l, rows, i, j), result_alignment(e, l));
    }
    LLVMValueRef bias = cg_linear_bias(e, l, vector_column(e, l, j));
    return l->staged ? bias : cg_linear_epilogue(e, l, rows->index[i], vector_column(e, l, j), bias);
}

/* Epilogue work overlapping with a tile: the previous strip's same rows, one vector per iteration. */
typedef struct previous_strip {
    const cg_linear_block *l;
    LLVMValueRef first_row;
} previous_strip;

static void finish_previous_vector(cg_emitter *e, void *context, LLVMValueRef piece)
{
    const previous_strip *before = context;
    const cg_linear_block *l = before->l;
    LLVMValueRef vectors = cg_int(e, l->vectors), lanes = cg_int(e, e->target->lanes);
    LLVMValueRef row = cg_iadd(e, before->first_row, LLVMBuildUDiv(e->builder, piece, vectors, ""));
    LLVMValueRef ahead = cg_imul(e, LLVMBuildURem(e->builder, piece, vectors, ""), lanes);
    LLVMValueRef column = cg_iadd(e, cg_isub(e, l->column, cg_int(e, l->width)), ahead);
    LLVMValueRef first = cg_at(e, e->f32, l->previous_stage, cg_imul(e, before->first_row, cg_int(e, l->width)));
    cg_finish_vector(e, l, cg_at(e, e->f32, first, cg_imul(e, piece, lanes)), row, column, e->target->lanes);
}

/* The first element of a tile row in the k block, f32 or pairs. */
static LLVMValueRef factor_pointer(cg_emitter *e, const cg_linear_block *l, const cg_rows *rows, int i)
{
    LLVMTypeRef element = l->matmul == CG_MATMUL_BF16 ? e->i32 : e->f32;
    if (l->distances == NULL)
        return cg_at(e, element, cg_row_pointer(e, l->a_type, rows, i, l->a, l->a_stride), l->k_first);
    LLVMValueRef distance = cg_load(e, e->i64, cg_at(e, e->i64, l->distances, rows->index[i]), 8);
    return cg_at(e, l->a_type, cg_at(e, l->a_type, l->a, distance), l->k_distance);
}

/* All of k, run by run: `operands` are those of the first run. */
static void add_runs(cg_emitter *e, const cg_linear_block *l, cg_tile *tile, const cg_tile_operands *operands)
{
    int count = tile->rows * tile->vectors;
    cg_tile_operands own = *operands;
    LLVMTypeRef element = l->matmul == CG_MATMUL_BF16 ? e->i32 : e->f32;
    cg_loop run;
    cg_loop_begin(e, &run, cg_int(e, 0), cg_int(e, l->steps), l->run, count, tile->acc, false);
    for (int i = 0; i < count; i++) tile->acc[i] = run.carried[i];
    LLVMValueRef column = cg_imul(e, run.index, cg_int(e, l->matmul == CG_MATMUL_BF16 ? 2 : 1));
    LLVMValueRef distance = cg_window_column(e, l->k->windows, column);
    for (int i = 0; i < tile->rows; i++) own.row[i] = cg_at(e, l->a_type, operands->row[i], distance);
    own.panel = cg_at(e, element, operands->panel, cg_imul(e, run.index, cg_int(e, operands->panel_step)));
    tile->unrolls = true;
    cg_tile_accumulate(e, tile, &own, cg_int(e, l->run), NULL);
    cg_loop_end(e, &run, tile->acc);
    for (int i = 0; i < count; i++) tile->acc[i] = run.out[i];
}

static void emit_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    const cg_linear_block *l = context;
    bool use_bf16_dot = l->matmul == CG_MATMUL_BF16;
    cg_tile tile = {.rows = rows->count, .vectors = l->vectors, .use_bf16_dot = use_bf16_dot};
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = l->panel, .panel_step = l->panel_step};
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = factor_pointer(e, l, rows, i);
        for (int j = 0; j < l->vectors; j++) tile.acc[i * l->vectors + j] = start_value(e, l, rows, i, j);
    }
    previous_strip before = {l, rows->index[0]};
    cg_overlap overlap = {rows->count * l->vectors, finish_previous_vector, &before};
    bool overlaps = l->previous_stage != NULL && l->starts && rows->count == e->target->tile_rows && !rows->clamped;
    if (l->run > 0)
        add_runs(e, l, &tile, &operands);
    else
        cg_tile_accumulate(e, &tile, &operands, l->k_count, overlaps ? &overlap : NULL);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < l->vectors; j++)
            cg_store(e, tile.acc[i * l->vectors + j], result_pointer(e, l, rows, i, j), result_alignment(e, l));
}

/* Row `row` in the strip's panel, with `rows` rows: f32 words or pairs. */
static LLVMValueRef panel_pointer(cg_emitter *e, const cg_linear_block *l, LLVMValueRef row, int64_t rows)
{
    LLVMValueRef panel_column = cg_round_down(e, l->column, CG_PANEL_COLUMNS);
    LLVMValueRef inside = cg_isub(e, l->column, panel_column);
    LLVMValueRef offset = cg_iadd(e, cg_imul(e, panel_column, cg_int(e, rows)), inside);
    offset = cg_iadd(e, offset, cg_imul(e, row, cg_int(e, CG_PANEL_COLUMNS)));
    return cg_at(e, e->f32, l->buffers[l->k->weight], offset);
}

static int64_t pairs_of(int64_t elements) { return (elements + 1) / 2; }

/* Converts k_count rows of the strip's weights, from k_first on, to f32, in scratch rows of `width`. Blocks after the
 * first begin with a whole pair, because the padding precedes row 0. */
static LLVMValueRef convert_panel(cg_emitter *e, const cg_linear_block *l, int64_t k_count)
{
    int lanes = e->target->lanes;
    int64_t padding = cg_bf16_padding(l->k->k), surplus = l->starts ? padding % 2 : 0;
    LLVMTypeRef pairs = cg_vector(e, e->i32, lanes);
    LLVMValueRef first = cg_iadd(e, l->k_first, cg_int(e, padding - surplus));
    LLVMValueRef source =
        panel_pointer(e, l, LLVMBuildLShr(e->builder, first, cg_int(e, 1), ""), (l->k->k + padding) / 2);
    CG_FOR_NONEMPTY (e, pair, cg_int(e, 0), cg_int(e, pairs_of(surplus + k_count)), 1) {
        LLVMValueRef row = cg_at(e, e->f32, source, cg_imul(e, pair.index, cg_int(e, CG_PANEL_COLUMNS)));
        LLVMValueRef low = cg_at(e, e->f32, l->wide, cg_imul(e, pair.index, cg_int(e, 2 * l->width)));
        LLVMValueRef high = cg_at(e, e->f32, low, cg_int(e, l->width));
        for (int j = 0; j < l->vectors; j++) {
            LLVMValueRef ahead = cg_int(e, (int64_t)j * lanes);
            LLVMValueRef both = cg_load(e, pairs, cg_at(e, e->f32, row, ahead), 4 * (unsigned)lanes);
            LLVMValueRef even = cg_low_of_bf16(e, both);
            cg_store(e, even, cg_at(e, e->f32, low, ahead), 4 * (unsigned)lanes);
            LLVMValueRef odd = cg_high_of_bf16(e, both);
            cg_store(e, odd, cg_at(e, e->f32, high, ahead), 4 * (unsigned)lanes);
        }
    }
    return cg_at(e, e->f32, l->wide, cg_int(e, surplus * l->width));
}

static LLVMValueRef block_of_panel(cg_emitter *e, const cg_linear_block *l, int64_t k_count)
{
    if (l->wide != NULL) return convert_panel(e, l, k_count);
    if (l->matmul == CG_MATMUL_F32) return panel_pointer(e, l, l->k_first, l->k->k);
    int64_t padding = cg_bf16_padding(l->k->k) / 2;
    return panel_pointer(e, l, cg_iadd(e, l->k_first, cg_int(e, padding)), padding + l->steps);
}

static void emit_k_block(cg_emitter *e, cg_linear_block *l, LLVMValueRef k_first, int64_t k_count, bool starts)
{
    l->k_first = k_first;
    if (l->distances != NULL) {
        LLVMValueRef column = cg_imul(e, k_first, cg_int(e, l->matmul == CG_MATMUL_BF16 ? 2 : 1));
        l->k_distance = cg_window_column(e, l->k->windows, column);
    }
    l->k_count = cg_int(e, k_count);
    l->starts = starts;
    l->panel = block_of_panel(e, l, k_count);
    l->panel_step = l->wide != NULL ? l->width : CG_PANEL_COLUMNS;
    cg_for_rows(e, l->row_count, NULL, 0, emit_tile, l);
}

/* Steps in a block of k: the first one, and each one behind it, if there is any. */
typedef struct k_blocks {
    int64_t first, later;
} k_blocks;

/* Equal sizes, in multiples of four steps. The first block takes the remainder. */
static k_blocks equal_blocks(int64_t steps)
{
    int64_t count = (steps + K_BLOCK - 1) / K_BLOCK;
    if (count <= 1) return (k_blocks){steps, 0};
    int64_t later = ((steps + count - 1) / count + 3) / 4 * 4;
    return (k_blocks){steps - (count - 1) * later, later};
}

static int64_t strip_columns(const cg_cpu_target *target) { return (int64_t)target->tile_vectors * target->lanes; }

static int64_t run_of_windows(const pl_linear *k, cg_matmul_kind matmul)
{
    int64_t run = k->windows->columns.extent[k->windows->columns.count - 1].offset;
    if (matmul != CG_MATMUL_BF16) return run;
    return run % 2 == 0 ? run / 2 : 0;
}

/* Steps of a run, if each tile goes through all runs of its windows and keeps the sums in registers, because the
 * strip's weights stay in the caches next to the processor. Otherwise 0. */
static int64_t run_in_tile(const pl_linear *k, cg_matmul_kind matmul, const cg_cpu_target *target)
{
    enum { MAX_PANEL_BYTES = 64 << 10 };
    int64_t width = strip_columns(target), columns = k->columns < width ? k->columns : width;
    int64_t run = run_of_windows(k, matmul), steps = matmul == CG_MATMUL_BF16 ? k->k / 2 : k->k;
    return 4 * steps * columns <= MAX_PANEL_BYTES && steps > run ? run : 0;
}

/* A block of in-place windows is an equal part of a run of adjacent elements. Returns the steps; 0: runs are too short,
 * odd, or indivisible. */
static int64_t window_block(const pl_linear *k, cg_matmul_kind matmul)
{
    enum { FEWEST_STEPS = 32 }; /* with fewer, loading and storing sums would take longer than a copy of the windows */
    int64_t run = run_of_windows(k, matmul);
    for (int64_t parts = (run + K_BLOCK - 1) / K_BLOCK; parts > 0 && run / parts >= FEWEST_STEPS; parts++)
        if (parts == 1 || run % (4 * parts) == 0) return run / parts;
    return 0;
}

static k_blocks blocks_of(const cg_linear_block *l)
{
    if (l->run > 0) return (k_blocks){l->steps, 0};
    if (l->distances == NULL) return equal_blocks(l->steps);
    int64_t steps = window_block(l->k, l->matmul);
    return (k_blocks){steps, steps};
}

/* Computes the sums for a strip with `columns` columns. */
static void emit_sums(cg_emitter *e, cg_linear_block *l, LLVMValueRef column, int64_t columns, bool staged)
{
    k_blocks blocks = blocks_of(l);
    l->column = column;
    l->vectors = (int)((columns + e->target->lanes - 1) / e->target->lanes);
    l->staged = staged;
    emit_k_block(e, l, cg_int(e, 0), blocks.first, true);
    if (blocks.first == l->steps) return;
    CG_FOR_NONEMPTY (e, loop, cg_int(e, blocks.first), cg_int(e, l->steps), blocks.later)
        emit_k_block(e, l, loop.index, blocks.later, false);
}

static void emit_strip(cg_emitter *e, cg_linear_block *l, LLVMValueRef column, int64_t columns, bool staged)
{
    emit_sums(e, l, column, columns, staged);
    if (staged) cg_finish_rows(e, l, columns, cg_int(e, 0), l->row_count);
}

/* Staged strips 0 … end, whose epilogues overlap with the next strip. Strip s finishes the whole-tile rows in strip
 * s-1, which are in the other half of the stage. The last strip is finished at the end. Rows in clamped tiles, which
 * repeat, are finished strip by strip. */
static void emit_overlapping_strips(cg_emitter *e, cg_linear_block *l, int64_t end)
{
    LLVMValueRef whole_rows = cg_whole_tile_rows(e, l->row_count);
    LLVMValueRef stages[2] = {l->stage, cg_at(e, e->f32, l->stage, cg_int(e, ROW_BLOCK * l->width))};
    emit_sums(e, l, cg_int(e, 0), l->width, true);
    cg_finish_rows(e, l, l->width, whole_rows, l->row_count);
    cg_loop strip;
    cg_loop_begin(e, &strip, cg_int(e, l->width), cg_int(e, end), l->width, 2, stages, false);
    l->previous_stage = strip.carried[0];
    l->stage = strip.carried[1];
    emit_sums(e, l, strip.index, l->width, true);
    cg_finish_rows(e, l, l->width, whole_rows, l->row_count);
    cg_loop_end(e, &strip, (LLVMValueRef[]){l->stage, l->previous_stage});
    l->stage = strip.out[0];
    l->previous_stage = NULL;
    l->column = cg_int(e, end - l->width);
    cg_finish_rows(e, l, l->width, cg_int(e, 0), whole_rows);
}

static LLVMValueRef matrix_pointer(cg_emitter *e, const cg_linear_block *l, const pl_matrix *matrix)
{
    return cg_at(e, cg_stored_type(e, l->plan, matrix->buffer), l->buffers[matrix->buffer], cg_dim(e, matrix->offset));
}

static bool is_stored_half(const pl_plan *plan, int buffer, const cg_cpu_target *target)
{
    return cg_stored_dtype(target, &plan->buffers[buffer]) == MDOT_DTYPE_BF16;
}

/* The factors' precision. A weight read in full precision by another kernel is f32 everywhere. */
static cg_matmul_kind matmul_kind_of(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    return k->k > 0 && is_stored_half(plan, k->weight, target) ? target->matmul : CG_MATMUL_F32;
}

static int64_t steps_of(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    switch (matmul_kind_of(plan, k, target)) {
    case CG_MATMUL_BF16: return pairs_of(k->k);
    case CG_MATMUL_AMX: return (k->k + CG_BF16_ROWS - 1) / CG_BF16_ROWS;
    default: return k->k;
    }
}

/* True if rows of A are whole tiles or whole pairs. */
static bool reads_in_place(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    cg_matmul_kind matmul = matmul_kind_of(plan, k, target);
    bool is_half = is_stored_half(plan, k->a.buffer, target);
    if (k->windows != NULL) /* tile loads need rows of one distance */
        return (matmul == CG_MATMUL_F32 || matmul == CG_MATMUL_BF16) && is_half == (matmul == CG_MATMUL_BF16) &&
               (run_in_tile(k, matmul, target) > 0 || window_block(k, matmul) > 0);
    switch (matmul) {
    case CG_MATMUL_BF16: return is_half && k->k % 2 == 0;
    case CG_MATMUL_AMX: return is_half && k->k % CG_BF16_ROWS == 0;
    default: return !is_half;
    }
}

/* True if `out` itself may hold the unfinished sums. */
static bool is_direct(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    return only_adds(k->epilogue) && !is_stored_half(plan, k->out.buffer, target);
}

/* True if each strip overlaps with the previous epilogue. The tile must leave registers for the epilogue, which
 * requires 32 registers and broadcasts from memory, and must have an iteration for each vector. */
static bool overlaps_epilogues(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    int vectors = target->tile_rows * target->tile_vectors;
    bool use_bf16_dot = matmul_kind_of(plan, k, target) == CG_MATMUL_BF16;
    if (k->windows != NULL && reads_in_place(plan, k, target)) return false; /* with shorter k blocks */
    return k->epilogue != NULL && is_expensive(k->epilogue) && target->tile_vectors == CG_MAX_TILE_VECTORS &&
           !target->by_element && k->columns >= 2 * strip_columns(target) &&
           cg_tile_iterations(target, use_bf16_dot, equal_blocks(steps_of(plan, k, target)).first) >= vectors;
}

/* Scratch parts, in this order; each is a multiple of a vector. */
typedef struct scratch_parts {
    int64_t stage_bytes, f32_bytes, copy_bytes, distance_bytes;
} scratch_parts;

static scratch_parts parts_of(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    scratch_parts parts = {0};
    int64_t columns = strip_columns(target), one_stage = ROW_BLOCK * columns * 4;
    cg_matmul_kind matmul = matmul_kind_of(plan, k, target);
    bool in_place = reads_in_place(plan, k, target);
    if (matmul == CG_MATMUL_AMX) {
        int64_t row_bytes = CG_AMX_ROW_BYTES * steps_of(plan, k, target);
        parts.stage_bytes = CG_AMX_GROUP * columns * 4;
        parts.copy_bytes = row_bytes * (in_place ? CG_AMX_GROUP : ROW_BLOCK);
        return parts;
    }
    if (!is_direct(plan, k, target) || k->columns % target->lanes != 0) parts.stage_bytes = one_stage;
    if (overlaps_epilogues(plan, k, target)) parts.stage_bytes = 2 * one_stage;
    if (matmul == CG_MATMUL_BF16_WEIGHTS) parts.f32_bytes = K_BLOCK * columns * 4;
    if (!in_place) parts.copy_bytes = ROW_BLOCK * 4 * steps_of(plan, k, target);
    if (in_place && k->windows != NULL) parts.distance_bytes = ROW_BLOCK * 8;
    return parts;
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const pl_linear *k = &kernel->linear;
    if (cg_has_transformed_taps(plan, k, target)) return cg_linear_winograd_scratch(k, target);
    scratch_parts parts = parts_of(plan, k, target);
    return parts.stage_bytes + parts.f32_bytes + parts.copy_bytes + parts.distance_bytes;
}

/* The strips of rows first_row … first_row + row_count. */
static void emit_row_block(cg_emitter *e, cg_linear_block *l, LLVMValueRef first_row, LLVMValueRef row_count)
{
    const pl_linear *k = l->k;
    int64_t whole = k->columns / l->width * l->width;
    l->first_row = first_row;
    l->row_count = row_count;
    l->a_stride = cg_dim(e, k->a.row_stride);
    LLVMTypeRef a_stored = cg_stored_type(e, l->plan, k->a.buffer);
    LLVMValueRef a = matrix_pointer(e, l, &k->a);
    l->a = cg_at(e, a_stored, a, cg_imul(e, first_row, l->a_stride));
    l->out_stride = cg_dim(e, k->out.row_stride);
    LLVMValueRef out = matrix_pointer(e, l, &k->out);
    l->out = cg_at(e, l->out_type, out, cg_imul(e, first_row, l->out_stride));
    if (l->matmul == CG_MATMUL_AMX) {
        cg_linear_amx(e, l, !reads_in_place(l->plan, k, e->target), k->epilogue != NULL && is_expensive(k->epilogue));
        return;
    }
    if (l->distances != NULL) cg_note_windows(e, l);
    if (l->copy != NULL) {
        cg_copy_rows(e, l, l->a, l->a_stride, l->row_count);
        l->a = l->copy;
        l->a_stride = cg_int(e, cg_copy_stride(l));
    }
    if (overlaps_epilogues(l->plan, k, e->target)) {
        emit_overlapping_strips(e, l, whole);
    } else if (whole > 0) {
        CG_FOR_NONEMPTY (e, strip, cg_int(e, 0), cg_int(e, whole), l->width)
            emit_strip(e, l, strip.index, l->width, !is_direct(l->plan, k, e->target));
    }
    bool staged = !is_direct(l->plan, k, e->target) || k->columns % e->target->lanes != 0;
    if (k->columns > whole) emit_strip(e, l, cg_int(e, whole), k->columns - whole, staged);
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_linear *k = &kernel->linear;
    cg_linear_block l = {.plan = plan,
                         .k = k,
                         .buffers = buffers,
                         .stage = scratch,
                         .width = strip_columns(e->target),
                         .matmul = matmul_kind_of(plan, k, e->target),
                         .steps = steps_of(plan, k, e->target),
                         .out_type = cg_stored_type(e, plan, k->out.buffer)};
    if (cg_has_transformed_taps(plan, k, e->target)) {
        cg_linear_winograd(e, &l, pl_is_split(plan, kernel));
        return;
    }
    l.a_type = l.matmul >= CG_MATMUL_BF16 ? e->i16 : e->f32;
    scratch_parts parts = parts_of(plan, k, e->target);
    LLVMValueRef wide = cg_at(e, e->i8, scratch, cg_int(e, parts.stage_bytes));
    if (parts.f32_bytes > 0) l.wide = wide;
    if (parts.copy_bytes > 0) l.copy = cg_at(e, e->i8, wide, cg_int(e, parts.f32_bytes));
    if (parts.distance_bytes > 0) l.run = run_in_tile(k, l.matmul, e->target);
    if (parts.distance_bytes > 0) l.distances = cg_at(e, e->i8, wide, cg_int(e, parts.f32_bytes + parts.copy_bytes));
    if (l.matmul == CG_MATMUL_AMX) cg_amx_begin_kernel(e);
    LLVMValueRef rows = cg_loop_extent(e, kernel, 0, k->rows, buffers);
    if (!pl_is_split(plan, kernel) && kernel->limit == NULL) { /* constant row count, equal to the tiles' */
        if (k->rows.offset > 0) emit_row_block(e, &l, cg_int(e, 0), rows);
        return;
    }
    cg_range slice = cg_slice_by_grain(e, rows, l.matmul == CG_MATMUL_AMX ? CG_AMX_GROUP : e->target->tile_rows);
    CG_FOR (e, block, slice.from, slice.to, ROW_BLOCK) {
        LLVMValueRef left = cg_isub(e, slice.to, block.index);
        emit_row_block(e, &l, block.index, cg_imin(e, left, cg_int(e, ROW_BLOCK)));
    }
}

static void sign_window_dims(cg_signature_writer *w, const pl_window_dims *dims)
{
    cg_signature_add(w, dims->count);
    for (int d = 0; d < dims->count; d++) {
        cg_signature_add_dim(w, dims->extent[d]);
        cg_signature_add_dim(w, dims->stride[d]);
    }
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_linear *k = &kernel->linear;
    cg_signature_add_matrix(w, &k->a);
    cg_signature_add(w, k->windows != NULL);
    if (k->windows != NULL) {
        sign_window_dims(w, &k->windows->rows);
        sign_window_dims(w, &k->windows->columns);
    }
    cg_signature_add_dim(w, k->rows);
    cg_signature_add(w, k->k);
    cg_signature_add(w, k->columns);
    cg_signature_add_buffer(w, k->weight);
    cg_signature_add_buffer(w, k->bias);
    cg_signature_add_expr(w, k->epilogue);
    cg_signature_add_matrix(w, &k->out);
}

const cg_kind_ops cg_linear_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
