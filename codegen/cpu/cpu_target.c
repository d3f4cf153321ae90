/* cpu_target.c — the CPU feature levels as data. A new level is one row here and one in mdot_abi.h.
 *
 * One module holds the code of every level: each function names its level in its attributes, over a baseline target
 * machine (module.c). Register tiles leave room for one row of the right-hand matrix and a broadcast: v4 has 32
 * registers, 6×4 accumulators + 4 + 1; v3 has 16, 6×2 + 2 + 1.
 */
#include "codegen/cpu/emit.h"

#include <elf.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>

static void register_x86(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

static void prepare_x86(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_x86);
}

const cg_machine cg_machine_x86_64 = {
    .name = "x86-64",
    .elf_machine = EM_X86_64,
    .emulation = "elf_x86_64",
    .triple = "x86_64-unknown-linux-gnu",
    .baseline_cpu = "x86-64",
    .prepare_llvm = prepare_x86,
};

static const cg_cpu_target targets[] = {
    {
        .level = MDOT_CPU_X86_64_V3,
        .name = "x86-64-v3",
        .suffix = "v3",
        .compute = "fp32",
        .machine = &cg_machine_x86_64,
        .packing = &cg_pack_panels,
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
        .compute = "fp32",
        .machine = &cg_machine_x86_64,
        .packing = &cg_pack_panels,
        .cpu = "x86-64-v4",
        .features = "-prefer-256-bit", /* the generic cpu of this level would halve every vector */
        .tune = "znver4",
        .lanes = 16,
        .tile_rows = 6,
        .tile_vectors = 4,
        .permute16 = true,
    },
};

const cg_cpu_target *cg_cpu_target_find(mdot_cpu_level level)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].level == level) return &targets[i];
    return NULL;
}

void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES])
{
    snprintf(out_name, CG_SECTION_NAME_BYTES, ".text.%s", target->suffix);
}
