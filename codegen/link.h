/* link.h — object files → the artefact. */
#ifndef CG_LINK_H
#define CG_LINK_H

#include "codegen/backend.h"

typedef struct cg_parts {
    const cg_machine *machine; /* machine of the code */
    const void *code;          /* bytes of an object file */
    size_t code_bytes;
    const cg_data_section *sections; /* the table's section is the first */
    size_t section_count;
    mdot_status (*check)(const char *path, mdot_error *err); /* accepts the complete file, under a temporary name; may
                                                              * be NULL */
    int64_t linker_limit_ms; /* time limit of the linker; 0: several minutes, more for larger parts */
} cg_parts;

/* Links the parts with the system's linker, fills in file_bytes and checksum, and renames the result to `path`. A
 * linker that exceeds the limit is killed. Returns TOOLCHAIN with the linker's output, or a note that it was killed;
 * IO, for example if the result exceeds the process's file size limit; UNSUPPORTED above CG_MAX_WEIGHT_BYTES; or the
 * status of `check`. On failure `path` is unchanged and all temporary files are removed. */
mdot_status cg_link_artefact(const cg_parts *parts, const char *path, ir_arena *arena, mdot_error *err);

#endif
