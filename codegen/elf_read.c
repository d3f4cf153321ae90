/* elf_read.c — see elf_read.h. Nothing in the file is believed: every offset and size is checked against the bytes that
 * are there, without overflowing, and headers are copied out because they may be anywhere. (System V gABI, chapter 4.)
 */
#include "codegen/elf_read.h"

#include <elf.h>
#include <string.h>

/* [offset, offset + size) is within the file */
static bool within(uint64_t offset, uint64_t size_bytes, size_t file_bytes)
{
    return offset <= file_bytes && size_bytes <= file_bytes - offset;
}

static Elf64_Shdr header_at(const cg_elf *elf, uint32_t index)
{
    Elf64_Shdr header;
    memcpy(&header, elf->bytes + elf->sections_at + (uint64_t)index * sizeof header, sizeof header);
    return header;
}

bool cg_elf_open(const void *file, size_t file_bytes, cg_elf *out_elf)
{
    Elf64_Ehdr header;
    if (file_bytes < sizeof header) return false;
    memcpy(&header, file, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shstrndx >= header.e_shnum ||
        !within(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), file_bytes))
        return false;
    cg_elf elf = {.bytes = file,
                  .size_bytes = file_bytes,
                  .sections_at = header.e_shoff,
                  .section_count = header.e_shnum,
                  .machine = header.e_machine,
                  .abi_version = header.e_ident[EI_ABIVERSION],
                  .flags = header.e_flags};
    Elf64_Shdr names = header_at(&elf, header.e_shstrndx);
    if (names.sh_size == 0 || !within(names.sh_offset, names.sh_size, file_bytes) ||
        elf.bytes[names.sh_offset + names.sh_size - 1] != '\0')
        return false;
    elf.names = (const char *)elf.bytes + names.sh_offset;
    elf.names_bytes = (size_t)names.sh_size;
    *out_elf = elf;
    return true;
}

bool cg_elf_section_at(const cg_elf *elf, uint32_t index, cg_elf_section *out_section)
{
    if (index >= elf->section_count) return false;
    Elf64_Shdr header = header_at(elf, index);
    bool has_bytes = header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL;
    if (header.sh_name >= elf->names_bytes ||
        (has_bytes && !within(header.sh_offset, header.sh_size, elf->size_bytes)) || header.sh_size > SIZE_MAX)
        return false;
    *out_section = (cg_elf_section){.name = elf->names + header.sh_name,
                                    .type = header.sh_type,
                                    .link = header.sh_link,
                                    .info = header.sh_info,
                                    .flags = header.sh_flags,
                                    .bytes = has_bytes ? elf->bytes + header.sh_offset : NULL,
                                    .size_bytes = (size_t)header.sh_size};
    return true;
}

bool cg_elf_section_named(const cg_elf *elf, const char *name, cg_elf_section *out_section)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        cg_elf_section section;
        if (!cg_elf_section_at(elf, i, &section) || strcmp(section.name, name) != 0) continue;
        *out_section = section;
        return true;
    }
    return false;
}

bool cg_elf_find_section(const void *file, size_t file_bytes, const char *name, size_t *out_offset,
                         size_t *out_size_bytes)
{
    cg_elf elf;
    cg_elf_section section;
    if (!cg_elf_open(file, file_bytes, &elf) || !cg_elf_section_named(&elf, name, &section) || section.bytes == NULL)
        return false;
    *out_offset = (size_t)(section.bytes - elf.bytes);
    *out_size_bytes = section.size_bytes;
    return true;
}
