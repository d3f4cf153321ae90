/* artefact.h — the steps from plans to a file, one source file per step. cg_write_artefact (artefact.c) runs them in
 * order.
 *
 *   cuda/             plans → a cubin for each GPU architecture, with its own weights
 *   cpu/              plans → one object file of code for all CPUs, with weights packed for that code
 *   artefact_table.c  plans → the table that describes the artefact; table_builder.c builds it
 *   elf_writer.c      table, weights and cubins → an object file of data
 *   link.c            both objects → the artefact, which appears complete or not at all
 */
#pragma once

#include "base/status.h"
#include "codegen/backend.h"
#include "codegen/codegen.h"
#include "ir/arena.h"

/* Generates code for every entry, bucket and target, packs the weights, links, and renames the artefact to `path`,
 * where it appears complete or not at all. Constants that several plans share (the same ir_tensor, or equal bytes)
 * are stored once. Kernels with equal specifications are generated once. Parts that GPUs cannot run are omitted from
 * their code with a warning (cuda/cuda_images.h). */
mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err);

/* ---- artefact_table.c: plans and the backends' images → an artefact's table (mdot_abi.h), which describes the
 * artefact. */

/* `sets` holds the images by cg_backends (backend.h). The table's file_bytes and checksum are still zero. */
mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_image_set sets[CG_BACKENDS], cg_table *out_table, mdot_error *err);

/* elf_writer.c: writes a machine's relocatable object with read-only data sections. Returns IO on failure, which may
 * leave a partial file. */
mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err);

/* link.c: object files → the artefact. */
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

/* temp_dir.c: the private temporary folder beside an output, for the linker. */
typedef enum cg_work_file {
    CG_DATA_OBJECT,
    CG_CODE_OBJECT,
    CG_EXPORT_MAP,
    CG_LINKER_OUTPUT,
    CG_LINKED,
    CG_WORK_FILE_COUNT
} cg_work_file;

typedef struct cg_temp_dir {
    char *directory;
    char *file[CG_WORK_FILE_COUNT];
    int lock; /* directory descriptor, which holds a lock for the life of the process */
} cg_temp_dir;

/* Creates a folder beside `path`. Also removes folders there that killed compilations abandoned, and temporary files
 * that killed processes abandoned (base/file.h). Strings are in the arena. */
mdot_status cg_temp_dir_open(const char *path, ir_arena *arena, cg_temp_dir *out, mdot_error *err);
/* Removes the folder with all files in it, including the linker's own. */
void cg_temp_dir_close(const cg_temp_dir *w);
