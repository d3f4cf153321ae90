/* elf_sections.h — positions of the sections in an artefact's file. */
#ifndef RT_ELF_SECTIONS_H
#define RT_ELF_SECTIONS_H

#include "base/elf_read.h"
#include "mdot/mdot.h"

typedef struct rt_section {
    uint64_t offset, address, size_bytes; /* offset in the file; address in memory relative to the load address */
} rt_section;

typedef struct rt_elf {
    bs_elf file;
    rt_section table, code, weights;
    rt_section cubins, cuda_weights; /* address 0: the file lacks the section */
} rt_elf;

/* Checks that `bytes` is a shared object for this machine that needs no dynamic loader, and that the artefact's
 * sections are inside read-only segments. Otherwise returns MALFORMED or INCOMPATIBLE. */
mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err);
bool rt_elf_is_code(const rt_elf *elf, uint64_t address);

#endif
