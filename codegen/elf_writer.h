/* elf_writer.h — data → an object file. */
#ifndef CG_ELF_WRITER_H
#define CG_ELF_WRITER_H

#include "codegen/backend.h"

/* Writes a relocatable object of a machine with read-only data sections. Returns IO on failure, which may leave a
 * partial file. */
mdot_status cg_elf_write_object(const char *path, uint16_t elf_machine, const cg_data_section *sections, size_t count,
                                mdot_error *err);

#endif
