/* cpu_linear_winograd.c — linears over 3x3 windows by Winograd's transform F(2x2, 3x3): see cpu_linear.h.
 *
 * A square is 2x2 adjacent positions. Their windows cover 4x4 elements d of each channel. With the transformed taps
 * u = G g Gᵀ (cg_pack_taps), the four sums are Aᵀ [Σ u · (Bᵀ d B)] A, where the sum runs over the channels. That
 * takes 16 multiplications per channel instead of 36. Aᵀ and Bᵀ contain only 0, 1 and -1.
 *
 * Windows that move by two cover 5x5 elements. In each dimension, two taps on the even ones take 3 multiplications
 * instead of 4, and one tap on the odd ones adds 2 to the same sums. Together: 25 in 9 sums of up to 4 terms.
 *
 *   for each block of SQUARES squares
 *     for each square, vector of channels    Bᵀ d B, to scratch
 *     for each strip of columns
 *       for each sum, block of its terms     a matmul of squares × channels × columns (register_tile.c), to scratch
 *       for each square, vector of columns   Aᵀ m A and the bias, in place
 *       for each square, vector of columns   if a sum is infinite or NaN: the sums of all taps instead
 *       for each position, vector            the epilogue
 *
 * A position's sum reads elements of its own window only, even with the transform: elements elsewhere have the factor
 * 0, which is left out. So NaN reaches the same sums as in a sum over taps. An infinite element would become NaN by
 * inf - inf, and elements above a quarter of the range could overflow. Such sums are computed again, one tap at a
 * time. Every square is computed alike, whichever block it is in, so that slices do not change bits. */
#include "codegen/cpu/cpu_linear.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/tiles.h"
#include "plan/kernel_kind.h"

enum { SQUARES = 30 };  /* a multiple of all tile heights; 64 transformed channels take 123 or 192 KB */
enum { K_BLOCK = 128 }; /* a strip of its weights stays in the L1 cache */
enum { SIDE = 4, MOST_ELEMENTS = 25, SUMS = 4 };

typedef struct winograd {
    const cg_linear_block *l;
    pl_taps taps;
    bool by_two;
    int side, sum_side;              /* of a square's elements and sums */
    LLVMValueRef first, count;       /* squares of the block */
    LLVMValueRef input, sums, panel; /* scratch: [sum][SQUARES][term][channels], [sum][SQUARES][width]; weights of the
                                      * strip */
    LLVMValueRef column;             /* first of the strip */
    int64_t width;                   /* of the strip */
    LLVMValueRef sum, before, terms; /* of the current matmul: the sum, the terms of those before it, and its own */
    LLVMValueRef k_first, k_count;   /* its block of terms times channels */
} winograd;

bool cg_has_transformed_taps(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target)
{
    return plan->buffers[k->weight].use >= PL_TAPS && target->layout->taps[0] != NULL;
}

static int64_t strip_columns(const pl_linear *k, const cg_cpu_target *target)
{
    int64_t widest = (int64_t)target->tile_vectors * target->lanes;
    return k->columns < widest ? k->columns : widest;
}

int64_t cg_linear_winograd_scratch(const pl_linear *k, const cg_cpu_target *target)
{
    return (int64_t)MOST_ELEMENTS * SQUARES * (k->k / 9 + strip_columns(k, target)) * 4;
}

/* A square's position in the image, and the image number. */
typedef struct square {
    LLVMValueRef image, y, x;
} square;

static square square_at(cg_emitter *e, const winograd *w, LLVMValueRef index)
{
    LLVMValueRef across = cg_int(e, w->taps.width / 2), down = cg_int(e, w->taps.height / 2);
    LLVMValueRef row = LLVMBuildUDiv(e->builder, index, across, "");
    LLVMValueRef image = LLVMBuildUDiv(e->builder, row, down, "");
    LLVMValueRef y = cg_isub(e, row, cg_imul(e, image, down)), x = cg_isub(e, index, cg_imul(e, row, across));
    return (square){image, cg_imul(e, y, cg_int(e, 2)), cg_imul(e, x, cg_int(e, 2))};
}

/* The first of the 4x4 elements. */
static LLVMValueRef elements_of(cg_emitter *e, const winograd *w, const square *s)
{
    const pl_matrix *a = &w->l->k->a;
    LLVMValueRef distance = cg_imul(e, s->image, cg_dim(e, w->taps.image_stride));
    distance = cg_iadd(e, distance, cg_imul(e, s->y, cg_int(e, w->taps.step * w->taps.y_stride)));
    distance = cg_iadd(e, distance, cg_imul(e, s->x, cg_int(e, w->taps.step * w->taps.x_stride)));
    return cg_at(e, e->f32, w->l->buffers[a->buffer], cg_iadd(e, cg_dim(e, a->offset), distance));
}

static LLVMValueRef load_element(cg_emitter *e, const winograd *w, LLVMValueRef source, int y, int x, LLVMTypeRef type)
{
    return cg_load(e, type, cg_at(e, e->f32, source, cg_int(e, y * w->taps.y_stride + x * w->taps.x_stride)), 0);
}

/* Strip vectors of a square's element 0 at `column`, counted from the first. */
static LLVMValueRef sums_at(cg_emitter *e, const winograd *w, LLVMValueRef index, LLVMValueRef column)
{
    return cg_at(e, e->f32, w->sums, cg_iadd(e, cg_imul(e, index, cg_int(e, w->width)), column));
}

/* Multiplies the values of a side by Bᵀ. */
static void transform_input(cg_emitter *e, const winograd *w, LLVMValueRef *v, int step)
{
    LLVMValueRef a = v[0], b = v[step], c = v[2 * step], d = v[3 * step];
    v[0] = cg_fsub(e, a, c);
    v[3 * step] = w->by_two ? cg_fsub(e, v[4 * step], c) : cg_fsub(e, b, d);
    if (w->by_two) v[4 * step] = d;
    if (w->by_two) return;
    v[step] = cg_fadd(e, b, c);
    v[2 * step] = cg_fsub(e, c, b);
}

static void emit_input(cg_emitter *e, const winograd *w)
{
    int lanes = e->target->lanes;
    LLVMTypeRef type = cg_vector(e, e->f32, lanes);
    LLVMValueRef v[MOST_ELEMENTS];
    int64_t side = w->side, elements = side * side, channels = w->taps.channels;
    CG_FOR_NONEMPTY (e, index, cg_int(e, 0), w->count, 1) {
        square s = square_at(e, w, cg_iadd(e, w->first, index.index));
        LLVMValueRef source = elements_of(e, w, &s);
        CG_FOR_NONEMPTY (e, channel, cg_int(e, 0), cg_int(e, channels), lanes) {
            LLVMValueRef address = cg_at(e, e->f32, source, channel.index);
            for (int i = 0; i < elements; i++) v[i] = load_element(e, w, address, i / side, i % side, type);
            for (int i = 0; i < side; i++) transform_input(e, w, v + i, side);
            for (int i = 0; i < side; i++) transform_input(e, w, v + side * i, 1);
            for (int i = 0; i < elements; i++) {
                int place = cg_tap_place(w->by_two, i / side, i % side), sum = 0;
                while (cg_tap_sum_begin(w->by_two, sum + 1) <= place) sum++;
                int begin = cg_tap_sum_begin(w->by_two, sum), terms = cg_tap_sum_begin(w->by_two, sum + 1) - begin;
                LLVMValueRef before = cg_imul(e, index.index, cg_int(e, terms * channels));
                LLVMValueRef ahead = cg_iadd(e, channel.index, cg_int(e, (begin * SQUARES + place - begin) * channels));
                cg_store(e, v[i], cg_at(e, e->f32, w->input, cg_iadd(e, before, ahead)), 4 * (unsigned)lanes);
            }
        }
    }
}

/* Multiplies the values of a side by Aᵀ: two results. */
static void transform_sums(cg_emitter *e, const winograd *w, const LLVMValueRef *v, int step, LLVMValueRef out[2])
{
    for (int i = 0; i < 2 && w->by_two; i++) out[i] = cg_fadd(e, v[i * step], v[(i + 1) * step]);
    if (w->by_two) return;
    LLVMValueRef inner = cg_fadd(e, v[step], v[2 * step]), difference = cg_fsub(e, v[step], v[2 * step]);
    out[0] = cg_fadd(e, v[0], inner);
    out[1] = cg_fsub(e, difference, v[3 * step]);
}

static void store_sum(cg_emitter *e, const winograd *w, LLVMValueRef address, int sum, LLVMValueRef value)
{
    LLVMValueRef ahead = cg_int(e, sum * SQUARES * w->width);
    cg_store(e, value, cg_at(e, e->f32, address, ahead), 4 * (unsigned)e->target->lanes);
}

static LLVMValueRef load_sum(cg_emitter *e, const winograd *w, LLVMValueRef address, int sum)
{
    LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
    return cg_load(e, type, cg_at(e, e->f32, address, cg_int(e, sum * SQUARES * w->width)),
                   4 * (unsigned)e->target->lanes);
}

/* 0 in all lanes if the values are finite. */
static LLVMValueRef add_zeros(cg_emitter *e, LLVMValueRef zeros, const LLVMValueRef value[SUMS])
{
    LLVMValueRef zero = cg_const(e, cg_vector(e, e->f32, e->target->lanes), 0);
    for (int i = 0; i < SUMS; i++) zeros = cg_fma(e, value[i], zero, zeros);
    return zeros;
}

static LLVMValueRef is_not_zero(cg_emitter *e, LLVMValueRef zeros)
{
    LLVMValueRef sum = cg_reduce_add(e, zeros);
    return LLVMBuildFCmp(e->builder, LLVMRealUNE, sum, cg_const(e, e->f32, 0), "");
}

/* Returns the result of add_zeros for the block's sums. */
static LLVMValueRef emit_sums(cg_emitter *e, const winograd *w)
{
    int lanes = e->target->lanes;
    LLVMValueRef m[MOST_ELEMENTS], by_row[2 * SIDE], two[2], four[SUMS];
    LLVMValueRef zeros = cg_const(e, cg_vector(e, e->f32, lanes), 0);
    cg_loop index, column;
    cg_loop_begin(e, &index, cg_int(e, 0), w->count, 1, 1, &zeros, false);
    cg_loop_begin(e, &column, cg_int(e, 0), cg_int(e, w->width), lanes, 1, index.carried, false);
    LLVMValueRef address = sums_at(e, w, index.index, column.index),
                 bias = cg_linear_bias(e, w->l, cg_iadd(e, w->column, column.index));
    for (int i = 0; i < w->sum_side * w->sum_side; i++) m[i] = load_sum(e, w, address, i);
    for (int j = 0; j < w->sum_side; j++) {
        transform_sums(e, w, m + j, w->sum_side, two);
        by_row[j] = two[0];
        by_row[SIDE + j] = two[1];
    }
    for (int i = 0; i < 2; i++) transform_sums(e, w, by_row + SIDE * i, 1, four + 2 * i);
    for (int i = 0; i < SUMS; i++) {
        four[i] = cg_fadd(e, four[i], bias);
        store_sum(e, w, address, i, four[i]);
    }
    zeros = add_zeros(e, column.carried[0], four);
    cg_loop_end(e, &column, &zeros);
    cg_loop_end(e, &index, column.out);
    return index.out[0];
}

static LLVMValueRef load_weight(cg_emitter *e, const winograd *w, LLVMValueRef source, int element)
{
    LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
    int64_t ahead = element * w->taps.channels * CG_PANEL_COLUMNS;
    return cg_load(e, type, cg_at(e, e->f32, source, cg_int(e, ahead)), 4 * (unsigned)e->target->lanes);
}

/* The middle tap. A sum within rounding of the terms is 0, because infinity times 0 is NaN. */
static LLVMValueRef middle_tap(cg_emitter *e, const winograd *w, LLVMValueRef source)
{
    LLVMValueRef u[] = {load_weight(e, w, source, SIDE + 1), load_weight(e, w, source, SIDE + 2),
                        load_weight(e, w, source, 2 * SIDE + 1), load_weight(e, w, source, 2 * SIDE + 2)};
    LLVMValueRef above = cg_fsub(e, u[0], u[1]), below = cg_fsub(e, u[2], u[3]);
    LLVMValueRef sum = cg_fsub(e, above, below), size = cg_fabs(e, u[0]);
    for (int i = 1; i < 4; i++) size = cg_fadd(e, size, cg_fabs(e, u[i]));
    LLVMValueRef minimum = cg_fmul(e, size, cg_const(e, LLVMTypeOf(size), 0x1p-22));
    LLVMValueRef is_zero = LLVMBuildFCmp(e->builder, LLVMRealOLE, cg_fabs(e, sum), minimum, "");
    return cg_select(e, is_zero, cg_const(e, LLVMTypeOf(sum), 0), sum);
}

/* A tap from the transformed ones: in each dimension, the first is element 0, the middle one is element 1 - element 2,
 * and the last one is element 3. */
static LLVMValueRef tap_at(cg_emitter *e, const winograd *w, LLVMValueRef source, int i, int j)
{
    static const int first[] = {0, 1, 3};
    int element = cg_tap_place(w->by_two, first[i], first[j]);
    if (w->by_two) return load_weight(e, w, source, element);
    if (i == 1 && j == 1) return middle_tap(e, w, source);
    LLVMValueRef value = load_weight(e, w, source, element);
    if (i != 1 && j != 1) return value;
    return cg_fsub(e, value, load_weight(e, w, source, element + (i == 1 ? SIDE : 1)));
}

/* Computes the four sums at `address` again. */
static void emit_taps(cg_emitter *e, const winograd *w, LLVMValueRef index, LLVMValueRef column, LLVMValueRef address)
{
    int lanes = e->target->lanes;
    LLVMValueRef bias = cg_linear_bias(e, w->l, cg_iadd(e, w->column, column)), sum[SUMS] = {bias, bias, bias, bias};
    square s = square_at(e, w, cg_iadd(e, w->first, index));
    LLVMValueRef source = elements_of(e, w, &s);
    cg_loop channel;
    cg_loop_begin(e, &channel, cg_int(e, 0), cg_int(e, w->taps.channels), 1, SUMS, sum, false);
    for (int i = 0; i < SUMS; i++) sum[i] = channel.carried[i];
    LLVMValueRef row = cg_iadd(e, cg_imul(e, channel.index, cg_int(e, CG_PANEL_COLUMNS)), column);
    LLVMValueRef panel = cg_at(e, e->f32, w->panel, row), d = cg_at(e, e->f32, source, channel.index);
    for (int t = 0; t < 9; t++) {
        LLVMValueRef tap = tap_at(e, w, panel, t / 3, t % 3);
        for (int i = 0; i < SUMS; i++) {
            int y = t / 3 + i / 2 * (int)w->taps.step, x = t % 3 + i % 2 * (int)w->taps.step;
            LLVMValueRef element = load_element(e, w, d, y, x, e->f32);
            sum[i] = cg_fma(e, cg_splat(e, element, lanes), tap, sum[i]);
        }
    }
    cg_loop_end(e, &channel, sum);
    for (int i = 0; i < SUMS; i++) store_sum(e, w, address, i, channel.out[i]);
}

static void emit_infinite_sums(cg_emitter *e, const winograd *w)
{
    LLVMValueRef sums[SUMS], zero = cg_const(e, cg_vector(e, e->f32, e->target->lanes), 0);
    CG_FOR_NONEMPTY (e, index, cg_int(e, 0), w->count, 1)
        CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, w->width), e->target->lanes) {
            LLVMValueRef address = sums_at(e, w, index.index, column.index);
            for (int i = 0; i < SUMS; i++) sums[i] = load_sum(e, w, address, i);
            CG_IF (e, is_not_zero(e, add_zeros(e, zero, sums))) emit_taps(e, w, index.index, column.index, address);
        }
}

static void emit_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    const winograd *w = context;
    int lanes = e->target->lanes;
    LLVMTypeRef type = cg_vector(e, e->f32, lanes);
    LLVMValueRef width = cg_int(e, w->width), channels = cg_int(e, w->taps.channels), at[CG_MAX_TILE_ROWS];
    cg_tile tile = {.rows = rows->count, .vectors = (int)(w->width / lanes)};
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel_step = CG_PANEL_COLUMNS};
    LLVMValueRef before = cg_imul(e, w->before, channels), panel_row = cg_iadd(e, before, w->k_first);
    LLVMValueRef input = cg_at(e, e->f32, w->input, cg_iadd(e, cg_imul(e, before, cg_int(e, SQUARES)), w->k_first));
    LLVMValueRef sums = cg_at(e, e->f32, w->sums, cg_imul(e, w->sum, cg_int(e, SQUARES * w->width)));
    LLVMValueRef starts = LLVMBuildICmp(e->builder, LLVMIntEQ, w->k_first, cg_int(e, 0), "");
    operands.panel = cg_at(e, e->f32, w->panel, cg_imul(e, panel_row, cg_int(e, CG_PANEL_COLUMNS)));
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, e->f32, rows, i, input, cg_imul(e, w->terms, channels));
        at[i] = cg_row_pointer(e, e->f32, rows, i, sums, width);
    }
    for (int i = 0; i < tile.rows * tile.vectors; i++) {
        LLVMValueRef address = cg_at(e, e->f32, at[i / tile.vectors], cg_int(e, (int64_t)(i % tile.vectors) * lanes));
        LLVMValueRef sum = cg_load(e, type, address, 4 * (unsigned)lanes);
        tile.acc[i] = cg_select(e, starts, cg_const(e, type, 0), sum);
    }
    cg_tile_accumulate(e, &tile, &operands, w->k_count, NULL);
    for (int i = 0; i < tile.rows * tile.vectors; i++) {
        LLVMValueRef address = cg_at(e, e->f32, at[i / tile.vectors], cg_int(e, (int64_t)(i % tile.vectors) * lanes));
        cg_store(e, tile.acc[i], address, 4 * (unsigned)lanes);
    }
}

/* Applies the epilogue to the sums of a strip, and stores them. */
static void emit_results(cg_emitter *e, const winograd *w)
{
    const cg_linear_block *l = w->l;
    CG_FOR_NONEMPTY (e, index, cg_int(e, 0), w->count, 1) {
        square s = square_at(e, w, cg_iadd(e, w->first, index.index));
        LLVMValueRef y = cg_iadd(e, cg_imul(e, s.image, cg_int(e, w->taps.height)), s.y);
        LLVMValueRef first = cg_iadd(e, cg_imul(e, y, cg_int(e, w->taps.width)), s.x);
        CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, w->width), e->target->lanes) {
            LLVMValueRef address = sums_at(e, w, index.index, column.index),
                         place = cg_iadd(e, w->column, column.index);
            for (int i = 0; i < SUMS; i++) {
                LLVMValueRef row = cg_iadd(e, first, cg_int(e, i / 2 * w->taps.width + i % 2));
                LLVMValueRef value = cg_linear_epilogue(e, l, row, place, load_sum(e, w, address, i));
                LLVMValueRef out = cg_at(e, l->out_type, l->out, cg_iadd(e, cg_imul(e, row, l->out_stride), place));
                cg_store_elements(e, l->plan, l->k->out.buffer, value, out);
            }
        }
    }
}

/* The first term of a sum; those of windows that move by two are the bytes of a constant. */
static LLVMValueRef term_of_sum(cg_emitter *e, const winograd *w, LLVMValueRef sum)
{
    uint64_t table = 0;
    if (!w->by_two) return sum;
    for (int s = 0; s < 10; s++) table |= (uint64_t)cg_tap_sum_begin(true, s) << (6 * s);
    LLVMValueRef shifted = LLVMBuildLShr(e->builder, cg_int(e, (int64_t)table), cg_imul(e, sum, cg_int(e, 6)), "");
    return LLVMBuildAnd(e->builder, shifted, cg_int(e, 63), "");
}

static void emit_strip(cg_emitter *e, winograd *w, LLVMValueRef column, int64_t width)
{
    const pl_linear *k = w->l->k;
    LLVMValueRef panel_column = cg_round_down(e, column, CG_PANEL_COLUMNS), inside = cg_isub(e, column, panel_column);
    LLVMValueRef offset = cg_iadd(e, cg_imul(e, panel_column, cg_int(e, w->side * w->side * w->taps.channels)), inside);
    cg_loop block;
    w->column = column;
    w->width = width;
    w->panel = cg_at(e, e->f32, w->l->buffers[k->weight], offset);
    CG_FOR_NONEMPTY (e, sum, cg_int(e, 0), cg_int(e, w->sum_side * w->sum_side), 1) {
        w->sum = sum.index;
        w->before = term_of_sum(e, w, sum.index);
        w->terms = cg_int(e, 1);
        if (w->by_two) w->terms = cg_isub(e, term_of_sum(e, w, cg_iadd(e, sum.index, cg_int(e, 1))), w->before);
        LLVMValueRef terms = cg_imul(e, w->terms, cg_int(e, w->taps.channels)), most = cg_int(e, K_BLOCK);
        bool is_whole = w->taps.channels % K_BLOCK == 0, is_one_block = !w->by_two && w->taps.channels <= K_BLOCK;
        if (!is_one_block) cg_loop_begin(e, &block, cg_int(e, 0), terms, K_BLOCK, 0, NULL, false);
        w->k_first = is_one_block ? cg_int(e, 0) : block.index;
        w->k_count = is_whole ? most : is_one_block ? terms : cg_imin(e, cg_isub(e, terms, block.index), most);
        cg_for_rows(e, w->count, NULL, 0, emit_tile, w);
        if (!is_one_block) cg_loop_end(e, &block, NULL);
    }
    LLVMValueRef zeros = emit_sums(e, w);
    CG_IF (e, is_not_zero(e, zeros)) emit_infinite_sums(e, w);
    emit_results(e, w);
}

void cg_linear_winograd(cg_emitter *e, cg_linear_block *l, bool is_split)
{
    const pl_linear *k = l->k;
    winograd w = {.l = l};
    pl_taps_of(k, &w.taps);
    w.by_two = w.taps.step == 2;
    w.side = w.by_two ? 5 : SIDE;
    w.sum_side = w.by_two ? 3 : SIDE;
    int64_t strip = strip_columns(k, e->target), whole = k->columns / strip * strip;
    LLVMValueRef squares = LLVMBuildUDiv(e->builder, cg_dim(e, k->rows), cg_int(e, SUMS), "");
    cg_range slice = {cg_int(e, 0), squares};
    if (is_split) slice = cg_slice_by_grain(e, squares, e->target->tile_rows);
    l->first_row = cg_int(e, 0);
    l->out_stride = cg_dim(e, k->out.row_stride);
    l->out = cg_at(e, l->out_type, l->buffers[k->out.buffer], cg_dim(e, k->out.offset));
    w.input = l->stage;
    w.sums = cg_at(e, e->f32, w.input, cg_int(e, w.side * w.side * SQUARES * w.taps.channels));
    CG_FOR (e, block, slice.from, slice.to, SQUARES) {
        w.first = block.index;
        w.count = cg_imin(e, cg_isub(e, slice.to, block.index), cg_int(e, SQUARES));
        emit_input(e, &w);
        CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, whole), strip) emit_strip(e, &w, column.index, strip);
        if (k->columns > whole) emit_strip(e, &w, cg_int(e, whole), k->columns - whole);
    }
}
