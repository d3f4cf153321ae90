/* cpu_aarch64.c — the features of a 64-bit ARM CPU, as Linux reports them to programs. */
#include "runtime/core/cpu.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

void rt_cpu_read(rt_cpu *out_cpu)
{
    *out_cpu = (rt_cpu){.hwcap = (uint32_t)getauxval(AT_HWCAP), .hwcap2 = (uint32_t)getauxval(AT_HWCAP2)};
}

void rt_cpu_ask_for_tiles(rt_cpu *cpu) { (void)cpu; /* AMX is a feature of x86-64 */ }

#endif
