/* cpu_target.c — the ISA levels as data. A new ISA level needs a row here and one in mdot_abi.h; a level in another
 * precision needs a row here.
 *
 * One module holds the code of every level: each function states its level in the attributes, over a baseline target
 * machine (llvm_module.c). Register tiles leave registers for one row of the right-hand matrix and a broadcast: v4 has
 * 32 registers, 6×4 accumulators + 4 + 1; v3 has 16, 6×2 + 2 + 1. AArch64 has 32 and multiplies by one element of a
 * register: 6×4 accumulators + 6 registers with four steps of k of each row + 2 for the right-hand matrix. That is 96
 * products for 6 + 16 loads. A broadcast (ld1r) rather than an element would take a multiplying unit of Neoverse. */

#include "codegen/cpu/cpu_target.h"

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

/* GNU ld links these few sections in half of lld's time; either works. GNU ld links for one machine, and Debian's names
 * for other machines begin with the machine. lld links for all. */
#define LINKERS(gnu)                                                                                                   \
    {                                                                                                                  \
        gnu, "ld.lld", "ld.lld-19"                                                                                     \
    }
#if defined(__aarch64__)
#define GNU_LD_X86_64 "x86_64-linux-gnu-ld"
#define GNU_LD_AARCH64 "ld"
#else
#define GNU_LD_X86_64 "ld"
#define GNU_LD_AARCH64 "aarch64-linux-gnu-ld"
#endif

const cg_machine cg_machine_x86_64 = {
    .name = "x86-64",
    .elf_machine = EM_X86_64,
    .emulation = "elf_x86_64",
    .linkers = LINKERS(GNU_LD_X86_64),
    .triple = "x86_64-unknown-linux-gnu",
    .baseline_cpu = "x86-64",
    .prepare_llvm = prepare_x86,
};

static void register_aarch64(void)
{
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

static void prepare_aarch64(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_aarch64);
}

const cg_machine cg_machine_aarch64 = {
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .emulation = "aarch64linux",
    .linkers = LINKERS(GNU_LD_AARCH64),
    .triple = "aarch64-unknown-linux-gnu",
    .baseline_cpu = "generic",
    .prepare_llvm = prepare_aarch64,
};

/* Machine, vectors and register tile of levels with equally wide vectors. */
#define X86_YMM .machine = &cg_machine_x86_64, .lanes = 8, .tile_rows = 6, .tile_vectors = 2, .permute16 = false
#define X86_ZMM .machine = &cg_machine_x86_64, .lanes = 16, .tile_rows = 6, .tile_vectors = 4, .permute16 = true
/* neoverse-n1's schedule would spill a register tile accumulator. */
#define AARCH64 .machine = &cg_machine_aarch64, .lanes = 4, .tile_rows = 6, .tile_vectors = 4, .by_element = true

/* ISA level, precision, name, suffix of sections, matmul, layout of weights, LLVM's cpu, features and scheduling model,
 * and vectors. The generic cpu of x86-64-v4 would halve every vector without -prefer-256-bit. */
#define TARGET(LEVEL, PRECISION, NAME, SUFFIX, MATMUL, LAYOUT, CPU, FEATURES, TUNE, VECTORS)                           \
    {                                                                                                                  \
        .isa = MDOT_CPU_##LEVEL, .kernel_precision = CG_##PRECISION, .name = NAME, .suffix = SUFFIX,                   \
        .matmul = CG_MATMUL_##MATMUL, .layout = &cg_layout_##LAYOUT, .cpu = CPU, .features = FEATURES, .tune = TUNE,   \
        VECTORS                                                                                                        \
    }
/* clang-format off */
static const cg_cpu_target targets[] = {
    TARGET(X86_64_V3,    FP32, "x86-64-v3",    "v3",       F32,          f32,  "x86-64-v3", "",                                                "znver3",         X86_YMM),
    TARGET(X86_64_V4,    FP32, "x86-64-v4",    "v4",       F32,          f32,  "x86-64-v4", "-prefer-256-bit",                                 "znver4",         X86_ZMM),
    TARGET(X86_64_V3,    BF16, "x86-64-v3",    "v3bf16",   BF16_WEIGHTS, bf16, "x86-64-v3", "",                                                "znver3",         X86_YMM),
    TARGET(X86_64_V4,    BF16, "x86-64-v4",    "v4bf16",   BF16_WEIGHTS, bf16, "x86-64-v4", "-prefer-256-bit",                                 "znver4",         X86_ZMM),
    TARGET(X86_64_BF16,  BF16, "x86-64-bf16",  "bf16",     BF16,         bf16, "x86-64-v4", "+avx512bf16,-prefer-256-bit",                     "znver4",         X86_ZMM),
    TARGET(X86_64_AMX,   BF16, "x86-64-amx",   "amx",      AMX,          bf16, "x86-64-v4", "+amx-tile,+amx-bf16,+avx512bf16,-prefer-256-bit", "sapphirerapids", X86_ZMM),
    TARGET(AARCH64_NEON, FP32, "aarch64-neon", "neon",     F32,          f32,  "generic",   "",                                                "neoverse-v1",    AARCH64),
    TARGET(AARCH64_NEON, BF16, "aarch64-neon", "neonbf16", BF16_WEIGHTS, bf16, "generic",   "",                                                "neoverse-v1",    AARCH64),
    TARGET(AARCH64_BF16, BF16, "aarch64-bf16", "armbf16",  BF16,         bf16, "generic",   "+bf16",                                           "neoverse-v1",    AARCH64),
};
/* clang-format on */

const cg_cpu_target *cg_cpu_target_find(mdot_cpu_isa isa, cg_compute kernel_precision)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].isa == isa && targets[i].kernel_precision == kernel_precision) return &targets[i];
    return NULL;
}

void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES])
{
    snprintf(out_name, CG_SECTION_NAME_BYTES, ".text.%s", target->suffix);
}
