/* cpu_generic.c — processors other than x86-64, and than AArch64 under Linux. They have none of the features for CPU
 * images. A program there can still read jobs, and run artefacts with CUDA images. */
#include "runtime/core/cpu.h"

#if !defined(__x86_64__) && !(defined(__aarch64__) && defined(__linux__))

void rt_cpu_read(rt_cpu *out_cpu) { *out_cpu = (rt_cpu){0}; }

void rt_cpu_ask_for_tiles(rt_cpu *cpu) { (void)cpu; /* AMX is a feature of x86-64 */ }

#endif
