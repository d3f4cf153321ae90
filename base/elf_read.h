/* elf_read.h — sections and segments of an ELF file that is in memory: an artefact before it is loaded or just linked,
 * a cubin.
 *
 * Nothing in the file is believed: every offset, size and index is checked against the bytes that are there, without
 * overflowing, and headers are copied out because a damaged file may put them anywhere. What is handed out lies within
 * the file. Nothing is allocated. (System V gABI, chapters 4 and 5.)
 */
#ifndef BS_ELF_READ_H
#define BS_ELF_READ_H

#include "mdot/mdot_base.h"

typedef struct bs_elf { /* the file's bytes are lent */
    const unsigned char *bytes;
    uint64_t size_bytes;
    uint64_t segments_at, sections_at;
    uint32_t segment_count, section_count;
    const char *names; /* of sections; every one ends within */
    uint64_t names_bytes;
    uint16_t type; /* ET_DYN … */
    uint8_t abi_version;
    uint32_t flags;
} bs_elf;

typedef struct bs_elf_segment { /* of a program header, all of whose bytes are in the file */
    uint32_t type, flags;
    uint64_t offset, file_bytes;
    uint64_t address, memory_bytes; /* of PT_LOAD: no fewer than the file's, not beyond the end of addresses */
} bs_elf_segment;

typedef struct bs_elf_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags, offset, address, size_bytes;
    const unsigned char *bytes; /* NULL for one that has no bytes in the file */
} bs_elf_section;

enum { BS_ELF_ANY_MACHINE = 0xffff }; /* none has this number */

/* Checks the header, that both tables are in the file, and the names of sections. `kind` is what the file should be,
 * with its article, for messages: "an artefact". INCOMPATIBLE where it is for another machine than `machine` (EM_X86_64
 * …), MALFORMED where it is no 64-bit little-endian ELF file or damaged. */
mdot_status bs_elf_open(const void *file, uint64_t size_bytes, const char *kind, uint16_t machine, bs_elf *out_elf,
                        mdot_error *err);

/* False for an index beyond the last segment, and for one that is outside the file or has impossible sizes. */
bool bs_elf_segment_at(const bs_elf *elf, uint32_t index, bs_elf_segment *out_segment);

/* False for an index beyond the last section, and for one that is outside the file or has no name. */
bool bs_elf_section_at(const bs_elf *elf, uint32_t index, bs_elf_section *out_section);
/* The first section of that name; false when there is none. */
bool bs_elf_section_named(const bs_elf *elf, const char *name, bs_elf_section *out_section);

/* [offset, offset + size_bytes) is within [0, limit), where the sum may overflow. */
static inline bool bs_is_within(uint64_t offset, uint64_t size_bytes, uint64_t limit)
{
    return offset <= limit && size_bytes <= limit - offset;
}

#endif
