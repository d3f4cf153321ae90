/* sections.c — see inspect.h. */
#include "cli/artefact/inspect.h"

#include "base/elf_read.h"
#include "base/file.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

static const char *access_of(const bs_elf_section *section)
{
    if (section->flags & SHF_EXECINSTR) return "r-x";
    return section->flags & SHF_WRITE ? "rw-" : "r--";
}

static mdot_status list_sections(const bs_elf *elf, cli_section **out_sections, size_t *out_count, mdot_error *err)
{
    cli_section *sections = calloc((size_t)elf->section_count + 1, sizeof *sections);
    if (sections == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    size_t count = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        bs_elf_section section;
        if (!bs_elf_section_at(elf, i, &section) || !(section.flags & SHF_ALLOC)) continue;
        cli_section *out = &sections[count++];
        snprintf(out->name, sizeof out->name, "%s", section.name);
        out->address = section.address;
        out->size_bytes = section.size_bytes;
        out->access = access_of(&section);
    }
    *out_sections = sections;
    *out_count = count;
    return MDOT_OK;
}

mdot_status cli_read_sections(const char *path, cli_section **out_sections, size_t *out_count, mdot_error *err)
{
    unsigned char *bytes;
    size_t size_bytes;
    BS_TRY(bs_read_file(path, &bytes, &size_bytes, err));
    bs_elf elf;
    mdot_error reason = {0};
    mdot_status status = bs_elf_open(bytes, size_bytes, "an artefact", BS_ELF_ANY_MACHINE, &elf, &reason);
    if (status == MDOT_OK) status = list_sections(&elf, out_sections, out_count, &reason);
    free(bytes);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", path, reason.message);
}
