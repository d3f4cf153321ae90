/* pack.h — constants in the forms in which CPU kernels read them.
 *
 * What is read one element at a time is dense. How a matrix operand is laid out is its kernels' matter: a packing is a
 * row of functions that a target names, and targets of one packing read the same bytes.
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

/* Bytes that a constant takes, without the padding to the section's alignment; -1 on overflow. */
int64_t cg_packed_bytes(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use);
/* Packs `tensor` into `out`, which holds cg_packed_bytes. */
void cg_pack(const cg_packing *packing, const ir_tensor *tensor, pl_weight_use use, void *out);

#endif
