/* elf_read.c — see elf_read.h. */
#include "base/elf_read.h"

#include <elf.h>
#include <string.h>

/* The processors for which mdot generates code, by e_machine. */
static const char *machine_name(uint16_t machine)
{
    switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "AArch64";
    case EM_CUDA: return "an NVIDIA GPU";
    default: return "an unknown processor";
    }
}

static mdot_status check_identity(const Elf64_Ehdr *header, const char *kind, uint16_t machine, mdot_error *err)
{
    /* NVRTC 12 writes its own version into e_version: 121 to 129 */
    bool is_cubin = machine == EM_CUDA && header->e_machine == EM_CUDA;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return mdot_fail(err, MDOT_MALFORMED, "expected %s, but the file is not an ELF file", kind);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_ident[EI_VERSION] != EV_CURRENT || !(is_cubin || header->e_version == EV_CURRENT))
        return mdot_fail(err, MDOT_MALFORMED, "expected %s, but the file is not a 64-bit little-endian ELF file", kind);
    if (header->e_machine != machine && machine != BS_ELF_ANY_MACHINE)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the file is for another processor: %s (ELF machine %d) instead of %s",
                         machine_name(header->e_machine), header->e_machine, machine_name(machine));
    return MDOT_OK;
}

static mdot_status check_tables(const Elf64_Ehdr *header, uint64_t size_bytes, mdot_error *err)
{
    if (header->e_ehsize != sizeof(Elf64_Ehdr) || header->e_shentsize != sizeof(Elf64_Shdr) ||
        (header->e_phnum > 0 && header->e_phentsize != sizeof(Elf64_Phdr)))
        return mdot_fail(err, MDOT_MALFORMED, "the ELF headers have unexpected sizes");
    if (!bs_is_within(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), size_bytes))
        return mdot_fail(err, MDOT_MALFORMED, "the ELF segment table is outside the file: truncated?");
    if (header->e_shoff == 0 || header->e_shnum == 0 ||
        !bs_is_within(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size_bytes))
        return mdot_fail(err, MDOT_MALFORMED, "the ELF section table is outside the file: truncated or stripped?");
    return MDOT_OK;
}

static Elf64_Shdr header_at(const bs_elf *elf, uint32_t index)
{
    Elf64_Shdr header;
    memcpy(&header, elf->bytes + elf->sections_at + (uint64_t)index * sizeof header, sizeof header);
    return header;
}

static mdot_status find_names(bs_elf *elf, uint32_t index, mdot_error *err)
{
    if (index >= elf->section_count) return mdot_fail(err, MDOT_MALFORMED, "the ELF section names are missing");
    Elf64_Shdr names = header_at(elf, index);
    if (names.sh_type != SHT_STRTAB || names.sh_size == 0 ||
        !bs_is_within(names.sh_offset, names.sh_size, elf->size_bytes) ||
        elf->bytes[names.sh_offset + names.sh_size - 1] != '\0')
        return mdot_fail(err, MDOT_MALFORMED, "the ELF section names are damaged");
    elf->names = (const char *)elf->bytes + names.sh_offset;
    elf->names_bytes = names.sh_size;
    return MDOT_OK;
}

mdot_status bs_elf_open(const void *file, uint64_t size_bytes, const char *kind, uint16_t machine, bs_elf *out_elf,
                        mdot_error *err)
{
    Elf64_Ehdr header;
    if (size_bytes < sizeof header)
        return mdot_fail(err, MDOT_MALFORMED, "%llu bytes are too few for %s", (unsigned long long)size_bytes, kind);
    memcpy(&header, file, sizeof header);
    BS_TRY(check_identity(&header, kind, machine, err));
    BS_TRY(check_tables(&header, size_bytes, err));
    bs_elf elf = {.bytes = file,
                  .size_bytes = size_bytes,
                  .segments_at = header.e_phoff,
                  .sections_at = header.e_shoff,
                  .segment_count = header.e_phnum,
                  .section_count = header.e_shnum,
                  .type = header.e_type,
                  .abi_version = header.e_ident[EI_ABIVERSION],
                  .flags = header.e_flags};
    BS_TRY(find_names(&elf, header.e_shstrndx, err));
    *out_elf = elf;
    return MDOT_OK;
}

bool bs_elf_segment_at(const bs_elf *elf, uint32_t index, bs_elf_segment *out_segment)
{
    if (index >= elf->segment_count) return false;
    Elf64_Phdr header;
    memcpy(&header, elf->bytes + elf->segments_at + (uint64_t)index * sizeof header, sizeof header);
    if (!bs_is_within(header.p_offset, header.p_filesz, elf->size_bytes)) return false;
    if (header.p_type == PT_LOAD && (header.p_filesz > header.p_memsz || header.p_vaddr > UINT64_MAX - header.p_memsz))
        return false;
    *out_segment = (bs_elf_segment){.type = header.p_type,
                                    .flags = header.p_flags,
                                    .offset = header.p_offset,
                                    .file_bytes = header.p_filesz,
                                    .address = header.p_vaddr,
                                    .memory_bytes = header.p_memsz};
    return true;
}

bool bs_elf_section_at(const bs_elf *elf, uint32_t index, bs_elf_section *out_section)
{
    if (index >= elf->section_count) return false;
    Elf64_Shdr header = header_at(elf, index);
    bool has_bytes = header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL;
    if (header.sh_name >= elf->names_bytes || header.sh_size > SIZE_MAX ||
        (has_bytes && !bs_is_within(header.sh_offset, header.sh_size, elf->size_bytes)))
        return false;
    *out_section = (bs_elf_section){.name = elf->names + header.sh_name,
                                    .type = header.sh_type,
                                    .link = header.sh_link,
                                    .info = header.sh_info,
                                    .flags = header.sh_flags,
                                    .offset = header.sh_offset,
                                    .address = header.sh_addr,
                                    .size_bytes = header.sh_size,
                                    .bytes = has_bytes ? elf->bytes + header.sh_offset : NULL};
    return true;
}

bool bs_elf_section_named(const bs_elf *elf, const char *name, bs_elf_section *out_section)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        bs_elf_section section;
        if (!bs_elf_section_at(elf, i, &section) || strcmp(section.name, name) != 0) continue;
        *out_section = section;
        return true;
    }
    return false;
}
