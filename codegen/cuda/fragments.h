/* fragments.h — weights in the order in which the lanes of a matrix instruction hold them. */
#ifndef CU_FRAGMENTS_H
#define CU_FRAGMENTS_H

#include "codegen/codegen.h"

enum { CU_FRAGMENT = 16 }; /* rows and columns that a warp loads at once, 16 bytes per lane */

int64_t cu_fragment_groups(int64_t columns);
size_t cu_fragment_bytes(int64_t k, int64_t columns);
/* Packs an f32 matrix k × columns, padded with zeros in both dimensions. The order is groups of 16 columns, then
 * steps of 16 along k, then lanes. */
void cu_pack_fragments(const ir_tensor *matrix, int64_t k, int64_t columns, cg_compute kernel_precision, void *out);

#endif
