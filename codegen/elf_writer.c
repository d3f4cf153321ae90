/* elf_writer.c — a small writer of relocatable ELF objects that hold data.
 *
 * Writing the object directly is the fastest way to pass megabytes of weights to the linker, because it needs no
 * parsing. Unlike `ld -b binary` it places them in read-only memory. (System V gABI, chapter 4. The only
 * machine-dependent value of a data object is the machine's number.)
 */
#include "codegen/artefact.h"
#include "codegen/backend.h"
#include "codegen/byte_pool.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Order in the file: header, data, symbols, names, section headers. Sections: the null section, the data sections,
 * the marker for a non-executable stack, symbols, names. */
typedef struct writer {
    FILE *file;
    uint64_t at;
    cg_pool names, headers, symbols;
} writer;

static void write_bytes(writer *w, const void *bytes, size_t size_bytes)
{
    fwrite(bytes, 1, size_bytes, w->file); /* the caller checks ferror at the end */
    w->at += size_bytes;
}

static void align(writer *w, size_t alignment)
{
    static const unsigned char zeros[64];
    while (w->at % alignment != 0) {
        size_t missing = alignment - w->at % alignment;
        write_bytes(w, zeros, missing < sizeof zeros ? missing : sizeof zeros);
    }
}

static uint32_t add_name(writer *w, const char *name)
{
    return (uint32_t)cg_pool_intern(&w->names, name, strlen(name) + 1, 1);
}

static void add_record(cg_pool *pool, const void *record, size_t size_bytes)
{
    size_t index = cg_pool_reserve(pool, size_bytes, 1);
    if (!pool->failed) memcpy(pool->bytes + index, record, size_bytes);
}

static void write_section(writer *w, Elf64_Shdr header, const char *name, const void *bytes)
{
    align(w, header.sh_addralign);
    header.sh_name = add_name(w, name);
    header.sh_offset = w->at;
    write_bytes(w, bytes, header.sh_size);
    add_record(&w->headers, &header, sizeof header);
}

static void write_data_sections(writer *w, const cg_data_section *sections, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const cg_data_section *section = &sections[i];
        Elf64_Shdr header = {.sh_type = SHT_PROGBITS,
                             .sh_flags = SHF_ALLOC,
                             .sh_size = section->size_bytes,
                             .sh_addralign = section->alignment};
        write_section(w, header, section->name, section->bytes);
        Elf64_Sym symbol = {.st_name = add_name(w, section->symbol),
                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                            .st_other = STV_DEFAULT,
                            .st_shndx = (Elf64_Half)(i + 1),
                            .st_size = section->size_bytes};
        add_record(&w->symbols, &symbol, sizeof symbol);
    }
}

static void write_object(writer *w, uint16_t elf_machine, const cg_data_section *sections, size_t count)
{
    Elf64_Half names_index = (Elf64_Half)(count + 3);
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_REL,
                         .e_machine = elf_machine,
                         .e_version = EV_CURRENT,
                         .e_ehsize = sizeof(Elf64_Ehdr),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)(names_index + 1),
                         .e_shstrndx = names_index};
    add_name(w, "");
    add_record(&w->headers, &(Elf64_Shdr){0}, sizeof(Elf64_Shdr));
    add_record(&w->symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
    write_bytes(w, &header, sizeof header); /* written again at the end, with e_shoff */
    write_data_sections(w, sections, count);
    write_section(w, (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addralign = 1}, ".note.GNU-stack", "");
    Elf64_Shdr symbols = {.sh_type = SHT_SYMTAB,
                          .sh_link = names_index,
                          .sh_info = 1, /* index of the first global symbol */
                          .sh_size = w->symbols.size_bytes,
                          .sh_addralign = sizeof(uint64_t),
                          .sh_entsize = sizeof(Elf64_Sym)};
    write_section(w, symbols, ".symtab", w->symbols.bytes);
    uint32_t own_name = add_name(w, ".strtab"); /* before the section's size is read */
    Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_name = own_name, .sh_size = w->names.size_bytes, .sh_addralign = 1};
    write_section(w, names, ".strtab", w->names.bytes);
    align(w, sizeof(uint64_t));
    header.e_shoff = w->at;
    write_bytes(w, w->headers.bytes, w->headers.size_bytes);
    rewind(w->file);
    write_bytes(w, &header, sizeof header);
}

mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err)
{
    writer w = {.file = fopen(path, "wbxe")};
    if (w.file == NULL) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    write_object(&w, elf_machine, sections, count);
    mdot_status status = MDOT_OK;
    bool written = fflush(w.file) == 0 && !ferror(w.file);
    if (!written) status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    if (w.names.failed || w.headers.failed || w.symbols.failed) status = BS_OUT_OF_MEMORY(err, "%s", path);
    fclose(w.file);
    cg_pool_done(&w.names);
    cg_pool_done(&w.headers);
    cg_pool_done(&w.symbols);
    return status;
}
