/* inspect.h — parts of `mdot inspect`: sections.c reads the ELF sections in the memory image, predictor_inputs.c prints
 * the training options that a predictor reads, and the options with analytic estimates. */
#pragma once

#include "mdot/mdot.h"

typedef struct cli_section {
    char name[32]; /* longer names are cut */
    uint64_t address, size_bytes;
    const char *access; /* "r--", "r-x", "rw-" */
} cli_section;

/* Returns a malloc'ed array, which the caller frees. NOT_FOUND, IO, MALFORMED or OUT_OF_MEMORY on failure. */
mdot_status cli_read_sections(const char *path, cli_section **out_sections, size_t *out_count, mdot_error *err);

/* Prints the options of `mdot predict` that the predictor reads, reads in part, or ignores. Prints nothing for
 * artefacts other than job predictors. */
void cli_print_reads(const mdot_predictor *predictor);
/* Prints the same as a member of a JSON object, behind a comma, by the numbers' names (MDOT_CONFIGURATION_MAP). */
void cli_json_reads(const mdot_predictor *predictor);
