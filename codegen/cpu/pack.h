/* pack.h — constants in the forms in which CPU kernels read them.
 *
 * What is read one element at a time is dense. How a matrix operand is laid out is its kernels' matter: a packing is a
 * row of functions, and a target names those that its kernels read: targets of one packing read the same bytes.
 */
#ifndef CG_CPU_PACK_H
#define CG_CPU_PACK_H

#include "ir/plan/plan.h"

/* A matrix operand is an f32 tensor, its last dimension being columns and all before it K: a vector has K = 1. */
typedef struct cg_packing {
    const char *name;
    int64_t (*matrix_bytes)(const ir_tensor *matrix); /* -1 on overflow */
    void (*pack_matrix)(const ir_tensor *matrix, void *out);
} cg_packing;

/* Panels of 64 columns, K-major: out[(c / 64 * K + k) * 64 + c % 64], padded with zeros. */
enum { CG_PANEL_COLUMNS = 64 };
extern const cg_packing cg_pack_panels;

/* The same panels in bfloat16, two rows of K to a 32-bit word: what products of pairs (vdpbf16ps, tdpbf16ps) take, and
 * what widens to two rows of f32 by a shift and a mask. Zeros before the first row make K a multiple of
 * CG_BF16_ROWS, which is a tile's: row k stands at p = k + cg_bf16_padding(K), in half p % 2 (the low one first) of
 * word out[(c / 64 * (K + padding) / 2 + p / 2) * 64 + c % 64]. */
enum { CG_BF16_ROWS = 32 };
extern const cg_packing cg_pack_bf16;
static inline int64_t cg_bf16_padding(int64_t k)
{
    return (CG_BF16_ROWS - k % CG_BF16_ROWS) % CG_BF16_ROWS;
}

/* What a target's kernels read: matrices that the plan keeps whole, and those that it keeps in 16 bits (pl_is_half). */
typedef struct cg_layout {
    const cg_packing *whole, *half;
} cg_layout;
extern const cg_layout cg_layout_f32, cg_layout_bf16;

/* How a constant of use MATRIX lies there. */
static inline const cg_packing *cg_packing_of(const cg_layout *layout, const pl_buffer *buffer)
{
    return pl_is_half(buffer) ? layout->half : layout->whole;
}

/* Bytes that a constant takes, without the padding to the section's alignment; -1 on overflow. */
int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use);
/* Packs `tensor` into `out`, which holds cg_packed_bytes. */
void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out);

#endif
