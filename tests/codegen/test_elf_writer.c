/* test_elf_writer.c — data objects are written and read back, for this machine and for another, which is given by a
 * number. */
#include "base/elf_read.h"
#include "codegen/artefact.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t read_whole(const char *path, unsigned char *bytes, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, capacity, file);
    fclose(file);
    assert_compare(size, >, 0);
    assert_compare(size, <, capacity);
    return size;
}

static void write_and_read_back(uint16_t machine)
{
    static const unsigned char small[3] = {1, 2, 3}, large[300] = {[299] = 9};
    const cg_data_section sections[] = {{".mdot.one", "one", small, sizeof small, 64},
                                        {".mdot.two", "two", large, sizeof large, 4096}};
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/data.o", folder);
    mdot_error err;
    if (cg_elf_write_object(path, machine, sections, 2, &err) != MDOT_OK) fail_msg("%s", err.message);
    _Alignas(8) static unsigned char bytes[1 << 14];
    size_t size = read_whole(path, bytes, sizeof bytes);
    bs_elf elf;
    if (bs_elf_open(bytes, size, "an object", machine, &elf, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(elf.type, ET_REL);
    for (size_t i = 0; i < 2; i++) {
        bs_elf_section section;
        assert_true(bs_elf_section_named(&elf, sections[i].name, &section));
        assert_int_equal(section.flags, SHF_ALLOC); /* read-only data */
        assert_int_equal(section.size_bytes, sections[i].size_bytes);
        assert_memory_equal(section.bytes, sections[i].bytes, section.size_bytes);
        assert_int_equal((size_t)(section.bytes - bytes) % sections[i].alignment, 0);
    }
    process_remove_folder(folder);
}

static void data_objects_have_the_requested_machine(void **state)
{
    (void)state;
    write_and_read_back(EM_X86_64);
    write_and_read_back(EM_AARCH64);
}

/* The linker gets the machine, so it refuses x86-64 code for another machine. */
static void code_of_another_machine_is_not_linked(void **state)
{
    (void)state;
    static const cg_machine aarch64 = {.name = "aarch64", .elf_machine = EM_AARCH64, .emulation = "aarch64linux"};
    static const char table[sizeof(mdot_abi_table)], weights[64];
    static unsigned char code[1 << 16];
    size_t code_bytes = read_whole(MDOT_FIXTURE_CODE, code, sizeof code);
    const cg_data_section sections[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, table, sizeof table, MDOT_ABI_ALIGNMENT},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_SYMBOL_WEIGHTS, weights, sizeof weights, CG_PAGE_BYTES},
    };
    cg_parts parts = {
        .machine = &aarch64, .code = code, .code_bytes = code_bytes, .sections = sections, .section_count = 2};
    char *folder = process_make_folder(), path[512];
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    assert_int_equal(cg_link_artefact(&parts, path, arena, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "aarch64"));
    ir_arena_destroy(arena);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_objects_have_the_requested_machine),
        cmocka_unit_test(code_of_another_machine_is_not_linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
