/* artefact.h — the steps from plans to a file, one source file per step. cg_write_artefact (artefact.c) runs them in
 * order.
 *
 *   cuda/             plans → a cubin for each GPU architecture, with its own weights
 *   cpu/              plans → one object file of code for all CPUs, with weights packed for that code
 *   artefact_table.c  plans → the table that describes the artefact; table_builder.c builds it
 *   elf_writer.c      table, weights and cubins → an object file of data
 *   link.c            both objects → the artefact, which appears complete or not at all
 */
#ifndef CG_ARTEFACT_H
#define CG_ARTEFACT_H

#include "codegen/codegen.h"

/* Generates code for every entry, bucket and target, packs the weights, links, and renames the artefact to `path`,
 * where it appears complete or not at all. Constants that several plans share (the same ir_tensor, or equal bytes)
 * are stored once. Kernels with equal specifications are generated once. Parts that GPUs cannot run are omitted from
 * their code with a warning (cuda/cuda_images.h). */
mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err);

#endif
