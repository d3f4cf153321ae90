/* cuda_target.c — the GPU architectures as data: what mdot makes code for, and what a kernel may take there. */
#include "codegen/cuda/cuda.h"

#include <stddef.h>

/* Those of the cards of data centres and desktops since 2018. sm_90 has what Hopper alone can do in its accelerated
 * form, which no other device runs. */
const cg_cuda_target cu_targets[CU_TARGETS] = {{75, false}, {80, false},  {86, false}, {89, false},
                                               {90, true},  {100, false}, {120, false}};

/* Shared memory that a block may have, in KB: what a multiprocessor has less the 1 KB that the system keeps from
 * sm_80 on. (CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; cuda_occupancy.h of
 * CUDA 13.0.) */
static const struct {
    int sm, shared_kb;
} limits[] = {{75, 64},  {80, 163},  {86, 99},   {87, 163},  {88, 99},  {89, 99},
              {90, 227}, {100, 227}, {103, 227}, {110, 227}, {120, 99}, {121, 99}};

size_t cu_shared_limit_bytes(cg_cuda_target target)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].sm == target.sm) return (size_t)limits[i].shared_kb << 10;
    return (size_t)64 << 10; /* the least of those known */
}

/* bf16 came with sm_80; before, f16 is what tensor cores multiply. */
cu_mode cu_target_mode(cg_cuda_target target, bool fp32)
{
    if (fp32) return CU_FP32;
    return target.sm < 80 ? CU_F16 : CU_BF16;
}

const char *cu_mode_name(cu_mode mode)
{
    return mode == CU_FP32 ? "fp32" : mode == CU_BF16 ? "bf16" : "fp16";
}
