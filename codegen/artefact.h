/* artefact.h — the steps from plans to a file, one file a step; cg_write_artefact (artefact.c) runs them in order.
 *
 *   cuda/       plans → a cubin for each GPU architecture, with weights of their own
 *   cpu/        plans → one object file of code for all CPUs, with the weights in the form that it reads
 *   artefact_table.c  plans → the table that describes the artefact; table_builder.c puts it together
 *   elf_writer.c       table, weights and cubins → an object file of data
 *   link.c      both objects → the artefact, complete or not at all
 */
#ifndef CG_ARTEFACT_H
#define CG_ARTEFACT_H

#include "codegen/backend.h"

/* `made` is what each of cg_backends has made. The table's file_bytes and checksum are still zero. */
mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_made made[CG_BACKENDS], cg_table *out_table, mdot_error *err);

/* A relocatable object of a machine with read-only data sections; IO on failure, a partial file may be left. */
mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err);

typedef struct cg_parts {
    const cg_machine *machine; /* of the code */
    const void *code;          /* an object file's bytes */
    size_t code_bytes;
    const cg_data_section *sections; /* the table's first */
    size_t section_count;
    int64_t linker_limit_ms; /* how long the linker may take; 0: minutes, and longer for larger parts */
} cg_parts;

/* Links the parts with the system's linker, completes file_bytes and checksum, and renames the result to `path`. A
 * linker that takes too long is killed. TOOLCHAIN with the linker's words, or that it was killed, or IO, as for what is
 * larger than the process's files may be; then `path` is what it was and nothing else is left behind. */
mdot_status cg_link_artefact(const cg_parts *parts, const char *path, ir_arena *arena, mdot_error *err);

#endif
