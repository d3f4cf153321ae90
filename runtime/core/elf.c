/* elf.c — finds an artefact's sections in the file's bytes, before anything of it is loaded.
 *
 * Nothing is believed: every offset, size and index is checked against the file without overflowing, and headers are
 * copied out because a damaged file may put them anywhere. What the checks promise afterwards: each of the artefact's
 * sections lies inside the file and is mapped whole, read-only, at the address that its header gives; and loading the
 * file makes the dynamic loader relocate nothing, pull in no other file and call no initialiser. (System V gABI,
 * chapters 4 and 5.)
 */
#include "runtime/core/predictor.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#else
enum { HOST_MACHINE = EM_NONE };
#endif

/* [offset, offset + size) is within [0, limit) */
static bool within(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

static mdot_status check_header(const rt_elf *elf, Elf64_Ehdr *out_header, mdot_error *err)
{
    if (elf->size_bytes < sizeof *out_header)
        return mdot_fail(err, MDOT_MALFORMED, "%llu bytes are too few for an artefact",
                         (unsigned long long)elf->size_bytes);
    Elf64_Ehdr header;
    memcpy(&header, elf->bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return mdot_fail(err, MDOT_MALFORMED, "not an ELF file, so not an artefact");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT || header.e_type != ET_DYN)
        return mdot_fail(err, MDOT_MALFORMED, "not a 64-bit little-endian ELF shared object, so not an artefact");
    if (header.e_machine != HOST_MACHINE)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "made for another processor: ELF machine %d, this one is %d",
                         header.e_machine, HOST_MACHINE);
    if (header.e_ehsize != sizeof(Elf64_Ehdr) || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return mdot_fail(err, MDOT_MALFORMED, "ELF headers of unexpected sizes");
    if (!within(header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr), elf->size_bytes))
        return mdot_fail(err, MDOT_MALFORMED, "the ELF segment table is outside the file: truncated?");
    if (header.e_shoff == 0 || header.e_shnum == 0 ||
        !within(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), elf->size_bytes))
        return mdot_fail(err, MDOT_MALFORMED, "the ELF section table is outside the file: truncated or stripped?");
    if (header.e_shstrndx >= header.e_shnum) return mdot_fail(err, MDOT_MALFORMED, "the ELF section names are missing");
    *out_header = header;
    return MDOT_OK;
}

static Elf64_Phdr segment_at(const rt_elf *elf, uint32_t index)
{
    Elf64_Phdr segment;
    memcpy(&segment, elf->bytes + elf->segments_at + (uint64_t)index * sizeof segment, sizeof segment);
    return segment;
}

static Elf64_Shdr section_at(const rt_elf *elf, const Elf64_Ehdr *header, uint32_t index)
{
    Elf64_Shdr section;
    memcpy(&section, elf->bytes + header->e_shoff + (uint64_t)index * sizeof section, sizeof section);
    return section;
}

/* Dynamic tags of which an artefact has none: they would run code, load files or change memory at dlopen. */
static const struct {
    int64_t tag;
    const char *what;
} forbidden[] = {
    {DT_NEEDED, "a dependency on another library"},
    {DT_RELA, "dynamic relocations"},
    {DT_REL, "dynamic relocations"},
    {DT_RELR, "dynamic relocations"},
    {DT_JMPREL, "dynamic relocations"},
    {DT_TEXTREL, "dynamic relocations"},
    {DT_INIT, "an initialiser"},
    {DT_INIT_ARRAY, "an initialiser"},
    {DT_FINI, "a finaliser"},
    {DT_FINI_ARRAY, "a finaliser"},
    {DT_AUXILIARY, "a filter library"},
    {DT_FILTER, "a filter library"},
};

static mdot_status check_dynamic(const rt_elf *elf, const Elf64_Phdr *segment, mdot_error *err)
{
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment->p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn dynamic;
        memcpy(&dynamic, elf->bytes + segment->p_offset + at, sizeof dynamic);
        if (dynamic.d_tag == DT_NULL) break;
        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
            if (dynamic.d_tag == forbidden[i].tag)
                return mdot_fail(err, MDOT_MALFORMED, "the ELF file has %s; an artefact has none", forbidden[i].what);
    }
    return MDOT_OK;
}

static mdot_status check_segments(const rt_elf *elf, mdot_error *err)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        Elf64_Phdr segment = segment_at(elf, i);
        if (!within(segment.p_offset, segment.p_filesz, elf->size_bytes))
            return mdot_fail(err, MDOT_MALFORMED, "ELF segment %u is outside the file: truncated?", i);
        if (segment.p_type == PT_LOAD &&
            (segment.p_filesz > segment.p_memsz || segment.p_vaddr > UINT64_MAX - segment.p_memsz))
            return mdot_fail(err, MDOT_MALFORMED, "ELF segment %u has impossible sizes", i);
        if (segment.p_type == PT_DYNAMIC) {
            mdot_status status = check_dynamic(elf, &segment, err);
            if (status != MDOT_OK) return status;
        }
    }
    return MDOT_OK;
}

/* The whole section is mapped from the file, read-only, where its header says. */
static bool is_mapped(const rt_elf *elf, const Elf64_Shdr *section)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        Elf64_Phdr segment = segment_at(elf, i);
        if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W) && section->sh_addr >= segment.p_vaddr &&
            within(section->sh_addr - segment.p_vaddr, section->sh_size, segment.p_filesz) &&
            section->sh_addr - segment.p_vaddr == section->sh_offset - segment.p_offset)
            return true;
    }
    return false;
}

static mdot_status read_section(const rt_elf *elf, const Elf64_Shdr *section, const char *name, uint64_t alignment,
                                rt_section *out, mdot_error *err)
{
    if (out->address != 0) return mdot_fail(err, MDOT_MALFORMED, "two ELF sections are named %s", name);
    if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_ALLOC) ||
        !within(section->sh_offset, section->sh_size, elf->size_bytes))
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s is outside the file: truncated?", name);
    if (section->sh_addr == 0 || section->sh_addr % alignment != 0 || section->sh_offset % alignment != 0)
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s is not aligned to %d bytes", name, (int)alignment);
    if (!is_mapped(elf, section))
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s is in no read-only segment", name);
    *out = (rt_section){section->sh_offset, section->sh_addr, section->sh_size};
    return MDOT_OK;
}

static mdot_status find_sections(rt_elf *elf, const Elf64_Ehdr *header, mdot_error *err)
{
    Elf64_Shdr names = section_at(elf, header, header->e_shstrndx);
    if (names.sh_type != SHT_STRTAB || names.sh_size == 0 || !within(names.sh_offset, names.sh_size, elf->size_bytes) ||
        elf->bytes[names.sh_offset + names.sh_size - 1] != '\0')
        return mdot_fail(err, MDOT_MALFORMED, "the ELF section names are damaged");
    const struct {
        const char *name;
        uint64_t alignment;
        rt_section *out;
        bool optional;
    } wanted[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_ALIGNMENT, &elf->table, false},
        {MDOT_ABI_SECTION_CODE, sizeof(int64_t), &elf->code, false},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_ALIGNMENT, &elf->weights, false},
        {MDOT_ABI_SECTION_CUBINS, MDOT_ABI_CUDA_ALIGNMENT, &elf->cubins, true},
        {MDOT_ABI_SECTION_CUDA_WEIGHTS, MDOT_ABI_CUDA_ALIGNMENT, &elf->cuda_weights, true},
    };
    enum { WANTED_COUNT = sizeof wanted / sizeof wanted[0] };
    for (uint32_t s = 0; s < header->e_shnum; s++) {
        Elf64_Shdr section = section_at(elf, header, s);
        if (section.sh_name >= names.sh_size) return mdot_fail(err, MDOT_MALFORMED, "ELF section %u has no name", s);
        const char *name = (const char *)elf->bytes + names.sh_offset + section.sh_name;
        for (size_t i = 0; i < WANTED_COUNT; i++) {
            if (strcmp(name, wanted[i].name) != 0) continue;
            mdot_status status = read_section(elf, &section, name, wanted[i].alignment, wanted[i].out, err);
            if (status != MDOT_OK) return status;
        }
    }
    for (size_t i = 0; i < WANTED_COUNT; i++)
        if (wanted[i].out->address == 0 && !wanted[i].optional)
            return mdot_fail(err, MDOT_MALFORMED, "an ELF file without section %s, so not an artefact", wanted[i].name);
    return MDOT_OK;
}

mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err)
{
    rt_elf elf = {.bytes = bytes, .size_bytes = size_bytes};
    Elf64_Ehdr header = {0};
    mdot_status status = check_header(&elf, &header, err);
    if (status != MDOT_OK) return status;
    elf.segments_at = header.e_phoff;
    elf.segment_count = header.e_phnum;
    status = check_segments(&elf, err);
    if (status != MDOT_OK) return status;
    status = find_sections(&elf, &header, err);
    if (status != MDOT_OK) return status;
    *out_elf = elf;
    return MDOT_OK;
}

bool rt_elf_is_code(const rt_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        Elf64_Phdr segment = segment_at(elf, i);
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return true;
    }
    return false;
}
