/* artefact.h — the steps from plans to a file, one source file per step. cg_write_artefact (artefact.c) runs them in
 * order.
 *
 *   cuda/       plans → a cubin for each GPU architecture, with its own weights
 *   cpu/        plans → one object file of code for all CPUs, with weights packed for that code
 *   artefact_table.c  plans → the table that describes the artefact; table_builder.c builds it
 *   elf_writer.c       table, weights and cubins → an object file of data
 *   link.c      both objects → the artefact, which appears complete or not at all
 */
#ifndef CG_ARTEFACT_H
#define CG_ARTEFACT_H

#include "codegen/backend.h"

/* `made` holds the images of each of cg_backends. The table's file_bytes and checksum are still zero. */
mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_made made[CG_BACKENDS], cg_table *out_table, mdot_error *err);

/* Writes a relocatable object of a machine with read-only data sections. Returns IO on failure, which may leave a
 * partial file. */
mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err);

typedef struct cg_parts {
    const cg_machine *machine; /* machine of the code */
    const void *code;          /* bytes of an object file */
    size_t code_bytes;
    const cg_data_section *sections; /* the table's section is the first */
    size_t section_count;
    int64_t linker_limit_ms; /* time limit of the linker; 0: several minutes, more for larger parts */
} cg_parts;

/* Links the parts with the system's linker, fills in file_bytes and checksum, and renames the result to `path`. A
 * linker that exceeds the limit is killed. Returns TOOLCHAIN with the linker's output, or a note that it was killed;
 * or IO, for example if the result exceeds the process's file size limit. On failure `path` is unchanged and all
 * temporary files are removed. */
mdot_status cg_link_artefact(const cg_parts *parts, const char *path, ir_arena *arena, mdot_error *err);

#endif
