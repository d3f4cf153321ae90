/* warp.c — collectives of a warp. The last lane that arrives does the work for all. Each lane passes a ch_request.
 * The collective runs when all lanes of the mask have arrived, which must be at the same call: same function, line
 * and mask (CUDA programming guide, "Warp Shuffle Functions": all non-exited threads named in mask must execute the
 * same intrinsic with the same mask). Fragment layouts are those of the PTX ISA, "Warp Level Matrix
 * Multiply-Accumulate Instructions". */
#include "ir/tensor.h"
#include "tests/cuda_host/machine.h"

#include <string.h>

static const uint32_t WHOLE_WARP = UINT32_MAX;

/* Waits for all lanes of the mask. The last one runs `perform`. */
static void meet(const char *what, int line, uint32_t mask, void *operand,
                 void (*perform)(ch_warp *warp, uint32_t mask, int line))
{
    ch_thread *self = ch.current;
    ch_warp *warp = self->warp;
    ch_request request = {what, line, mask, operand};
    if (!(mask >> self->lane & 1)) ch_fault(line, NULL, "%s: the mask %08x lacks the calling lane", what, mask);
    if (mask & ~warp->live) ch_fault(line, NULL, "%s: the mask %08x names lanes that exited", what, mask);
    self->request = &request;
    bool complete = true;
    for (int k = 0; k < CH_WARP; k++) {
        if (!(mask >> k & 1)) continue;
        const ch_request *other = warp->threads[k].request;
        complete &= other != NULL;
        if (other && (other->what != what || other->line != line || other->mask != mask))
            ch_fault(line, NULL, "%s with mask %08x while %s is at %s of line %d with mask %08x", what, mask,
                     ch_place(&warp->threads[k]), other->what, other->line, other->mask);
    }
    if (!complete) {
        ch_wait(what, line);
        return;
    }
    if (perform) perform(warp, mask, line);
    for (int k = 0; k < CH_WARP; k++) {
        if (!(mask >> k & 1)) continue;
        warp->threads[k].request = NULL;
        ch_wake(&warp->threads[k]);
    }
}

static void *operand_of(const ch_warp *warp, int lane) { return warp->threads[lane].request->operand; }

static void order_lanes(ch_warp *warp, uint32_t mask, int line)
{
    (void)line;
    ch_order_warp(warp, mask);
}

void ch_syncwarp(uint32_t mask, int line)
{
    static const char name[] = "__syncwarp";
    if (ch_reached(name, line)) meet(name, line, mask, NULL, order_lanes);
}

typedef struct shuffle {
    ch_shuffle how;
    uint32_t value, result;
    unsigned operand, width;
} shuffle;

/* Returns the source lane, or the lane itself if the source lies outside the segment of `width` lanes. */
static int source_lane(const shuffle *s, int lane)
{
    int width = (int)s->width, operand = (int)s->operand, first = lane / width * width, from = lane;
    switch (s->how) {
    case CH_SHUFFLE_IDX: return first + operand % width;
    case CH_SHUFFLE_UP: from = lane - operand; break;
    case CH_SHUFFLE_DOWN: from = lane + operand; break;
    case CH_SHUFFLE_XOR: from = lane ^ operand; break;
    }
    /* xor may reach lower segments, because shfl.bfly's clamp is only an upper bound */
    return (s->how == CH_SHUFFLE_UP && from < first) || from >= first + width ? lane : from;
}

static void do_shuffle(ch_warp *warp, uint32_t mask, int line)
{
    for (int k = 0; k < CH_WARP; k++) {
        if (!(mask >> k & 1)) continue;
        shuffle *s = operand_of(warp, k);
        int from = source_lane(s, k);
        if (!(mask >> from & 1))
            ch_fault(line, NULL, "lane %d shuffles from lane %d, outside the mask %08x", k, from, mask);
        s->result = ((const shuffle *)operand_of(warp, from))->value;
    }
}

uint32_t ch_shfl(ch_shuffle how, uint32_t mask, uint32_t value, unsigned operand, unsigned width, int line)
{
    static const char name[] = "__shfl_sync";
    shuffle s = {how, value, 0, operand, width};
    if (width == 0 || width > CH_WARP || (width & (width - 1))) ch_fault(line, NULL, "%s: width %u", name, width);
    meet(name, line, mask, &s, do_shuffle);
    return s.result;
}

typedef struct vote {
    int predicate;
    uint32_t result;
} vote;

static void do_ballot(ch_warp *warp, uint32_t mask, int line)
{
    (void)line;
    uint32_t result = 0;
    for (int k = 0; k < CH_WARP; k++)
        if ((mask >> k & 1) && ((const vote *)operand_of(warp, k))->predicate) result |= 1u << k;
    for (int k = 0; k < CH_WARP; k++)
        if (mask >> k & 1) ((vote *)operand_of(warp, k))->result = result;
}

uint32_t ch_ballot(uint32_t mask, int predicate, int line)
{
    static const char name[] = "__ballot_sync";
    vote v = {predicate, 0};
    meet(name, line, mask, &v, do_ballot);
    return v.result;
}

enum { M = 16, N = 8, MAX_K = 16 };

typedef struct product {
    ch_element element;
    int k;
    float *d;
    const uint32_t *a, *b;
    const float *c;
} product;

static float element_of(ch_element element, const uint32_t *registers, int i)
{
    uint16_t half = (uint16_t)(registers[i / 2] >> (i % 2 * 16));
    return element == CH_BF16 ? ir_bf16_to_f32(half) : ir_f16_to_f32(half);
}

uint32_t ch_pack(ch_element element, float low, float high)
{
    if (element == CH_BF16) return ir_f32_to_bf16(low) | (uint32_t)ir_f32_to_bf16(high) << 16;
    return ir_f32_to_f16(low) | (uint32_t)ir_f32_to_f16(high) << 16;
}

/* "Matrix Fragments for mma.m16n8k16 with floating point type" and "… mma.m16n8k8", 16-bit elements: with group = lane
 * / 4 and pair = lane % 4, element a[i] lies in row group + 8 * (i / 2 % 2), column 2 * pair + i % 2 + 8 * (i / 4);
 * b[i] in row 2 * pair + i % 2 + 8 * (i / 2), column group; c[i] in row group + 8 * (i / 2), column 2 * pair + i % 2.
 * m16n8k8 has the first half of a's and b's elements. */
static void do_mma(ch_warp *warp, uint32_t mask, int line)
{
    (void)mask;
    (void)line;
    static float a[M][MAX_K], b[MAX_K][N];
    int depth = 0;
    for (int lane = 0; lane < CH_WARP; lane++) {
        const product *p = operand_of(warp, lane);
        int group = lane / 4, pair = lane % 4;
        depth = p->k;
        for (int i = 0; i < depth / 2; i++)
            a[group + 8 * (i / 2 % 2)][2 * pair + i % 2 + 8 * (i / 4)] = element_of(p->element, p->a, i);
        for (int i = 0; i < depth / 4; i++) b[2 * pair + i % 2 + 8 * (i / 2)][group] = element_of(p->element, p->b, i);
    }
    float sum[M][N] = {{0}};
    for (int row = 0; row < M; row++)
        for (int k = 0; k < depth; k++)
            for (int column = 0; column < N; column++) sum[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < CH_WARP; lane++) {
        const product *p = operand_of(warp, lane);
        for (int i = 0; i < 4; i++) p->d[i] = p->c[i] + sum[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
    }
}

void ch_mma(ch_element element, int k, float *d, const uint32_t *a, const uint32_t *b, const float *c, int line)
{
    product p = {element, k, d, a, b, c};
    meet("mma", line, WHOLE_WARP, &p, do_mma);
}

typedef struct matrix_load {
    uint32_t *registers;
    int matrices;
    int transposed;
    const uint16_t *row;
} matrix_load;

/* Lanes 8 j … 8 j + 7 pass the rows of matrix j. Lane l receives row l / 4, elements 2 (l % 4) and the next;
 * transposed: column l / 4 of those rows (PTX ISA, "Warp-level matrix load instruction: ldmatrix"). */
static void do_ldmatrix(ch_warp *warp, uint32_t mask, int line)
{
    (void)mask;
    (void)line;
    for (int lane = 0; lane < CH_WARP; lane++) {
        const matrix_load *to = operand_of(warp, lane);
        int group = lane / 4, pair = lane % 4 * 2;
        for (int j = 0; j < to->matrices; j++) {
            uint32_t half[2];
            for (int h = 0; h < 2; h++) {
                int row = to->transposed ? pair + h : group, column = to->transposed ? group : pair + h;
                half[h] = ((const matrix_load *)operand_of(warp, 8 * j + row))->row[column];
            }
            to->registers[j] = half[0] | half[1] << 16;
        }
    }
}

void ch_ldmatrix(uint32_t *registers, int matrices, int transposed, const void *row, int line)
{
    enum { ROW_BYTES = 16 };
    matrix_load load = {registers, matrices, transposed, row};
    if ((int)ch.current->lane < 8 * matrices) { /* the addresses of other lanes are ignored */
        if ((uintptr_t)row % ROW_BYTES) ch_fault(line, NULL, "ldmatrix: misaligned row");
        ch_check(row, ROW_BYTES, CH_READ, line, NULL);
    }
    meet("ldmatrix", line, WHOLE_WARP, &load, do_ldmatrix);
}
