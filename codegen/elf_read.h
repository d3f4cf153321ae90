/* elf_read.h — the sections of an ELF file that is already in memory: a linked artefact, or a cubin. */
#ifndef CG_ELF_READ_H
#define CG_ELF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cg_elf { /* the file's bytes are lent */
    const unsigned char *bytes;
    size_t size_bytes;
    uint64_t sections_at;
    uint32_t section_count;
    const char *names; /* every one ends within */
    size_t names_bytes;
    uint16_t machine;
    uint8_t abi_version;
    uint32_t flags;
} cg_elf;

typedef struct cg_elf_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags;
    const unsigned char *bytes; /* NULL for one that has no bytes in the file */
    size_t size_bytes;
} cg_elf_section;

/* False where the header, the section table or the section names are damaged. */
bool cg_elf_open(const void *file, size_t file_bytes, cg_elf *out_elf);
/* False for an index beyond the last section, or a section outside the file or without a name. */
bool cg_elf_section_at(const cg_elf *elf, uint32_t index, cg_elf_section *out_section);
/* The first section of that name; false when there is none. */
bool cg_elf_section_named(const cg_elf *elf, const char *name, cg_elf_section *out_section);

/* Where a section lies in the file; false when there is none of the name that does. */
bool cg_elf_find_section(const void *file, size_t file_bytes, const char *name, size_t *out_offset,
                         size_t *out_size_bytes);

#endif
