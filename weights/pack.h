/* pack.h — constants into the form in which an artefact's weights section holds them. */
#ifndef WT_PACK_H
#define WT_PACK_H

#include "ir/plan/plan.h"

/* Bytes that a constant takes, without the padding to the section's alignment; -1 on overflow. */
int64_t wt_packed_bytes(const ir_tensor *tensor, pl_weight_layout layout);

/* Packs `tensor` into `out`, which holds wt_packed_bytes. DENSE copies. PANELS takes an f32 matrix K × columns (or a
 * vector, K = 1), in panels of PL_PANEL_COLUMNS columns, K-major: out[(c / 64 * K + k) * 64 + c % 64], padded with
 * zeros. */
void wt_pack(const ir_tensor *tensor, pl_weight_layout layout, void *out);

#endif
