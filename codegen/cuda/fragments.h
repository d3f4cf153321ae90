/* fragments.h — weights in the order in which the lanes of a matrix instruction hold them. */
#ifndef CU_FRAGMENTS_H
#define CU_FRAGMENTS_H

#include "codegen/cuda/cuda_backend.h"

enum { CU_FRAGMENT = 16 }; /* rows and columns of what a warp loads at once, 16 bytes a lane */

int64_t cu_fragment_groups(int64_t columns);
size_t cu_fragment_bytes(int64_t k, int64_t columns);
/* An f32 matrix k × columns, zeros behind both: 16 columns after another, in each k in steps of 16, in each the lanes.
 */
void cu_pack_fragments(const ir_tensor *matrix, int64_t k, int64_t columns, cg_compute kernel_precision, void *out);

#endif
