/* pack.h — constants in the layouts that CPU kernels read.
 *
 * Constants that are read one element at a time are dense. Kernels define the layout of a matrix operand. A packing
 * is a row of functions, and a target names the packings that its kernels read. Targets with the same packing read
 * the same bytes.
 */
#ifndef CG_CPU_PACK_H
#define CG_CPU_PACK_H

#include "plan/plan.h"

/* A matrix operand is an f32 tensor. Its last dimension is columns, and all dimensions before it are K: a vector has
 * K = 1. */
typedef struct cg_packing {
    const char *name;
    int64_t (*matrix_bytes)(const ir_tensor *matrix); /* -1 on overflow */
    void (*pack_matrix)(const ir_tensor *matrix, void *out);
} cg_packing;

/* Panels of 64 columns, K-major: out[(c / 64 * K + k) * 64 + c % 64], padded with zeros. */
enum { CG_PANEL_COLUMNS = 64 };
extern const cg_packing cg_pack_panels;

/* The same panels in bfloat16, two rows of K per 32-bit word. bf16 dot products (vdpbf16ps, tdpbf16ps) read this
 * layout, and a shift and a mask convert it to two rows of f32. Zeros before the first row make K a multiple of
 * CG_BF16_ROWS, the rows of a tile. Row k is at p = k + cg_bf16_padding(K), in half p % 2 (the low one first) of word
 * out[(c / 64 * (K + padding) / 2 + p / 2) * 64 + c % 64]. */
enum { CG_BF16_ROWS = 32 };
extern const cg_packing cg_pack_bf16;
static inline int64_t cg_bf16_padding(int64_t k)
{
    return (CG_BF16_ROWS - k % CG_BF16_ROWS) % CG_BF16_ROWS;
}

/* 3x3 taps (PL_TAPS) of C channels in the panels of a matrix with 16 C rows: row (4 i + j) * C + c is element (i, j) of
 * G g Gᵀ, where g are the taps of channel c, and G is {1, 0, 0}, {1/2, 1/2, 1/2}, {1/2, -1/2, 1/2}, {0, 0, 1}. */
extern const cg_packing cg_pack_taps;

/* The packings that a target's kernels read: for matrices that the plan keeps in full precision, for those that it
 * keeps in 16 bits (pl_is_half), and for 3x3 taps; NULL: taps are packed like other matrices. */
typedef struct cg_layout {
    const cg_packing *f32, *bf16, *taps;
} cg_layout;
extern const cg_layout cg_layout_f32, cg_layout_bf16;

/* The packing of a constant with use MATRIX or TAPS in a layout. */
static inline const cg_packing *cg_packing_of(const cg_layout *layout, const pl_buffer *buffer)
{
    if (buffer->use == PL_TAPS && layout->taps != NULL) return layout->taps;
    return pl_is_half(buffer) ? layout->bf16 : layout->f32;
}

/* Size of a packed constant in bytes, excluding the padding to the section's alignment; -1 on overflow. */
int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use);
/* Packs `tensor` into `out`, which holds cg_packed_bytes. */
void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out);

#endif
