/* cpu_target.h — ISA levels as data: vector width, register tile, weight packing, LLVM's CPU name. */
#pragma once

#include "codegen/codegen.h"
#include "plan/plan.h"

/* ---- pack.c: constants in the layouts that CPU kernels read.
 *
 * Constants that are read one element at a time are dense. Kernels define the layout of a matrix operand. A packing
 * is a row of functions, and a target names the packings that its kernels read. Targets with the same packing read
 * the same bytes.
 */

/* A matrix operand is an f32 tensor. The last dimension is columns, and all dimensions before it are K: a vector has K
 * = 1. */
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
 * CG_BF16_ROWS, a tile's rows. Row k is at p = k + cg_bf16_padding(K), in half p % 2 (the low one first) of word out[(c
 * / 64 * (K + padding) / 2 + p / 2) * 64 + c % 64]. */
enum { CG_BF16_ROWS = 32 };
extern const cg_packing cg_pack_bf16;
static inline int64_t cg_bf16_padding(int64_t k) { return (CG_BF16_ROWS - k % CG_BF16_ROWS) % CG_BF16_ROWS; }

/* 3x3 taps (PL_TAPS) of C channels in the panels of a matrix with 16 C rows: row (4 i + j) * C + c is element (i, j) of
 * G g Gᵀ, where g are the taps of channel c, and G is {1, 0, 0}, {1/2, 1/2, 1/2}, {1/2, -1/2, 1/2}, {0, 0, 1}. */
extern const cg_packing cg_pack_taps;

/* The same for windows that move by two (PL_TAPS_BY_TWO): 25 C rows. G is {1, 0, 0}, {0, 1, 0}, {1, 0, 1},
 * {0, 0, 1}, {0, 1, 0}. In each dimension, elements 0 and 1 are terms of one sum, as are 3 and 4. Their rows adjoin. */
extern const cg_packing cg_pack_taps_by_two;

/* The place of element (i, j) among those of a channel, and that of a sum's first term. */
static inline int cg_tap_place(bool by_two, int i, int j)
{
    static const uint8_t place[5][5] = {
        {0, 1, 4, 6, 7}, {2, 3, 5, 8, 9}, {10, 11, 12, 13, 14}, {15, 16, 19, 21, 22}, {17, 18, 20, 23, 24}};
    return by_two ? place[i][j] : 4 * i + j;
}
static inline int cg_tap_sum_begin(bool by_two, int sum)
{
    static const uint8_t begin[] = {0, 4, 6, 10, 12, 13, 15, 19, 21, 25};
    return by_two ? begin[sum] : sum;
}

/* The packings that a target's kernels read: for matrices that the plan keeps in full precision, for those that it
 * keeps in 16 bits (pl_is_half), and for 3x3 taps by one and by two; NULL: taps are packed like other matrices. */
typedef struct cg_layout {
    const cg_packing *f32, *bf16, *taps[2];
} cg_layout;
extern const cg_layout cg_layout_f32, cg_layout_bf16;

/* The packing of a constant with use MATRIX or TAPS in a layout. */
static inline const cg_packing *cg_packing_of(const cg_layout *layout, const pl_buffer *buffer)
{
    if (buffer->use >= PL_TAPS && layout->taps[0] != NULL) return layout->taps[buffer->use - PL_TAPS];
    return pl_is_half(buffer) ? layout->bf16 : layout->f32;
}

/* Size of a packed constant in bytes, excluding the padding to the section's alignment; -1 on overflow. */
int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use);
/* Packs `tensor` into `out`, which holds cg_packed_bytes. */
void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out);

/* The factors that a target's matrix kernels (pl_is_matrix) multiply. Sums and all other operations are always f32. */
typedef enum cg_matmul_kind {
    CG_MATMUL_F32,          /* f32 by f32 */
    CG_MATMUL_BF16_WEIGHTS, /* f32 by f32; weights are bf16 in memory and converted to f32 before the multiplication */
    CG_MATMUL_BF16,         /* bf16 by bf16, two products per lane: vdpbf16ps, bfdot */
    CG_MATMUL_AMX,          /* bf16 by bf16, tiles of 16 rows: AMX */
} cg_matmul_kind;

enum { CG_MAX_TILE_ROWS = 8, CG_MAX_TILE_VECTORS = 4 };

/* One ISA level in one precision. A register tile is tile_rows × tile_vectors accumulators, within the maxima above. */
typedef struct cg_cpu_target {
    mdot_cpu_isa isa;
    cg_compute kernel_precision;
    const char *name;   /* for example "x86-64-v3" */
    const char *suffix; /* unique suffix of symbol names, for example "v3" */
    cg_matmul_kind matmul;
    bool use_generic_vectors;          /* bf16 dot products use instructions that every level has; for tests */
    const cg_machine *machine;         /* the module's machine, shared by all levels of an architecture */
    const cg_layout *layout;           /* constant layouts for linear kernels */
    const char *cpu, *features, *tune; /* attributes of each function */
    int lanes;                         /* f32 elements per vector */
    int tile_rows, tile_vectors;
    bool permute16;  /* a sixteen-entry table look-up is one instruction */
    bool by_element; /* instructions multiply a vector by one element of another: fmla by element */
} cg_cpu_target;

/* Returns NULL if the target is unknown. */
const cg_cpu_target *cg_cpu_target_find(mdot_cpu_isa isa, cg_compute kernel_precision);

/* The section of a target's functions in the object, for example ".text.v3". */
enum { CG_SECTION_NAME_BYTES = 32 };
void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES]);

extern const cg_machine cg_machine_x86_64, cg_machine_aarch64;
