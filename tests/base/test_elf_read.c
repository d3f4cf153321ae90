/* test_elf_read.c — base/elf_read.c on a small handmade file: results, and reads inside a damaged file. */
#include "base/elf_read.h"
#include "tests/support/assertions.h"
#include "tests/support/guard.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SECTIONS = 5, SEGMENTS = 2, MACHINE = EM_AARCH64 };

static const char names[24] = "\0.names\0.data\0.room"; /* 24 bytes, so that the file has no padding at its end */

/* The parts in the order of the file. */
typedef struct file {
    Elf64_Ehdr header;
    Elf64_Phdr segment[SEGMENTS];
    Elf64_Shdr section[SECTIONS];
    char names[sizeof names];
    unsigned char data[16];
} file;

static file make(void)
{
    file f = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0, 8},
                   .e_type = ET_DYN,
                   .e_machine = MACHINE,
                   .e_version = EV_CURRENT,
                   .e_flags = 77,
                   .e_phoff = offsetof(file, segment),
                   .e_shoff = offsetof(file, section),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = SEGMENTS,
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = SECTIONS,
                   .e_shstrndx = 1},
        .segment = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = sizeof(file), .p_memsz = sizeof(file)},
                    {.p_type = PT_NOTE, .p_offset = offsetof(file, data), .p_filesz = 16, .p_memsz = 0}},
        .section = {{.sh_type = SHT_NULL},
                    {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(file, names), .sh_size = sizeof names},
                    {.sh_name = 8,
                     .sh_type = SHT_PROGBITS,
                     .sh_flags = SHF_ALLOC,
                     .sh_addr = 0x1000,
                     .sh_offset = offsetof(file, data),
                     .sh_size = 16,
                     .sh_link = 3,
                     .sh_info = 4},
                    {.sh_name = 14, .sh_type = SHT_NOBITS, .sh_offset = UINT64_MAX, .sh_size = 4096},
                    {.sh_name = 8, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(file, data) + 8, .sh_size = 8}},
    };
    memcpy(f.names, names, sizeof names);
    for (unsigned char i = 0; i < sizeof f.data; i++) f.data[i] = i;
    return f;
}

static bs_elf expect_open(const file *f)
{
    bs_elf elf;
    mdot_error err = {0};
    if (bs_elf_open(f, sizeof *f, "a test", MACHINE, &elf, &err) != MDOT_OK) fail_msg("%s", err.message);
    return elf;
}

static void expect_refused(const file *f, mdot_status status, const char *message)
{
    bs_elf elf = {.section_count = 12345};
    mdot_error err = {0};
    assert_int_equal(bs_elf_open(f, sizeof *f, "a test", MACHINE, &elf, &err), status);
    if (strstr(err.message, message) == NULL) fail_msg("\"%s\" does not hold \"%s\"", err.message, message);
    assert_int_equal(elf.section_count, 12345);
}

/* ---- Parts that are found ---------------------------------------------------------------------------------------- */

static void header_is_read(void **state)
{
    (void)state;
    file f = make();
    bs_elf elf = expect_open(&f);
    assert_int_equal(elf.type, ET_DYN);
    assert_int_equal(elf.abi_version, 8);
    assert_int_equal(elf.flags, 77);
    assert_int_equal(elf.segment_count, SEGMENTS);
    assert_int_equal(elf.section_count, SECTIONS);
}

static void sections_are_read(void **state)
{
    (void)state;
    file f = make();
    bs_elf elf = expect_open(&f);
    bs_elf_section section;
    assert_true(bs_elf_section_at(&elf, 2, &section));
    assert_string_equal(section.name, ".data");
    assert_int_equal(section.type, SHT_PROGBITS);
    assert_int_equal(section.flags, SHF_ALLOC);
    assert_int_equal(section.link, 3);
    assert_int_equal(section.info, 4);
    assert_int_equal(section.address, 0x1000);
    assert_int_equal(section.offset, offsetof(file, data));
    assert_int_equal(section.size_bytes, 16);
    assert_ptr_equal(section.bytes, f.data);
    assert_false(bs_elf_section_at(&elf, SECTIONS, &section));
}

static void section_without_bytes_accepts_any_offset(void **state)
{
    (void)state;
    file f = make();
    bs_elf elf = expect_open(&f);
    bs_elf_section section;
    assert_true(bs_elf_section_named(&elf, ".room", &section));
    assert_null(section.bytes);
    assert_int_equal(section.size_bytes, 4096);
}

static void first_section_of_a_name_is_found(void **state)
{
    (void)state;
    file f = make();
    bs_elf elf = expect_open(&f);
    bs_elf_section section;
    assert_true(bs_elf_section_named(&elf, ".data", &section));
    assert_ptr_equal(section.bytes, f.data);
    assert_false(bs_elf_section_named(&elf, ".dat", &section));
    f.section[2].sh_offset = sizeof f; /* a damaged section is skipped */
    assert_true(bs_elf_section_named(&elf, ".data", &section));
    assert_ptr_equal(section.bytes, f.data + 8);
}

static void segments_are_read(void **state)
{
    (void)state;
    file f = make();
    f.segment[0].p_vaddr = 0x4000;
    bs_elf elf = expect_open(&f);
    bs_elf_segment segment;
    assert_true(bs_elf_segment_at(&elf, 0, &segment));
    assert_int_equal(segment.type, PT_LOAD);
    assert_int_equal(segment.flags, PF_R);
    assert_int_equal(segment.offset, 0);
    assert_int_equal(segment.address, 0x4000);
    assert_int_equal(segment.file_bytes, sizeof f);
    assert_int_equal(segment.memory_bytes, sizeof f);
    assert_true(bs_elf_segment_at(&elf, 1, &segment)); /* only loaded segments need memory */
    assert_int_equal(segment.offset, offsetof(file, data));
    assert_false(bs_elf_segment_at(&elf, SEGMENTS, &segment));
}

static void file_without_segments_is_read(void **state)
{
    (void)state;
    file f = make();
    f.header.e_phnum = f.header.e_phentsize = 0;
    f.header.e_phoff = 0;
    bs_elf elf = expect_open(&f);
    bs_elf_segment segment;
    assert_false(bs_elf_segment_at(&elf, 0, &segment));
}

static void any_machine_is_accepted_where_it_is_irrelevant(void **state)
{
    (void)state;
    file f = make();
    bs_elf elf;
    assert_int_equal(bs_elf_open(&f, sizeof f, "a test", EM_X86_64, &elf, NULL), MDOT_INCOMPATIBLE);
    assert_int_equal(bs_elf_open(&f, sizeof f, "a test", BS_ELF_ANY_MACHINE, &elf, NULL), MDOT_OK);
}

/* ---- Refused files ----------------------------------------------------------------------------------------------- */

static void header_of_another_kind_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        unsigned char value;
        mdot_status status;
        const char *message;
    } cases[] = {
        {EI_MAG0, 0, MDOT_MALFORMED, "expected a test, but the file is not an ELF file"},
        {EI_MAG3, 'G', MDOT_MALFORMED, "expected a test, but the file is not an ELF file"},
        {EI_CLASS, ELFCLASS32, MDOT_MALFORMED, "expected a test, but the file is not a 64-bit little-endian ELF file"},
        {EI_DATA, ELFDATA2MSB, MDOT_MALFORMED, "not a 64-bit little-endian"},
        {EI_VERSION, 0, MDOT_MALFORMED, "not a 64-bit little-endian"},
        {offsetof(Elf64_Ehdr, e_version), 2, MDOT_MALFORMED, "not a 64-bit little-endian"},
        {offsetof(Elf64_Ehdr, e_machine), EM_X86_64, MDOT_INCOMPATIBLE, "ELF machine 62) instead of AArch64"},
        {offsetof(Elf64_Ehdr, e_ehsize), 52, MDOT_MALFORMED, "headers have unexpected sizes"},
        {offsetof(Elf64_Ehdr, e_phentsize), 32, MDOT_MALFORMED, "headers have unexpected sizes"},
        {offsetof(Elf64_Ehdr, e_shentsize), 40, MDOT_MALFORMED, "headers have unexpected sizes"},
        {offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff, MDOT_MALFORMED, "segment table is outside"},
        {offsetof(Elf64_Ehdr, e_phnum) + 1, 0xff, MDOT_MALFORMED, "segment table is outside"},
        {offsetof(Elf64_Ehdr, e_shoff) + 7, 0xff, MDOT_MALFORMED, "section table is outside"},
        {offsetof(Elf64_Ehdr, e_shnum) + 1, 0xff, MDOT_MALFORMED, "section table is outside"},
        {offsetof(Elf64_Ehdr, e_shnum), 0, MDOT_MALFORMED, "section table is outside"},
        {offsetof(Elf64_Ehdr, e_shstrndx), SECTIONS, MDOT_MALFORMED, "section names are missing"},
        {offsetof(Elf64_Ehdr, e_shstrndx), 2, MDOT_MALFORMED, "section names are damaged"}, /* missing string table */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = make();
        ((unsigned char *)&f)[cases[i].at] = cases[i].value;
        expect_refused(&f, cases[i].status, cases[i].message);
    }
}

/* NVRTC 12.9 writes 129, its own version, into a cubin's e_version. Other files must have version 1. */
static void cubins_may_have_any_file_version(void **state)
{
    (void)state;
    static const uint32_t versions[] = {0, 1, 129, 130, UINT32_MAX};
    bs_elf elf;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        file f = make();
        f.header.e_version = versions[i];
        mdot_status expected = versions[i] == EV_CURRENT ? MDOT_OK : MDOT_MALFORMED;
        assert_int_equal(bs_elf_open(&f, sizeof f, "a test", MACHINE, &elf, NULL), expected);
        assert_int_equal(bs_elf_open(&f, sizeof f, "a test", BS_ELF_ANY_MACHINE, &elf, NULL), expected);
        f.header.e_machine = EM_CUDA;
        assert_int_equal(bs_elf_open(&f, sizeof f, "a test", EM_CUDA, &elf, NULL), MDOT_OK);
        assert_int_equal(bs_elf_open(&f, sizeof f, "a test", BS_ELF_ANY_MACHINE, &elf, NULL), expected);
        assert_int_not_equal(bs_elf_open(&f, sizeof f, "a test", MACHINE, &elf, NULL), MDOT_OK);
    }
}

static void names_must_end_within_the_file(void **state)
{
    (void)state;
    file f = make();
    f.section[1].sh_size = 10; /* ends in the middle of a name */
    expect_refused(&f, MDOT_MALFORMED, "section names are damaged");
    f.section[1].sh_size = 0;
    expect_refused(&f, MDOT_MALFORMED, "section names are damaged");
    f.section[1].sh_size = UINT64_MAX - f.section[1].sh_offset + 2; /* the end overflows */
    expect_refused(&f, MDOT_MALFORMED, "section names are damaged");
}

static void section_outside_the_file_is_not_found(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, size_bytes;
        uint32_t name;
        bool is_there;
    } cases[] = {
        {offsetof(file, data), 16, 8, true},
        {sizeof(file), 0, 8, true},
        {offsetof(file, data), 17, 8, false},
        {sizeof(file) + 1, 0, 8, false},
        {UINT64_MAX, 2, 8, false},
        {16, UINT64_MAX - 8, 8, false},
        {offsetof(file, data), 16, sizeof names - 1, true},
        {offsetof(file, data), 16, sizeof names, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = make();
        f.section[2].sh_offset = cases[i].offset;
        f.section[2].sh_size = cases[i].size_bytes;
        f.section[2].sh_name = cases[i].name;
        bs_elf elf = expect_open(&f);
        bs_elf_section section = {.type = 12345};
        assert_int_equal(bs_elf_section_at(&elf, 2, &section), cases[i].is_there);
        assert_int_equal(section.type == 12345, !cases[i].is_there);
    }
}

static void segment_with_impossible_sizes_is_not_found(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        uint64_t offset, file_bytes, memory_bytes, address;
        bool is_there;
    } cases[] = {
        {PT_LOAD, 0, 16, 16, 0, true},
        {PT_LOAD, 0, 16, 17, UINT64_MAX - 17, true},
        {PT_LOAD, 0, 16, 17, UINT64_MAX - 16, false}, /* beyond the highest address */
        {PT_LOAD, 0, 16, 15, 0, false},
        {PT_NOTE, 0, 16, 15, UINT64_MAX, true},
        {PT_LOAD, sizeof(file), 0, 0, 0, true},
        {PT_LOAD, sizeof(file), 1, 1, 0, false},
        {PT_LOAD, UINT64_MAX, 2, 2, 0, false},
        {PT_NOTE, 8, UINT64_MAX - 4, UINT64_MAX, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = make();
        f.segment[0] = (Elf64_Phdr){.p_type = cases[i].type,
                                    .p_offset = cases[i].offset,
                                    .p_filesz = cases[i].file_bytes,
                                    .p_memsz = cases[i].memory_bytes,
                                    .p_vaddr = cases[i].address};
        bs_elf elf = expect_open(&f);
        bs_elf_segment segment;
        if (bs_elf_segment_at(&elf, 0, &segment) != cases[i].is_there) fail_msg("case %zu", i);
    }
}

/* ---- Damage ------------------------------------------------------------------------------------------------------ */

/* Reads everything that the reader returns. The file ends at inaccessible memory. */
static size_t visit(const void *bytes, size_t size_bytes)
{
    bs_elf elf;
    mdot_error err = {0};
    if (bs_elf_open(bytes, size_bytes, "a test", MACHINE, &elf, &err) != MDOT_OK) {
        assert_compare(err.message[0], !=, '\0');
        return 0;
    }
    size_t sum = 1;
    for (uint32_t i = 0; i < elf.section_count; i++) {
        bs_elf_section section;
        if (!bs_elf_section_at(&elf, i, &section)) continue;
        sum += strlen(section.name);
        for (uint64_t k = 0; section.bytes != NULL && k < section.size_bytes; k++) sum += section.bytes[k];
    }
    for (uint32_t i = 0; i < elf.segment_count; i++) {
        bs_elf_segment segment;
        if (!bs_elf_segment_at(&elf, i, &segment)) continue;
        for (uint64_t k = 0; k < segment.file_bytes; k++) sum += elf.bytes[segment.offset + k];
    }
    return sum;
}

static void damaged_file_is_read_within_bounds(void **state)
{
    (void)state;
    static const unsigned char values[] = {0, 1, 2, 8, 0x40, 0x7f, 0x80, 0xff};
    const file whole = make();
    guarded g = guard_create(sizeof whole, GUARD_BEYOND);
    size_t read = 0;
    for (size_t at = 0; at < sizeof whole; at++) {
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(g.data, &whole, sizeof whole);
            ((unsigned char *)g.data)[at] = values[v];
            read += visit(g.data, sizeof whole) > 0;
        }
    }
    assert_compare(read, >, 0);
    guard_destroy(&g);
}

static void truncated_file_is_refused_or_read_within_bounds(void **state)
{
    (void)state;
    const file whole = make();
    for (size_t size = 1; size < sizeof whole; size++) {
        guarded g = guard_create(size, GUARD_BEYOND);
        memcpy(g.data, &whole, size);
        assert_int_equal(visit(g.data, size) > 0, size >= offsetof(file, names) + sizeof names);
        guard_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_read),
        cmocka_unit_test(sections_are_read),
        cmocka_unit_test(section_without_bytes_accepts_any_offset),
        cmocka_unit_test(first_section_of_a_name_is_found),
        cmocka_unit_test(segments_are_read),
        cmocka_unit_test(file_without_segments_is_read),
        cmocka_unit_test(any_machine_is_accepted_where_it_is_irrelevant),
        cmocka_unit_test(header_of_another_kind_is_refused),
        cmocka_unit_test(cubins_may_have_any_file_version),
        cmocka_unit_test(names_must_end_within_the_file),
        cmocka_unit_test(section_outside_the_file_is_not_found),
        cmocka_unit_test(segment_with_impossible_sizes_is_not_found),
        cmocka_unit_test(damaged_file_is_read_within_bounds),
        cmocka_unit_test(truncated_file_is_refused_or_read_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
