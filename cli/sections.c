/* sections.c — see sections.h. Reads headers only, at the offsets that the file gives; what is outside reads as an
 * error. */
#include "cli/sections.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_at(FILE *file, uint64_t offset, void *out, size_t size_bytes)
{
    return offset <= INT64_MAX && fseeko(file, (off_t)offset, SEEK_SET) == 0 &&
           fread(out, 1, size_bytes, file) == size_bytes;
}

static const char *access_of(const Elf64_Shdr *section)
{
    if (section->sh_flags & SHF_EXECINSTR) return "r-x";
    return section->sh_flags & SHF_WRITE ? "rw-" : "r--";
}

static void read_name(FILE *file, uint64_t offset, cli_section *out)
{
    out->name[0] = '\0';
    if (offset > INT64_MAX || fseeko(file, (off_t)offset, SEEK_SET) != 0) return;
    size_t got = fread(out->name, 1, sizeof out->name - 1, file);
    out->name[got] = '\0'; /* the name's own NUL is before this, or it is cut here */
}

static mdot_status read_file(FILE *file, const char *path, cli_section **out_sections, size_t *out_count,
                             mdot_error *err)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shentsize != sizeof section ||
        !read_at(file, header.e_shoff + (uint64_t)header.e_shstrndx * sizeof names, &names, sizeof names))
        return mdot_fail(err, MDOT_MALFORMED, "%s: the ELF section table cannot be read", path);
    cli_section *sections = calloc((size_t)header.e_shnum + 1, sizeof *sections);
    if (sections == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: memory ran out", path);
    size_t count = 0;
    for (uint64_t i = 0; i < header.e_shnum; i++) {
        if (!read_at(file, header.e_shoff + i * sizeof section, &section, sizeof section)) break;
        if (!(section.sh_flags & SHF_ALLOC)) continue;
        cli_section *out = &sections[count++];
        read_name(file, names.sh_offset + section.sh_name, out);
        out->address = section.sh_addr;
        out->size_bytes = section.sh_size;
        out->access = access_of(&section);
    }
    *out_sections = sections;
    *out_count = count;
    return MDOT_OK;
}

mdot_status cli_read_sections(const char *path, cli_section **out_sections, size_t *out_count, mdot_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    mdot_status status = read_file(file, path, out_sections, out_count, err);
    fclose(file);
    return status;
}
