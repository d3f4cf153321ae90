/* elf_sections.c — finds an artefact's sections in the file's bytes, before any of it is loaded.
 *
 * base/elf_read.h keeps all reads within the file. The checks here guarantee two further properties (System V gABI,
 * chapter 5):
 *
 *   - Each of the artefact's sections is mapped whole and read-only, at the address in its header.
 *   - The file can be loaded by mapping alone: it has no relocations, dependencies or initialisers. */
#include "mdot/mdot_abi.h"
#include "runtime/core/loader.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#else
enum { HOST_MACHINE = EM_NONE };
#endif

/* Dynamic tags that artefacts must not have, because they run code, load files or change memory at dlopen. */
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

static mdot_status check_dynamic(const bs_elf *file, const bs_elf_segment *segment, mdot_error *err)
{
    for (uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= segment->file_bytes; offset += sizeof(Elf64_Dyn)) {
        Elf64_Dyn dynamic;
        memcpy(&dynamic, file->bytes + segment->offset + offset, sizeof dynamic);
        if (dynamic.d_tag == DT_NULL) break;
        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
            if (dynamic.d_tag == forbidden[i].tag)
                return mdot_fail(err, MDOT_MALFORMED, "the ELF file has %s, which an artefact must omit",
                                 forbidden[i].what);
    }
    return MDOT_OK;
}

static mdot_status check_segments(const bs_elf *file, mdot_error *err)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        bs_elf_segment segment;
        if (!bs_elf_segment_at(file, i, &segment))
            return mdot_fail(err, MDOT_MALFORMED,
                             "ELF segment %u is outside the file or has impossible sizes: truncated?", i);
        if (segment.type != PT_DYNAMIC) continue;
        BS_TRY(check_dynamic(file, &segment, err));
    }
    return MDOT_OK;
}

/* True if the whole section is mapped from the file, read-only, at the address in its header. */
static bool is_mapped(const bs_elf *file, const bs_elf_section *section)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        bs_elf_segment segment;
        if (bs_elf_segment_at(file, i, &segment) && segment.type == PT_LOAD && !(segment.flags & PF_W) &&
            section->address >= segment.address &&
            bs_is_within(section->address - segment.address, section->size_bytes, segment.file_bytes) &&
            section->address - segment.address == section->offset - segment.offset)
            return true;
    }
    return false;
}

typedef struct wanted_section {
    const char *name;
    uint64_t alignment;
    rt_section *out;
    bool optional;
} wanted_section;

static mdot_status read_section(const bs_elf *file, const bs_elf_section *section, const wanted_section *wanted,
                                mdot_error *err)
{
    if (wanted->out->address != 0) return mdot_fail(err, MDOT_MALFORMED, "two ELF sections are named %s", wanted->name);
    if (section->type != SHT_PROGBITS || !(section->flags & SHF_ALLOC))
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s must be loadable data", wanted->name);
    if (section->address == 0 || section->address % wanted->alignment != 0 || section->offset % wanted->alignment != 0)
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s must be aligned to %d bytes", wanted->name,
                         (int)wanted->alignment);
    if (!is_mapped(file, section))
        return mdot_fail(err, MDOT_MALFORMED, "ELF section %s must be in a read-only segment", wanted->name);
    *wanted->out = (rt_section){section->offset, section->address, section->size_bytes};
    return MDOT_OK;
}

static mdot_status find_sections(rt_elf *elf, mdot_error *err)
{
    const wanted_section wanted[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_ALIGNMENT, &elf->table, false},
        {MDOT_ABI_SECTION_CODE, sizeof(int64_t), &elf->code, false},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_ALIGNMENT, &elf->weights, false},
        {MDOT_ABI_SECTION_CUBINS, MDOT_ABI_CUDA_ALIGNMENT, &elf->cubins, true},
        {MDOT_ABI_SECTION_CUDA_WEIGHTS, MDOT_ABI_CUDA_ALIGNMENT, &elf->cuda_weights, true},
    };
    enum { WANTED_COUNT = sizeof wanted / sizeof wanted[0] };
    for (uint32_t s = 0; s < elf->file.section_count; s++) {
        bs_elf_section section;
        if (!bs_elf_section_at(&elf->file, s, &section))
            return mdot_fail(err, MDOT_MALFORMED, "ELF section %u is outside the file or lacks a name: truncated?", s);
        for (size_t i = 0; i < WANTED_COUNT; i++) {
            if (strcmp(section.name, wanted[i].name) != 0) continue;
            BS_TRY(read_section(&elf->file, &section, &wanted[i], err));
        }
    }
    for (size_t i = 0; i < WANTED_COUNT; i++)
        if (wanted[i].out->address == 0 && !wanted[i].optional)
            return mdot_fail(err, MDOT_MALFORMED, "the file is not an artefact: it lacks ELF section %s",
                             wanted[i].name);
    return MDOT_OK;
}

mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err)
{
    rt_elf elf = {0};
    BS_TRY(bs_elf_open(bytes, size_bytes, "an artefact of `mdot compile`", HOST_MACHINE, &elf.file, err));
    if (elf.file.type != ET_DYN)
        return mdot_fail(err, MDOT_MALFORMED, "the file is not an artefact: it must be an ELF shared object");
    BS_TRY(check_segments(&elf.file, err));
    BS_TRY(find_sections(&elf, err));
    *out_elf = elf;
    return MDOT_OK;
}

bool rt_elf_is_code(const rt_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->file.segment_count; i++) {
        bs_elf_segment segment;
        if (bs_elf_segment_at(&elf->file, i, &segment) && segment.type == PT_LOAD && (segment.flags & PF_X) &&
            address >= segment.address && address - segment.address < segment.file_bytes)
            return true;
    }
    return false;
}
