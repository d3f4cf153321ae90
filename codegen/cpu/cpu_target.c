/* cpu_target.c — the CPU feature levels as data. A new level is one row here and one in mdot_abi.h.
 *
 * One module holds the code of every level: each function names its level in its attributes, over a baseline target
 * machine (module.c). Register tiles leave room for one row of the right-hand matrix and a broadcast: v4 has 32
 * registers, 6×4 accumulators + 4 + 1; v3 has 16, 6×2 + 2 + 1.
 */
#include "codegen/cpu/emit.h"

static const cg_target targets[] = {
    {
        .level = MDOT_CPU_X86_64_V3,
        .name = "x86-64-v3",
        .suffix = "v3",
        .triple = "x86_64-unknown-linux-gnu",
        .baseline_cpu = "x86-64",
        .cpu = "x86-64-v3",
        .features = "",
        .tune = "znver3",
        .lanes = 8,
        .tile_rows = 6,
        .tile_vectors = 2,
        .permute16 = false,
    },
    {
        .level = MDOT_CPU_X86_64_V4,
        .name = "x86-64-v4",
        .suffix = "v4",
        .triple = "x86_64-unknown-linux-gnu",
        .baseline_cpu = "x86-64",
        .cpu = "x86-64-v4",
        .features = "-prefer-256-bit", /* the generic cpu of this level would halve every vector */
        .tune = "znver4",
        .lanes = 16,
        .tile_rows = 6,
        .tile_vectors = 4,
        .permute16 = true,
    },
};

const cg_target *cg_target_find(mdot_cpu_level level)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].level == level) return &targets[i];
    return NULL;
}
