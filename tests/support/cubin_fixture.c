/* cubin_fixture.c — see cubin_fixture.h. */
#include "tests/support/cubin_fixture.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const cubin_architecture cubin_architectures[CUBIN_ARCHITECTURES] = {
    {75, false, "sm_75", 121}, {80, false, "sm_80", 121},   {86, false, "sm_86", 121},  {89, false, "sm_89", 121},
    {90, true, "sm_90a", 121}, {100, false, "sm_100", 128}, {120, false, "sm_120", 128}};

enum { SECTIONS = 8, KERNEL_SYMBOL = 1 };

static const char names[] = "\0.shstrtab\0.strtab\0.symtab\0.nv.info\0.nv.info.scale\0.text.scale\0.nv.shared.scale";
static const char symbol_names[] = "\0scale";

/* Attributes: format, code, then a 16-bit value, or in format 4 the bytes that follow. */
static const unsigned char common_attributes[] = {
    4, 0x2f, 8, 0, KERNEL_SYMBOL,     0, 0, 0, 40, 0, 0, 0, /* REGCOUNT */
    4, 0x2f, 8, 0, KERNEL_SYMBOL + 1, 0, 0, 0, 99, 0, 0, 0, /* belongs to another function */
    4, 0x11, 8, 0, KERNEL_SYMBOL,     0, 0, 0, 8,  0, 0, 0, /* FRAME_SIZE */
    4, 0x12, 8, 0, KERNEL_SYMBOL,     0, 0, 0, 16, 0, 0, 0, /* MIN_STACK_SIZE */
};
static const unsigned char own_attributes[] = {
    3, 0x19, 32, 0,                                      /* CBANK_PARAM_SIZE */
    2, 0x4c, 2,  0,                                      /* NUM_BARRIERS */
    4, 0x05, 12, 0, 64, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, /* MAX_THREADS */
};
/* HMMA, HMMA under a predicate, another instruction, HMMA, and one whose second half looks like HMMA */
static const uint64_t code[][2] = {
    {0x000000040a04723c, 0}, {0x000000040a04023c, 0}, {0x0000000000007941, 0}, {0x23c, 0}, {0x7918, 0x23c}};

static size_t name_at(const char *name)
{
    for (size_t i = 0; i + strlen(name) < sizeof names; i++)
        if (i > 0 && names[i - 1] == '\0' && strcmp(names + i, name) == 0) return i;
    fail_msg("no section name %s", name);
    return 0;
}

const unsigned char *cubin_by_hand(ir_arena *arena, size_t *out_bytes)
{
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10, .st_shndx = 6},
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_shndx = 6}, /* a local function */
    };
    const struct {
        const char *name;
        uint32_t type, link;
        const void *bytes;
        size_t size_bytes;
    } sections[SECTIONS] = {
        {.name = NULL},
        {".shstrtab", SHT_STRTAB, 0, names, sizeof names},
        {".strtab", SHT_STRTAB, 0, symbol_names, sizeof symbol_names},
        {".symtab", SHT_SYMTAB, 2, symbols, sizeof symbols},
        {".nv.info", SHT_LOPROC, 3, common_attributes, sizeof common_attributes},
        {".nv.info.scale", SHT_LOPROC, 3, own_attributes, sizeof own_attributes},
        {".text.scale", SHT_PROGBITS, 3, code, sizeof code},
        {".nv.shared.scale", SHT_NOBITS, 0, NULL, 1024 + 768},
    };
    size_t bytes = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
    for (int i = 0; i < SECTIONS; i++) bytes += sections[i].bytes != NULL ? sections[i].size_bytes : 0;
    unsigned char *file = ir_arena_alloc(arena, bytes, 1);
    assert_non_null(file);
    size_t at = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 41, 8},
        .e_type = ET_EXEC,
        .e_machine = EM_CUDA,
        .e_version = EV_CURRENT,
        .e_flags = 0x6000000 | 90 << 8 | 4,
        .e_shoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = 1};
    memcpy(file, &header, sizeof header);
    for (int i = 1; i < SECTIONS; i++) {
        const Elf64_Shdr section = {.sh_name = (Elf64_Word)name_at(sections[i].name),
                                    .sh_type = sections[i].type,
                                    .sh_offset = at,
                                    .sh_size = sections[i].size_bytes,
                                    .sh_link = sections[i].link};
        memcpy(file + sizeof header + (size_t)i * sizeof section, &section, sizeof section);
        if (sections[i].bytes == NULL) continue;
        memcpy(file + at, sections[i].bytes, sections[i].size_bytes);
        at += sections[i].size_bytes;
    }
    *out_bytes = bytes;
    return file;
}

cu_nvrtc cubin_nvrtc_or_skip(void)
{
    cu_nvrtc nvrtc;
    mdot_error err;
    if (cu_nvrtc_load(&nvrtc, &err) != MDOT_OK) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    return nvrtc;
}

bool cubin_is_known(const cu_nvrtc *nvrtc, const cubin_architecture *architecture)
{
    if (10 * nvrtc->major + nvrtc->minor >= architecture->since) return true;
    print_message("left out: NVRTC %d.%d is too old for %s\n", nvrtc->major, nvrtc->minor, architecture->name);
    return false;
}
