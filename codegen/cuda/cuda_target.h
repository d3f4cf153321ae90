/* cuda_target.h — the GPU architectures as data. cg_target.number is 90 for sm_90a. */
#pragma once

#include "base/text.h"
#include "codegen/codegen.h"

/* CG_BF16 uses mma.m16n8k16 on sm_80 and later. CG_FP16 uses mma.m16n8k8 on sm_75. CG_FP32 uses no tensor cores and
 * is for verification. */

/* cg_target.variant. */
typedef enum cu_variant {
    CU_PLAIN,
    CU_ACCELERATED,
    CU_CLUSTERED
} cu_variant; /* "sm_90", "sm_90a", "sm_90a+clusters" */

typedef struct cu_target {
    uint32_t sm;
    cu_variant variant;
} cu_target;

enum { CU_TARGETS = 7 };
extern const cu_target cu_targets[CU_TARGETS]; /* the targets of `--target cuda`, ascending */

size_t cu_shared_limit_bytes(uint32_t sm);
/* implement cg_backend.parse and .list */
mdot_status cu_parse(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                     int *out_count, mdot_error *err);
void cu_list(bs_join *names);

/* ---- fragments.c: weights in the order in which the lanes of a matrix instruction hold them ---------------------- */

enum { CU_FRAGMENT = 16 }; /* rows and columns that a warp loads at once, 16 bytes per lane */

int64_t cu_fragment_groups(int64_t columns);
size_t cu_fragment_bytes(int64_t k, int64_t columns);
/* Packs an f32 matrix k × columns, padded with zeros in both dimensions. The order is groups of 16 columns, then
 * steps of 16 along k, then lanes. */
void cu_pack_fragments(const ir_tensor *matrix, int64_t k, int64_t columns, cg_compute kernel_precision, void *out);
