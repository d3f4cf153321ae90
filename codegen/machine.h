/* machine.h — a processor architecture: the properties that object files, the linker and LLVM need. Every target of
 * the architecture points to its row (cpu/cpu_target.c). One artefact holds code for the CPUs of one machine. */
#ifndef CG_MACHINE_H
#define CG_MACHINE_H

#include <stdint.h>

enum { CG_LINKERS = 3 };

typedef struct cg_machine {
    const char *name;                /* for example "x86-64" */
    uint16_t elf_machine;            /* e_machine of its object files: EM_X86_64 */
    const char *emulation;           /* output format of GNU ld and lld: -m */
    const char *linkers[CG_LINKERS]; /* programs that link for it, in order of preference */
    const char *triple;              /* target triple of LLVM's module */
    const char *baseline_cpu;        /* LLVM's target-cpu for functions that name no other */
    void (*prepare_llvm)(void);      /* registers LLVM's code generator; idempotent and thread-safe */
} cg_machine;

#endif
