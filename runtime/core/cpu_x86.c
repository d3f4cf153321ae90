/* cpu_x86.c — the features of an x86-64 CPU: CPUID, XGETBV and Linux's permission for AMX tiles. */
#include "runtime/core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <string.h>

void rt_cpu_read(rt_cpu *out_cpu)
{
    rt_cpu cpu = {0};
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) cpu.leaf1_ecx = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        cpu.leaf7_ebx = ebx;
        cpu.leaf7_edx = edx;
        if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) cpu.leaf7_1_eax = eax;
    }
    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx)) {
        memcpy(cpu.vendor, &ebx, sizeof ebx);
        memcpy(cpu.vendor + 4, &edx, sizeof edx);
        memcpy(cpu.vendor + 8, &ecx, sizeof ecx);
    }
    if (__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx)) cpu.extended1_ecx = ecx;
    if (cpu.leaf1_ecx & bit_OSXSAVE) __asm__ volatile("xgetbv" : "=a"(cpu.xcr0), "=d"(edx) : "c"(0));
    *out_cpu = cpu;
}

/* Linux grants a process the state of AMX tiles, 8 KB per thread, on request (arch_prctl(2)). A container may
 * refuse. The request always covers the whole process. This is the only change that the libraries make to the
 * process (SECURITY.md). */
void rt_cpu_ask_for_tiles(rt_cpu *cpu)
{
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    rt_cpu allowed = *cpu;
    allowed.permissions |= RT_CPU_MAY_USE_TILES;
    if (rt_cpu_missing(&allowed, MDOT_CPU_X86_64_AMX) != NULL) return; /* the request would be useless */
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0) *cpu = allowed;
#else
#endif
}

#endif
