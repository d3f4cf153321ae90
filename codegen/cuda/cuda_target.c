/* cuda_target.c — GPU architectures as data: mdot's targets, and resource limits. */
#include "codegen/cuda/cuda_target.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Data centre and desktop architectures since 2018. sm_90 uses the accelerated form, whose Hopper-only features no
 * other device runs. */
const cu_target cu_targets[CU_TARGETS] = {{75, CU_PLAIN},       {80, CU_PLAIN},  {86, CU_PLAIN}, {89, CU_PLAIN},
                                          {90, CU_ACCELERATED}, {100, CU_PLAIN}, {120, CU_PLAIN}};

/* Shared memory per block, in KB: a multiprocessor's, less the 1 KB that the system reserves from sm_80 on. (CUDA
 * C++ Programming Guide, table "Technical Specifications per Compute Capability"; cuda_occupancy.h of CUDA 13.0.) */
static const struct {
    uint32_t sm;
    int shared_kb;
} limits[] = {{75, 64},  {80, 163},  {86, 99},   {87, 163},  {88, 99},  {89, 99},
              {90, 227}, {100, 227}, {103, 227}, {110, 227}, {120, 99}, {121, 99}};

size_t cu_shared_limit_bytes(uint32_t sm)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].sm == sm) return (size_t)limits[i].shared_kb << 10;
    return (size_t)64 << 10; /* the smallest known limit */
}

/* mma.sync.m16n8k8 with f16 and ldmatrix require sm_75 (PTX ISA, "Target ISA Notes"). A cubin stores the architecture
 * in one byte. */
enum { LEAST_SM = 75, MAX_SM = 255 };

/* Clusters require sm_90 (PTX ISA, "barrier.cluster"). */
static const char clusters[] = "+clusters";
enum { LEAST_CLUSTER_SM = 90 };

/* Parses "sm_90", "sm_90a" or "sm_90a+clusters". */
static bool parse_architecture(const char *name, cu_target *out_target)
{
    if (strncmp(name, "sm_", 3) != 0 || name[3] < '1' || name[3] > '9') return false;
    char *end;
    long sm = strtol(name + 3, &end, 10);
    cu_variant variant = CU_PLAIN;
    if (*end == 'a') {
        variant = CU_ACCELERATED;
        end++;
    }
    if (variant == CU_ACCELERATED && sm >= LEAST_CLUSTER_SM && strcmp(end, clusters) == 0) {
        variant = CU_CLUSTERED;
        end += sizeof clusters - 1;
    }
    if (sm < LEAST_SM || sm > MAX_SM || *end != '\0') return false;
    *out_target = (cu_target){(uint32_t)sm, variant};
    return true;
}

/* bf16 requires sm_80. Earlier tensor cores multiply f16. */
static cg_target make_target(cu_target target, cg_compute kernel_precision)
{
    if (kernel_precision == CG_BF16 && target.sm < 80) kernel_precision = CG_FP16;
    return (cg_target){MDOT_IMAGE_CUDA, target.sm, target.variant, kernel_precision};
}

mdot_status cu_parse(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                     int *out_count, mdot_error *err)
{
    (void)err; /* every architecture has the requested precision or a near one */
    cu_target one;
    if (strcmp(name, "cuda") == 0) {
        for (int i = 0; i < CU_TARGETS; i++) out_targets[i] = make_target(cu_targets[i], kernel_precision);
        *out_count = CU_TARGETS;
    } else if (parse_architecture(name, &one)) {
        out_targets[0] = make_target(one, kernel_precision);
        *out_count = 1;
    } else {
        return MDOT_NOT_FOUND;
    }
    return MDOT_OK;
}

void cu_list(bs_join *names)
{
    bs_join_add(names, "cuda");
    for (int i = 0; i < CU_TARGETS; i++)
        bs_join_add(names, "sm_%u%s", cu_targets[i].sm, cu_targets[i].variant == CU_ACCELERATED ? "a" : "");
    bs_join_add(names, "sm_90a+clusters");
    bs_join_add(names, "other architectures from sm_%d on that NVRTC knows", LEAST_SM);
}
