/* cpu.h — this machine's ISA level, and the image for it. */
#pragma once

#include "mdot/mdot_abi.h"

enum { RT_CPU_MAY_USE_TILES = 1 };

/* CPUID words and operating-system state behind the ISA levels. Words for other processors than the program's own are
 * 0. */
typedef struct rt_cpu {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t leaf7_edx;
    uint32_t leaf7_1_eax; /* sub-leaf 1 */
    uint32_t extended1_ecx;
    uint32_t permissions;   /* RT_CPU_MAY_…: features that must be requested from the operating system */
    uint32_t xcr0;          /* register state that the operating system saves; 0 if XGETBV is disabled */
    uint32_t hwcap, hwcap2; /* AArch64: the features that Linux reports to programs, getauxval(3) */
    char vendor[12];        /* for example "AuthenticAMD", not NUL-terminated */
} rt_cpu;

void rt_cpu_read(rt_cpu *out_cpu);
/* Does an artefact have an image with AMX tiles? The second function requests permission for tiles from the
 * operating system, if the CPU has them. */
bool rt_cpu_has_tiles(const mdot_abi_table *table);
void rt_cpu_ask_for_tiles(rt_cpu *cpu);
/* NULL if all features for `level` are present, otherwise the name of the first missing one. */
const char *rt_cpu_missing(const rt_cpu *cpu, uint32_t level);
/* Returns MDOT_CPU_NONE for an unknown name. */
uint32_t rt_cpu_isa_find(const char *name);
/* The reason why a CPU that runs `level` is known to be faster at the next lower level, as "is slower here: …";
 * otherwise NULL. */
const char *rt_cpu_slower(const rt_cpu *cpu, uint32_t level);
/* Selects the image for `cpu` (mdot_abi_image defines the order): at the level `forced` and, if `cpu` runs one, in the
 * precision `compute`; NULL means any. Returns INVALID_ARGUMENT if `forced` is unknown, and INCOMPATIBLE if the machine
 * can run no image in the artefact. */
mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced,
                          const char *kernel_precision, const mdot_abi_image **out_image, mdot_error *err);

/* The reason why `image` is used instead of the last CPU image, for example "x86-64-amx needs AMX-TILE, which this
 * machine lacks"; "" if it is the last one. */
void rt_cpu_explain(const rt_cpu *cpu, const mdot_abi_table *table, const mdot_abi_image *image, char *text,
                    size_t size);
