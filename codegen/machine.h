/* machine.h — a processor architecture as far as object files, the linker and LLVM must know of it: a row that every
 * target of the architecture points to (cpu/cpu_target.c). One artefact holds the code of one machine's CPUs. */
#ifndef CG_MACHINE_H
#define CG_MACHINE_H

#include <stdint.h>

typedef struct cg_machine {
    const char *name;           /* "x86-64" */
    uint16_t elf_machine;       /* e_machine of its object files: EM_X86_64 */
    const char *emulation;      /* what GNU ld and lld call its output format: -m */
    const char *triple;         /* of LLVM's module */
    const char *baseline_cpu;   /* LLVM's target-cpu where a function names no other */
    void (*prepare_llvm)(void); /* registers its code generator; safe to call often and from several threads */
} cg_machine;

extern const cg_machine cg_machine_x86_64;

#endif
