/* test_link.c — the linked artefact follows mdot_abi.h, and linking leaves only the output behind. */
#include "base/file.h"
#include "codegen/artefact.h"
#include "codegen/cpu/cpu_target.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static fixture shared;

static int setup(void **state)
{
    (void)state;
    fixture_open(&shared);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&shared);
    return 0;
}

static const Elf64_Shdr *section_of_type(uint32_t type)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)shared.bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(shared.bytes + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == type) return &sections[i];
    return NULL;
}

static void only_abi_symbols_are_exported_and_none_is_imported(void **state)
{
    (void)state;
    const Elf64_Shdr *section = section_of_type(SHT_DYNSYM);
    assert_non_null(section);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)shared.bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(shared.bytes + header->e_shoff);
    const char *names = (const char *)shared.bytes + sections[section->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(shared.bytes + section->sh_offset);
    size_t count = section->sh_size / sizeof *symbols;
    const char *const expected[] = {MDOT_ABI_SYMBOL_TABLE, MDOT_ABI_SYMBOL_CODE, MDOT_ABI_SYMBOL_WEIGHTS};
    assert_int_equal(count, 1 + 3); /* the null symbol */
    for (size_t e = 0; e < 3; e++) {
        bool found = false;
        for (size_t i = 1; i < count; i++)
            found |= symbols[i].st_shndx != SHN_UNDEF && strcmp(names + symbols[i].st_name, expected[e]) == 0;
        if (!found) fail_msg("%s is not exported", expected[e]);
    }
}

static void kernels_keep_their_names_for_debuggers(void **state)
{
    (void)state;
    assert_non_null(section_of_type(SHT_SYMTAB));
    assert_non_null(memmem(shared.bytes, shared.size_bytes, "fixture_predict_16_v3", 22));
}

static void artefact_has_no_load_time_relocations(void **state)
{
    (void)state;
    assert_null(section_of_type(SHT_RELA));
    assert_null(section_of_type(SHT_REL));
    const Elf64_Shdr *section = section_of_type(SHT_DYNAMIC);
    assert_non_null(section);
    const Elf64_Dyn *dynamic = (const Elf64_Dyn *)(shared.bytes + section->sh_offset);
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        assert_int_not_equal(dynamic->d_tag, DT_NEEDED);
        assert_int_not_equal(dynamic->d_tag, DT_RELA);
        assert_int_not_equal(dynamic->d_tag, DT_TEXTREL);
        assert_int_not_equal(dynamic->d_tag, DT_INIT);
    }
}

static void no_segment_is_both_writable_and_executable(void **state)
{
    (void)state;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)shared.bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(shared.bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        assert_int_not_equal(segments[i].p_flags & (PF_W | PF_X), PF_W | PF_X);
        if (segments[i].p_type == PT_GNU_STACK) assert_int_equal(segments[i].p_flags & PF_X, 0);
    }
}

static void weights_start_on_a_page_of_a_read_only_segment(void **state)
{
    (void)state;
    size_t at, size;
    assert_true(fixture_find_section(shared.bytes, shared.size_bytes, MDOT_ABI_SECTION_WEIGHTS, &at, &size));
    assert_int_equal(at % 4096, 0);
    assert_int_equal(size, 64);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)shared.bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(shared.bytes + header->e_phoff);
    bool found = false;
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && at >= segments[i].p_offset &&
            at + size <= segments[i].p_offset + segments[i].p_filesz) {
            assert_int_equal(segments[i].p_flags, PF_R);
            assert_int_equal(segments[i].p_vaddr % 64, segments[i].p_offset % 64);
            found = true;
        }
    assert_true(found);
}

static void table_holds_file_size_and_checksum(void **state)
{
    (void)state;
    const mdot_abi_table *table = &fixture_table_of(&shared)->head;
    assert_int_equal(table->file_bytes, shared.size_bytes);
    assert_int_equal(table->checksum, mdot_abi_file_checksum(shared.bytes, shared.size_bytes, shared.table_at));
}

static void linking_is_reproducible(void **state)
{
    (void)state;
    fixture again;
    fixture_open(&again);
    assert_int_equal(again.size_bytes, shared.size_bytes);
    assert_memory_equal(again.bytes, shared.bytes, shared.size_bytes);
    fixture_close(&again);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static mdot_status link_within(int64_t limit_ms, const void *code, size_t code_bytes, const char *path, mdot_error *err)
{
    static const char table[sizeof(mdot_abi_table)], weights[64];
    const cg_data_section sections[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, table, sizeof table, MDOT_ABI_ALIGNMENT},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_SYMBOL_WEIGHTS, weights, sizeof weights, CG_PAGE_BYTES},
    };
    cg_parts parts = {.machine = &cg_machine_x86_64,
                      .code = code,
                      .code_bytes = code_bytes,
                      .sections = sections,
                      .section_count = 2,
                      .linker_limit_ms = limit_ms};
    ir_arena *arena = ir_arena_create(0);
    mdot_status status = cg_link_artefact(&parts, path, arena, err);
    ir_arena_destroy(arena);
    return status;
}

static mdot_status link_code(const void *code, size_t code_bytes, const char *path, mdot_error *err)
{
    return link_within(0, code, code_bytes, path, err);
}

static void weights_beyond_the_reach_of_code_are_refused(void **state)
{
    (void)state;
    static const char table[sizeof(mdot_abi_table)];
    const size_t size = (size_t)9 << 28;
    void *weights = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(weights != MAP_FAILED);
    const cg_data_section sections[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, table, sizeof table, MDOT_ABI_ALIGNMENT},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_SYMBOL_WEIGHTS, weights, size, CG_PAGE_BYTES},
    };
    const cg_parts parts = {
        .machine = &cg_machine_x86_64, .code = "", .code_bytes = 1, .sections = sections, .section_count = 2};
    char *folder = process_make_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    assert_int_equal(cg_link_artefact(&parts, path, arena, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "2.25 GiB, but CPU code reaches less than 2 GiB"));
    assert_int_equal(process_count_files(folder), 0);
    ir_arena_destroy(arena);
    munmap(weights, size);
    process_remove_folder(folder);
}

static void failed_link_keeps_the_old_output(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    char path[512], text[16] = "";
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    FILE *file = fopen(path, "w");
    fputs("before", file);
    fclose(file);
    mdot_error err;
    assert_int_equal(link_code("no object file", 14, path, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "code.o")); /* from the linker's own message */
    file = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "before");
    assert_int_equal(process_count_files(folder), 1);
    process_remove_folder(folder);
}

/* Reads the fixture's code object for tests to change. */
static size_t read_code(unsigned char *code, size_t capacity)
{
    FILE *file = fopen(MDOT_FIXTURE_CODE, "rb");
    assert_non_null(file);
    size_t size = fread(code, 1, capacity, file);
    fclose(file);
    assert_compare(size, >, 0);
    assert_compare(size, <, capacity);
    return size;
}

enum { CODE_CAPACITY = 1 << 16 };

static void imported_symbol_is_a_toolchain_error(void **state)
{
    (void)state;
    _Alignas(8) static unsigned char code[CODE_CAPACITY];
    size_t size = read_code(code, sizeof code);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)code;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(code + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const char *names = (const char *)code + sections[sections[i].sh_link].sh_offset;
        Elf64_Sym *symbols = (Elf64_Sym *)(code + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            if (strcmp(names + symbols[k].st_name, "fixture_double_v3") == 0) symbols[k].st_shndx = SHN_UNDEF;
    }
    char *folder = process_make_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    mdot_error err;
    assert_int_equal(link_code(code, size, path, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "fixture_double_v3"));
    assert_int_equal(process_count_files(folder), 0);
    process_remove_folder(folder);
}

static void missing_folder_is_an_io_error(void **state)
{
    (void)state;
    mdot_error err;
    assert_int_equal(link_code("", 0, "/nonexistent/predictor.mdot", &err), MDOT_IO);
    assert_non_null(strstr(err.message, "/nonexistent/predictor.mdot"));
}

/* Only the last step fails. */
static void output_that_cannot_be_replaced_is_an_io_error(void **state)
{
    (void)state;
    static unsigned char code[CODE_CAPACITY];
    size_t size = read_code(code, sizeof code);
    char *folder = process_make_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/a-folder", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    mdot_error err;
    assert_int_equal(link_code(code, size, path, &err), MDOT_IO);
    assert_int_equal(process_count_files(folder), 1);
    process_remove_folder(folder);
}

static void missing_linker_is_a_toolchain_error(void **state)
{
    (void)state;
    char *path_before = strdup(getenv("PATH") != NULL ? getenv("PATH") : "");
    char *folder = process_make_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    setenv("PATH", folder, 1);
    mdot_error err;
    mdot_status status = link_code("", 0, path, &err);
    setenv("PATH", path_before, 1);
    assert_int_equal(status, MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "ld.lld"));
    assert_int_equal(process_count_files(folder), 0);
    process_remove_folder(folder);
    free(path_before);
}

static void output_in_the_current_folder_needs_no_slash(void **state)
{
    (void)state;
    static unsigned char code[CODE_CAPACITY];
    size_t size = read_code(code, sizeof code);
    char *folder = process_make_folder(), *before = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    mdot_error err = {0};
    mdot_status status = link_code(code, size, "predictor.mdot", &err);
    assert_int_equal(chdir(before), 0);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(process_count_files(folder), 1);
    process_remove_folder(folder);
    free(before);
}

/* ---- Faulty linkers ---------------------------------------------------------------------------------------------- */

/* A folder with this script as `ld`, first in PATH, and an output path. */
typedef struct fake_linker {
    char *folder, *path_before;
    char path[512];
} fake_linker;

static fake_linker use_linker(const char *script)
{
    fake_linker f = {.folder = process_make_folder(), .path_before = strdup(getenv("PATH"))};
    char name[512], all[4096];
    snprintf(name, sizeof name, "%s/bin", f.folder);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(all, sizeof all, "%s:%s", name, f.path_before);
    snprintf(name, sizeof name, "%s/bin/ld", f.folder);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(name, 0700), 0);
    setenv("PATH", all, 1);
    snprintf(f.path, sizeof f.path, "%s/out/predictor.mdot", f.folder);
    snprintf(name, sizeof name, "%s/out", f.folder);
    assert_int_equal(mkdir(name, 0700), 0);
    return f;
}

static void put_linker_back(fake_linker *f)
{
    setenv("PATH", f->path_before, 1);
    free(f->path_before);
    process_remove_folder(f->folder);
}

static int count_outputs(const fake_linker *f)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", f->folder);
    return process_count_files(folder);
}

/* The linker leaves other files beside the output. */
static void files_of_a_killed_linker_are_removed(void **state)
{
    (void)state;
    fake_linker f = use_linker("while [ \"$1\" != -o ]; do shift; done\n"
                               "echo > \"$2.tmp9f6ebeb\"\necho > \"$(dirname \"$2\")/.mold-1234\"\nkill -9 $$");
    mdot_error err = {0};
    assert_int_equal(link_code("", 0, f.path, &err), MDOT_TOOLCHAIN);
    assert_int_equal(count_outputs(&f), 0);
    put_linker_back(&f);
}

/* The linker holds one pipe end, which closes when the linker has ended. */
static void a_linker_that_hangs_is_killed(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fake_linker f = use_linker("exec sleep 1000");
    mdot_error err = {0};
    assert_int_equal(link_within(300, "", 0, f.path, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "did not end within 0.3 s"));
    assert_int_equal(count_outputs(&f), 0);
    close(ends[1]);
    char byte;
    alarm(60); /* if a process still held the pipe, the read would hang */
    assert_int_equal(read(ends[0], &byte, 1), 0);
    alarm(0);
    close(ends[0]);
    put_linker_back(&f);
}

/* The linker runs in the program's process group. */
static void terminal_signals_end_the_linker(void **state)
{
    (void)state;
    fake_linker f = use_linker("cut -d ' ' -f 5 /proc/$$/stat\nexit 1");
    char group[32];
    mdot_error err = {0};
    snprintf(group, sizeof group, "linking failed: %d", (int)getpgrp());
    assert_int_equal(link_code("", 0, f.path, &err), MDOT_TOOLCHAIN);
    assert_string_equal(err.message, group);
    put_linker_back(&f);
}

/* With `ulimit -f`, a signal ends a process that writes beyond the limit. */
static void output_beyond_the_file_size_limit_is_refused(void **state)
{
    (void)state;
    fake_linker f = use_linker("exit 1");
    struct rlimit before, little;
    mdot_error err = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){4096, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    mdot_status status = link_code("", 0, f.path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, MDOT_IO);
    assert_non_null(strstr(err.message, f.path));
    assert_int_equal(count_outputs(&f), 0);
    put_linker_back(&f);
}

/* ---- Files left by killed compilations --------------------------------------------------------------------------- */

static void put(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static bool is_there(const char *folder, const char *name)
{
    char path[512];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &info) == 0;
}

static void only_unowned_temporary_folders_are_removed(void **state)
{
    (void)state;
    static unsigned char code[CODE_CAPACITY];
    size_t size = read_code(code, sizeof code);
    char *folder = process_make_folder(), *before = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    static const char *const folders[] = {".mdot-killed", ".mdot-lld-19",      ".mdot-living",
                                          ".mdot-strang", ".mdot-longer-name", "other"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        assert_int_equal(mkdir(folders[i], 0700), 0);
        put(folders[i], "data.o");
    }
    put(".mdot-killed", "linked.mdot");
    put(".mdot-lld-19", "made-by-mdot");
    put(".mdot-lld-19", "linked.mdot.tmp9f6ebeb"); /* a killed lld's file, too */
    put(".mdot-strang", "letters");
    assert_int_equal(symlink("other", ".mdot-linked"), 0);
    int living = open(".mdot-living", O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(living, LOCK_EX), 0);
    mdot_error err = {0};
    mdot_status status = link_code(code, size, "predictor.mdot", &err);
    bool killed = is_there(".", ".mdot-killed") || is_there(".", ".mdot-lld-19");
    bool stranger = is_there(".mdot-strang", "letters");
    bool others = is_there(".mdot-living", "data.o") && is_there(".mdot-longer-name", "data.o") &&
                  is_there("other", "data.o") && is_there(".", ".mdot-linked");
    close(living);
    assert_int_equal(chdir(before), 0);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    assert_false(killed);
    assert_true(stranger);
    assert_true(others);
    process_remove_folder(folder);
    free(before);
}

/* bs_write_file's temporary files: they have its names, and they are unlocked. */
static void only_unowned_temporary_files_are_removed(void **state)
{
    (void)state;
    static unsigned char code[CODE_CAPACITY];
    size_t size = read_code(code, sizeof code);
    char *folder = process_make_folder(), *before = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    static const char *const stay[] = {".mdot-0123456789abcde", ".mdot-0123456789abcdef0", ".mdot-0123456789ABCDEF",
                                       "mdot-0123456789abcdef", ".mdot-00000000000000aa"};
    enum { STAY = sizeof stay / sizeof *stay };
    for (size_t i = 0; i < STAY; i++) put(".", stay[i]);
    put(".", ".mdot-0123456789abcdef");
    assert_int_equal(symlink(".mdot-0123456789abcde", ".mdot-000000000000000b"), 0);
    assert_int_equal(mkfifo(".mdot-000000000000000c", 0600), 0);
    int held = open(stay[STAY - 1], O_WRONLY);
    assert_true(bs_hold(held));
    mdot_error err = {0};
    mdot_status status = link_code(code, size, "predictor.mdot", &err);
    bool is_left = is_there(".", ".mdot-0123456789abcdef"), are_there = true;
    for (size_t i = 0; i < STAY; i++) are_there = are_there && is_there(".", stay[i]);
    are_there = are_there && is_there(".", ".mdot-000000000000000b") && is_there(".", ".mdot-000000000000000c");
    close(held);
    assert_int_equal(chdir(before), 0);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    assert_false(is_left);
    assert_true(are_there);
    process_remove_folder(folder);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_abi_symbols_are_exported_and_none_is_imported),
        cmocka_unit_test(kernels_keep_their_names_for_debuggers),
        cmocka_unit_test(artefact_has_no_load_time_relocations),
        cmocka_unit_test(no_segment_is_both_writable_and_executable),
        cmocka_unit_test(weights_start_on_a_page_of_a_read_only_segment),
        cmocka_unit_test(table_holds_file_size_and_checksum),
        cmocka_unit_test(linking_is_reproducible),
        cmocka_unit_test(weights_beyond_the_reach_of_code_are_refused),
        cmocka_unit_test(failed_link_keeps_the_old_output),
        cmocka_unit_test(imported_symbol_is_a_toolchain_error),
        cmocka_unit_test(missing_folder_is_an_io_error),
        cmocka_unit_test(output_that_cannot_be_replaced_is_an_io_error),
        cmocka_unit_test(missing_linker_is_a_toolchain_error),
        cmocka_unit_test(output_in_the_current_folder_needs_no_slash),
        cmocka_unit_test(a_linker_that_hangs_is_killed),
        cmocka_unit_test(terminal_signals_end_the_linker),
        cmocka_unit_test(output_beyond_the_file_size_limit_is_refused),
        cmocka_unit_test(files_of_a_killed_linker_are_removed),
        cmocka_unit_test(only_unowned_temporary_folders_are_removed),
        cmocka_unit_test(only_unowned_temporary_files_are_removed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
