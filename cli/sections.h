/* sections.h — ELF sections in the memory image, for `mdot inspect`. */
#ifndef CLI_SECTIONS_H
#define CLI_SECTIONS_H

#include "mdot/mdot.h"

typedef struct cli_section {
    char name[32]; /* longer names are cut */
    uint64_t address, size_bytes;
    const char *access; /* "r--", "r-x", "rw-" */
} cli_section;

/* Returns a malloc'ed array, which the caller frees. NOT_FOUND, IO, MALFORMED or OUT_OF_MEMORY on failure. */
mdot_status cli_read_sections(const char *path, cli_section **out_sections, size_t *out_count, mdot_error *err);

#endif
