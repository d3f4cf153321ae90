/* elf_read.h — read sections and segments of an ELF file in memory: an artefact before it is loaded or after it is
 * linked, or a cubin.
 *
 * The file is untrusted. Every offset, size and index is checked against the available bytes, and the checks are safe
 * from overflow. Headers are copied out because a damaged file may place them at any alignment. All returned ranges
 * lie within the file. The functions allocate no memory. (System V gABI, chapters 4 and 5.)
 */
#pragma once

#include "base/status.h"

typedef struct bs_elf { /* the file's bytes are borrowed */
    const unsigned char *bytes;
    uint64_t size_bytes;
    uint64_t segments_at, sections_at;
    uint32_t segment_count, section_count;
    const char *names; /* names of sections; each one ends within this table */
    uint64_t names_bytes;
    uint16_t type; /* ET_DYN … */
    uint8_t abi_version;
    uint32_t flags;
} bs_elf;

typedef struct bs_elf_segment { /* a program header whose bytes are all in the file */
    uint32_t type, flags;
    uint64_t offset, file_bytes;
    uint64_t address, memory_bytes; /* for PT_LOAD: at least the file's size, and within the address space */
} bs_elf_segment;

typedef struct bs_elf_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags, offset, address, size_bytes;
    const unsigned char *bytes; /* NULL if the section has no bytes in the file */
} bs_elf_section;

enum { BS_ELF_ANY_MACHINE = 0xffff }; /* accepts every machine; a number that ELF leaves unassigned */

/* Checks the header, the position of both tables and the section names. `kind` names the expected kind of file in
 * messages, with an article: "an artefact". INCOMPATIBLE if the file is for another machine than `machine` (EM_X86_64
 * …), MALFORMED if it is damaged or is anything other than a 64-bit little-endian ELF file. If `machine` is EM_CUDA,
 * the field e_version may have any value. */
mdot_status bs_elf_open(const void *file, uint64_t size_bytes, const char *kind, uint16_t machine, bs_elf *out_elf,
                        mdot_error *err);

/* False for an index beyond the last segment, and for a segment that is outside the file or has impossible sizes. */
bool bs_elf_segment_at(const bs_elf *elf, uint32_t index, bs_elf_segment *out_segment);

/* False for an index beyond the last section, and for a section that is outside the file or unnamed. */
bool bs_elf_section_at(const bs_elf *elf, uint32_t index, bs_elf_section *out_section);
/* Finds the first section by name; false if it is absent. */
bool bs_elf_section_named(const bs_elf *elf, const char *name, bs_elf_section *out_section);

/* Returns whether [offset, offset + size_bytes) lies within [0, limit), even if the sum overflows. */
static inline bool bs_is_within(uint64_t offset, uint64_t size_bytes, uint64_t limit)
{
    return offset <= limit && size_bytes <= limit - offset;
}
