/* artefact.h — the steps from plans to a file, one file a step; cg_write_artefact (artefact.c) runs them in order.
 *
 *   cuda/       plans → a cubin for each GPU architecture, with weights of their own
 *   cpu/        plans → one object file of code for all CPUs, with the weights in the form that it reads
 *   table.c     plans → the table that describes the artefact
 *   elf.c       table, weights and cubins → an object file of data
 *   link.c      both objects → the artefact, complete or not at all
 */
#ifndef CG_ARTEFACT_H
#define CG_ARTEFACT_H

#include "codegen/codegen.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/machine.h"
#include "codegen/pool.h"

/* The table, file_bytes and checksum still zero. */
mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_cpu_images *cpu, const cu_images *cuda, cg_pool *table, mdot_error *err);

typedef struct cg_data_section {
    const char *name, *symbol; /* the symbol is global and stands at the section's start */
    const void *bytes;
    size_t size_bytes, alignment;
} cg_data_section;

/* A relocatable object of a machine with read-only data sections; IO on failure, a partial file may be left. */
mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err);

typedef struct cg_parts {
    const cg_machine *machine;          /* of the code */
    const void *table, *weights, *code; /* code: an object file's bytes */
    size_t table_bytes, weights_bytes, code_bytes;
    const void *cubins, *cuda_weights; /* of no bytes: the artefact has no such section */
    size_t cubins_bytes, cuda_weights_bytes;
} cg_parts;

/* Links the parts with the system's linker, completes file_bytes and checksum, and renames the result to `path`.
 * TOOLCHAIN with the linker's words, or IO; then `path` is what it was and nothing else is left behind. */
mdot_status cg_link_artefact(const cg_parts *parts, const char *path, ir_arena *arena, mdot_error *err);

#endif
