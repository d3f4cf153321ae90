/* fragments.c — see cuda_target.h. Layout of operand B: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating
 * point type". Lane l holds, of column l / 4 of eight, rows 2 (l % 4) and the next, and the two rows 8 below. Two
 * such groups of eight columns make 16 bytes. For m16n8k8 the same four registers are two steps of k. */
#include "codegen/cuda/cuda_target.h"

#include "codegen/codegen.h"

#include <string.h>

int64_t cu_fragment_groups(int64_t columns) { return (columns + CU_FRAGMENT - 1) / CU_FRAGMENT; }

size_t cu_fragment_bytes(int64_t k, int64_t columns)
{
    size_t steps = (size_t)((k + CU_FRAGMENT - 1) / CU_FRAGMENT);
    return (size_t)cu_fragment_groups(columns) * steps * CU_FRAGMENT * CU_FRAGMENT * sizeof(uint16_t);
}

void cu_pack_fragments(const ir_tensor *matrix, int64_t k, int64_t columns, cg_compute kernel_precision, void *out)
{
    enum { LANES = 32, HALVES = 8 };
    const unsigned char *from = matrix->data; /* data as in the file, with any alignment */
    uint16_t *target = out;
    int64_t steps = (k + CU_FRAGMENT - 1) / CU_FRAGMENT;
    for (int64_t offset = 0; offset < cu_fragment_groups(columns) * steps * LANES * HALVES; offset++) {
        int64_t half = offset % HALVES, lane = offset / HALVES % LANES, step = offset / (HALVES * LANES) % steps;
        int64_t group = offset / (HALVES * LANES * steps);
        int64_t row = step * CU_FRAGMENT + lane % 4 * 2 + half % 2 + half / 2 % 2 * 8;
        int64_t column = group * CU_FRAGMENT + half / 4 * 8 + lane / 4;
        float value = 0;
        if (row < k && column < columns)
            memcpy(&value, from + (size_t)(row * columns + column) * sizeof value, sizeof value);
        target[offset] = kernel_precision == CG_FP16 ? ir_f32_to_f16(value) : ir_f32_to_bf16(value);
    }
}
